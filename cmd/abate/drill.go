package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/internal/drill"
)

const drillHelp = `Play a retry storm over real sockets on 127.0.0.1, in this one process; nothing to install.

A payment service with a finite capacity serves clients that send on schedule. In the middle its
database hangs for some seconds. Act 1, unguarded: the clients retry as so many do. Act 2, guarded:
the same clients, arrivals and service, through Abate and a policy file. Takes about 50 seconds.

Usage: abate drill [FLAGS]

  --act NAME            unguarded, guarded or both (default both)
  --policy FILE         policy file for the guarded act, instead of the built-in one; the drill
                        plays its service "payment-service"
  --print-policy        print the built-in policy file and exit

  --rate N              requests offered per second, by all clients together, 20 or more
                        (default 250)
  --clients N           clients, each with connections and a guard of its own (default 50)
  --capacity N          workers of the service (default 20)
  --service-time D      what one request takes a worker (default 50ms)
  --queue N             requests that may wait in the service (default 900)
  --before D            time before the outage (default 4s)
  --outage D            length of the outage (default 5s)
  --after D             time after the outage (default 14s)
  --within D            time after the outage in which the guarded clients have to recover
                        (default 5s, or --after if that is shorter)
  --seed N              of the arrival times (default 1)

  --json                print one JSON document with all numbers instead of the tables; progress
                        goes to standard error
  --quiet               only the result: no introduction, no progress
  -h, --help            print this

Goodput is answers in time: the attempt that was answered took at most a second, in both acts.
"Recovered" means: from then on, goodput stays for a second at 95 % of what it was before the
outage, as a share of the requests offered, and on average until the end.

Exit code: 0 the guarded act recovered in time; 1 it did not, or the drill could not be played;
2 a flag or the policy file is wrong; 130 interrupted.
`

// drillOptions are the flags of "abate drill".
type drillOptions struct {
	config      drill.Config
	policyFile  string
	printPolicy bool
	json, quiet bool
	problems    []string
}

// drillCommand runs "abate drill".
func drillCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseDrill(args)
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
		_, _ = stdout.Write(drill.EmbeddedPolicy())
		return 0
	}
	if limit, ok := drill.FileLimit(); ok && limit < o.config.FilesNeeded() {
		fmt.Fprintf(stderr, "abate drill: the storm may need %d open files (sockets), and this process may have only %d. Raise the limit (ulimit -n %d) or lower --rate.\n",
			o.config.FilesNeeded(), limit, o.config.FilesNeeded())
		return 1
	}
	return o.play(ctx, stdout, stderr)
}

// play runs the drill and prints what came of it.
func (o *drillOptions) play(ctx context.Context, stdout, stderr io.Writer) int {
	progress := newProgress(stdout)
	if o.json {
		progress = newProgress(stderr)
	}
	if !o.quiet {
		o.config.Intro(progress.out)
		o.config.Progress = progress.show
	}
	result, err := drill.Run(ctx, o.config)
	progress.end()
	if err != nil {
		fmt.Fprintf(stderr, "abate drill: %v\n", err)
		return 1
	}
	if o.json {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(result)
	} else {
		var text strings.Builder
		result.Report(&text)
		_, err = io.WriteString(stdout, text.String())
	}
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "abate drill: %v\n", err)
		return 1
	case result.Interrupted:
		return 130
	case !result.Passed:
		return 1
	}
	return 0
}

// parseDrill reads the flags. It collects everything that is wrong with them, so that nobody has to mend them one by one.
func parseDrill(args []string) (*drillOptions, error) {
	o := &drillOptions{config: drill.Default()}
	flags := flag.NewFlagSet("drill", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	c := &o.config
	act := "both"
	flags.StringVar(&act, "act", act, "")
	flags.StringVar(&o.policyFile, "policy", "", "")
	flags.BoolVar(&o.printPolicy, "print-policy", false, "")
	flags.BoolVar(&o.json, "json", false, "")
	flags.BoolVar(&o.quiet, "quiet", false, "")
	number(o, flags, "rate", &c.Rate, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
	number(o, flags, "seed", &c.Seed, func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) })
	for name, to := range map[string]*int{"clients": &c.Clients, "capacity": &c.Service.Workers, "queue": &c.Service.Queue} {
		number(o, flags, name, to, strconv.Atoi)
	}
	for name, to := range map[string]*time.Duration{
		"service-time": &c.Service.ServiceTime, "before": &c.Before, "outage": &c.Outage, "after": &c.After, "within": &c.Within,
	} {
		flags.Func(name, "", func(s string) error {
			d, err := time.ParseDuration(s)
			if err != nil {
				o.wrong("--%s: %q is not a length of time; for example 500ms or 5s", name, s)
				return nil
			}
			*to = d
			return nil
		})
	}
	if err := flags.Parse(o.known(flags, args)); err != nil {
		o.wrong("%v", err) // or help is wanted
		return o, err
	}
	o.finish(flags, act)
	return o, nil
}

