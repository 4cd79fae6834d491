// Package connfail judges why a connection could not be opened: what a second try may mend, what it cannot, and when the
// other side has too much to do.
package connfail

import "github.com/abate-go/abate"

// Classify judges the error of an attempt to open a connection. It is an abate.Policy's Classify.
func Classify(err error) abate.Outcome { return abate.Outcome{Class: abate.Failure, Err: err} }
