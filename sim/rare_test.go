package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

// birthAndDeath is a queue with independent arrivals and exponential service times, which begins empty.
type birthAndDeath struct {
	rate, mean   float64 // per second; seconds
	workers      int
	warm, length float64 // seconds
	queue        int     // that is asked for
}

func (q birthAndDeath) scenario(t testing.TB) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("queue.yaml", fmt.Appendf(nil, `
duration: %gs
warmUp: %gs
clients: {f: {rate: %g, calls: [a]}}
services: {a: {workers: %d, serviceTime: exponential %gs}}
variants: {only: {policy: {defaults: {maxRetries: 0, retryBudget: {disabled: true}, circuitBreaker: {disabled: true}}}}}
`, q.length, q.warm, q.rate, q.workers, q.mean))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// probability is the exact one that so many wait at some moment after the warm-up, by uniformization: the chain makes
// steps at the rate that is above all of its own, a Poisson number of them.
func (q birthAndDeath) probability() float64 {
	full := q.workers + q.queue
	p := make([]float64, full+400) // during the warm-up there is no end to the queue
	p[0] = 1
	p = q.after(p, q.warm, len(p)-1)
	for i := full + 1; i < len(p); i++ {
		p[full] += p[i]
	}
	return q.after(p[:full+1], q.length, full)[full]
}

// after is the distribution some seconds later; who has come to the end stays there.
func (q birthAndDeath) after(p []float64, seconds float64, end int) []float64 {
	total := q.rate + float64(q.workers)/q.mean
	result, next := make([]float64, len(p)), make([]float64, len(p))
	mean := total * seconds
	steps := int(mean + 12*math.Sqrt(mean) + 40)
	logWeight := -mean
	for k := range steps {
		weight := math.Exp(logWeight)
		for i := range p {
			result[i] += weight * p[i]
		}
		clear(next)
		for i := range p {
			if i == end {
				next[i] += p[i]
				continue
			}
			up, down := q.rate/total, float64(min(i, q.workers))/q.mean/total
			next[i+1] += p[i] * up
			if i > 0 {
				next[i-1] += p[i] * down
			}
			next[i] += p[i] * (1 - up - down)
		}
		p, next = next, p
		logWeight += math.Log(mean) - math.Log(float64(k+1))
	}
	return result
}

func rare(t testing.TB, s *scenario.Scenario, text string, o sim.Options) (*sim.Rare, error) {
	t.Helper()
	x, err := expect.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return sim.RunRare(context.Background(), s, &s.Variants[0], x, o)
}

func TestSplittingIsTheSameOnAnyNumberOfProcessors(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	s := birthAndDeath{rate: 5, mean: 0.1, workers: 1, length: 10, queue: 12}.scenario(t)
	one, err := rare(t, s, "queue(a) <= 11", sim.Options{Seed: 7, Runs: 40, Parallel: 1})
	if err != nil {
		t.Fatal(err)
	}
	many, err := rare(t, s, "queue(a) <= 11", sim.Options{Seed: 7, Runs: 40, Parallel: 5})
	if err != nil || !reflect.DeepEqual(one, many) {
		t.Errorf("%+v on one goroutine, %+v on five (%v)", one, many, err)
	}
	less, err := rare(t, s, "queue(a) < 12", sim.Options{Seed: 7, Runs: 40, Parallel: 1})
	if less.Text = one.Text; err != nil || !reflect.DeepEqual(one, less) {
		t.Errorf("at most 11 gives %+v, below 12 %+v (%v)", one, less, err)
	}
	if last := one.Levels[len(one.Levels)-1]; last != 12 {
		t.Errorf("the last level is %d, want 12", last)
	}
}

func TestSplittingRefusesWhatItCannotEstimate(t *testing.T) {
	s := birthAndDeath{rate: 5, mean: 0.1, workers: 1, length: 5}.scenario(t)
	limited := birthAndDeath{rate: 5, mean: 0.1, workers: 1, length: 5}.scenario(t)
	limited.Services[0].Queue.Limit = 6
	endless := birthAndDeath{rate: 5, mean: 0.1, workers: 1, length: 5}.scenario(t)
	endless.Services[0].Workers = 0
	for _, c := range []struct {
		s          *scenario.Scenario
		text, want string
	}{
		{s, "goodput > 90%", "is not about a queue"},
		{s, "queue(a) > 5", "is missed by short queues"},
		{s, "queue(a, before) < 5", "is about a part of the run"},
		{s, "queue(b) < 5", `there is no service "b"; allowed: [a]`},
		{endless, "queue(a) < 5", "no limit of workers"},
		{limited, "queue(a) < 20", "none came further"},
	} {
		_, err := rare(t, c.s, c.text, sim.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.text, err, c.want)
		}
	}
	x, _ := expect.Parse("queue(a) < 30")
	ctx, cancel := context.WithCancelCause(context.Background())
	over := errors.New("over")
	cancel(over)
	if _, err := sim.RunRare(ctx, s, &s.Variants[0], x, sim.Options{}); !errors.Is(err, over) {
		t.Errorf("%v, want the context's cause", err)
	}
}
