package policyfile

import (
	"errors"
	"strings"

	"github.com/abate-go/abate/internal/strictyaml"
)

// Error is one mistake in a policy file and where it stands.
type Error struct {
	File    string // as given to Load or Parse
	Line    int    // from 1; 0 when the mistake has no place in the file
	Col     int    // from 1, in characters
	Service string // the service it is about; empty for defaults and the top level
	Field   string // the field as the file nests it: "circuitBreaker.rampUp", "defaults.timeout"; may be empty
	Problem string // what is wrong, with the value
	Fix     string // what is allowed, with an example; may be empty
}

// Error reads, for instance,
// `policy.yaml:4:32: service "payments", multiplier: 0.5 is out of range; allowed: 1 to 100; for example 2.0`.
func (e Error) Error() string { return strictyaml.Error(e).Error() }

// Errors is every mistake in a file, in the order of the file. errors.As finds both the list and, as an Error, its
// first member.
type Errors []Error

// Error is one line per mistake.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the single mistakes to errors.Is and errors.As.
func (e Errors) Unwrap() []error {
	list := make([]error, len(e))
	for i := range e {
		list[i] = e[i]
	}
	return list
}

// published is the reader's mistakes as the Errors of this package. Other errors stay as they are.
func published(err error) error {
	var found strictyaml.Errors
	if !errors.As(err, &found) {
		return err
	}
	list := make(Errors, len(found))
	for i := range found {
		list[i] = Error(found[i])
	}
	return list
}
