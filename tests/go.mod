// Only tests: with real servers, brokers, client libraries and other projects' conformance suites. Nobody imports them, so that
// their versions move nobody's.
module github.com/abate-go/abate/tests

go 1.26.0

require (
	github.com/abate-go/abate v0.0.0
	github.com/abate-go/abate/adapter/abategrpc v0.0.0
	github.com/abate-go/abate/adapter/abatekafka v0.0.0
	github.com/abate-go/abate/adapter/abatekafka/embedded v0.0.0
	github.com/abate-go/abate/adapter/abateotel v0.0.0
	github.com/abate-go/abate/adapter/abatepgx v0.0.0
	github.com/abate-go/abate/proxy v0.0.0
	github.com/aws/aws-sdk-go-v2 v1.47.7
	github.com/aws/aws-sdk-go-v2/service/sso v1.39.3
	github.com/go-resty/resty/v2 v2.16.5
	github.com/hashicorp/go-retryablehttp v0.7.8
	github.com/hashicorp/hcl v1.0.0
	github.com/jackc/pgx/v5 v5.12.0
	github.com/owenrumney/go-sarif/v3 v3.3.1
	github.com/redis/go-redis/v9 v9.22.0
	github.com/summerwind/h2spec v2.2.1+incompatible
	github.com/twmb/franz-go v1.22.2
	github.com/twmb/franz-go/pkg/kadm v1.18.0
	github.com/twmb/franz-go/pkg/kfake v0.0.0-20260918054303-01f206a7e32c
	github.com/twmb/franz-go/pkg/kmsg v1.15.0
	github.com/xeipuuv/gojsonschema v1.2.0
	go.opentelemetry.io/otel v1.43.0
	go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc v1.43.0
	go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc v1.43.0
	go.opentelemetry.io/otel/sdk v1.43.0
	go.opentelemetry.io/otel/sdk/metric v1.43.0
	go.opentelemetry.io/proto/otlp v1.10.0
	google.golang.org/grpc v1.80.0
	google.golang.org/protobuf v1.36.11
	resty.dev/v3 v3.0.0-rc.4
)

require (
	cloud.google.com/go/compute/metadata v0.9.0 // indirect
	github.com/abate-go/abate/adapter/abatebolt v0.0.0 // indirect
	github.com/aws/aws-sdk-go-v2/internal/configsources v1.5.10 // indirect
	github.com/aws/aws-sdk-go-v2/internal/endpoints/v2 v2.8.10 // indirect
	github.com/aws/smithy-go v1.28.8 // indirect
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/cncf/xds/go v0.0.0-20251210132809-ee656c7534f5 // indirect
	github.com/envoyproxy/protoc-gen-validate v1.3.0 // indirect
	github.com/expr-lang/expr v1.17.8 // indirect
	github.com/fatih/color v1.19.0 // indirect
	github.com/go-logr/logr v1.4.3 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/grpc-ecosystem/grpc-gateway/v2 v2.28.0 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/pierrec/lz4/v4 v4.1.33 // indirect
	github.com/xeipuuv/gojsonpointer v0.0.0-20180127040702-4e3ac2762d5f // indirect
	github.com/xeipuuv/gojsonreference v0.0.0-20180127040603-bd5ef7bd5415 // indirect
	go.etcd.io/bbolt v1.4.3 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel/exporters/otlp/otlptrace v1.43.0 // indirect
	go.opentelemetry.io/otel/metric v1.43.0 // indirect
	go.opentelemetry.io/otel/trace v1.43.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/crypto v0.54.0 // indirect
	golang.org/x/net v0.57.0 // indirect
	golang.org/x/oauth2 v0.36.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260401024825-9d38bb4040a9 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260401024825-9d38bb4040a9 // indirect
)

replace (
	github.com/abate-go/abate => ..
	github.com/abate-go/abate/adapter/abatebolt => ../adapter/abatebolt
	github.com/abate-go/abate/adapter/abategrpc => ../adapter/abategrpc
	github.com/abate-go/abate/adapter/abatekafka => ../adapter/abatekafka
	github.com/abate-go/abate/adapter/abatekafka/embedded => ../adapter/abatekafka/embedded
	github.com/abate-go/abate/adapter/abateotel => ../adapter/abateotel
	github.com/abate-go/abate/adapter/abatepgx => ../adapter/abatepgx
	github.com/abate-go/abate/adapter/abateredis => ../adapter/abateredis
	github.com/abate-go/abate/proxy => ../proxy
)
