package balance

import (
	"math"
	"slices"
	"time"
)

// ramps are what endpoints weigh, and how much of it since they came: see Config.SlowStart.
type ramps struct {
	weights []int32       // nil: all weigh the same
	step    time.Duration // how long each step of a ramp takes; 0: there are none
}

const (
	steps     = 16 // of a ramp
	firstStep = 2  // where it begins
	maxWeight = 1000

	warm      = never                            // its ramp is over
	fromThere = time.Duration(math.MinInt64) + 1 // it begins with the first attempt
)

func newRamps(slow time.Duration) ramps {
	if slow <= 0 {
		return ramps{}
	}
	return ramps{step: max(slow/steps, 1)}
}

// begin begins the ramp of an endpoint.
func (r *ramps) begin(e *endpoint, at time.Duration) {
	if r.step > 0 {
		e.ramp = at
	}
}

// of returns the weight of endpoint i at a time, in steps, and until when it is that.
func (r *ramps) of(i int, e *endpoint, now time.Duration) (weight uint32, until time.Duration) {
	weight, until = 1, never
	if r.weights != nil {
		weight = uint32(r.weights[i])
	}
	if r.step == 0 || e.ramp == warm {
		return weight * steps, never
	}
	if e.ramp == fromThere && now == fromThere {
		return weight * firstStep, fromThere
	}
	if e.ramp == fromThere {
		e.ramp = now
	}
	step := time.Duration(firstStep)
	if now > e.ramp {
		step = max(step, (now-e.ramp)/r.step)
	}
	if step >= steps {
		e.ramp = warm
		return weight * steps, never
	}
	return weight * uint32(step), later(e.ramp, r.step*(step+1))
}

// Weigh gives the endpoints weights: one with weight 2 gets twice as many attempts as one with weight 1, and counts as
// no busier with twice as many pending. Range 1 to 1000 each; what is outside is moved to the nearest end, and with
// fewer weights than endpoints they are used again from the first one on. Call Weigh before b is used, and before
// Carry.
func (b *Balancer) Weigh(weights []int) {
	b.line.mu.Lock()
	defer b.line.mu.Unlock()
	b.ramps.weights = nil
	if len(weights) > 0 && slices.Max(weights) != slices.Min(weights) {
		for i := range b.endpoints {
			b.ramps.weights = append(b.ramps.weights, int32(min(max(weights[i%len(weights)], 1), maxWeight)))
		}
	}
	b.choose(0)
}
