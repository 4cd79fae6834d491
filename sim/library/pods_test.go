//go:build !race

package library_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
)

// The policy that is rehearsed is the one that programs use.
func TestPodsAreGuardedByTheConnectionPolicy(t *testing.T) {
	s := load(t, "pods-reconnect.yaml")
	for i := range s.Variants {
		v := &s.Variants[i]
		p, ok := v.ConnectPolicy(&s.Clients[0].Calls[0])
		if ok != (v.Name == "guarded") {
			t.Errorf("%s has a policy for connections: %v", v.Name, ok)
		}
		if ok && !reflect.DeepEqual(p.Policy.WithDefaults(), abate.ConnectionPolicy().WithDefaults()) {
			t.Errorf("%s:\n got %+v\nwant %+v", v.Name, p, abate.ConnectionPolicy())
		}
	}
}

// 1,000 workers that try again 100 ms after a refusal, which takes 0.2 ms to come back, are 1,000 / 0.1002 attempts a
// second once all of them have failed, which is so 1.5 s after the server has gone.
func TestPodsKnockTenThousandTimesASecond(t *testing.T) {
	t.Parallel()
	s := load(t, "pods-reconnect.yaml")
	var rates []float64
	for _, seed := range seeds(20) {
		r := run(t, s, "unguarded", seed)
		rates = append(rates, float64(count(r, r.Services[0].Connects, r.End-time.Second, r.End)))
	}
	near(t, "attempts to connect a second", rates, 1000/0.1002, 0)
}

// What is asked of a fleet whose database restarts: a tenth of the attempts at once, a twentieth of the refusals,
// and everybody served 5 s after the server is up. It holds in every run, and the server never has more than it takes.
func TestGuardedPodsComeBackGently(t *testing.T) {
	needs.Whole(t)
	t.Parallel()
	s := load(t, "pods-reconnect.yaml")
	for _, seed := range seeds(20) {
		without, with := run(t, s, "unguarded", seed), run(t, s, "guarded", seed)
		value := func(r *engine.Record, measure, subject string) float64 {
			return r.Value(&expect.Expectation{Measure: measure, Subject: subject})
		}
		if naive, guarded := value(without, "connectPeak", "postgres"),
			value(with, "connectPeak", "postgres"); guarded > 0.1*naive {
			t.Errorf("seed %d: at most %v attempts to connect in 100 ms, unguarded %v", seed, guarded, naive)
		}
		if naive, guarded := value(without, "unopened", "postgres"),
			value(with, "unopened", "postgres"); guarded > 0.05*naive {
			t.Errorf("seed %d: %v refused connections, unguarded %v", seed, guarded, naive)
		}
		if serving := value(with, "serving", "pods"); !(serving <= 5) {
			t.Errorf("seed %d: all pods serve after %v s", seed, serving)
		}
		if most := value(with, "connections", "postgres"); most > 97 {
			t.Errorf("seed %d: %v connections", seed, most)
		}
	}
}
