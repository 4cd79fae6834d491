package abate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/pacing"
	"github.com/abate-go/abate/policy/ratelimit"
)

// inTheMiddle draws what jitter neither shortens nor stretches.
func inTheMiddle() uint64 { return 1 << 63 }

// paced is a policy with nothing but a pace, ten a second.
func paced(c pacing.Config) abate.Policy {
	c.PerSecond = 10
	return abate.Policy{Pacing: c, Rand: inTheMiddle}
}

func connections() abate.Policy {
	p := abate.ConnectionPolicy()
	p.Rand = inTheMiddle
	return p
}

var pacedStories = []scenario{
	{
		name: "attempts are sent one after the other", policy: paced(pacing.Config{}),
		calls: []call{
			{replies: always(5*ms, nil)}, {at: 10 * ms, replies: always(5*ms, nil)}, {at: 20 * ms, replies: always(5*ms, nil)},
		},
		want: "0s attempt 1 | 5ms end success 1 | 100ms attempt 1 | 105ms end success 1 | 200ms attempt 1 | 205ms end " +
			"success 1",
	}, {
		name:   "who would wait too long is refused at once, and takes no turn",
		policy: paced(pacing.Config{MaxWait: 150 * ms}),
		calls: []call{{replies: always(5*ms, nil)}, {at: 10 * ms, replies: always(5*ms, nil)},
			{at: 20 * ms, replies: always(5*ms, nil)}, {at: 60 * ms, replies: always(5*ms, nil)}},
		want: "0s attempt 1 | 5ms end success 1 | 20ms end ignored 0 rate limited | 100ms attempt 1 | 105ms end success 1 " +
			"| 200ms attempt 1 | 205ms end success 1",
	}, {
		name: "nobody waits past its deadline", policy: paced(pacing.Config{}),
		calls: []call{{replies: always(5*ms, nil)}, {at: 10 * ms, deadline: 50 * ms, replies: always(5*ms, nil)},
			{at: 20 * ms, replies: always(5*ms, nil)}},
		want: "0s attempt 1 | 5ms end success 1 | 10ms end ignored 0 rate limited | 100ms attempt 1 | 105ms end success 1",
	}, {
		name: "a deadline that is too short for an answer is no reason to refuse who need not wait",
		policy: func() abate.Policy {
			p := paced(pacing.Config{})
			p.CircuitBreaker = breaker.Config{FailureThreshold: 100} // so that it is known what an answer takes
			return p
		}(),
		calls: []call{{replies: always(80*ms, nil)}, {at: time.Second, deadline: 20 * ms, replies: always(5*ms, nil)}},
		want:  "0s attempt 1 | 80ms end success 1 | 1s attempt 1 | 1.005s end success 1",
	}, {
		name: "a caller that leaves while it waits has used its turn", policy: paced(pacing.Config{}),
		calls: []call{{replies: always(5*ms, nil)}, {at: 10 * ms, leaves: 20 * ms, replies: always(5*ms, nil)},
			{at: 50 * ms, replies: always(5*ms, nil)}},
		want: "0s attempt 1 | 5ms end success 1 | 30ms end ignored 0 context canceled | 200ms attempt 1 | 205ms end " +
			"success 1",
	}, {
		name: "retries wait for their turn, too, and keep their failure", policy: func() abate.Policy {
			p := paced(pacing.Config{MaxWait: 90 * ms})
			p.Retry = fixed(20*ms, 2)
			return p
		}(),
		calls: []call{{replies: always(5*ms, errDown)}, {at: 110 * ms, replies: always(5*ms, nil)}},
		want: "0s attempt 1 | 5ms retry in 20ms | 100ms attempt 2 | 105ms retry in 20ms | 125ms end failure 2 rate limited " +
			"| 200ms attempt 1 | 205ms end success 1",
	}, {
		name: "who waits for its turn keeps its place in the bulkhead", policy: func() abate.Policy {
			p := paced(pacing.Config{})
			p.Bulkhead = bulkhead.Config{MaxConcurrentCalls: 1, NoQueue: true}
			return p
		}(),
		calls: []call{
			{replies: always(5*ms, nil)}, {at: 10 * ms, replies: always(5*ms, nil)}, {at: 50 * ms, replies: always(5*ms, nil)},
		},
		want: "0s attempt 1 | 5ms end success 1 | 50ms end ignored 0 bulkhead full | 100ms attempt 1 | 105ms end success 1",
	}, {
		name: "under a rate limit, too, the pace is kept", policy: func() abate.Policy {
			p := paced(pacing.Config{})
			p.RateLimit = abate.AttemptLimit{
				Config: ratelimit.Config{Limit: ratelimit.Rate{Tokens: 4, Per: time.Second}, Burst: 2}, MaxWait: time.Second,
			}
			return p
		}(),
		calls: []call{
			{replies: always(5*ms, nil)}, {at: 10 * ms, replies: always(5*ms, nil)},
			{at: 20 * ms, replies: always(5*ms, nil)}, {at: 240 * ms, replies: always(5*ms, nil)}},
		want: "0s attempt 1 | 5ms end success 1 | 100ms attempt 1 | 105ms end success 1 | 250ms attempt 1 | 255ms end " +
			"success 1 | 500ms attempt 1 | 505ms end success 1",
	}, {
		name: "a turn too far away costs no token of the rate limit", policy: func() abate.Policy {
			p := paced(pacing.Config{MaxWait: 50 * ms})
			p.RateLimit = abate.AttemptLimit{
				Config: ratelimit.Config{Limit: ratelimit.Rate{Tokens: 2, Per: time.Minute}, Burst: 2},
			}
			return p
		}(),
		calls: []call{
			{replies: always(5*ms, nil)}, {at: 10 * ms, replies: always(5*ms, nil)}, {at: 110 * ms, replies: always(5*ms, nil)},
		},
		want: "0s attempt 1 | 5ms end success 1 | 10ms end ignored 0 rate limited | 110ms attempt 1 | 115ms end success 1",
	}, {
		name: "a token too far away costs no turn", policy: func() abate.Policy {
			p := paced(pacing.Config{MaxWait: 50 * ms})
			p.RateLimit = abate.AttemptLimit{Config: ratelimit.Config{Limit: ratelimit.Rate{Tokens: 1, Per: 200 * ms}, Burst: 1}}
			return p
		}(),
		calls: []call{{replies: always(5*ms, nil)}, {at: 190 * ms, replies: always(5*ms, nil)},
			{at: 201 * ms, replies: always(5*ms, nil)}},
		want: "0s attempt 1 | 5ms end success 1 | 190ms end ignored 0 rate limited | 201ms attempt 1 | 206ms end success 1",
	}, {
		name: "a hedge takes a turn, or is not sent", hedged: true, policy: func() abate.Policy {
			p := paced(pacing.Config{})
			p.Hedge = hedge.Config{Delay: 60 * ms, MaxHedges: 2}
			return p
		}(),
		calls: []call{{replies: always(165*ms, nil)}, {at: 170 * ms, replies: []reply{{150 * ms, nil}, {10 * ms, nil}}},
			{at: 295 * ms, replies: always(1*ms, nil)}},
		want: "0s attempt 1 | 60ms hedge denied: rate limited | 165ms end success 1 | 170ms attempt 1 | 230ms hedge " +
			"denied: rate limited | 295ms attempt 1 | 296ms end success 1 | 320ms end success 1",
	}, {
		name:   "a hedge that has its turn delays the next attempt",
		hedged: true,
		policy: func() abate.Policy {
			p := paced(pacing.Config{})
			p.Hedge = hedge.Config{Delay: 120 * ms}
			return p
		}(),
		calls: []call{{replies: []reply{{500 * ms, nil}, {5 * ms, nil}}}, {at: 150 * ms, replies: always(5*ms, nil)}},
		want:  "0s attempt 1 | 120ms hedge 2 | 125ms end success 2 | 220ms attempt 1 | 225ms end success 1",
	}, {
		name: "a probe waits for no turn, and takes none",
		policy: func() abate.Policy {
			p := paced(pacing.Config{})
			p.Pacing.PerSecond, p.Pacing.MaxWait = 2, time.Second
			p.CircuitBreaker = breaker.Config{FailureThreshold: 1, PermittedCallsInHalfOpen: 1, SuccessThreshold: 1,
				WaitDurationInOpenState: 100 * ms, WaitDurationJitter: 0.001}
			return p
		}(),
		calls: []call{
			{replies: always(5*ms, errDown)},
			{at: 200 * ms, replies: always(5*ms, nil)}, // the next turn is at 500 ms
			{at: 300 * ms, replies: always(5*ms, nil)}, // is no probe any more
		},
		want: "0s attempt 1 | 5ms breaker open | 5ms end failure 1 | 200ms breaker half-open | 200ms attempt 1 | 205ms " +
			"breaker closed | 205ms end success 1 | 500ms attempt 1 | 505ms end success 1",
	}, {
		name: "who had its turn when the circuit opened is refused all the same",
		policy: func() abate.Policy {
			p := paced(pacing.Config{})
			p.CircuitBreaker = breaker.Config{FailureThreshold: 1, WaitDurationInOpenState: time.Second}
			return p
		}(),
		calls: []call{{replies: always(50*ms, errDown)}, {at: 10 * ms, replies: always(5*ms, nil)}},
		want:  "0s attempt 1 | 50ms breaker open | 50ms end failure 1 | 100ms end ignored 0 circuit open",
	}, {
		name:   "connections: three failures open the circuit, and who comes then waits for the probe",
		policy: connections(),
		calls: []call{
			{replies: always(5*ms, nil)},
			{at: 10 * time.Second, replies: always(5*ms, errDown)},
			{at: 10400 * ms, replies: always(3*ms, nil)}, // the circuit is open
		},
		want: "0s attempt 1 | 5ms end success 1 | 10s attempt 1 | 10.005s retry in 50.5ms | 10.107500002s attempt 2 | " +
			"10.112500002s retry in 100.5ms | 10.315000004s attempt 3 | 10.320000004s breaker open | 10.320000004s end " +
			"failure 3 attempts exhausted | 10.460775812s breaker half-open | 10.460775812s attempt 1 | 10.463775812s " +
			"breaker closed | 10.463775812s end success 1",
	}, {
		name:   "connections: before a failure nobody waits, but a moment for word of the first two",
		policy: connections(),
		calls: []call{{replies: always(5*ms, nil)}, {replies: always(5*ms, nil)}, {at: ms, replies: always(5*ms, nil)},
			{at: 7 * ms, replies: always(5*ms, nil)}, {at: 7 * ms, replies: always(5*ms, nil)},
			{at: 7 * ms, replies: always(5*ms, nil)}},
		want: "0s attempt 1 | 0s attempt 1 | 5ms end success 1 | 5ms end success 1 | 6.000001ms attempt 1 | 7ms attempt 1 " +
			"| 7ms attempt 1 | 7ms attempt 1 | 11.000001ms end success 1 | 12ms end success 1 | 12ms end success 1 | 12ms end " +
			"success 1",
	},
}

