module github.com/abate-go/abate/adapter/abatekafka

go 1.25.0

require (
	github.com/abate-go/abate v0.0.0
	github.com/twmb/franz-go v1.21.7
	github.com/twmb/franz-go/pkg/kadm v1.18.0
	github.com/twmb/franz-go/pkg/kmsg v1.13.1
)

require (
	github.com/expr-lang/expr v1.17.8
	github.com/klauspost/compress v1.19.2 // indirect
	github.com/pierrec/lz4/v4 v4.1.26 // indirect
	golang.org/x/crypto v0.50.0 // indirect
)

replace github.com/abate-go/abate => ../..
