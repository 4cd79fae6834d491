package abate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/retry"
)

const (
	ms      = time.Millisecond
	busyFor = 700 * ms
)

var (
	errDown  = errors.New("down")
	errFinal = errors.New("final")
	errBusy  = errors.New("busy")
)

// reply is how the dependency answers one attempt.
type reply struct {
	after time.Duration
	err   error
}

// call is one caller of a scenario.
type call struct {
	at       time.Duration // when it calls
	deadline time.Duration // its context's, from then on; 0 for none
	leaves   time.Duration // when it cancels, from then on; 0 for never
	replies  []reply       // the last one is for all attempts that follow
}

// scenario is one row of the table that both drivers have to play alike. want is the observer's story, a line per
// event that says more than that time went by. or is the same story with two events of one instant the other way round:
// of two calls, each in a goroutine of its own, either may tell of it first.
type scenario struct {
	name   string
	policy abate.Policy
	hedged bool
	calls  []call
	want   string
	or     string
}

func (sc *scenario) reply(c call, n int) reply { return c.replies[min(n, len(c.replies)-1)] }

// story turns events into lines such as "100ms retry in 200ms".
type story struct {
	mu    sync.Mutex
	zero  time.Duration
	first bool
	lines []string
}

func (s *story) Observe(e abate.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.first {
		s.first, s.zero = true, e.At
	}
	line := fmt.Sprint(e.At - s.zero)
	switch e.Kind {
	case core.AttemptBegan:
		line += fmt.Sprintf(" attempt %d", e.Attempt)
	case core.HedgeSent:
		line += fmt.Sprintf(" hedge %d", e.Attempt)
	case core.HedgeDenied:
		line += fmt.Sprintf(" hedge denied: %v", e.Reason)
	case core.RetryScheduled:
		line += fmt.Sprintf(" retry in %v", e.Delay)
	case core.BreakerChanged:
		line += fmt.Sprintf(" breaker %v", e.To)
	case core.CallQueued:
		line += " queued"
	case core.CallEnded:
		line += fmt.Sprintf(" end %v %d", e.Class, e.Attempt)
		if e.Reason != nil {
			line += fmt.Sprintf(" %v", e.Reason)
		}
	default:
		return
	}
	s.lines = append(s.lines, line)
}

func fixed(delay time.Duration, retries int) retry.Config {
	return retry.Config{MaxRetries: retries, Backoff: retry.FixedBackoff, InitialDelay: delay, MaxDelay: 10 * time.Second,
		Jitter: retry.NoJitter}
}

func always(after time.Duration, err error) []reply { return []reply{{after, err}} }

