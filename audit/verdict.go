package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/topology"
)

// Verdict is what an outage does, as the simulator plays it: as the files say, and with the proposed changes.
type Verdict struct {
	Service  string
	Outcome  topology.Outcome
	Before   Outage
	After    *Outage  // nil when there are no changes
	Assumed  []string // what no file says
	Scenario []byte
	Failed   string // why there is no verdict; empty when there is one
}

// Outage is what came of one variant.
type Outage struct {
	Runs          int
	Collapse      sim.Share // of the runs
	Recovered     int       // runs in which goodput came back
	Recovery      float64   // seconds until it did, the median of those runs; -1 when there is none
	Amplification float64   // attempts for one request at the service, while it fails
}

// SimulateOptions says what is played.
type SimulateOptions struct {
	Outage time.Duration // how long a service fails; 0 means 30 s
	// Runs is how many there are at most, for each variant. Five that all collapse are enough. 0 means 10, or five of a
	// large system if none of them collapses.
	Runs    int
	Rate    float64 // requests/s at roots whose rate no file says; 0 means AssumedRate
	Service string  // the only service that fails; empty means each that others call, the worst first
	Most    int     // services at most; 0 means 3
	// Progress is told what is played next; it may be nil.
	Progress func(service string, n, of int)

	all  bool  // the runs were asked for
	many int64 // events of a run that is long
}

// Simulate plays the outage of each dependency on which something is repeated, the worst first, and adds the verdicts
// to the result. When ctx is done it stops with those that it has.
func (r *Result) Simulate(ctx context.Context, o SimulateOptions) {
	targets := r.dependencies(o.Service)
	targets = targets[:min(cmp.Or(o.Most, 3), len(targets))]
	for i, service := range targets {
		if ctx.Err() != nil {
			return
		}
		if o.Progress != nil {
			o.Progress(service, i+1, len(targets))
		}
		r.Verdicts = append(r.Verdicts, r.play(ctx, service, o))
	}
}

// dependencies returns the services that may fail, those first at which one request becomes most attempts.
func (r *Result) dependencies(only string) []string {
	if only != "" {
		return []string{only}
	}
	type target struct {
		name string
		most float64
	}
	var all []target
	for _, b := range lint.Amplification(r.Form, lint.Options{}).Bounds {
		t := target{name: b.Service}
		for _, root := range b.Roots {
			t.most = max(t.most, root.Worst)
		}
		i := slices.IndexFunc(all, func(x target) bool { return x.name == b.Service })
		switch {
		case i >= 0:
			all[i].most = max(all[i].most, t.most)
		case slices.ContainsFunc(r.Form.Calls, func(c topology.Call) bool { return c.To == b.Service && c.From != "" }):
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b target) int { return cmp.Compare(b.most, a.most) })
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.name
	}
	return names
}

// ways are how a service may fail in an outage that is played.
var ways = []topology.Outcome{topology.Hang, topology.Refused, topology.S503}

// play plays each way of failing a few times, and then the one that does most harm as configured as often as it takes,
// both as configured and with the changes.
func (r *Result) play(ctx context.Context, service string, o SimulateOptions) Verdict {
	o.all, o.Runs, o.many = o.Runs > 0, cmp.Or(o.Runs, 10), cmp.Or(o.many, manyEvents)
	trials := make([]*trial, len(ways))
	for i, way := range ways {
		trials[i] = r.trial(service, way, o)
	}
	scout(ctx, trials, o)
	var worst *trial
	for _, t := range trials {
		if worst == nil || t.failed == nil && (worst.failed != nil || t.before.outage().worseThan(worst.before.outage())) {
			worst = t
		}
	}
	worst.settle(ctx, &worst.before, o)
	if len(r.Changes) > 0 {
		worst.settle(ctx, &worst.after, o)
	}
	return worst.verdict()
}

func (o Outage) worseThan(other Outage) bool {
	return cmp.Or(cmp.Compare(o.Collapse.Share, other.Collapse.Share), cmp.Compare(o.Recovery, other.Recovery),
		cmp.Compare(o.Amplification, other.Amplification)) > 0
}

// String is the outage in words: "collapses in 94 % of 20 runs; 71.8 attempts for a request".
func (o Outage) String() string {
	var s string
	switch {
	case o.Collapse.Share == 0 && o.Recovered > 0:
		s = fmt.Sprintf("recovers in %d of %d runs, after %.1f s in the median", o.Recovered, o.Runs, o.Recovery)
	case o.Collapse.Share == 0:
		s = fmt.Sprintf("does not collapse in %d runs", o.Runs)
	default:
		s = fmt.Sprintf("collapses in %.0f %% of %d runs", 100*o.Collapse.Share, o.Runs)
	}
	return s + fmt.Sprintf("; %.1f attempts for a request while it fails", o.Amplification)
}

// ScenarioOf returns the outage of a service as a scenario file for editing: of the service at which one request
// becomes most attempts, if none is named. It fails as does most harm to retries.
func (r *Result) ScenarioOf(service string, o SimulateOptions) ([]byte, error) {
	targets := r.dependencies(service)
	if len(targets) == 0 {
		return nil, errors.New("no service calls another, as far as these files say; add the calls to a file of calls")
	}
	way := topology.Hang
	for _, b := range lint.Amplification(r.Form, lint.Options{}).Bounds {
		if b.Service == targets[0] && slices.Contains(b.Outcomes, topology.Hang) &&
			!slices.ContainsFunc(b.Roots, func(x lint.RootBound) bool { return x.Worst > 1 }) {
			way = topology.S503 // a hang is not repeated
		}
	}
	text, _, err := Play{Service: targets[0], Fails: way, For: cmp.Or(o.Outage, 30*time.Second),
		Rate: o.Rate}.Scenario(r.Form)
	return text, err
}
