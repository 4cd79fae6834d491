package policyfile

import "github.com/abate-go/abate/internal/strictyaml"

// Error is one mistake in a policy file and where it stands: File as given to Load or Parse; Line and Col, from 1, Col
// in characters, both 0 when the mistake has no place in the file; Service, empty for defaults and the top level; Field
// as the file nests it ("circuitBreaker.rampUp"); Problem, what is wrong, with the value; and Fix, what is allowed,
// with an example. Field and Fix may be empty.
type Error = strictyaml.Error

// Errors is every mistake in a file, in the order of the file. errors.As finds both the list and, as an Error, its
// first member.
type Errors = strictyaml.Errors
