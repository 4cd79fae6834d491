// Package rehearse has the commands that show what policies do before they must, and while they do: drill, sim, export
// and top.
package rehearse

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/internal/drill/httpdrill"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/sim/scenario"
)

const drillHelp = `Run a scenario over real sockets on 127.0.0.1, in this one process; nothing to install.

Without FILE: a payment service with a finite capacity serves clients that send on schedule. In the
middle its database does not answer for some seconds. Act 1, unguarded: the clients retry as so many
do. Act 2, guarded: the same clients, arrivals and service under the default policy. It takes 50
seconds.

Usage: abate drill [FLAGS] [FILE]
       abate drill kafka [FLAGS]   the same for Kafka consumers: see "abate drill kafka -h"

FILE is a scenario of "abate sim", small enough for one machine: one fleet with a constant rate, one
service with workers (50 replicas at most) and perhaps one behind it, outages, slowdowns and errors.
Each variant is an act. What the drill does not run is named and refused. Without FILE it runs
scenarios/quickstart.yaml, which is built in.

  --compare             run, then simulate the same 40 times, and print both side by side
  --via proxy           the clients know nothing of Abate: each has an "abate proxy" as its HTTP
                        proxy, which carries out the policy of the act
  --act NAME            only this variant (default both: all of them)
  --policy FILE         policy file for the clients of the variant "guarded" (or else the last one),
                        instead of the scenario's; the drill runs the service that they call,
                        built in "payment-service"
  --print-policy        print the policy of the built-in guarded act and exit

These change what the scenario says; the numbers are those of the built-in one:
  --rate N              requests offered per second, by all clients together, 20 or more (250)
  --clients N           clients, each with connections and a guard of its own (50)
  --capacity N          workers of the service (20)
  --service-time D      what one request takes a worker (50ms)
  --queue N             requests that may wait in the service (900)
  --before D            time before the outage (4s)
  --outage D            length of the outage (5s)
  --after D             time after the outage (14s)
  --within D            time after the outage in which the guarded clients have to recover (3.5s,
                        or --after if that is shorter)

  --admin ADDR          the live page of what happens, its data for "abate top", and /metrics for
                        Prometheus, while the drill is run; off for none (127.0.0.1:15000, or any
                        free port if that is taken)
  --seed N              of arrivals and service times (default 1)
  --json                print one JSON document with all numbers instead of the tables; progress
                        goes to standard error
  --quiet               only the result: no introduction, no progress
  -h, --help            print this

Every number means what it means in "abate sim". Goodput: of the requests offered, how many were
answered. "Recovered": from then on, goodput is for a second at 95 % of what it was before, and on
average until the end.

Exit code: 0 all is as the scenario expects, so guarded recovered in time; acts that are expected to
collapse do not matter. 1 it is not, or the drill could not be run. With --compare 0 needs more:
in every act attempts per request within 2 % of the simulation, and the same verdict (recovers or
never). 2 a flag or a file is wrong; 130 interrupted.
`

// drillOptions are the words of "abate drill".
type drillOptions struct {
	config      httpdrill.Config
	changes     httpdrill.Changes
	file        string
	policyFile  string
	printPolicy bool
	compare     bool
	json, quiet bool
	via         string
	admin       string
	problems    []string
}

// Clients are what a program has for drills. A slim program has few, and hands over what needs more.
type Clients struct {
	// Kafka runs "abate drill kafka" with the words behind it.
	Kafka cli.Run
	// Via starts a proxy for each client of a drill; nil hands over to Elsewhere.
	Via httpdrill.Via
	// Elsewhere carries out a command that needs what is not here; nil if there is no other program.
	Elsewhere cli.Run
}

// DrillCommand runs "abate drill".
func (c Clients) DrillCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "kafka" {
		return c.Kafka(ctx, args[1:], stdout, stderr)
	}
	o, err := c.parseDrill(args)
	if c.Via == nil && c.Elsewhere != nil && o.via == "proxy" {
		return c.Elsewhere(ctx, append([]string{"drill"}, args...), stdout, stderr)
	}
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, drillHelp)
		return 0
	}
	if len(o.problems) > 0 {
		for _, p := range o.problems {
			fmt.Fprintf(stderr, "abate drill: %s\n", p)
		}
		fmt.Fprintln(stderr, `"abate drill -h" explains the flags.`)
		return 2
	}
	if o.printPolicy {
		_, _ = io.WriteString(stdout, httpdrill.QuickstartPolicy())
		return 0
	}
	if limit, ok := httpdrill.FileLimit(); ok && limit < o.config.FilesNeeded() {
		fmt.Fprintf(stderr, "abate drill: the storm may need %d open files (sockets), and this process may have only %d. "+
			"Raise the limit (ulimit -n %d) or lower --rate.\n",
			o.config.FilesNeeded(), limit, o.config.FilesNeeded())
		return 1
	}
	return o.run(ctx, stdout, stderr)
}

