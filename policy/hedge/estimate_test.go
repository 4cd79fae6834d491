package hedge_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/hedge"
)

// The distributions of latency that the estimate is tried on.
var distributions = []struct {
	name string
	draw func(*rand.Rand) float64 // in milliseconds
}{
	{"constant", func(*rand.Rand) float64 { return 10.4 }},
	{"uniform", func(r *rand.Rand) float64 { return 5 + 20*r.Float64() }},
	{"exponential", func(r *rand.Rand) float64 { return 10 * r.ExpFloat64() }},
	{"log-normal", func(r *rand.Rand) float64 { return 8 * math.Exp(r.NormFloat64()) }},
	{"heavy tail", func(r *rand.Rand) float64 { return 2 * math.Pow(1-r.Float64(), -1/1.5) }},
	{"two humps", func(r *rand.Rand) float64 {
		if r.Float64() < 0.97 {
			return 3 + r.Float64()
		}
		return 900 + 50*r.Float64()
	}},
	{"microseconds", func(r *rand.Rand) float64 { return 0.02 + 0.1*r.Float64() }},
}

func milliseconds(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }

func TestEstimateIsNeverBelowTheQuantileAndAtMostASixteenthAbove(t *testing.T) {
	for _, dist := range distributions {
		for _, q := range []float64{0.5, 0.75, 0.9, 0.95, 0.99, 0.999} {
			random := rand.New(rand.NewPCG(5, 6))
			p := hedge.New(hedge.Config{Quantile: q, MinDelay: -1}) // no floor
			latencies := make([]time.Duration, 20_000)
			for i := range latencies {
				latencies[i] = milliseconds(dist.draw(random))
				p.Record(0, latencies[i])
			}
			slices.Sort(latencies)
			exact := latencies[int(math.Ceil(q*float64(len(latencies))))-1]
			d, _ := p.Delay(time.Second)
			if !near(d, exact) {
				t.Errorf("%s, quantile %g: delay = %v, exactly it is %v", dist.name, q, d, exact)
			}
			longer := 0
			for _, latency := range latencies {
				if latency > d {
					longer++
				}
			}
			if allowed := (1 - q) * float64(len(latencies)); float64(longer) > allowed+1e-6 {
				t.Errorf("%s, quantile %g: %d of %d attempts are longer than the delay, want at most %.0f", dist.name, q, longer,
					len(latencies), allowed)
			}
		}
	}
}

// Every bucket boundary there is, and both sides of it.
func TestEstimateIsRightAtEveryMagnitude(t *testing.T) {
	check := func(latency time.Duration) {
		p := hedge.New(hedge.Config{Quantile: 0.5, MinDelay: -1})
		feed(p, 0, hedge.MinSamples, 0, latency)
		if d, _ := p.Delay(time.Second); !near(d, latency) {
			t.Errorf("latency %d ns: delay = %d ns", latency, d)
		}
	}
	for power := range 40 {
		for sixteenth := range 16 {
			edge := time.Duration(1)<<power + time.Duration(sixteenth)<<power/16
			check(edge - 1)
			check(edge)
		}
	}
}

// The share of attempts that are hedged is what the quantile says, also when hedges
// change what is seen: a slow copy is cancelled by its hedge and never recorded.
func TestHedgingDoesNotLowerItsOwnThreshold(t *testing.T) {
	for _, dist := range distributions {
		random := rand.New(rand.NewPCG(7, 8))
		p := hedge.New(hedge.Config{Quantile: 0.95, MinDelay: -1})
		const attempts = 60_000 // ten minutes
		hedged := 0
		for i := range attempts {
			now := time.Duration(i) * 10 * time.Millisecond
			latency := milliseconds(dist.draw(random))
			if d, ok := p.Delay(now); ok && latency > d {
				latency = min(latency, d+milliseconds(dist.draw(random)))
				if i >= attempts/2 {
					hedged++
				}
			}
			p.Record(now, latency)
		}
		if share := float64(hedged) / (attempts / 2); share > 0.055 {
			t.Errorf("%s: %.1f %% of attempts hedged, want at most about 5 %%", dist.name, 100*share)
		}
	}
}
