package abate_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/pacing"
	"github.com/abate-go/abate/policy/retry"
	"github.com/abate-go/abate/policy/throttle"
)

// dice turns fuzz input into choices; when it runs out, everything is zero.
type dice []byte

func (d *dice) roll(n int) int {
	if len(*d) == 0 {
		return 0
	}
	b := (*d)[0]
	*d = (*d)[1:]
	return int(b) % n
}

func (d *dice) policy() abate.Policy {
	p := abate.Policy{
		Retry: abate.Retry{MaxRetries: d.roll(5), InitialDelay: 10 * ms, MaxDelay: time.Second,
			Backoff: []retry.Backoff{"", retry.NoBackoff}[d.roll(2)]},
		Timeout:        time.Duration(d.roll(4)) * 100 * ms,
		AttemptTimeout: time.Duration(d.roll(3)) * 30 * ms,
	}
	if d.roll(2) == 1 {
		p.RetryBudget = budget.Config{Ratio: 0.1, Reserve: float64(d.roll(3))}
	}
	if d.roll(2) == 1 {
		p.CircuitBreaker = breaker.Config{
			FailureThreshold: 1 + d.roll(4), WaitDurationInOpenState: 50 * ms, RampUp: time.Duration(d.roll(2)) * 50 * ms,
		}
	}
	if d.roll(2) == 1 {
		p.Bulkhead = bulkhead.Config{MaxConcurrentCalls: 1 + d.roll(2), MaxQueue: d.roll(3), MaxWait: 40 * ms}
	}
	if d.roll(2) == 1 {
		p.RateLimit = abate.AttemptLimit{
			Config: perSecond(float64(1+d.roll(100)), 1+d.roll(3)), MaxWait: time.Duration(d.roll(3)) * 30 * ms,
		}
	}
	if d.roll(2) == 1 {
		p.Throttle = throttle.Config{K: 1.5, MinimumNumberOfCalls: 1}
	}
	if d.roll(2) == 1 {
		p.Hedge = hedge.Config{Delay: 15 * ms, MaxHedges: 1 + d.roll(3)}
	}
	if d.roll(2) == 1 {
		p.Pacing = pacing.Config{PerSecond: float64(1 + d.roll(100)), Burst: 1 + d.roll(3),
			RampUp: time.Duration(d.roll(2)) * 100 * ms, MaxWait: time.Duration(1+d.roll(3)*30) * ms}
	}
	if p.AttemptTimeout > p.Timeout && p.Timeout > 0 {
		p.AttemptTimeout = p.Timeout
	}
	return p
}