func TestPacedCallsTellTheSameStoryUnderBothDrivers(t *testing.T) {
	for _, sc := range pacedStories {
		t.Run(sc.name+"/blocking", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { playBlocking(t, sc) }) })
		t.Run(sc.name+"/virtual", func(t *testing.T) { playVirtual(t, sc) })
	}
}

func TestARefusalSaysHowFarTheTurnWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := paced(pacing.Config{MaxWait: ms})
		p.Retry = fixed(ms, 1)
		g := guard(t, p)
		n := 0
		fn := func(context.Context) (int, error) { n++; return 0, errDown }
		_, err := abate.Do(t.Context(), g, fn)
		if want := "payment-service: rate limited after 1 attempt in 1ms: down"; err.Error() != want ||
			!errors.Is(err, abate.ErrRateLimited) || !errors.Is(err, errDown) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		_, err = abate.Do(t.Context(), g, fn)
		want := "payment-service: rate limited, call refused: the turn of the next attempt was 99ms away, later than " +
			"pacing.maxWait or the deadline allows"
		if err.Error() != want || !errors.Is(err, abate.ErrRateLimited) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if n != 1 {
			t.Errorf("%d attempts, want 1", n)
		}
	})
}

// What somebody closes by hand has been open: all callers come at once.
func TestACircuitThatIsReleasedByHandLetsConnectionsBackGently(t *testing.T) {
	for _, by := range []abate.Override{abate.OverrideForcedOpen, abate.OverrideDisabled} {
		synctest.Test(t, func(t *testing.T) {
			p := connections()
			g := guard(t, p)
			pace := func() int { return g.State().Pacing.AtOnce }
			if _, err := abate.Do(t.Context(), g, func(context.Context) (int, error) { return 0, nil }); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute)
			if got := pace(); got != 0 {
				t.Fatalf("the pace is %v at once, want none", got)
			}
			steps := []abate.Override{abate.OverrideForcedOpen, abate.NoOverride}
			if by == abate.OverrideDisabled { // an open circuit that is switched off
				steps = []abate.Override{abate.OverrideForcedOpen, by}
			}
			for _, o := range steps {
				if err := g.Override(o); err != nil {
					t.Fatal(err)
				}
			}
			if got := pace(); got != 1 {
				t.Errorf("the pace is %v at once, want 1", got)
			}
		})
	}
}

