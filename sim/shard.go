package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/scenario"
)

// Shard is a part of the runs of a study: of every so many, one. Shard 3 of 20 makes the runs with the numbers 2, 22,
// 42 and so on.
type Shard struct {
	Number int // from 1
	Of     int
}

// has reports whether a run, counted from 0, belongs to the shard.
func (p Shard) has(run int) bool { return run%p.Of == p.Number-1 }

// String reads "3/20".
func (p Shard) String() string { return strconv.Itoa(p.Number) + "/" + strconv.Itoa(p.Of) }

// ShardRun is what is kept of one run until the shards of a study are merged. As JSON it keeps every number to the bit.
type ShardRun struct {
	Variant   string       `json:"variant"`
	Run       int          `json:"run"` // from 0; its seed is that of the study plus this
	Values    []exact      `json:"values"`
	Measures  []exact      `json:"measures"`
	Collapsed bool         `json:"collapsed"`
	Recovery  exact        `json:"recovery"`
	Before    exact        `json:"before"`
	Fleets    []shardFleet `json:"fleets"`
	Goodput   []exact      `json:"goodput"`
	Path      *shardPath   `json:"path,omitempty"`
	Events    int64        `json:"events"`
	Attempts  int64        `json:"attempts"`
}

type shardFleet struct {
	Collapsed exact `json:"collapsed"`
	Recovery  exact `json:"recovery"`
	Before    exact `json:"before"`
	Judged    int   `json:"judged"`
}

type shardPath struct {
	Seed uint64  `json:"seed"`
	Wait []exact `json:"wait"`
}

// exact is a number that JSON keeps to the bit, also one that is none or has no end.
type exact float64

// MarshalJSON writes the shortest text that reads as the same number.
func (x exact) MarshalJSON() ([]byte, error) {
	text := strconv.FormatFloat(float64(x), 'g', -1, 64)
	if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
		text = strconv.Quote(text)
	}
	return []byte(text), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (x *exact) UnmarshalJSON(text []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(text), `"`), 64)
	if err != nil {
		return fmt.Errorf("%.40q is not a number", text)
	}
	*x = exact(v)
	return nil
}

func exacts(values []float64) []exact {
	if values == nil {
		return nil
	}
	out := make([]exact, len(values))
	for i, v := range values {
		out[i] = exact(v)
	}
	return out
}

func floats(values []exact) []float64 {
	if values == nil {
		return nil
	}
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}

// kept is an outcome as a shard keeps it.
func kept(variant string, run int, o *outcome) ShardRun {
	r := ShardRun{
		Variant: variant, Run: run, Values: exacts(o.values), Measures: exacts(o.measures), Collapsed: o.collapsed,
		Recovery: exact(o.recovery), Before: exact(o.before), Goodput: exacts(o.goodput), Events: o.events,
		Attempts: o.attempts,
	}
	for _, f := range o.fleets {
		r.Fleets = append(r.Fleets, shardFleet{exact(f.collapsed), exact(f.recovery), exact(f.before), f.judged})
	}
	if o.path.Goodput != nil {
		r.Path = &shardPath{Seed: o.path.Seed, Wait: exacts(o.path.Wait)}
	}
	return r
}

// outcome is the run as a study has it, without its record.
func (r *ShardRun) outcome() outcome {
	o := outcome{
		values: floats(r.Values), measures: floats(r.Measures), collapsed: r.Collapsed, recovery: float64(r.Recovery),
		before: float64(r.Before), goodput: floats(r.Goodput), events: r.Events, attempts: r.Attempts,
	}
	for _, f := range r.Fleets {
		o.fleets = append(o.fleets, fleetOutcome{float64(f.Collapsed), float64(f.Recovery), float64(f.Before), f.Judged})
	}
	if r.Path != nil {
		o.path = Path{Seed: r.Path.Seed, Wait: floats(r.Path.Wait), Goodput: o.goodput}
	}
	return o
}