// FuzzCall plays calls of any policy against any behaviour of dependency and callers, in virtual time. Whatever
// happens, every call ends, gives its permits back and has sent no more than its policy allows.
func FuzzCall(f *testing.F) {
	f.Add([]byte("calls"))
	f.Add([]byte{3, 1, 2, 1, 1, 2, 1, 1, 1, 1, 0, 1, 2, 1, 2, 7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14})
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		seed := make([]byte, 80)
		for i := range seed {
			seed[i] = byte(rnd.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		d := dice(input)
		p := d.policy()
		first, extra := 0, 0
		var sent []time.Duration
		rnd := rand.New(rand.NewPCG(3, 4))
		p.Rand = rnd.Uint64
		p.Observer = abate.ObserverFunc(func(e abate.Event) {
			if e.Kind == core.AttemptBegan || e.Kind == core.HedgeSent {
				sent = append(sent, e.At)
			}
			switch e.Kind {
			case core.AttemptBegan:
				if e.Attempt == 1 {
					first++
				} else {
					extra++
				}
			case core.HedgeSent:
				extra++
			case core.RetryScheduled:
				if e.Delay < 0 || e.Delay > time.Second {
					t.Errorf("delay %v", e.Delay)
				}
			}
		})
		g := guard(t, p)
		v := &virtual{}
		var calls []*virtualCall
		for range 1 + d.roll(6) {
			c := call{at: time.Duration(d.roll(10)) * 7 * ms, leaves: time.Duration(d.roll(6)) * 23 * ms,
				deadline: time.Duration(d.roll(4)) * 61 * ms}
			for range 1 + d.roll(4) {
				c.replies = append(c.replies, reply{
					time.Duration(1+d.roll(20)) * 3 * ms, []error{nil, errDown, errFinal, errBusy}[d.roll(4)],
				})
			}
			calls = append(calls, v.start(g, &scenario{hedged: p.Hedge.Enabled()}, c))
		}
		v.run()
		for i, c := range calls {
			if !c.ended {
				t.Fatalf("call %d never ended under %+v", i, p)
			}
			if most := (1 + p.MaxRetries) * (1 + p.Hedge.MaxHedges); c.Attempts() > most {
				t.Errorf("call %d: %d attempts, at most %d allowed", i, c.Attempts(), most)
			}
		}
		if c := p.Pacing.WithDefaults(); c.Enabled() {
			for from := range sent {
				for to := from; to < len(sent); to++ {
					most := float64(c.Burst+1) + c.PerSecond*(sent[to]-sent[from]).Seconds()/(1-c.Jitter)
					if n := to - from + 1; float64(n) > most+1e-6 {
						t.Fatalf("%d attempts in %v under %+v", n, sent[to]-sent[from], c)
					}
				}
			}
		}
		if st := g.StateAt(v.now).Bulkhead; st.InFlight != 0 || st.Queued != 0 {
			t.Errorf("permits lost: %+v", st)
		}
		if st := g.StateAt(v.now).Throttle; st.Requests < 0 || st.Accepts < 0 || st.Rejection < 0 || st.Rejection > 1 {
			t.Errorf("%+v", st)
		}
		if b := p.RetryBudget; b.Enabled() && float64(extra) > 0.1*float64(first)+b.Reserve {
			t.Errorf("%d extra attempts for %d first ones with a reserve of %v", extra, first, b.Reserve)
		}
	})
}

// TestEverythingAtOnce mixes all drivers, panics, leaving callers and reloads on real goroutines. Nothing may be lost.
func TestEverythingAtOnce(t *testing.T) {
	on := abate.DefaultPolicy()
	on.InitialDelay, on.MaxRetries = ms, 2
	on.AttemptTimeout = 20 * ms
	on.Bulkhead = bulkhead.Config{MaxConcurrentCalls: 8, MaxQueue: 8, MaxWait: 5 * ms}
	on.Hedge = hedge.Config{Delay: ms}
	off := abate.Policy{}
	g := guard(t, on)
	stop := make(chan struct{})
	var reloads, calls sync.WaitGroup
	reloads.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := g.Update([]abate.Policy{on, off, on}[i%3]); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range 16 {
		calls.Go(func() {
			for j := range 150 {
				ctx, cancel := context.WithCancel(context.Background())
				do := abate.Do[int]
				if j%2 == 0 {
					do = abate.DoHedged[int]
				}
				func() {
					defer func() {
						if r := recover(); r != nil && r != "boom" {
							t.Error(r)
						}
					}()
					do(ctx, g, func(ctx context.Context) (int, error) {
						switch rand.IntN(8) {
						case 0:
							return 0, errDown
						case 1:
							cancel()
						case 2:
							select {
							case <-ctx.Done():
							case <-time.After(3 * ms):
							}
							return 0, ctx.Err()
						case 3:
							if i == 0 && j%2 == 1 {
								panic("boom")
							}
						}
						return 1, nil
					})
				}()
				cancel()
			}
		})
	}
	calls.Wait()
	close(stop)
	reloads.Wait()
	if err := g.Update(on); err != nil {
		t.Fatal(err)
	}
	if st := g.State().Bulkhead; st.InFlight != 0 || st.Queued != 0 {
		t.Errorf("permits lost: %+v", st)
	}
	if _, err := abate.Do(t.Context(), guard(t, on), func(context.Context) (int, error) {
		return 1, nil
	}); err != nil && !errors.Is(err, abate.ErrCircuitOpen) {
		t.Error(err)
	}
}