// A circuit in shadow has kept nobody out: its recovery is no reason to hold anybody back, and its probes are attempts
// like all others.
func TestACircuitInShadowDoesNotChangeThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connections()
		p.Pacing = pacing.Config{PerSecond: 10, RampUp: 30 * time.Second}
		p.CircuitBreaker.Mode, p.MaxRetries = breaker.Shadow, 0
		g := guard(t, p)
		err := errDown
		try := func() { _, _ = abate.Do(t.Context(), g, func(context.Context) (int, error) { return 0, err }) }
		for range 3 {
			try()
		}
		if got := g.State().Breaker.State; got != breaker.Open {
			t.Fatalf("the circuit is %v, want open", got)
		}
		<-time.After(time.Minute)
		err = nil
		try() // a probe, if the circuit had a say
		if got := g.State(); got.Breaker.State != breaker.Closed ||
			got.Pacing != (pacing.State{PerSecond: 10, Wait: 100 * ms}) {
			t.Errorf("the circuit is %v and the pace %+v, want closed, 10 a second and the next turn in 100 ms",
				got.Breaker.State, got.Pacing)
		}
	})
}

func TestStateShowsThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, paced(pacing.Config{}))
		_, _ = abate.Do(t.Context(), g, func(context.Context) (int, error) { return 0, nil })
		if got := g.State().Pacing; got != (pacing.State{PerSecond: 10, Wait: 100 * ms}) {
			t.Errorf("%+v", got)
		}
		if err := g.Update(abate.Policy{}); err != nil {
			t.Fatal(err)
		}
		if got := g.State().Pacing; got != (pacing.State{}) {
			t.Errorf("switched off: %+v", got)
		}
		if err := g.Update(paced(pacing.Config{})); err != nil {
			t.Fatal(err)
		}
		if got := g.State().Pacing.Wait; got != 100*ms {
			t.Errorf("switched on again: the next turn is %v away, want 100 ms", got)
		}
	})
}

