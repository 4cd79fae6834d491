package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// Rare is the probability that an expectation is missed in a run, where plain runs would hardly ever show it. Make one
// with RunRare.
//
// Its JSON form has the version of a Result.
type Rare struct {
	File        string  `json:"file"`
	Variant     string  `json:"variant"`
	Text        string  `json:"expectation"`
	Probability float64 `json:"probability"` // that a run misses it
	Low         float64 `json:"low"`         // of the 95 % interval
	High        float64 `json:"high"`
	Verdict     string  `json:"verdict"` // on the share of runs that the expectation names; None if it names none
	Seed        uint64  `json:"seed"`    // that all random numbers are made from

	Levels       []int     `json:"levels"`       // lengths of the queue on the way; the last one misses the expectation
	Shares       []float64 `json:"shares"`       // of the runs that were at one level, those that came to the next: means
	Replications int       `json:"replications"` // independent estimates that the interval is made of
	StageRuns    int       `json:"stageRuns"`    // of each stage of each estimate
	Runs         int       `json:"runs"`         // made in all, parts of runs among them
	Events       int64     `json:"events"`       // of those
	PlainRuns    float64   `json:"plainRuns"`    // that would give an interval as narrow; 0 if that is unknown
	PlainEvents  float64   `json:"plainEvents"`  // of those
}

const (
	rareReplications = 20
	rareRuns         = 100  // of each stage
	rareStep         = 0.25 // the share of runs that should come from one level to the next
	rareMostLevels   = 200
	rareTries        = 10    // to come further than a level
	rareT            = 2.093 // 97.5 % of Student's t with 19 degrees of freedom
)

// RunRare estimates how probable it is that a run of a variant misses an expectation on the length of a queue, such as
// "queue(payment-db) < 200", by splitting: of many runs, those that come to a first length are played again up to that
// moment and go on with other random numbers, those of these that come to a second length again, and so on. The
// probability is the product of the shares. It takes time in proportion to the number of lengths, which grows like the
// logarithm of one in the probability, where plain runs need that many.
//
// o.Runs is how many runs each stage has, by default 100; o.Seed, o.Parallel and o.Progress are as for Run, the others
// are not used. The lengths are chosen in runs of their own, so that the estimate is without bias; the interval is that
// of 20 independent ones. The result is the same for the same seed, whatever Parallel is.
func RunRare(ctx context.Context, s *scenario.Scenario, v *scenario.Variant, x expect.Expectation, o Options) (*Rare,
	error) {
	until, err := rareLength(s, v, &x)
	if err != nil {
		return nil, err
	}
	o.Runs = cmp.Or(o.Runs, rareRuns)
	o.settle(s)
	p := splitting{study: study{ctx: ctx, options: o}, s: s, v: v, service: x.Subject, until: until}
	if err := p.chooseLevels(); err != nil {
		return nil, err
	}
	estimates, err := p.replicate()
	if err != nil {
		return nil, err
	}
	return p.result(&x, estimates)
}

// rareLength is the length of the queue that misses an expectation, which has to be one on a queue.
func rareLength(s *scenario.Scenario, v *scenario.Variant, x *expect.Expectation) (int, error) {
	refuse := func(why string) error {
		return fmt.Errorf("%q %s; write for example \"queue(payment-db) < 200\", or that with \"in 99.99%% of runs\"",
			x.Text, why)
	}
	switch {
	case x.Measure != "queue":
		return 0, refuse("is not about a queue, and only on the way to a long queue can runs be split")
	case x.Op != expect.Below && x.Op != expect.AtMost:
		return 0, refuse("is missed by short queues, which are not rare")
	case x.Window != expect.All:
		return 0, refuse("is about a part of the run; the way to a long queue begins with the run")
	case s.IsPopulation():
		return 0, refuse("needs requests one by one, and this scenario is about a population")
	}
	services := s.ServicesOf(v)
	i := slices.IndexFunc(services, func(service scenario.Service) bool { return service.Name == x.Subject })
	if i < 0 {
		var known []string
		for i := range services {
			known = append(known, services[i].Name)
		}
		return 0, fmt.Errorf("%q: there is no service %q; allowed: %v", x.Text, x.Subject, known)
	}
	length := math.Ceil(x.Value)
	if x.Op == expect.AtMost {
		length = math.Floor(x.Value) + 1
	}
	if length < 1 || length > math.MaxInt32 {
		return 0, refuse("is about a queue that is too short or too long")
	}
	if services[i].Workers == 0 {
		return 0, fmt.Errorf("%q: %s has no limit of workers, so that nothing waits there; set workers", x.Text, x.Subject)
	}
	return int(length), nil
}

