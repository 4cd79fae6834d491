package httpdrill

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/abate-go/abate/internal/drill"
	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/figures"
	"github.com/abate-go/abate/sim/scenario"
)

// CompareRuns is how many runs of the simulator an act is compared with.
const CompareRuns = 40

// tolerance is how far attempts per request may be off in a comparison, as a share of what the simulator says.
const tolerance = 0.02

// Comparison sets a drill beside the simulation of the same scenario.
type Comparison struct {
	Runs int             `json:"runs"` // of the simulator, per act
	Acts []ActComparison `json:"acts"`
	// in all acts attempts per request are within 2 %, and the verdicts are the same
	Agrees bool `json:"agrees"`
}

// ActComparison is one act, once run and many times simulated.
type ActComparison struct {
	Act          string     `json:"act"`
	Rows         []Compared `json:"rows"`
	Attempts     *float64   `json:"attemptsDifference"`  // of attempts per request, as a share of the simulation's median
	Drill        string     `json:"drillVerdict"`        // "recovers" or "never"
	Simulation   string     `json:"simulationVerdict"`   // of most runs
	Recovered    float64    `json:"simulationRecovered"` // share of the runs that recovered
	SameAttempts bool       `json:"sameAttempts"`        // they are within 2 %
	WithinSpread bool       `json:"withinSpread"`        // they are among the middle 90 % of the simulated runs
	SameVerdict  bool       `json:"sameVerdict"`
}

// Compared is one number, measured in the same way in both. What could not be measured, or never came, is null.
type Compared struct {
	Name   string   `json:"name"`
	Unit   string   `json:"unit"` // "", "share" or "s"
	Drill  *float64 `json:"drill"`
	Median *float64 `json:"simulationMedian"`
	P05    *float64 `json:"simulationP05"`
	P95    *float64 `json:"simulationP95"`
	// drill less median: of a count or ratio as a share of the median, else in its unit
	Difference *float64 `json:"difference"`
}

// Compare simulates what was run, under seeds counted up from c.Seed, and adds the comparison to r, the result of c.
// The error is that of ctx, or of a scenario that cannot be simulated.
func (c Config) Compare(ctx context.Context, r *Result) error {
	all := &Comparison{Runs: CompareRuns, Agrees: true}
	for i := range r.Acts {
		a := &r.Acts[i]
		runs, err := c.simulate(ctx, c.variant(a.Act), CompareRuns)
		if err != nil {
			return err
		}
		one := compare(a.Act, a.numbers, runs)
		all.Acts = append(all.Acts, one)
		all.Agrees = all.Agrees && one.SameAttempts && one.SameVerdict
	}
	r.Comparison = all
	return nil
}