func (o *drillOptions) run(ctx context.Context, stdout, stderr io.Writer) int {
	console := cli.NewConsole("abate drill", o.json, stdout, stderr)
	admin, err := o.openAdmin()
	if err != nil {
		return console.Finish(nil, err)
	}
	defer admin.close()
	o.config.Watch = admin.watchers
	if !o.quiet {
		admin.greet(console.Out)
		o.config.Intro(console.Out)
		o.config.Progress = func(p httpdrill.Progress) { console.Show(p.String()) }
	}
	result, err := httpdrill.Run(ctx, o.config)
	if err == nil && o.compare && !result.Interrupted {
		console.End("\n") // to simulate takes a while
		err = o.config.Compare(ctx, &result)
		if ctx.Err() != nil {
			result.Interrupted, err = true, nil
		}
	}
	return console.Finish(&result, err)
}

// parseDrill reads the words. It collects everything that is wrong with them, so that nobody has to fix them one by
// one.
func (c Clients) parseDrill(args []string) (*drillOptions, error) {
	o := &drillOptions{config: httpdrill.Default()}
	flags := flag.NewFlagSet("drill", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	act, x := "both", &o.changes
	flags.StringVar(&act, "act", act, "")
	flags.StringVar(&o.policyFile, "policy", "", "")
	flags.StringVar(&o.via, "via", "", "")
	flags.StringVar(&o.admin, "admin", "", "")
	switches := map[string]*bool{"print-policy": &o.printPolicy, "compare": &o.compare, "json": &o.json, "quiet": &o.quiet}
	for name, to := range switches {
		flags.BoolVar(to, name, false, "")
	}
	const number, length = "a number that it takes", "a length of time; for example 500ms or 5s"
	given(flags, "rate", number, &x.Rate, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
	seed := &o.config.Seed
	given(flags, "seed", number, &seed, func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) })
	for name, to := range map[string]**int{"clients": &x.Clients, "capacity": &x.Capacity, "queue": &x.Queue} {
		given(flags, name, number, to, strconv.Atoi)
	}
	for name, to := range map[string]**time.Duration{
		"service-time": &x.ServiceTime, "before": &x.Before, "outage": &x.Outage, "after": &x.After, "within": &x.Within,
	} {
		given(flags, name, length, to, time.ParseDuration)
	}
	words, err := cli.ReadFlags(flags, args, o.wrong)
	if err != nil {
		return o, err // help is wanted
	}
	for i, word := range words {
		if i > 0 {
			o.wrong("%q is one file too many; the drill runs one scenario", word)
			continue
		}
		o.file = word
	}
	o.finish(c, *seed, act)
	return o, nil
}

// given defines a flag that lets *to point to its value. What parse does not take is not what.
func given[T any](flags *flag.FlagSet, name, what string, to **T, parse func(string) (T, error)) {
	flags.Func(name, "", func(s string) error {
		v, err := parse(s)
		if err != nil {
			return fmt.Errorf("%q is not %s", s, what)
		}
		*to = &v
		return nil
	})
}

func (o *drillOptions) wrong(format string, args ...any) {
	o.problems = append(o.problems, fmt.Sprintf(format, args...))
}

// finish loads the files and checks what no single flag can tell.
func (o *drillOptions) finish(c Clients, seed uint64, act string) {
	if o.file != "" {
		s, err := scenario.Load(o.file)
		if err != nil {
			o.wrong("%v", err)
		} else {
			o.config = httpdrill.New(s)
		}
	}
	o.config.Seed = seed
	if o.admin != "" && o.admin != cli.Off && !cli.IsAddress(o.admin) {
		o.wrong("--admin %q is not an address: write host:port, for example 127.0.0.1:15000, or off", o.admin)
	}
	switch o.via {
	case "":
	case "proxy":
		o.config.Via, o.config.ViaName = c.Via, "an abate proxy of its own"
	default:
		o.wrong("--via: %q is not known; allowed: proxy", o.via)
	}
	if act != "both" {
		if all := o.config.Acts; slices.Contains(all, act) {
			o.config.Acts = []string{act}
		} else {
			o.wrong("--act: %q is not known; allowed: %s, both", act, strings.Join(all, ", "))
		}
	}
	if o.policyFile != "" {
		o.loadPolicy()
	}
	o.problems = append(o.problems, o.config.Change(o.changes)...)
}

func (o *drillOptions) loadPolicy() {
	text, err := os.ReadFile(o.policyFile)
	if err != nil {
		o.wrong("--policy: %v", err)
		return
	}
	if o.changes.Policy, err = policyfile.Parse(o.policyFile, text); err != nil {
		o.wrong("--policy: %v", err)
	}
}
