module github.com/abate-go/abate/adapter/abatepgx

go 1.25.0

require github.com/abate-go/abate v0.0.0

replace github.com/abate-go/abate => ../..
