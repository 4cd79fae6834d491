package kafkatools

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/cmd/internal/kafkadrill"
)

const drillKafkaHelp = `Run an outage for Kafka consumers, with real consumers on a real or a fake broker.
There is nothing to install.

The same messages are written to two topics. For each a consumer calls a service with a finite
capacity, over HTTP on 127.0.0.1. In the middle both services fail for some seconds. Unguarded:
retry topics, two retries in each delivery, and nothing else. Guarded: the same retry topics under
abate's default policy. Both are run at once; takes a minute.

Usage: abate drill kafka [FLAGS]

  --brokers LIST        addresses of a Kafka to run on, HOST:PORT,HOST:PORT; the topics that the
                        drill makes (abate-drill-...) are deleted at its end. Default: a fake broker
                        inside this program
  --rate N              messages a second, written to each topic (100)
  --before D            time before the outage (6s)
  --outage D            length of the outage (6s)
  --after D             time after it (46s)
  --print-policy        print the policies of both acts and exit
  --seed N              of the moments at which messages are written (default 1)
  --json                print one JSON document with all numbers instead of the tables; progress
                        goes to standard error
  --quiet               only the result: no introduction, no progress
  -h, --help            print this

Exit code: 0 in the guarded act every message was handled, once; none became a dead letter; the
service had at most 1.5 times its usual load in the busiest second of the drain; and the backlog was
worked off in time. 1 it was not so, or the drill could not be run. 2 a flag is wrong;
130 interrupted.
`

// DrillKafkaCommand runs "abate drill kafka".
func DrillKafkaCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c := kafkadrill.Default()
	flags := flag.NewFlagSet("drill kafka", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	brokers := flags.String("brokers", "", "")
	flags.Float64Var(&c.Rate, "rate", c.Rate, "")
	flags.Uint64Var(&c.Seed, "seed", c.Seed, "")
	flags.DurationVar(&c.Before, "before", c.Before, "")
	flags.DurationVar(&c.Outage, "outage", c.Outage, "")
	flags.DurationVar(&c.After, "after", c.After, "")
	printPolicy := flags.Bool("print-policy", false, "")
	asJSON, quiet := flags.Bool("json", false, ""), flags.Bool("quiet", false, "")
	var problems []string
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	words, err := cli.ReadFlags(flags, args, wrong)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, drillKafkaHelp)
		return 0
	}
	for _, word := range words {
		wrong("%q is not expected; the drill for Kafka runs no files", word)
	}
	c.Within = c.After
	if problems = append(problems, c.Problems()...); len(problems) > 0 {
		for _, p := range problems {
			fmt.Fprintf(stderr, "abate drill kafka: %s\n", p)
		}
		fmt.Fprintln(stderr, `"abate drill kafka -h" explains the flags.`)
		return 2
	}
	if *printPolicy {
		fmt.Fprintf(stdout, "%s---\n%s", kafkadrill.Policy(kafkadrill.Unguarded), kafkadrill.Policy(kafkadrill.Guarded))
		return 0
	}
	if *brokers != "" {
		c.Brokers = strings.FieldsFunc(*brokers, func(r rune) bool { return r == ',' || r == ' ' })
	}
	return runDrill(ctx, c, *asJSON, *quiet, stdout, stderr)
}

func runDrill(ctx context.Context, c kafkadrill.Config, asJSON, quiet bool, stdout, stderr io.Writer) int {
	console := cli.NewConsole("abate drill kafka", asJSON, stdout, stderr)
	if !quiet {
		c.Intro(console.Out)
		first := true
		c.Progress = func(p kafkadrill.Progress) {
			if first {
				fmt.Fprintln(console.Out, p.Heading())
			}
			first = false
			console.Show(p.String())
		}
	}
	result, err := kafkadrill.Run(ctx, c)
	return console.Finish(result, err)
}