func TestAPacedCallThatSucceedsAllocatesNothing(t *testing.T) {
	g, now := guard(t, connections()), time.Duration(0)
	var c core.Call
	if n := testing.AllocsPerRun(200, func() {
		c, now = core.Call{}, now+time.Minute
		step := g.Begin(&c, now, core.NoDeadline)
		if step.Action == core.Attempt {
			step = c.AttemptDone(now, 0, abate.Outcome{})
		}
		if step.Action != core.Finish || step.Err != nil {
			t.Fatalf("%+v", step)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAReloadChangesThePace(t *testing.T) {
	g := guard(t, paced(pacing.Config{}))
	p := paced(pacing.Config{})
	p.Pacing.PerSecond = 40
	if err := g.Update(p); err != nil {
		t.Fatal(err)
	}
	if got := g.State().Pacing.PerSecond; got != 40 {
		t.Errorf("the pace is %v, want 40", got)
	}
}

// What the rate limit lets go one close behind the other, the pace draws apart.
func TestThePaceCountsFromWhenTheRateLimitLetsGo(t *testing.T) {
	limited := abate.Policy{Rand: inTheMiddle, RateLimit: abate.AttemptLimit{
		Config: ratelimit.Config{Limit: ratelimit.Rate{Tokens: 20, Per: time.Second}, Burst: 1}, MaxWait: time.Minute}}
	g := guard(t, limited)
	begin := func() time.Duration {
		var c core.Call
		return g.Begin(&c, 0, core.NoDeadline).Until
	}
	for range 11 {
		begin()
	}
	limited.Pacing = pacing.Config{PerSecond: 10}
	if err := g.UpdateAt(0, limited); err != nil {
		t.Fatal(err)
	}
	if first, second := begin(), begin(); first != 550*ms || second != 650*ms {
		t.Errorf("sent at %v and %v, want 550 ms and 650 ms", first, second)
	}
}
