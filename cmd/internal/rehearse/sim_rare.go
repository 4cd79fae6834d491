package rehearse

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/scenario"
	"github.com/abate-go/abate/sim/summary"
)

// checkRare finds what --rare has no use for.
func (o *simOptions) checkRare() {
	if !o.given["rare"] {
		return
	}
	for _, name := range []string{"html", "junit", "markdown", "margin", "advice", "map", "fast", "explain",
		"schema", "validate", "shard", "o"} {
		if o.given[name] {
			o.wrong("--rare prints one probability per variant, and has no use for --%s", name)
		}
	}
	if o.merge {
		o.wrong("--rare makes its own runs; there is nothing to merge")
	}
}

// rareEvents estimates how often an expectation is missed, variant by variant.
func (o *simOptions) rareEvents(ctx context.Context, s *scenario.Scenario, stdout, stderr io.Writer) int {
	if err := o.checkOutputs(); err != nil {
		return written(stderr, err)
	}
	progress := newSimProgress(stderr, o.quiet)
	all := []*sim.Rare{}
	var verdicts []*sim.Result
	for i := range s.Variants {
		v := &s.Variants[i]
		if o.variants != nil && !slices.Contains(o.variants, v.Name) {
			continue
		}
		options := o.options
		options.Progress = progress.of(s.File, 1, 1)
		r, err := sim.RunRare(ctx, s, v, o.rare, options)
		progress.End("")
		if ctx.Err() != nil {
			return summary.ExitInterrupted
		}
		if err != nil {
			fmt.Fprintf(stderr, "abate sim: %s, variant %s: --rare: %v\n", s.File, v.Name, err)
			return exitUsage
		}
		if o.json != toStdout {
			if err := summary.Rare(stdout, r); err != nil {
				return written(stderr, err)
			}
		}
		all = append(all, r)
		verdicts = append(verdicts, &sim.Result{Verdict: r.Verdict})
	}
	err := cli.Output(stdout, "json", o.json, func(w io.Writer) error { return summary.RareJSON(w, all) })
	if err != nil {
		return written(stderr, err)
	}
	return summary.ExitCode(verdicts)
}
