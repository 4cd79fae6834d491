package basics

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/startup"
)

// waiting is the command line of "abate wait".
type waiting struct {
	targets []waitTarget
	program []string // with its arguments; empty for none
	path    string   // of the program
	policy  abate.Policy
	quiet   bool

	timeout             time.Duration
	policyFile, service string
	problems            []error
}

func (w *waiting) wrong(format string, args ...any) {
	w.problems = append(w.problems, fmt.Errorf(format, args...))
}

// parseWait reads the words. It finds everything that is wrong with them, so that users need not fix them one by one.
func (c Clients) parseWait(args []string) (w *waiting, help bool, problems []error) {
	w = new(waiting)
	set := w.define()
	end := slices.Index(args, "--")
	words := args
	if end >= 0 {
		words, w.program = args[:end], args[end+1:]
	}
	targets, help := w.read(set, words, end >= 0)
	if help {
		return w, true, nil
	}
	for _, raw := range targets {
		t, err := c.parseTarget(raw)
		if err != nil {
			w.problems = append(w.problems, err)
			continue
		}
		w.targets = append(w.targets, t)
	}
	if len(targets) == 0 {
		w.wrong("no target: write at least one, for example tcp://127.0.0.1:5432")
	}
	if end >= 0 {
		w.findProgram()
	}
	w.choosePolicy(set)
	return w, false, w.problems
}

func (w *waiting) findProgram() {
	if len(w.program) == 0 {
		w.wrong("no program after --: write one, or leave -- away to only wait")
		return
	}
	path, err := findProgram(w.program[0])
	if w.path = path; err != nil {
		w.problems = append(w.problems, err)
	}
}

func (w *waiting) define() *flag.FlagSet {
	set := flag.NewFlagSet("wait", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.DurationVar(&w.timeout, "timeout", time.Minute, "")
	set.StringVar(&w.policyFile, "policy", "", "")
	set.StringVar(&w.service, "service", "", "")
	set.BoolVar(&w.quiet, "quiet", false, "")
	return set
}

// read sets the flags and returns the targets, in any order. Where no "--" follows, a word that can be neither ends the
// reading: it and what comes after it was meant to be a program.
func (w *waiting) read(set *flag.FlagSet, args []string, hasProgram bool) (targets []string, help bool) {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case strings.HasPrefix(arg, "-"):
			if args, help = w.flag(set, arg, args); help {
				return nil, true
			}
		case !hasProgram && !strings.Contains(arg, ":"):
			w.wrong("%q is not a target; if it is the program, write -- before it: abate wait TARGET... -- %s", arg, arg)
			return targets, false
		default:
			targets = append(targets, arg)
		}
	}
	return targets, false
}

// flag sets one flag, and returns the words behind it and its value.
func (w *waiting) flag(set *flag.FlagSet, arg string, rest []string) (_ []string, help bool) {
	name, value, assigned := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
	to := set.Lookup(name)
	switch {
	case name == "h" || name == "help":
		return nil, true
	case to == nil:
		w.wrong("%s is not a flag%s; flags of the program go after --", cli.CutFlag(arg),
			strings.TrimSuffix(cli.SuggestFlag(set, name), "?"))
		if !assigned && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && !strings.Contains(rest[0], "://") {
			rest = rest[1:] // what was meant to be its value
		}
		return rest, false
	case assigned:
	case cli.IsSwitch(to):
		value = "true"
	case len(rest) == 0 || strings.HasPrefix(rest[0], "--") || strings.Contains(rest[0], "://"):
		w.wrong("%s needs a value", arg)
		return rest, false
	default:
		value, rest = rest[0], rest[1:]
	}
	if set.Set(name, value) != nil {
		_ = to.Value.Set(to.DefValue) // a bad number has made it 0
		w.wrong("--%s %q is not %s", name, value, cli.KindOf(to))
	}
	return rest, false
}

// choosePolicy takes the back-off from the policy file, if there is one, and the rest from startup.Policy.
func (w *waiting) choosePolicy(set *flag.FlagSet) {
	w.policy = startup.Policy()
	timed := false
	set.Visit(func(f *flag.Flag) { timed = timed || f.Name == "timeout" })
	if w.timeout <= 0 || w.timeout > 24*time.Hour {
		w.wrong("--timeout %v is out of range: write more than 0s and at most 24h", w.timeout)
		w.timeout = time.Minute
	}
	if w.policyFile != "" {
		w.readPolicy()
	} else if w.service != "" {
		w.wrong("--service %s needs --policy: the file that has the service", w.service)
	}
	if timed || w.policy.MaxElapsed == 0 {
		w.policy.MaxElapsed = max(w.timeout, time.Millisecond)
	}
}

func (w *waiting) readPolicy() {
	file, err := cli.PolicyFile(w.policyFile)
	var mistakes policyfile.Errors
	switch {
	case errors.As(err, &mistakes):
		w.problems = append(w.problems, mistakes)
		return
	case err != nil:
		w.wrong("--policy: %w", err)
		return
	}
	p, listed := file.Policy(w.service)
	if w.service != "" && !listed {
		known := make([]string, 0, len(file.Services))
		for i := range file.Services {
			known = append(known, file.Services[i].Name)
		}
		w.wrong("--service: %s has no service %q; %s", w.policyFile, w.service, cli.SuggestVariant(w.service, known))
		return
	}
	w.policy.Retry = p.Retry
	if p.AttemptTimeout > 0 {
		w.policy.AttemptTimeout = p.AttemptTimeout
	}
}
