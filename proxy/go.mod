module github.com/abate-go/abate/proxy

go 1.25.0

require (
	github.com/abate-go/abate v0.0.0
	github.com/abate-go/abate/adapter/abatebolt v0.0.0
	github.com/abate-go/abate/adapter/abateredis v0.0.0
	github.com/prometheus/common v0.70.1
	google.golang.org/grpc v1.80.0
)

require (
	go.etcd.io/bbolt v1.4.3 // indirect
	golang.org/x/text v0.40.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260120221211-b8f7ae30c516 // indirect
)

require (
	github.com/abate-go/abate/adapter/abategrpc v0.0.0
	github.com/alicebob/miniredis/v2 v2.40.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_model v0.6.2 // indirect
	github.com/redis/go-redis/v9 v9.22.0 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	go.yaml.in/yaml/v3 v3.0.6
	golang.org/x/net v0.57.0
	golang.org/x/sys v0.47.0 // indirect
	google.golang.org/protobuf v1.36.11
)

replace (
	github.com/abate-go/abate => ..
	github.com/abate-go/abate/adapter/abatebolt => ../adapter/abatebolt
	github.com/abate-go/abate/adapter/abateredis => ../adapter/abateredis
)

replace github.com/abate-go/abate/adapter/abategrpc => ../adapter/abategrpc
