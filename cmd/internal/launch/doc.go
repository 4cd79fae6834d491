// Package launch has the command that starts a proxy and a program that calls through it: run.
//
// The decisions are in files of their own, and pure: environment.go says what a program gets to know, tree.go and
// sockets.go read what Linux says about processes and connections, report.go puts what has happened into words.
// child.go starts the program and passes signals on, and run.go joins them.
package launch

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