var scenarios = []scenario{
	{
		name:   "pass-through",
		policy: abate.Policy{},
		calls:  []call{{replies: always(5*ms, errDown)}},
		want:   "0s attempt 1 | 5ms end failure 1",
	}, {
		name:   "success at once",
		policy: abate.Policy{Retry: fixed(100*ms, 3)},
		calls:  []call{{replies: always(5*ms, nil)}},
		want:   "0s attempt 1 | 5ms end success 1",
	}, {
		name: "two failures, then success", policy: abate.Policy{Retry: fixed(100*ms, 3)},
		calls: []call{{replies: []reply{{5 * ms, errDown}, {5 * ms, errDown}, {5 * ms, nil}}}},
		want: "0s attempt 1 | 5ms retry in 100ms | 105ms attempt 2 | 110ms retry in 100ms | 210ms attempt 3 | 215ms end " +
			"success 3",
	}, {
		name:   "no sleep after the last attempt",
		policy: abate.Policy{Retry: fixed(100*ms, 1)},
		calls:  []call{{replies: always(5*ms, errDown)}},
		want:   "0s attempt 1 | 5ms retry in 100ms | 105ms attempt 2 | 110ms end failure 2 attempts exhausted",
	}, {
		name:   "a permanent failure is not retried",
		policy: abate.Policy{Retry: fixed(100*ms, 3)},
		calls:  []call{{replies: always(5*ms, abate.Permanent(errFinal))}},
		want:   "0s attempt 1 | 5ms end failure 1",
	}, {
		name: "retry-after stretches the delay",
		policy: abate.Policy{Retry: fixed(100*ms, 3), Rand: func() uint64 {
			return 0
		}},
		calls: []call{{replies: []reply{{5 * ms, abate.RetryAfter(errBusy, busyFor)}, {5 * ms, nil}}}},
		want:  "0s attempt 1 | 5ms retry in 700ms | 705ms attempt 2 | 710ms end success 2",
	}, {
		name:   "retry-after above the limit ends the call",
		policy: abate.Policy{Retry: retry.Config{MaxRetries: 3, MaxRetryAfter: 500 * ms}},
		calls:  []call{{replies: always(5*ms, abate.RetryAfter(errBusy, busyFor))}},
		want:   "0s attempt 1 | 5ms end overload 1 overloaded",
	}, {
		name:   "an attempt timeout is a failure",
		policy: abate.Policy{Retry: fixed(100*ms, 1), AttemptTimeout: 50 * ms},
		calls:  []call{{replies: []reply{{time.Hour, nil}, {5 * ms, nil}}}},
		want:   "0s attempt 1 | 50ms retry in 100ms | 150ms attempt 2 | 155ms end success 2",
	}, {
		name: "no retry that does not fit the timeout", policy: abate.Policy{Retry: fixed(100*ms, 5), Timeout: 250 * ms},
		calls: []call{{replies: always(5*ms, errDown)}},
		want: "0s attempt 1 | 5ms retry in 100ms | 105ms attempt 2 | 110ms retry in 100ms | 210ms attempt 3 | 215ms end " +
			"failure 3 deadline",
	}, {
		name:   "no retry that does not fit the caller's deadline",
		policy: abate.Policy{Retry: fixed(100*ms, 5)},
		calls:  []call{{deadline: 90 * ms, replies: always(5*ms, errDown)}},
		want:   "0s attempt 1 | 5ms end failure 1 deadline",
	}, {
		name:   "no retry that begins in time but could not end in time",
		policy: abate.Policy{Retry: fixed(100*ms, 5), Timeout: 250 * ms},
		calls:  []call{{replies: always(120*ms, nil)}, {at: time.Second, replies: always(60*ms, errDown)}},
		want:   "0s attempt 1 | 120ms end success 1 | 1s attempt 1 | 1.06s end failure 1 deadline",
	}, {
		name:   "the caller leaves during back-off",
		policy: abate.Policy{Retry: fixed(100*ms, 5)},
		calls:  []call{{leaves: 50 * ms, replies: always(5*ms, errDown)}},
		want:   "0s attempt 1 | 5ms retry in 100ms | 50ms end failure 1 context canceled",
	}, {
		name:   "the caller's leaving is nobody's failure",
		policy: abate.Policy{CircuitBreaker: breaker.Config{FailureThreshold: 1}},
		calls:  []call{{leaves: 3 * ms, replies: always(5*ms, errDown)}, {at: 100 * ms, replies: always(5*ms, nil)}},
		want:   "0s attempt 1 | 3ms end ignored 1 | 100ms attempt 1 | 105ms end success 1",
	}, {
		name: "no retry on an open breaker, no call either, until a probe closes it",
		policy: abate.Policy{Retry: fixed(100*ms, 5), CircuitBreaker: breaker.Config{
			FailureThreshold: 2, WaitDurationInOpenState: time.Second, WaitDurationJitter: 0.001, SuccessThreshold: 1},
			Rand: func() uint64 { return 0 }},
		calls: []call{
			{replies: always(5*ms, errDown)},
			{at: 500 * ms, replies: always(5*ms, nil)},
			{at: 1200 * ms, replies: always(5*ms, nil)},
		},
		want: "0s attempt 1 | 5ms retry in 100ms | 105ms attempt 2 | 110ms breaker open | 110ms end failure 2 circuit open " +
			"| 500ms end ignored 0 circuit open | 1.2s breaker half-open | 1.2s attempt 1 | 1.205s breaker closed | 1.205s " +
			"end success 1",
	}, {
		name: "the budget ends retries and keeps the failure", policy: abate.Policy{Retry: fixed(100*ms, 5),
			RetryBudget: budget.Config{Kind: budget.Ratio, Ratio: 0.1, Reserve: 2}},
		calls: []call{{replies: always(5*ms, errDown)}},
		want: "0s attempt 1 | 5ms retry in 100ms | 105ms attempt 2 | 110ms retry in 100ms | 210ms attempt 3 | 215ms end " +
			"failure 3 retry budget exhausted",
	}, {
		name: "the bulkhead queues one and refuses one", policy: abate.Policy{
			Bulkhead: bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 1, MaxWait: time.Second}},
		calls: []call{
			{replies: always(50*ms, nil)},
			{at: 10 * ms, replies: always(50*ms, nil)},
			{at: 20 * ms, replies: always(50*ms, nil)},
		},
		want: "0s attempt 1 | 10ms queued | 20ms end ignored 0 bulkhead full | 50ms end success 1 | 50ms attempt 1 | 100ms " +
			"end success 1",
		or: "0s attempt 1 | 10ms queued | 20ms end ignored 0 bulkhead full | 50ms attempt 1 | 50ms end success 1 | 100ms " +
			"end success 1",
	}, {
		name: "waiting for the bulkhead has an end",
		policy: abate.Policy{
			Bulkhead: bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 5, MaxWait: 30 * ms}},
		calls: []call{{replies: always(50*ms, nil)}, {at: 10 * ms, replies: always(50*ms, nil)}},
		want:  "0s attempt 1 | 10ms queued | 40ms end ignored 0 bulkhead full | 50ms end success 1",
	}, {
		name: "the caller leaves the queue",
		policy: abate.Policy{
			Bulkhead: bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 5, MaxWait: time.Second}},
		calls: []call{{replies: always(50*ms, nil)}, {at: 10 * ms, leaves: 5 * ms, replies: always(50*ms, nil)}},
		want:  "0s attempt 1 | 10ms queued | 15ms end ignored 0 context canceled | 50ms end success 1",
	}, {
		name: "the permit is let go during back-off",
		policy: abate.Policy{Retry: fixed(100*ms, 1),
			Bulkhead: bulkhead.Config{MaxConcurrentCalls: 1, NoQueue: true}},
		calls: []call{{replies: []reply{{5 * ms, errDown}, {5 * ms, nil}}}, {at: 50 * ms, replies: always(5*ms, nil)}},
		want: "0s attempt 1 | 5ms retry in 100ms | 50ms attempt 1 | 55ms end success 1 | 105ms attempt 2 | 110ms end " +
			"success 2",
	}, {
		name: "a retry waits for a permit where nobody else may, and goes first",
		policy: abate.Policy{Retry: fixed(100*ms, 1),
			Bulkhead: bulkhead.Config{MaxConcurrentCalls: 1, NoQueue: true}},
		calls: []call{
			{replies: []reply{{5 * ms, errDown}, {5 * ms, nil}}}, {at: 50 * ms, replies: always(100*ms, nil)},
			{at: 120 * ms, replies: always(5*ms, nil)},
		},
		want: "0s attempt 1 | 5ms retry in 100ms | 50ms attempt 1 | 105ms queued | 120ms end ignored 0 bulkhead full | " +
			"150ms end success 1 | 150ms attempt 2 | 155ms end success 2",
		or: "0s attempt 1 | 5ms retry in 100ms | 50ms attempt 1 | 105ms queued | 120ms end ignored 0 bulkhead full | " +
			"150ms attempt 2 | 150ms end success 1 | 155ms end success 2",
	}, {
		name: "a retry that gets no permit keeps its failure",
		policy: abate.Policy{Retry: fixed(100*ms, 1),
			Bulkhead: bulkhead.Config{MaxConcurrentCalls: 1, MaxWait: 20 * ms}},
		calls: []call{{replies: always(5*ms, errDown)}, {at: 50 * ms, replies: always(100*ms, nil)}},
		want: "0s attempt 1 | 5ms retry in 100ms | 50ms attempt 1 | 105ms queued | 125ms end failure 1 bulkhead full | " +
			"150ms end success 1",
	}, {
		name: "the queue ends when no time is left for a typical attempt", policy: abate.Policy{Timeout: 100 * ms,
			Bulkhead: bulkhead.Config{MaxConcurrentCalls: 1}},
		calls: []call{
			{replies: always(40*ms, nil)}, {at: 50 * ms, replies: always(90*ms, nil)}, {at: 60 * ms, replies: always(ms, nil)},
		},
		want: "0s attempt 1 | 40ms end success 1 | 50ms attempt 1 | 60ms queued | 120ms end ignored 0 bulkhead full | " +
			"140ms end success 1",
	}, {
		name: "whose time is too short is refused only where no permit is free", policy: abate.Policy{
			Bulkhead: bulkhead.Config{MaxConcurrentCalls: 1}, AttemptTimeout: time.Second},
		calls: []call{
			{replies: always(40*ms, nil)}, {at: 50 * ms, deadline: 30 * ms, replies: always(20*ms, nil)},
			{at: 60 * ms, deadline: 30 * ms, replies: always(20*ms, nil)},
		},
		want: "0s attempt 1 | 40ms end success 1 | 50ms attempt 1 | 60ms end ignored 0 bulkhead full | 70ms end success 1",
	}, {
		name: "the bulkhead is held during back-off if somebody says so",
		policy: abate.Policy{Retry: fixed(100*ms, 1),
			Bulkhead: bulkhead.Config{MaxConcurrentCalls: 1, NoQueue: true, HoldDuringBackoff: true}},
		calls: []call{{replies: []reply{{5 * ms, errDown}, {5 * ms, nil}}}, {at: 50 * ms, replies: always(5*ms, nil)}},
		want:  "0s attempt 1 | 5ms retry in 100ms | 50ms end ignored 0 bulkhead full | 105ms attempt 2 | 110ms end success 2",
	}, {
		name:   "a hedge wins",
		hedged: true,
		policy: abate.Policy{Hedge: hedge.Config{Delay: 20 * ms}},
		calls:  []call{{replies: []reply{{500 * ms, nil}, {5 * ms, nil}}}},
		want:   "0s attempt 1 | 20ms hedge 2 | 25ms end success 2",
	}, {
		name:   "a hedge that fails leaves the first copy alone",
		hedged: true,
		policy: abate.Policy{
			Hedge: hedge.Config{Delay: 20 * ms},
		},
		calls: []call{{replies: []reply{{50 * ms, nil}, {5 * ms, errDown}}}},
		want:  "0s attempt 1 | 20ms hedge 2 | 50ms end success 2",
	}, {
		name:   "when all copies have failed the call goes on at once",
		hedged: true,
		policy: abate.Policy{Retry: fixed(100*ms, 1), Hedge: hedge.Config{Delay: 20 * ms, MaxHedges: 2}},
		calls:  []call{{replies: []reply{{50 * ms, errDown}, {35 * ms, errDown}, {5 * ms, errDown}, {1 * ms, nil}}}},
		want:   "0s attempt 1 | 20ms hedge 2 | 40ms hedge 3 | 55ms retry in 100ms | 155ms attempt 4 | 156ms end success 4",
	}, {
		name:   "each attempt has its own hedges",
		hedged: true,
		policy: abate.Policy{Retry: fixed(100*ms, 1), Hedge: hedge.Config{Delay: 20 * ms}},
		calls:  []call{{replies: []reply{{50 * ms, errDown}, {10 * ms, errDown}, {500 * ms, errDown}, {10 * ms, nil}}}},
		want:   "0s attempt 1 | 20ms hedge 2 | 50ms retry in 100ms | 150ms attempt 3 | 170ms hedge 4 | 180ms end success 4",
	}, {
		name: "decorrelated jitter grows from the last delay", policy: abate.Policy{
			Retry: retry.Config{MaxRetries: 2, Jitter: retry.DecorrelatedJitter}, Rand: func() uint64 { return 1<<64 - 1 }},
		calls: []call{{replies: always(5*ms, errDown)}},
		want: "0s attempt 1 | 5ms retry in 300ms | 305ms attempt 2 | 310ms retry in 900ms | 1.21s attempt 3 | 1.215s end " +
			"failure 3 attempts exhausted",
	}, {
		name: "a refusal for load may cost more budget", policy: abate.Policy{Retry: fixed(100*ms, 3), Rand: func() uint64 {
			return 0
		},
			RetryBudget: budget.Config{Ratio: 0.1, Reserve: 3, OverloadCost: 3}},
		calls: []call{
			{replies: []reply{{5 * ms, abate.RetryAfter(errBusy, busyFor)}, {5 * ms, errDown}}},
		},
		want: "0s attempt 1 | 5ms retry in 700ms | 705ms attempt 2 | 710ms end failure 2 retry budget exhausted",
	}, {
		name:   "a hedge the budget denies does not harm the first copy",
		hedged: true,
		policy: abate.Policy{
			Hedge: hedge.Config{Delay: 20 * ms}, RetryBudget: budget.Config{Kind: budget.Ratio, Ratio: 0.1}},
		calls: []call{{replies: always(50*ms, nil)}},
		want:  "0s attempt 1 | 20ms hedge denied: retry budget exhausted | 50ms end success 1",
	}, {
		name:   "a hedged call's losers are no failures",
		hedged: true,
		policy: abate.Policy{
			Hedge: hedge.Config{Delay: 20 * ms}, CircuitBreaker: breaker.Config{FailureThreshold: 1}},
		calls: []call{{replies: []reply{{500 * ms, nil}, {5 * ms, nil}}}, {at: time.Second, replies: always(5*ms, nil)}},
		want:  "0s attempt 1 | 20ms hedge 2 | 25ms end success 2 | 1s attempt 1 | 1.005s end success 1",
	},
}

