// Command abate has everything but the proxy and clients of databases and brokers: what needs them it hands over to
// abate-proxy and abate-full.
package main

import (
	"github.com/abate-go/abate/cmd/internal/basics"
	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/cmd/internal/inspect"
	"github.com/abate-go/abate/cmd/internal/rehearse"
	"github.com/abate-go/abate/cmd/internal/tracedraw"
)

func main() { program().Main() }

func program() *cli.Program {
	full := cli.Elsewhere{Program: "abate", To: cli.Full, Why: "the proxy, or a client of Kafka, Redis or PostgreSQL"}
	proxy := cli.Elsewhere{Program: "abate", To: "abate-proxy", Why: "the proxy"}
	drills := rehearse.Clients{Kafka: full.Command("drill", "kafka"), Elsewhere: full.Run}
	clients := basics.Clients{Elsewhere: full.Run}
	return &cli.Program{Name: "abate", Intro: "Abate stops retry storms.", Commands: []cli.Command{
		{Name: "drill", Summary: "run a retry storm over real sockets: unguarded, then guarded",
			Run: drills.DrillCommand},
		{Name: "audit", Summary: "read the retries of any stack, and say what they do in an outage",
			Run: inspect.AuditCommand},
		{Name: "lint", Summary: "the same as audit, under the name that pipelines look for", Run: inspect.AuditCommand},
		{Name: "import", Summary: "write a policy file for what files of other programs set", Run: inspect.ImportCommand},
		{Name: "sim", Summary: "run a scenario in virtual time and judge it", Run: rehearse.SimCommand},
		{Name: "tune", Summary: "look for the policy that is best over several scenarios", Run: rehearse.TuneCommand},
		{Name: "proxy", Summary: "send any program's HTTP requests on under a policy file (in abate-proxy)",
			Run: proxy.Command("proxy")},
		{Name: "leave", Summary: "have a proxy ask its clients to go elsewhere, before it ends (in abate-proxy)",
			Run: proxy.Command("leave")},
		{Name: "run", Summary: "start a program whose calls go through a proxy beside it (in abate-proxy)",
			Run: proxy.Command("run")},
		{Name: "top", Summary: "show what the guards of a running program do, live in a terminal",
			Run: rehearse.TopCommand},
		{Name: "trace", Summary: "draw a trace that the proxy has written with --trace-file", Run: tracedraw.Command},
		{Name: "wait", Summary: "wait until databases and services answer, then become a program",
			Run: clients.WaitCommand},
		{Name: "probe", Summary: "ask a URL and exit 0 if it answers 2xx (for health checks in bare images)",
			Run: basics.ProbeCommand},
		{Name: "dlq", Summary: "look at the dead letters of a Kafka topic, and replay them carefully (in abate-full)",
			Run: full.Command("dlq")},
		{Name: "export", Summary: "write a policy file as Prometheus rules, a dashboard, or in another program's format",
			Run: inspect.Exports(rehearse.ExportCommand, rehearse.Exports()...)},
		{Name: "check", Summary: "check policy files and print the policy in force", Run: basics.CheckCommand},
	}}
}