// RunShard makes the runs of one shard of a study: all that may be needed, since only all shards together can tell when
// everything is decided. has reports what need not be made again, and may be nil; keep is told of every run, never by
// two goroutines at once. Of the options Margin, Map and Advice are for Merge. When ctx is done the error is its cause,
// and what was kept is whole.
func RunShard(ctx context.Context, s *scenario.Scenario, o Options, part Shard, has func(variant string, run int) bool,
	keep func(ShardRun) error) error {
	o.settle(s)
	chosen, err := choose(s, o.Variants)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	st := &study{ctx: ctx, options: o}
	var mu sync.Mutex
	for _, v := range chosen {
		var missing []int
		for run := range o.Runs {
			if part.has(run) && (has == nil || !has(v.Name, run)) {
				missing = append(missing, run)
			}
		}
		expected, standard := expectations(s, v), standardMeasures(s, v)
		st.begin(v.Name, "runs", len(missing))
		_, err := st.sown(s, v, missing, true, func(i int, r *engine.Record) outcome {
			out := lookAt(r, expected, standard, i)
			mu.Lock()
			defer mu.Unlock()
			if err := keep(kept(v.Name, i, &out)); err != nil {
				stop(err)
			}
			return outcome{} // it is kept elsewhere
		})
		if err := errors.Join(err, context.Cause(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// Merge makes the result of a study from the runs of all its shards: the same, to the bit, that Run would have made
// with the same options. It makes the first run of every variant again, of which a reader wants every detail, and
// whatever Margin, Map and Advice ask for. It returns an error that names the runs that are missing, and one when the
// first run does not come out as the shard has it: then the shards were made by another version or from another
// scenario.
func Merge(ctx context.Context, s *scenario.Scenario, o Options, of int, all []ShardRun) (*Result, error) {
	o.settle(s)
	chosen, err := choose(s, o.Variants)
	if err != nil {
		return nil, err
	}
	st := &study{ctx: ctx, options: o, stored: map[string][]ShardRun{}}
	made := make(map[string][]bool, len(chosen))
	for _, v := range chosen {
		st.stored[v.Name], made[v.Name] = make([]ShardRun, o.Runs), make([]bool, o.Runs)
	}
	for i := range all {
		if r := &all[i]; r.Run >= 0 && r.Run < len(made[r.Variant]) {
			st.stored[r.Variant][r.Run], made[r.Variant][r.Run] = *r, true
		}
	}
	var lost []string
	for number := 1; number <= of; number++ {
		have, want := 0, 0
		for _, v := range chosen {
			for run := number - 1; run < o.Runs; run += of {
				if want++; made[v.Name][run] {
					have++
				}
			}
		}
		if have < want {
			lost = append(lost, fmt.Sprintf("shard %v has %d of its %d runs", Shard{number, of}, have, want))
		}
	}
	if lost != nil {
		return nil, errors.New(strings.Join(lost, "; ") + ": run it again, it goes on where it stopped")
	}
	return st.all(s, chosen)
}

// merged adds runs that shards have made to those of a variant, up to so many.
func (st *study) merged(s *scenario.Scenario, v *scenario.Variant, list []outcome, upTo int,
	look func(i int, r *engine.Record) outcome) ([]outcome, error) {
	stored := st.stored[v.Name]
	for run := len(list); run < upTo; run++ {
		o := stored[run].outcome()
		if run == 0 {
			again, err := st.batch(s, v, 0, 1, true, look)
			if err != nil || len(again) == 0 {
				return nil, err
			}
			if !same(kept(v.Name, 0, &again[0]), stored[0]) {
				return nil, fmt.Errorf("variant %s: the first run does not come out as in its shard: make all shards and the "+
					"merge with the same version of abate and the same files", v.Name)
			}
			o = again[0]
		} else if !stored[run].like(&stored[0]) {
			return nil, fmt.Errorf("variant %s: run %d is not whole: make its shard again", v.Name, run)
		}
		list = append(list, o)
	}
	return list, nil
}

// like reports whether two runs have as much of everything.
func (r *ShardRun) like(other *ShardRun) bool {
	return len(r.Values) == len(other.Values) && len(r.Measures) == len(other.Measures) &&
		len(r.Fleets) == len(other.Fleets) && len(r.Goodput) == len(other.Goodput)
}

// same reports whether two runs came out the same.
func same(a, b ShardRun) bool {
	equal := func(a, b []exact) bool {
		return slices.EqualFunc(a, b, func(x, y exact) bool {
			return math.Float64bits(float64(x)) ==
				math.Float64bits(float64(y)) || math.IsNaN(float64(x)) && math.IsNaN(float64(y))
		})
	}
	return a.like(&b) && equal(a.Values, b.Values) && equal(a.Measures, b.Measures) && equal(a.Goodput, b.Goodput) &&
		a.Events == b.Events && a.Attempts == b.Attempts
}
