module github.com/abate-go/abate/adapter/abatebolt

go 1.25.0

require (
	github.com/abate-go/abate v0.0.0
	go.etcd.io/bbolt v1.4.3
)

require golang.org/x/sys v0.29.0 // indirect

replace github.com/abate-go/abate => ../..
