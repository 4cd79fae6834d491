// Support policy: the two Go releases the Go project supports; the line below
// names the older one. The only dependency allowed here is the YAML library
// (internal/tidy holds this), so that importing abate moves no version of yours.
module github.com/abate-go/abate

go 1.25.0

require go.yaml.in/yaml/v3 v3.0.6
