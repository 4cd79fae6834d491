package abate_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/throttle"
)

// A service that answers with streams, which last for hours, is neither silent nor slow: whoever comes later is let in
// at once.
func TestStreamsThatLastAreNoSilence(t *testing.T) {
	slow := breaker.Config{SlowCallRateThreshold: 0.5, SlowCallDurationThreshold: 100 * ms, MinimumNumberOfCalls: 10}
	for name, p := range map[string]abate.Policy{
		"the default":         abate.DefaultPolicy(),
		"slow calls":          {CircuitBreaker: slow},
		"a throttle":          {Throttle: throttle.Config{K: 1.5, MinimumNumberOfCalls: 10}},
		"an adaptive limit":   {Bulkhead: bulkhead.Config{Limit: bulkhead.AdaptiveLimit}},
		"that holds its body": {Bulkhead: bulkhead.Config{Limit: bulkhead.AdaptiveLimit, HoldDuringBody: true}},
	} {
		t.Run(name, func(t *testing.T) {
			p.Rand = func() uint64 { return 0 } // the draw with which a throttle refuses first
			g := guard(t, p)
			calls := make([]core.Call, 200)
			now := time.Hour
			for i := range calls {
				c := &calls[i]
				if step := g.Begin(c, now, now+time.Minute); step.Action != core.Attempt {
					t.Fatalf("stream %d: %+v, %+v", i, step, g.StateAt(now).Breaker)
				}
				core.AnswerBegan(c, now+5*ms)
				now += 50 * ms // the last one begins after ten seconds
			}
			for i := range calls {
				if step := calls[i].AttemptDone(now, 0, abate.Outcome{}); step.Action != core.Finish || step.Err != nil {
					t.Fatalf("the end of stream %d: %+v", i, step)
				}
			}
			st := g.StateAt(now)
			if st.Breaker.State != breaker.Closed || st.Bulkhead.InFlight != 0 || st.Throttle.Waiting != 0 {
				t.Errorf("at last: %+v", st)
			}
		})
	}
}

// How long a stream lasts is not how long an answer takes: a call with less time than that is tried again.
func TestHowLongAStreamLastsIsNotWhatAnAttemptTakes(t *testing.T) {
	g := guard(t, abate.Policy{Retry: abate.Retry{MaxRetries: 1}})
	now := time.Hour
	for range 20 {
		var c core.Call
		g.Begin(&c, now, now+24*time.Hour)
		core.AnswerBegan(&c, now+5*ms)
		now += time.Hour
		c.AttemptDone(now, 0, abate.Outcome{})
	}
	var c core.Call
	g.Begin(&c, now, now+5*time.Second)
	step := c.AttemptDone(now+ms, 0, abate.Outcome{Class: abate.Failure, Err: errDown})
	if step.Action != core.Sleep && step.Action != core.Attempt {
		t.Errorf("a failure with five seconds left: %+v", step)
	}
}

// A stream has its place of the bulkhead until its answer begins, and to its end only if the policy says so.
func TestAStreamKeepsItsPlaceOnlyIfThePolicySaysSo(t *testing.T) {
	for hold, during := range map[bool]int{false: 0, true: 1} {
		g := guard(t, abate.Policy{Bulkhead: bulkhead.Config{MaxConcurrentCalls: 1, HoldDuringBody: hold}})
		now := time.Hour
		var c core.Call
		g.Begin(&c, now, core.NoDeadline)
		if n := g.StateAt(now).Bulkhead.InFlight; n != 1 {
			t.Fatalf("holdDuringBody %v: %d places are taken before the answer", hold, n)
		}
		core.AnswerBegan(&c, now+5*ms)
		if n := g.StateAt(now).Bulkhead.InFlight; n != during {
			t.Errorf("holdDuringBody %v: %d places are taken during the answer, want %d", hold, n, during)
		}
		c.AttemptDone(now+time.Second, 0, abate.Outcome{})
		if n := g.StateAt(now).Bulkhead.InFlight; n != 0 {
			t.Errorf("holdDuringBody %v: %d places are taken after it", hold, n)
		}
	}
}

