module github.com/abate-go/abate/cmd

go 1.26.0

require (
	github.com/abate-go/abate v0.0.0
	github.com/abate-go/abate/adapter/abatekafka v0.0.0
	github.com/abate-go/abate/adapter/abatekafka/embedded v0.0.0
	github.com/abate-go/abate/adapter/abateredis v0.0.0
	github.com/abate-go/abate/proxy v0.0.0
	github.com/jackc/pgx/v5 v5.12.0
	github.com/redis/go-redis/v9 v9.22.0
	github.com/twmb/franz-go v1.22.2
	github.com/twmb/franz-go/pkg/kadm v1.18.0
	github.com/twmb/franz-go/pkg/kfake v0.0.0-20260918054303-01f206a7e32c
	github.com/twmb/franz-go/pkg/kmsg v1.15.0
	go.yaml.in/yaml/v3 v3.0.6
	golang.org/x/sys v0.47.0
)

require (
	github.com/abate-go/abate/adapter/abatebolt v0.0.0 // indirect
	github.com/alicebob/miniredis/v2 v2.40.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/expr-lang/expr v1.17.8 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/pierrec/lz4/v4 v4.1.33 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.etcd.io/bbolt v1.4.3 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/crypto v0.54.0 // indirect
	golang.org/x/net v0.57.0 // indirect
	golang.org/x/text v0.41.0 // indirect
)

replace (
	github.com/abate-go/abate => ..
	github.com/abate-go/abate/adapter/abatebolt => ../adapter/abatebolt
	github.com/abate-go/abate/adapter/abatekafka => ../adapter/abatekafka
	github.com/abate-go/abate/adapter/abatekafka/embedded => ../adapter/abatekafka/embedded
	github.com/abate-go/abate/adapter/abateredis => ../adapter/abateredis
	github.com/abate-go/abate/proxy => ../proxy
)

replace github.com/abate-go/abate/adapter/abategrpc => ../adapter/abategrpc
