// Command abate-proxy is the binary for sidecars and gateways: the proxy and what belongs beside it, without drills,
// simulator and Kafka.
package main

import (
	"github.com/abate-go/abate/cmd/internal/basics"
	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/cmd/internal/clients"
	"github.com/abate-go/abate/cmd/internal/inject"
	"github.com/abate-go/abate/cmd/internal/launch"
	"github.com/abate-go/abate/cmd/internal/sidecar"
	"github.com/abate-go/abate/proxy/sharing"
)

func main() { program().Main() }

func program() *cli.Program {
	full := cli.Elsewhere{Program: "abate-proxy", To: cli.Full,
		Why: "a client of Kafka, an embedded Redis, the drill or the simulator"}
	c := sidecar.Clients{Sharing: sharing.Redis(nil), Elsewhere: full.Run}
	runs := launch.Clients{Sharing: c.Sharing, Elsewhere: full.Run}
	waits := basics.Clients{Probers: clients.Probers(), Elsewhere: full.Run}
	p := &cli.Program{Name: "abate-proxy",
		Intro:   "The sidecar and the gateway of Abate. Flags without a command are those of proxy.",
		Default: c.ProxyCommand, Commands: []cli.Command{
			{Name: "proxy", Summary: "send any program's HTTP requests on under a policy file", Run: c.ProxyCommand},
			{Name: "leave", Summary: "have a proxy ask its clients to go elsewhere, before it ends",
				Run: sidecar.LeaveCommand},
			{Name: "run", Summary: "start a program whose calls go through a proxy beside it", Run: runs.RunCommand},
			{Name: "wait", Summary: "wait until databases and services answer, then become a program", Run: waits.WaitCommand},
			{Name: "probe", Summary: "ask a URL and exit 0 if it answers 2xx (for health checks in bare images)",
				Run: basics.ProbeCommand},
			{Name: "inject", Summary: "put the sidecar into new pods: a webhook of Kubernetes", Run: inject.Command},
			{Name: "check", Summary: "check policy files and print the policy in force", Run: basics.CheckCommand},
		}}
	for _, moved := range []string{"drill", "sim", "tune", "top", "trace", "dlq", "export"} {
		p.Commands = append(p.Commands, cli.Command{Name: moved, Summary: "is in abate-full", Run: full.Command(moved)})
	}
	return p
}