// simulate returns the numbers of so many runs of a variant, in the order of their seeds.
func (c Config) simulate(ctx context.Context, v *scenario.Variant, runs int) ([]Numbers, error) {
	all := make([]Numbers, runs)
	errs := make([]error, runtime.GOMAXPROCS(0))
	front := c.cast(v).front
	var (
		next atomic.Int64
		wait sync.WaitGroup
	)
	for worker := range errs {
		wait.Go(func() {
			e, err := engine.New(c.Scenario, v)
			for err == nil && ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= runs {
					return
				}
				var record *engine.Record
				if record, err = e.Run(c.Seed+uint64(i), false, func() bool { return ctx.Err() != nil }); record != nil {
					all[i] = NumbersOf(record, front)
				}
			}
			errs[worker] = err
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return all, ctx.Err()
}

// compare sets one run beside many.
func compare(act string, drilled Numbers, runs []Numbers) ActComparison {
	c := ActComparison{Act: act, Drill: verdictOf(drilled.Recovered())}
	c.Recovered = shareOf(runs, (*Numbers).Recovered)
	c.Simulation = verdictOf(c.Recovered > 0.5)
	c.SameVerdict = c.Drill == c.Simulation
	add := func(name, unit string, of func(*Numbers) float64) *Compared {
		c.Rows = append(c.Rows, comparedOf(name, unit, drilled, runs, of))
		return &c.Rows[len(c.Rows)-1]
	}
	add("requests offered", "", func(n *Numbers) float64 { return n.Offered })
	attempts := add("attempts per request", "", func(n *Numbers) float64 { return n.PerOffered })
	c.Attempts, c.WithinSpread = attempts.Difference, attempts.withinSpread()
	add("attempts per request sent", "", func(n *Numbers) float64 { return n.PerSent })
	add("attempts refused", "", func(n *Numbers) float64 { return n.TurnedAway })
	for w, name := range [...]string{"goodput before", "goodput during", "goodput after"} {
		add(name, "share", func(n *Numbers) float64 { return n.Goodput[w] })
	}
	add("recovery", "s", func(n *Numbers) float64 { return n.Recovery })
	add("longest queue", "", func(n *Numbers) float64 { return n.Queue })
	add("refused, of requests", "share", func(n *Numbers) float64 { return n.Refused / n.Offered })
	add("wasted, of all work", "share", func(n *Numbers) float64 { return n.Waste })
	add("collapsed", "share", func(n *Numbers) float64 {
		if n.Collapsed {
			return 1
		}
		return 0
	})
	c.Rows[len(c.Rows)-1].ofRuns(runs)
	c.SameAttempts = c.Attempts != nil && math.Abs(*c.Attempts) <= tolerance
	return c
}

// shareOf is the share of the runs of which something is true.
func shareOf(runs []Numbers, is func(*Numbers) bool) float64 {
	count := 0
	for i := range runs {
		if is(&runs[i]) {
			count++
		}
	}
	return ratio(float64(count), float64(len(runs)))
}

func verdictOf(recovered bool) string {
	if recovered {
		return "recovers"
	}
	return "never"
}

func comparedOf(name, unit string, drilled Numbers, runs []Numbers, of func(*Numbers) float64) Compared {
	values := make([]float64, len(runs))
	for i := range runs {
		values[i] = of(&runs[i])
	}
	s := expect.NewSample(values)
	c := Compared{Name: name, Unit: unit, Drill: known(of(&drilled)), P05: known(s.Quantile(0.05)),
		Median: known(s.Quantile(0.5)), P95: known(s.Quantile(0.95))}
	if c.Drill == nil || c.Median == nil {
		return c
	}
	difference := *c.Drill - *c.Median
	if unit == "" && difference != 0 {
		difference /= *c.Median
	}
	c.Difference = known(difference)
	return c
}

// withinSpread reports whether the drill is among the middle 90 % of the runs.
func (c *Compared) withinSpread() bool {
	return c.Drill != nil && c.P05 != nil && c.P95 != nil && *c.P05 <= *c.Drill && *c.Drill <= *c.P95
}

// ofRuns makes the row of a yes or no the share of the runs.
func (c *Compared) ofRuns(runs []Numbers) {
	share := shareOf(runs, func(n *Numbers) bool { return n.Collapsed })
	c.Median, c.P05, c.P95 = known(share), nil, nil
	c.Difference = known(*c.Drill - share)
}

// report writes the comparison for people, at most 80 columns wide.
func (c *Comparison) report(w io.Writer) {
	for i := range c.Acts {
		a := &c.Acts[i]
		runs := fmt.Sprintf("%d runs, median (5–95 %%)", c.Runs)
		fmt.Fprintf(w, "\n%s%9s   %-27s%10s\n", figures.Pad(a.Act+", beside the simulator", 30), "drill", runs, "difference")
		for k := range a.Rows {
			r := &a.Rows[k]
			simulated := r.text(r.Median)
			if r.P05 != nil && r.P95 != nil {
				simulated += fmt.Sprintf(" (%s–%s)", r.text(r.P05), r.text(r.P95))
			}
			numbers := figures.PadLeft(r.text(r.Drill), 9) + "   " +
				figures.Pad(simulated, 27) + figures.PadLeft(r.difference(), 10)
			fmt.Fprintln(w, figures.Pad(r.Name, 30)+strings.TrimRight(numbers, " "))
		}
	}
	fmt.Fprintf(w, "\n%s\n", drill.Wrap(c.verdict()))
}

// verdict is the comparison in a sentence.
func (c *Comparison) verdict() string {
	var attempts, verdicts []string
	sameAttempts, sameVerdict := true, true
	for i := range c.Acts {
		a := &c.Acts[i]
		difference := a.Act + " " + signed(a.Attempts, "%+.1f %%", 100)
		if !a.SameAttempts && a.WithinSpread {
			difference += ", as far as simulated runs differ among themselves"
		}
		attempts = append(attempts, difference)
		verdicts = append(verdicts, fmt.Sprintf("%s %s / %s", a.Act, a.Drill, a.Simulation))
		sameAttempts, sameVerdict = sameAttempts && a.SameAttempts, sameVerdict && a.SameVerdict
	}
	text := "Attempts per request are within 2 % of the simulation"
	if !sameAttempts {
		text = "Attempts per request are NOT within 2 % of the simulation"
	}
	text += " (" + strings.Join(attempts, "; ") + ")"
	if sameVerdict {
		return text + ", and the verdicts are the same (" + strings.Join(verdicts, "; ") + ")."
	}
	return text + ", and the verdicts of drill and simulation are NOT the same (" + strings.Join(verdicts, "; ") + ")."
}

// text writes a number of the row.
func (c *Compared) text(v *float64) string {
	switch {
	case v == nil && c.Unit == "s":
		return "never"
	case v == nil:
		return "–"
	case c.Unit == "s":
		return fmt.Sprintf("%.1f s", *v)
	case c.Unit == "share":
		return fmt.Sprintf("%.1f %%", 100**v)
	case *v >= 20:
		return figures.Thousands(*v)
	}
	return fmt.Sprintf("%.3f", *v)
}

func (c *Compared) difference() string {
	switch c.Unit {
	case "s":
		return signed(c.Difference, "%+.1f s", 1)
	case "share":
		return signed(c.Difference, "%+.1f pts", 100)
	}
	return signed(c.Difference, "%+.1f %%", 100)
}

// signed writes a difference, times a factor; a dash where there is none.
func signed(v *float64, format string, factor float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf(format, *v*factor)
}
