// Package basics has the commands that every program of ours has: wait, probe and check.
package basics

import (
	"github.com/abate-go/abate/cmd/internal/address"
	"github.com/abate-go/abate/cmd/internal/cli"
)

// Clients are what a program has to talk to others with. A slim program has few, and hands over what needs more.
type Clients struct {
	// Probers ask targets of "abate wait" by scheme, besides those that need no client.
	Probers map[string]address.Prober
	// Elsewhere carries out a command that needs a client that is not here; nil if there is no other program.
	Elsewhere cli.Run
}
