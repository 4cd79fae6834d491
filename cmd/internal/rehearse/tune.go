package rehearse

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
	"github.com/abate-go/abate/sim/tune"
)

const tuneHelp = `Look for the policy that is best over several scenarios, healthy days among them.

Usage: abate tune [FLAGS] SCENARIO...

It begins with the default policy and the attempt timeouts of the scenarios, and adds one change
after the other, each the best that does no harm: in none of the scenarios, and neither on copies
of them with other rates, times, sizes and faults nor on random systems. A folder means its *.yaml
files.

  --policy FILE         write the policy there; without it the policy is printed
  --from FILE           a policy file to start from, instead of the default policy
  --html FILE           write a page that says what each change bought and cost

  --objective TEXT      what should be as good as can be: an expectation without its value
                        (default "goodput >"; for example "latency(p99, after) <")
  --expect TEXT         what has to hold beside that, as in a scenario: "collapse < 10%"; may be
                        given several times. What a scenario expects of all variants counts, too

  --budget N            runs of the search, at most (default 2000). The result does not depend on
                        how fast the machine is
  --changes N           changes of the policy, at most (default 6)
  --copies N            perturbed copies of each scenario (default 3)
  --systems N           random systems (default 6)
  --seed N              seed of the first run (default 1)
  --quiet               no progress
  -h, --help            print this

Exit code: 0 there is a better policy; 1 nothing beats the default policy, which is then what is
written; 64 a flag or a scenario is wrong; 74 a result could not be written; 130 interrupted.
`

// tuneOptions are the words of "abate tune".
type tuneOptions struct {
	simOptions   // what finds and reads scenarios
	policy, from string
	page         string
	tune         tune.Options
}

func (o *tuneOptions) wrong(format string, args ...any) {
	o.problems = append(o.problems, "abate tune: "+fmt.Sprintf(format, args...))
}

// TuneCommand runs "abate tune".
func TuneCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseTune(args)
	if errors.Is(err, flag.ErrHelp) {
		return written(stderr, say(stdout, tuneHelp))
	}
	scenarios := o.read()
	if len(o.problems) > 0 {
		for _, p := range o.problems {
			fmt.Fprintln(stderr, p)
		}
		fmt.Fprintln(stderr, `abate tune: nothing was run; "abate tune -h" explains the flags.`)
		return exitUsage
	}
	if err := o.checkOutputs(); err != nil {
		return written(stderr, err)
	}
	progress := newSimProgress(stderr, o.quiet)
	show := progress.of("tune", 1, 1)
	o.tune.Progress = func(p tune.Progress) {
		show(sim.Progress{Variant: "runs", Stage: p.Stage, Done: p.Done, Of: max(p.Of, p.Done)})
	}
	result, err := tune.Run(ctx, scenarios, o.tune)
	progress.End("")
	if err != nil {
		fmt.Fprintf(stderr, "abate tune: %v\n", err)
		return exitUsage
	}
	return o.report(result, stdout, stderr)
}

// report writes what came of it, and returns the exit code.
func (o *tuneOptions) report(r *tune.Result, stdout, stderr io.Writer) int {
	err := tune.Text(stdout, r)
	if o.policy == "" {
		err = errors.Join(err, say(stdout, "\n"+string(r.Policy)))
	} else {
		err = errors.Join(err, cli.Output(nil, "policy", o.policy, func(w io.Writer) error {
			_, err := w.Write(r.Policy)
			return err
		}))
	}
	err = errors.Join(err, cli.Output(nil, "html", o.page, func(w io.Writer) error { return tune.HTML(w, r) }))
	switch {
	case err != nil:
		return written(stderr, err)
	case r.Interrupted:
		return 130
	case !r.Better:
		return 1
	}
	return 0
}

// parseTune reads the words, and collects everything that is wrong with them. The error is flag.ErrHelp or nil.
func parseTune(args []string) (*tuneOptions, error) {
	o := &tuneOptions{}
	o.given = map[string]bool{}
	flags := o.define()
	var err error
	if o.paths, err = cli.ReadFlags(flags, args, o.wrong); err != nil {
		return o, err
	}
	if len(o.paths) == 0 {
		o.wrong("no scenario is named; for example: abate tune scenarios/checkout-outage.yaml scenarios/quiet-day.yaml")
	}
	for name, file := range map[string]string{"html": o.page, "policy": o.policy} {
		same := func(p string) bool { return filepath.Clean(p) == filepath.Clean(file) }
		if file != "" && slices.ContainsFunc(o.paths, same) {
			o.wrong("--%s: %s is a scenario, which would be overwritten; name the file to write", name, file)
		}
	}
	if o.page != "" && o.page == o.policy {
		o.wrong("--html and --policy would write the same file, %s", o.page)
	}
	return o, nil
}

func (o *tuneOptions) define() *flag.FlagSet {
	flags := flag.NewFlagSet("tune", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.policy, "policy", "", "")
	flags.StringVar(&o.from, "from", "", "")
	flags.StringVar(&o.page, "html", "", "")
	flags.BoolVar(&o.quiet, "quiet", false, "")
	for _, n := range []struct {
		name        string
		to          *int
		least, most int
	}{{"budget", &o.tune.Runs, 1, mostRuns}, {"changes", &o.tune.Changes, 1, 100}, {"copies", &o.tune.Copies, 0, 1000},
		{"systems", &o.tune.Systems, 0, 1000}} {
		flags.Func(n.name, "", func(s string) error {
			v, err := strconv.Atoi(s)
			if err != nil || v < n.least || v > n.most {
				return fmt.Errorf("%q is not a whole number from %d to %d", s, n.least, n.most)
			}
			if *n.to = v; v == 0 {
				*n.to = -1 // none; zero would be the default
			}
			return nil
		})
	}
	flags.Func("seed", "", func(s string) error {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil || v == 0 {
			return fmt.Errorf("%q is not a whole number above 0", s)
		}
		o.tune.Seed = v
		return nil
	})
	flags.Func("objective", "", func(s string) (err error) {
		o.tune.Objective, err = tune.ParseObjective(s)
		return err
	})
	flags.Func("expect", "", func(s string) error {
		x, err := expect.Parse(s)
		o.tune.Expect = append(o.tune.Expect, x)
		return err
	})
	return flags
}

// read reads the scenarios and the policy to start from.
func (o *tuneOptions) read() []*scenario.Scenario {
	scenarios := o.load()
	for i, p := range o.problems { // what reads scenarios speaks for "abate sim"
		if rest, ok := strings.CutPrefix(p, "abate sim: "); ok {
			o.problems[i] = "abate tune: " + rest
		}
	}
	o.several, o.html = false, o.page
	if o.from == "" {
		return scenarios
	}
	data, err := os.ReadFile(o.from)
	if err == nil {
		_, err = policyfile.Parse(o.from, data)
	}
	if err != nil {
		o.wrong("--from: %v", err)
	}
	o.tune.From = string(data)
	return scenarios
}