// What a client takes to send its request is nobody's latency, and no silence of the dependency: neither while it goes
// on, nor in what the guard has learned when it is over.
func TestTheTimeOfAnUploadIsNotTheDependencys(t *testing.T) {
	for name, p := range map[string]abate.Policy{
		"the default": abate.DefaultPolicy(),
		"slow calls": {CircuitBreaker: breaker.Config{SlowCallRateThreshold: 0.5, SlowCallDurationThreshold: 100 * ms,
			MinimumNumberOfCalls: 10}},
		"an adaptive limit": {Bulkhead: bulkhead.Config{Limit: bulkhead.AdaptiveLimit}, AttemptTimeout: time.Second},
		"a throttle": {Throttle: throttle.Config{K: 1.5, MinimumNumberOfCalls: 10, Window: time.Second},
			Rand: func() uint64 { return 0 }}, // the draw with which a throttle refuses first
		"one without time limits": {Bulkhead: bulkhead.Config{Limit: bulkhead.AdaptiveLimit}},
	} {
		t.Run(name, func(t *testing.T) {
			var longest time.Duration
			p.Observer = abate.ObserverFunc(func(e abate.Event) {
				if e.Kind == core.AttemptEnded {
					longest = max(longest, e.Latency)
				}
			})
			g := guard(t, p)
			calls := make([]core.Call, 100)
			now := time.Hour
			for i := range calls {
				if step := g.Begin(&calls[i], now, core.NoDeadline); step.Action != core.Attempt {
					t.Fatalf("upload %d: %+v; %+v", i, step, g.StateAt(now))
				}
				for range 4 {
					for j := range calls[:i+1] {
						core.HandedOver(&calls[j], now, now+50*ms)
					}
					now += 25 * ms
				}
			}
			for i := range calls {
				core.HandedOver(&calls[i], now, now)
				if step := calls[i].AttemptDone(now+5*ms, 0, abate.Outcome{}); step.Err != nil {
					t.Fatalf("the end of upload %d: %+v", i, step)
				}
			}
			st := g.StateAt(now)
			if st.Breaker.State != breaker.Closed || st.Breaker.Openings != 0 || st.Bulkhead.Limit != 0 ||
				st.Bulkhead.Sending != 0 || st.Throttle.Waiting != 0 || st.Throttle.Accepts != st.Throttle.Requests {
				t.Errorf("%+v, %+v, %+v", st.Breaker, st.Bulkhead, st.Throttle)
			}
			if longest != 5*ms {
				t.Errorf("an attempt took %v, want 5ms", longest)
			}
		})
	}
}

// Slow and quick uploads in any order, to a service that answers all of them: nobody is refused.
func TestSlowAndQuickUploadsToAHealthyServiceAreAllAnswered(t *testing.T) {
	everything := abate.DefaultPolicy()
	everything.AttemptTimeout = time.Second
	everything.Bulkhead = bulkhead.Config{Limit: bulkhead.AdaptiveLimit}
	everything.Throttle = throttle.Config{K: 1.5, MinimumNumberOfCalls: 10, Window: 5 * time.Second}
	thresholds := everything
	thresholds.CircuitBreaker = breaker.Config{FailureThreshold: 1, SlowCallRateThreshold: 0.2,
		SlowCallDurationThreshold: 100 * ms, MinimumNumberOfCalls: 10}
	for seed, p := range []abate.Policy{abate.DefaultPolicy(), everything, thresholds} {
		p.Rand = func() uint64 { return 0 }
		g, rnd := guard(t, p), rand.New(rand.NewPCG(21, uint64(seed)))
		type upload struct {
			core.Call
			pauses int
			handed time.Duration // when the service was handed something last
			known  time.Duration // when the driver knows what comes next
		}
		var out []*upload
		now := time.Hour
		for n := 0; n < 2000 || len(out) > 0; now += time.Duration(rnd.IntN(10)) * ms {
			if n < 2000 && rnd.IntN(4) > 0 {
				u := &upload{handed: now, known: now + time.Duration(rnd.IntN(20))*ms}
				if rnd.IntN(5) == 0 {
					u.pauses = 1 + rnd.IntN(4)
				}
				if step := g.Begin(&u.Call, now, core.NoDeadline); step.Action != core.Attempt {
					t.Fatalf("policy %d, call %d beside %d: %+v, %+v", seed, n, len(out), step, g.StateAt(now))
				}
				out = append(out, u)
				n++
			}
			left := out[:0]
			for _, u := range out {
				switch {
				case u.known > now:
				case u.pauses > 0: // it has sent a piece, and goes on
					u.pauses--
					u.known = now + 250*ms
					if u.pauses == 0 { // the rest comes, and is answered
						u.handed = now + 240*ms
					}
					core.HandedOver(&u.Call, now, u.handed)
					core.HandedOver(&u.Call, now, now+500*ms)
				default:
					core.HandedOver(&u.Call, now, u.handed)
					if step := u.AttemptDone(now, 0, abate.Outcome{}); step.Err != nil {
						t.Fatalf("policy %d: the end of a call: %+v", seed, step)
					}
					continue
				}
				left = append(left, u)
			}
			out = left
		}
		st := g.StateAt(now)
		if st.Breaker.Openings != 0 || st.Bulkhead.InFlight != 0 || st.Bulkhead.Limit != 0 || st.Bulkhead.Sending != 0 ||
			st.Throttle.Waiting != 0 || st.Throttle.Refused != 0 {
			t.Errorf("policy %d: %+v", seed, st)
		}
	}
}

