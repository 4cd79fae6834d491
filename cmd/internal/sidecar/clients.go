// Package sidecar has the command that runs beside a program or in front of it: proxy.
package sidecar

import (
	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/proxy"
)

// Clients are what a program has to talk to others with. A slim program has few, and hands over what needs more.
type Clients struct {
	// Sharing is the proxy's way to a Redis; nil for none.
	Sharing proxy.OpenSharing
	// Elsewhere carries out a command that needs a client that is not here; nil if there is no other program.
	Elsewhere cli.Run
}