// known returns the arguments without those at which Parse would stop, so that all others are checked as well.
func (o *drillOptions) known(flags *flag.FlagSet, args []string) []string {
	var kept []string
	for len(args) > 0 {
		arg, rest := args[0], args[1:]
		args = rest
		name, value, assigned := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		f := flags.Lookup(name)
		switch {
		case !strings.HasPrefix(arg, "-") || name == "":
			o.wrong("%q is not a flag", arg)
		case name == "h" || name == "help":
			return []string{"-h"}
		case f == nil:
			o.wrong("--%s is not a flag", name)
			if !assigned && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
				args = rest[1:] // what was meant to be its value
			}
		case isSwitch(f):
			if _, err := strconv.ParseBool(value); assigned && err != nil {
				o.wrong("--%s: %q is neither true nor false", name, value)
				continue
			}
			kept = append(kept, arg)
		case assigned:
			kept = append(kept, arg)
		case len(rest) == 0:
			o.wrong("--%s needs a value", name)
		default:
			kept, args = append(kept, arg, rest[0]), rest[1:]
		}
	}
	return kept
}

// isSwitch tells whether a flag needs no value.
func isSwitch(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// number defines a flag whose bad values are collected instead of ending the parse, and leave *to as it is.
func number[T any](o *drillOptions, flags *flag.FlagSet, name string, to *T, parse func(string) (T, error)) {
	flags.Func(name, "", func(s string) error {
		v, err := parse(s)
		if err != nil {
			o.wrong("--%s: %q is not a number that it takes", name, s)
			return nil
		}
		*to = v
		return nil
	})
}

func (o *drillOptions) wrong(format string, args ...any) {
	o.problems = append(o.problems, fmt.Sprintf(format, args...))
}

// finish checks what no single flag can tell.
func (o *drillOptions) finish(flags *flag.FlagSet, act string) {
	switch act {
	case "both":
	case drill.Unguarded, drill.Guarded:
		o.config.Acts = []string{act}
	default:
		o.wrong("--act: %q is not known; allowed: unguarded, guarded, both", act)
	}
	within := false
	flags.Visit(func(f *flag.Flag) { within = within || f.Name == "within" })
	if !within {
		o.config.Within = min(o.config.Within, o.config.After)
	}
	if o.policyFile != "" {
		o.loadPolicy()
	}
	o.problems = append(o.problems, o.config.Problems()...)
}

func (o *drillOptions) loadPolicy() {
	text, err := os.ReadFile(o.policyFile)
	if err != nil {
		o.wrong("--policy: %v", err)
		return
	}
	p, err := drill.ParsePolicy(o.policyFile, text)
	if err != nil {
		o.wrong("--policy: %v", err)
		return
	}
	o.config.Policy = p
}

// progress shows the drill while it runs: one line that is written over and over on a terminal, else a line per second.
type progress struct {
	out      io.Writer
	terminal bool
	shown    bool
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out}
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

func (p *progress) show(now drill.Progress) {
	p.shown = true
	if p.terminal {
		fmt.Fprintf(p.out, "\r%s\x1b[K", now)
		return
	}
	fmt.Fprintln(p.out, now)
}

// end leaves room between the progress and what follows.
func (p *progress) end() {
	switch {
	case p.terminal && p.shown:
		fmt.Fprint(p.out, "\r\x1b[K")
	case p.shown:
		fmt.Fprintln(p.out)
	}
}