// A call that ends while its client is still sending has taken no time, rather than less.
func TestACallThatEndsWhileItsClientSendsHasTakenNoTime(t *testing.T) {
	for name, end := range map[string]func(c *core.Call, now time.Duration){
		"with an answer": func(c *core.Call, now time.Duration) { c.AttemptDone(now, 0, abate.Outcome{}) },
		"in a panic":     func(c *core.Call, now time.Duration) { c.Abort(now) },
		"as a stream": func(c *core.Call, now time.Duration) {
			core.AnswerBegan(c, now)
			c.AttemptDone(now, 0, abate.Outcome{})
		},
	} {
		told, p := 0, abate.DefaultPolicy()
		p.Observer = abate.ObserverFunc(func(e abate.Event) {
			if e.Kind == core.AttemptEnded {
				if told++; e.Latency != 0 {
					t.Errorf("%s: it has taken %v", name, e.Latency)
				}
			}
		})
		g := guard(t, p)
		var c core.Call
		g.Begin(&c, time.Hour, core.NoDeadline)
		core.HandedOver(&c, time.Hour+5*ms, time.Hour+500*ms)
		end(&c, time.Hour+10*ms)
		if told != 1 || g.StateAt(time.Hour+10*ms).Breaker.State != breaker.Closed {
			t.Errorf("%s: told %d times, %+v", name, told, g.StateAt(time.Hour+10*ms).Breaker)
		}
	}
}

// A stream that breaks off is a failure in the end. What its caller has of it cannot be taken back, so it is the last
// attempt.
func TestAStreamThatBreaksOffIsAFailure(t *testing.T) {
	g := guard(t, abate.Policy{Retry: abate.Retry{MaxRetries: 3}, CircuitBreaker: breaker.Config{FailureThreshold: 3}})
	now := time.Hour
	for i := range 3 {
		if st := g.StateAt(now).Breaker; st.State != breaker.Closed {
			t.Fatalf("after %d: %+v", i, st)
		}
		var c core.Call
		g.Begin(&c, now, core.NoDeadline)
		core.AnswerBegan(&c, now+5*ms)
		core.AnswerBegan(&c, now+6*ms) // which does nothing
		now += 10 * ms
		step := c.AttemptDone(now, 0, abate.Outcome{Class: abate.Failure, Err: errDown})
		if step.Action != core.Finish || step.Err != errDown {
			t.Fatalf("the end of stream %d: %+v", i, step)
		}
		c.AnswerEnded(now, errDown) // which does nothing
	}
	if st := g.StateAt(now).Breaker; st.State != breaker.Open || st.Calls > 3 {
		t.Errorf("after three: %+v", st)
	}
}
