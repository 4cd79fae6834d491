// Package launch has the command that starts a proxy and a program that calls through it: run.
//
// The decisions are in files of their own, and pure: environment.go says what a program gets to know, tree.go,
// sockets.go and diag.go read what Linux says about processes and connections, ledger.go finds out whose a connection
// is, report.go puts what has happened into words. child.go starts the program and passes signals on, kernel_linux.go
// and look_linux.go ask the system, watch.go looks for what goes past the proxy, and run.go joins them.
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
