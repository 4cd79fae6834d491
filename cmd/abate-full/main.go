// Command abate-full has every command of Abate and every client that they need: of Kafka, Redis and PostgreSQL, and
// brokers to embed for trying.
package main

import (
	"maps"

	"github.com/abate-go/abate/adapter/abateredis/trial"
	"github.com/abate-go/abate/cmd/internal/basics"
	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/cmd/internal/clients"
	"github.com/abate-go/abate/cmd/internal/inspect"
	"github.com/abate-go/abate/cmd/internal/kafkatools"
	"github.com/abate-go/abate/cmd/internal/launch"
	"github.com/abate-go/abate/cmd/internal/rehearse"
	"github.com/abate-go/abate/cmd/internal/sidecar"
	"github.com/abate-go/abate/cmd/internal/tracedraw"
	"github.com/abate-go/abate/cmd/internal/viaproxy"
	"github.com/abate-go/abate/proxy/sharing"
)

func main() { program().Main() }

func program() *cli.Program {
	waits := basics.Clients{Probers: clients.Probers()}
	maps.Copy(waits.Probers, kafkatools.Probers())
	drills := rehearse.Clients{Kafka: kafkatools.DrillKafkaCommand, Via: viaproxy.Start}
	c := sidecar.Clients{Sharing: sharing.Redis(trial.Start)}
	runs := launch.Clients{Sharing: c.Sharing}
	intro := "Abate stops retry storms: this program has all its commands."
	return &cli.Program{Name: "abate-full", Intro: intro, Commands: []cli.Command{
		{Name: "drill", Summary: "run a retry storm over real sockets: unguarded, then guarded",
			Run: drills.DrillCommand},
		{Name: "audit", Summary: "read the retries of any stack, and say what they do in an outage",
			Run: inspect.AuditCommand},
		{Name: "lint", Summary: "the same as audit, under the name that pipelines look for", Run: inspect.AuditCommand},
		{Name: "import", Summary: "write a policy file for what files of other programs set", Run: inspect.ImportCommand},
		{Name: "sim", Summary: "run a scenario in virtual time and judge it", Run: rehearse.SimCommand},
		{Name: "tune", Summary: "look for the policy that is best over several scenarios", Run: rehearse.TuneCommand},
		{Name: "proxy", Summary: "send any program's HTTP requests on under a policy file", Run: c.ProxyCommand},
		{Name: "leave", Summary: "have a proxy ask its clients to go elsewhere, before it ends",
			Run: sidecar.LeaveCommand},
		{Name: "run", Summary: "start a program whose calls go through a proxy beside it", Run: runs.RunCommand},
		{Name: "top", Summary: "show what the guards of a running program do, live in a terminal",
			Run: rehearse.TopCommand},
		{Name: "trace", Summary: "draw a trace that the proxy has written with --trace-file", Run: tracedraw.Command},
		{Name: "wait", Summary: "wait until databases and services answer, then become a program", Run: waits.WaitCommand},
		{Name: "probe", Summary: "ask a URL and exit 0 if it answers 2xx (for health checks in bare images)",
			Run: basics.ProbeCommand},
		{Name: "dlq", Summary: "look at the dead letters of a Kafka topic, and replay them carefully",
			Run: kafkatools.DlqCommand},
		{Name: "export", Summary: "write a policy file as Prometheus rules, a dashboard, or in another program's format",
			Run: inspect.Exports(rehearse.ExportCommand, rehearse.Exports()...)},
		{Name: "check", Summary: "check policy files and print the policy in force", Run: basics.CheckCommand},
	}}
}
