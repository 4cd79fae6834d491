package policyfile_test

import (
	"fmt"
	"strings"

	"github.com/abate-go/abate/policyfile"
)

// All mistakes of a file come at once, each with its place and what would be right.
func Example() {
	_, err := policyfile.Parse("policy.yaml", []byte(`
defaults: {maxRetries: 3, initialDelay: 100}
services:
  payment-service: {maxRetrys: 2, multiplier: 0.5}
`))
	fmt.Println(strings.ReplaceAll(err.Error(), "; ", ";\n"))

	file, err := policyfile.Parse("policy.yaml", []byte(`
defaults: {maxRetries: 3, initialDelay: 100ms}
services:
  payment-service: {maxRetries: 2}
`))
	if err != nil {
		panic(err)
	}
	p := file.Services[0].Policy
	fmt.Println(file.Services[0].Name, p.MaxRetries, p.InitialDelay)
	// Output:
	// policy.yaml:2:41: defaults.initialDelay: 100 has no unit;
	// write "100s" for seconds or "100ms" for milliseconds;
	// allowed: 1ms to 1h;
	// for example 100ms
	// policy.yaml:4:21: service "payment-service": unknown key "maxRetrys";
	// did you mean maxRetries?
	// policy.yaml:4:47: service "payment-service", multiplier: 0.5 is out of range;
	// allowed: 1 to 100;
	// for example 2.0
	// payment-service 2 100ms
}