// splitting estimates how probable it is that a queue becomes so long.
type splitting struct {
	study
	s       *scenario.Scenario
	v       *scenario.Variant
	service string
	until   int
	levels  []int   // the last one is until
	whole   float64 // events of a whole run: the mean
	pilot   spent
}

// spent is what was paid for something.
type spent struct {
	runs   int
	events int64
}

// way is the seeds of a run that has come as far as it has seeds.
type way []uint64

// stage makes the runs of one stage, each from one of the ways to the last level, and returns those of them that come
// to the length, with all lengths reached. With until unset runs go on to their end.
func (p *splitting) stage(e *engine.Engine, random *kernel.Stream, from []way, length, until int, paid *spent) (
	reached []way, longest []int, err error) {
	n := p.options.Runs
	for i, start := range p.assigned(from, n, random) {
		seeds := append(slices.Clone(start), random.Uint64())
		r, whole, err := e.Climb(engine.Climb{Service: p.service, Levels: p.levels[:len(start)], Seeds: seeds,
			Until: until}, func() bool { return p.ctx.Err() != nil })
		if err != nil || !whole || i%16 == 0 && p.ctx.Err() != nil {
			return nil, nil, errors.Join(err, context.Cause(p.ctx))
		}
		paid.runs++
		paid.events += r.Events
		longest = append(longest, r.Longest)
		if length > 0 && r.Longest >= length {
			reached = append(reached, seeds)
		}
	}
	return reached, longest, nil
}

