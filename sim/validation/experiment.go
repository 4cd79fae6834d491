package validation

import (
	"fmt"
	"hash/fnv"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/population"
	"github.com/abate-go/abate/sim/scenario"
)

// experiment is one model, run several times, and what is claimed of it.
type experiment struct {
	source     string
	runs       int
	model      string             // a scenario; or
	population *population.Config // clients of package population
	claims     []claim
}

// claim is one published number.
type claim struct {
	id, what  string
	published float64
	how       Comparison
	deviation float64 // standard error of a published mean,
	alike     float64 // or: it is itself the mean of so many runs like ours
	within    float64 // the ± that it was published with
	trials    int     // of a probability: per run; 0 for one

	record func(*engine.Record) float64    // measures it in a run of a scenario,
	curve  func(*population.Curve) float64 // or of a population
}

// seed of a run: no two experiments share any.
func (x *experiment) seed(run int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(x.claims[0].id))
	return h.Sum64() + uint64(run)
}

// measure runs some of the runs, one after the other, and sets what they came to: a list per run, a value per claim.
func (x *experiment) measure(from, to int, results [][]float64, stop func() bool) error {
	measured, err := x.measured(stop)
	if err != nil {
		return fmt.Errorf("%s: %w", x.claims[0].id, err)
	}
	for run := from; run < to && !stop(); run++ {
		if results[run], err = measured(x.seed(run)); err != nil {
			return fmt.Errorf("%s: %w", x.claims[0].id, err)
		}
	}
	return nil
}

// measured returns a function that makes one run and measures it.
func (x *experiment) measured(stop func() bool) (func(seed uint64) ([]float64, error), error) {
	values := make([]float64, 0, len(x.claims))
	if x.population != nil {
		return func(seed uint64) ([]float64, error) {
			curve, err := population.Exact(*x.population, seed, nil)
			if err != nil {
				return nil, err
			}
			for i := range x.claims {
				values = append(values, x.claims[i].curve(curve))
			}
			return cut(&values), nil
		}, nil
	}
	s, err := scenario.Parse("truth", []byte(x.model))
	if err != nil {
		return nil, err
	}
	e, err := engine.New(s, &s.Variants[0])
	if err != nil {
		return nil, err
	}
	return func(seed uint64) ([]float64, error) {
		r, err := e.Run(seed, false, stop)
		if err != nil || r == nil {
			return nil, err
		}
		for i := range x.claims {
			values = append(values, x.claims[i].record(r))
		}
		return cut(&values), nil
	}, nil
}

// cut takes what was appended to a list.
func cut(values *[]float64) []float64 {
	taken := *values
	*values = make([]float64, 0, cap(taken))
	return taken
}
