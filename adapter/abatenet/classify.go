package abatenet

import (
	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/connfail"
)

// Classify judges why something could not be reached: an error of the network, of TLS, or what PostgreSQL, MySQL and
// Redis say to somebody who connects. It is for the Classify of a policy, where a whole client is what connects: in
// startup.Connect at the start of a program, whose function returns whatever the driver says. A Dialer, abatesql and
// abatepgx need it not: they judge so by themselves unless the policy has another Classify. docs/connections.md lists
// every decision; what is not on the list is tried again.
func Classify(err error) abate.Outcome { return connfail.Classify(err) }