// assigned gives each of n runs one of the ways to go on from: to each way as many, and one more to some at random.
func (p *splitting) assigned(from []way, n int, random *kernel.Stream) []way {
	if len(from) == 0 {
		return make([]way, n)
	}
	all := make([]way, 0, n)
	for len(all)+len(from) <= n {
		all = append(all, from...)
	}
	rest := slices.Clone(from)
	for len(all) < n {
		i := random.IntN(len(rest))
		all = append(all, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	return all
}

// chooseLevels finds lengths such that a quarter of the runs come from one to the next.
func (p *splitting) chooseLevels() error {
	e, err := engine.New(p.s, p.v)
	if err != nil {
		return err
	}
	p.begin(p.v.Name, "levels", rareMostLevels)
	random := kernel.NewStream(p.options.Seed, 0)
	var from []way
	at := 0
	for len(p.levels) < rareMostLevels {
		next, err := p.next(e, &random, from, at)
		if err != nil {
			return err
		}
		at = min(next, p.until)
		p.levels = append(p.levels, at)
		p.made(0)
		if at == p.until {
			return nil
		}
		start := from
		for from = nil; len(from)*10 < p.options.Runs; { // some come there: it was seen
			reached, _, err := p.stage(e, &random, start, at, at, &p.pilot)
			if err != nil {
				return err
			}
			from = append(from, reached...)
		}
	}
	return fmt.Errorf("the way to a queue of %d at %s has more than %d steps; ask for a shorter one", p.until, p.service,
		rareMostLevels)
}

// estimate is one independent estimate.
type estimate struct {
	value  float64
	shares []float64
	paid   spent
}

// next finds the next level: the length that a quarter of the runs come to or, if that is no longer than where they
// are, the shortest one that is.
func (p *splitting) next(e *engine.Engine, random *kernel.Stream, from []way, at int) (int, error) {
	for range rareTries {
		_, longest, err := p.stage(e, random, from, 0, 0, &p.pilot)
		if err != nil {
			return 0, err
		}
		if len(p.levels) == 0 {
			p.whole = float64(p.pilot.events) / float64(p.pilot.runs)
		}
		slices.Sort(longest)
		further, _ := slices.BinarySearch(longest, at+1)
		if quarter := int(float64(len(longest)) * (1 - rareStep)); further < len(longest) {
			return longest[max(further, quarter)], nil
		}
	}
	return 0, fmt.Errorf("of %d runs that had come to a queue of %d at %s none came further, on the way to %d: "+
		"if nothing limits the queue below that, more runs (--seeds) find the way",
		rareTries*p.options.Runs, at, p.service, p.until)
}

// replicate makes the independent estimates.
func (p *splitting) replicate() ([]estimate, error) {
	all := make([]estimate, rareReplications)
	p.begin(p.v.Name, "splitting", rareReplications)
	done, err := p.share(rareReplications, func() (step, error) {
		e, err := engine.New(p.s, p.v)
		return func(i int) (int64, bool, error) {
			random := kernel.NewStream(p.options.Seed, uint64(i)+1)
			one := estimate{value: 1}
			var from []way
			for _, level := range p.levels {
				reached, _, err := p.stage(e, &random, from, level, level, &one.paid)
				if err != nil {
					return 0, false, err
				}
				share := float64(len(reached)) / float64(p.options.Runs)
				one.value *= share
				one.shares = append(one.shares, share)
				if from = reached; len(from) == 0 {
					break
				}
			}
			all[i] = one
			return one.paid.events, true, nil
		}, err
	})
	if err == nil && done < rareReplications {
		err = context.Cause(p.ctx)
	}
	return all, err
}

// rareInterval is the 95 % interval of independent estimates with a mean above 0. An estimate is a product of many
// shares: most lie below the mean, and a few far above it, which may be missing among these. So the interval is taken
// on the scale of logarithms, and is the hull of two: that of the mean, by the spread of the estimates, and that of the
// mean of a lognormal distribution (Cox's, in Zhou and Gao, Statistics in Medicine 16, 1997), which knows from the
// small ones how far the large ones may lie. Estimates of 0 count as a share of their own.
func rareInterval(all []estimate, mean float64) (low, high float64) {
	var squares, logs, logSquares, some float64
	n := float64(len(all))
	for _, one := range all {
		squares += (one.value - mean) * (one.value - mean)
		if one.value > 0 {
			some++
			logs += math.Log(one.value)
		}
	}
	wide := rareT * math.Sqrt(squares/(n-1)/n) / mean
	low, high = mean*math.Exp(-wide), mean*math.Exp(wide)
	if some > 1 {
		for _, one := range all {
			if one.value > 0 {
				d := math.Log(one.value) - logs/some
				logSquares += d * d
			}
		}
		v := logSquares / (some - 1)
		centre := some / n * math.Exp(logs/some+v/2)
		wide = rareT * math.Sqrt(v/some+v*v/2/(some-1)+(1-some/n)/some)
		low, high = min(low, centre*math.Exp(-wide)), max(high, centre*math.Exp(wide))
	}
	return low, min(high, 1)
}

// result puts together what was found.
func (p *splitting) result(x *expect.Expectation, all []estimate) (*Rare, error) {
	r := &Rare{File: p.s.File, Variant: p.v.Name, Text: x.Text, Verdict: None,
		Seed: p.options.Seed, StageRuns: p.options.Runs, Levels: p.levels, Replications: len(all),
		Runs: p.pilot.runs, Events: p.pilot.events, Shares: make([]float64, len(p.levels))}
	var sum float64
	for _, one := range all {
		sum += one.value
		r.Runs += one.paid.runs
		r.Events += one.paid.events
		for k, share := range one.shares {
			r.Shares[k] += share / float64(len(all))
		}
	}
	r.Probability = sum / float64(len(all))
	if sum == 0 {
		return nil, fmt.Errorf("none of %d estimates came to a queue of %d at %s; more runs (--seeds) find the way", len(all),
			p.until, p.service)
	}
	r.Low, r.High = rareInterval(all, r.Probability)
	if wide := math.Log(r.High/r.Low) / 2; wide > 0 {
		const z = 1.96
		r.PlainRuns = z * z * (1 - r.Probability) / (r.Probability * wide * wide)
		r.PlainEvents = r.PlainRuns * p.whole
	}
	if x.Share != expect.DefaultShare {
		r.Verdict = rareVerdict(r, 1-x.Share)
	}
	return r, nil
}

// rareVerdict is that on an expectation that may be missed in so many of the runs.
func rareVerdict(r *Rare, allowed float64) string {
	switch {
	case r.High <= allowed:
		return Pass
	case r.Low > allowed:
		return Fail
	}
	return Undecided
}