// TestDriversTellTheSameStory is the conformance table: the blocking driver and a virtual-time driver play every row,
// and both must tell what the row says.
func TestDriversTellTheSameStory(t *testing.T) {
	for _, sc := range scenarios {
		t.Run(sc.name+"/blocking", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { playBlocking(t, sc) }) })
		t.Run(sc.name+"/virtual", func(t *testing.T) { playVirtual(t, sc) })
	}
}

func newStory(t *testing.T, sc *scenario) (*story, *abate.Guard) {
	t.Helper()
	s := new(story)
	sc.policy.Observer = s
	g, err := abate.New("dependency", alone(sc.policy))
	if err != nil {
		t.Fatal(err)
	}
	return s, g
}

func (s *story) check(t *testing.T, sc *scenario) {
	t.Helper()
	if got := strings.Join(s.lines, " | "); got != sc.want && (sc.or == "" || got != sc.or) {
		t.Errorf("story\n got %s\nwant %s", got, sc.want)
	}
}

func playVirtual(t *testing.T, sc scenario) {
	s, g := newStory(t, &sc)
	v := &virtual{now: 17 * time.Hour}
	var calls []*virtualCall
	for _, c := range sc.calls {
		calls = append(calls, v.start(g, &sc, c))
	}
	v.run()
	s.check(t, &sc)
	for i, c := range calls {
		if !c.ended {
			t.Errorf("call %d never ended", i)
		}
	}
	if n := g.StateAt(v.now).Bulkhead.InFlight; n != 0 {
		t.Errorf("%d bulkhead permits lost", n)
	}
}

func playBlocking(t *testing.T, sc scenario) {
	s, g := newStory(t, &sc)
	var wg sync.WaitGroup
	for _, c := range sc.calls {
		wg.Go(func() {
			<-time.After(c.at)
			ctx := t.Context()
			if c.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.deadline)
				defer cancel()
			}
			if c.leaves > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				time.AfterFunc(c.leaves, cancel)
				defer cancel()
			}
			var mu sync.Mutex
			n := 0
			do := abate.Do[int]
			if sc.hedged {
				do = abate.DoHedged[int]
			}
			do(ctx, g, func(ctx context.Context) (int, error) {
				mu.Lock()
				r := sc.reply(c, n)
				n++
				mu.Unlock()
				select {
				case <-time.After(r.after):
					return 1, r.err
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			})
		})
	}
	wg.Wait()
	s.check(t, &sc)
	if n := g.State().Bulkhead.InFlight; n != 0 {
		t.Errorf("%d bulkhead permits lost", n)
	}
}
