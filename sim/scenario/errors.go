package scenario

import "github.com/abate-go/abate/internal/strictyaml"

// Error is one mistake in a scenario and where it stands.
type Error = strictyaml.Error

// Errors is every mistake in a scenario, in the order of the file. errors.As finds both the list and, as an Error, its
// first member.
type Errors = strictyaml.Errors
