module github.com/abate-go/abate/examples/kafka

go 1.26.0

require (
	github.com/abate-go/abate v0.0.0
	github.com/abate-go/abate/adapter/abatekafka v0.0.0
	github.com/abate-go/abate/adapter/abatekafka/embedded v0.0.0
	github.com/twmb/franz-go v1.22.2
	github.com/twmb/franz-go/pkg/kadm v1.18.0
)

require (
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/pierrec/lz4/v4 v4.1.33 // indirect
	github.com/twmb/franz-go/pkg/kfake v0.0.0-20260918054303-01f206a7e32c // indirect
	github.com/twmb/franz-go/pkg/kmsg v1.15.0 // indirect
	golang.org/x/crypto v0.51.0 // indirect
)

replace (
	github.com/abate-go/abate => ../..
	github.com/abate-go/abate/adapter/abatekafka => ../../adapter/abatekafka
	github.com/abate-go/abate/adapter/abatekafka/embedded => ../../adapter/abatekafka/embedded
)
