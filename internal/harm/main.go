// Command harm judges policies on random systems: see package sim/harm.
//
//	go run ./internal/harm                                  600 systems, all policies, the table and the worst systems
//	go run ./internal/harm -systems 0-1999 -policies guard  others
//	go run ./internal/harm -guard 'circuitBreaker: {rampUp: 0s}' -policies guard
//	                                                        a policy called "yours" beside the default one
//	go run ./internal/harm -part train -policies guard      half of the systems, for tuning
//	go run ./internal/harm -timeline 43                     one system alone, with its scenario and its timeline
//
// The table goes to standard output, progress to standard error. The worst systems are written as scenario files, which
// abate sim runs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/sim/harm"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "harm: %v\n", err)
		os.Exit(1)
	}
}

// settings are what the command line says.
type settings struct {
	systems, part, policies, guard, gate, out string
	seeds, worst, timeline                    int
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("harm", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.StringVar(&s.systems, "systems", "0-599", "`numbers` of the systems, such as 0-599 or 3,17,40-59")
	flags.StringVar(&s.part, "part", "all", "which `part` of them: train for tuning, test for judging, or all")
	flags.StringVar(&s.policies, "policies", "",
		"`names` of policies, with commas; none and naive always run. Default: all")
	flags.StringVar(&s.guard, "guard", "", "`keys` of a guard, as in a policy file, for a policy called yours")
	flags.StringVar(&s.gate, "gate", "", "`keys` of its gates, as under protect, with {}; empty for none")
	flags.StringVar(&s.out, "out", "bench/out/harm", "`folder` for the worst systems; empty for none")
	flags.IntVar(&s.seeds, "seeds", 2, "runs of each system under each policy")
	flags.IntVar(&s.worst, "worst", 20, "how many of the worst systems")
	flags.IntVar(&s.timeline, "timeline", -1, "`number` of one system to run alone")
	if err := flags.Parse(args); err != nil {
		return err
	}
	policies, err := s.chosen()
	if err != nil {
		return err
	}
	if s.timeline >= 0 {
		text, err := harm.Timeline(harm.New(s.timeline), policies, 1)
		fmt.Fprint(out, text)
		return err
	}
	return s.judge(ctx, policies, out, progress)
}

// chosen returns the policies that run.
func (s *settings) chosen() ([]harm.Policy, error) {
	all := harm.Policies()
	var names []string
	for i := range all {
		names = append(names, all[i].Name)
	}
	if s.policies != "" {
		names = strings.Split(s.policies, ",")
	}
	chosen, err := harm.Choose(all, names)
	if err != nil {
		return nil, err
	}
	if s.guard == "" && s.gate == "" {
		return chosen, nil
	}
	yours := harm.Policy{Name: "yours", About: "of the command line", Guard: s.guard, Gate: s.gate}
	if yours.Guard == "" { // the gate alone
		yours.Guard, yours.Callers = all[0].Guard, harm.Plain
	}
	return append(chosen, yours), nil
}

// judge runs the systems, shows the table and writes the worst.
func (s *settings) judge(ctx context.Context, policies []harm.Policy, out, progress io.Writer) error {
	systems, err := numbers(s.systems)
	if err == nil {
		systems, err = partOf(systems, s.part)
	}
	if err != nil {
		return err
	}
	begin := time.Now()
	cases, err := harm.Judge(ctx, harm.Options{Policies: policies, Systems: systems, Seeds: s.seeds,
		Progress: func(done, all int) {
			fmt.Fprintf(progress, "\r%d of %d systems, %.0f s", done, all, time.Since(begin).Seconds())
		}})
	fmt.Fprintln(progress)
	if err != nil {
		return err
	}
	var events int64
	for i := range cases {
		events += cases[i].Events
	}
	fmt.Fprintf(out, "%d systems, %d runs of each under each of %d policies\n\n", len(cases), s.seeds, len(policies))
	fmt.Fprint(out, harm.Table(cases, policies))
	fmt.Fprintf(progress, "%.0f million events in %.0f s\n", float64(events)/1e6, time.Since(begin).Seconds())
	return s.write(cases, policies, out)
}

// write lists the worst systems, and writes them as scenario files.
func (s *settings) write(cases []harm.Case, policies []harm.Policy, out io.Writer) error {
	ours := func(p *harm.Policy) bool { return p.Name != "tuned" }
	worst := harm.Worst(cases, policies, s.worst, ours)
	if len(worst) == 0 {
		return nil
	}
	fmt.Fprintf(out, "\nThe worst systems\n")
	if s.out != "" {
		if err := os.RemoveAll(s.out); err != nil {
			return err
		}
		if err := os.MkdirAll(s.out, 0o755); err != nil {
			return err
		}
	}
	for i := range worst {
		fmt.Fprintf(out, "%2d. %s\n", i+1, worst[i].Line(policies))
		if s.out == "" {
			continue
		}
		name := fmt.Sprintf("%02d-system-%d.yaml", i+1, worst[i].Case.System.Number)
		if err := os.WriteFile(filepath.Join(s.out, name), []byte(worst[i].File(policies)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// partOf returns the systems for tuning, those for judging, or all.
func partOf(systems []int, part string) ([]int, error) {
	switch part {
	case "all":
		return systems, nil
	case "train", "test":
		return slices.DeleteFunc(systems, func(n int) bool { return harm.ForTest(n) != (part == "test") }), nil
	}
	return nil, fmt.Errorf("there is no part %q; allowed: train, test, all", part)
}

// numbers reads a list of numbers and ranges.
func numbers(text string) ([]int, error) {
	var all []int
	for _, part := range strings.Split(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		to := from
		if err == nil && isRange {
			to, err = strconv.Atoi(last)
		}
		if err != nil || from < 0 || to < from || to > 1_000_000 {
			return nil, fmt.Errorf("%q is no list of numbers such as 0-599 or 3,17,40-59", text)
		}
		for n := from; n <= to; n++ {
			all = append(all, n)
		}
	}
	return all, nil
}
