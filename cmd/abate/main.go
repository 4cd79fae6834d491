// Command abate is the one binary of Abate: it parses arguments and calls the packages that do the work.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// command is one word after "abate". run returns the exit code: 0 yes, 1 no; what else there is says its help.
type command struct {
	name, summary string
	run           func(ctx context.Context, args []string, stdout, stderr io.Writer) int
}

var commands = []command{
	{"drill", "play a retry storm over real sockets: unguarded, then guarded", drillCommand},
	{"sim", "play a scenario in virtual time and judge it", simCommand},
	{"proxy", "send any program's HTTP requests on under a policy file", proxyCommand},
	{"top", "show what the guards of a running program do, live in a terminal", topCommand},
	{"wait", "wait until databases and services answer, then become a program", waitCommand},
	{"probe", "ask a URL and exit 0 if it answers 2xx (for health checks in bare images)", probeCommand},
	{"dlq", "look at the dead letters of a Kafka topic, and replay them carefully", dlqCommand},
	{"export", "write Prometheus rules and a Grafana dashboard for a policy file", exportCommand},
	{"check", "check policy files and print the policy in force", checkCommand},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		usage(stderr)
		return 2
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		usage(stdout)
		return 0
	}
	for _, c := range commands {
		if c.name == args[0] {
			return c.run(ctx, args[1:], stdout, stderr)
		}
	}
	fmt.Fprintf(stderr, "abate: there is no command %q\n\n", args[0])
	usage(stderr)
	return 2
}

func usage(w io.Writer) {
	fmt.Fprint(w, "Abate stops retry storms.\n\nUsage: abate COMMAND [FLAGS] [ARGS]\n\n")
	for _, c := range commands {
		fmt.Fprintf(w, "  %-8s %s\n", c.name, c.summary)
	}
	fmt.Fprint(w, "\n\"abate COMMAND -h\" explains a command.\n")
}
