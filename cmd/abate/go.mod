module github.com/abate-go/abate/cmd/abate

go 1.25.0

require github.com/abate-go/abate v0.0.0

require go.yaml.in/yaml/v3 v3.0.6 // indirect

replace github.com/abate-go/abate => ../..
