package bulkhead_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/bulkhead"
)

const (
	ms      = time.Millisecond
	allowed = time.Second
)

// crowd is an adaptive bulkhead with calls that are timed by hand.
type crowd struct {
	t   *testing.T
	b   *bulkhead.Bulkhead
	now time.Duration
	in  int
}

func newCrowd(t *testing.T) *crowd {
	return &crowd{t: t, b: bulkhead.New(bulkhead.Config{Limit: bulkhead.AdaptiveLimit}), now: time.Hour}
}

// enter lets n calls in, and returns how many got a permit.
func (c *crowd) enter(n int) (got int) {
	for range n {
		if c.b.TryAcquire() || c.b.Widen(c.now) {
			got++
		}
	}
	c.in += got
	return got
}

// end ends n calls after a time.
func (c *crowd) end(n int, latency time.Duration, success bool) {
	for range n {
		c.b.Record(c.now, latency, allowed, success)
		c.b.Release()
	}
	c.in -= n
}

// calm is 1,000 answers in time, ten at once.
func (c *crowd) calm() *crowd {
	for range 100 {
		c.enter(10)
		c.now += 50 * ms
		c.end(10, 50*ms, true)
	}
	return c
}

func (c *crowd) want(what string, bound bool) {
	c.t.Helper()
	if s := c.b.State(); s.Learned.Bound != bound || bound != (s.Limit > 0) {
		c.t.Errorf("%s: %+v, want a limit in force: %t", what, s, bound)
	}
}

func TestAnAdaptiveLimitLetsEverybodyInWhileNothingSpeaksAgainstIt(t *testing.T) {
	c := newCrowd(t)
	if got := c.enter(10_000); got != 10_000 {
		t.Errorf("%d of 10000 were let in at once", got)
	}
	c.now += 50 * ms
	c.end(10_000, 50*ms, true)
	c.want("a burst", false)
}

func TestAnAdaptiveLimitComesWithEvidenceOnly(t *testing.T) {
	for _, tt := range []struct {
		name  string
		play  func(*crowd)
		bound bool
	}{
		{"all answers late", func(c *crowd) { c.end(14, 600*ms, true) }, true},
		{"nothing but timeouts", func(c *crowd) { c.end(14, allowed, false) }, true},
		{"one fewer", func(c *crowd) { c.end(13, 600*ms, true) }, false},
		{"fast failures", func(c *crowd) { c.end(100, ms, false) }, false},
		{"every fourth in time", func(c *crowd) {
			for range 25 {
				c.end(3, 600*ms, true)
				c.end(1, 50*ms, true)
			}
		}, false},
		{"callers that leave early", func(c *crowd) { c.end(100, 300*ms, false) }, false},
	} {
		c := newCrowd(t).calm()
		c.enter(100)
		c.now += 600 * ms
		tt.play(c)
		c.want(tt.name, tt.bound)
	}
}

// What has always taken most of its time is not late.
func TestAServiceThatIsSlowByNatureIsNotBound(t *testing.T) {
	c := newCrowd(t)
	for range 100 {
		c.enter(10)
		c.now += 700 * ms
		c.end(10, 700*ms, true)
	}
	c.want("0.7 s of 1 s", false)
}

// No attempt ends, so nobody reports anything: those who come find that out.
func TestAHungDependencyWithoutTimeoutsIsBounded(t *testing.T) {
	c := newCrowd(t).calm()
	for range 3000 { // 60 s at 50 a second
		c.enter(1)
		c.now += 20 * ms
	}
	c.want("a hang", true)
	if c.in > 100 {
		t.Errorf("%d calls in a hung dependency that usually has 10", c.in)
	}
}

func TestABoundLimitIsWhatWasUsualAndGoesWithTheFirstAnswersInTime(t *testing.T) {
	c := newCrowd(t).calm()
	c.enter(50)
	c.now += allowed
	c.end(50, allowed, false)
	c.want("a hang", true)
	// The mean of ten calls that end one after the other.
	if got := c.b.State().Limit; got < 5 || got > 10 {
		t.Errorf("limit %d, 10 calls at once are usual", got)
	}
	woken := 0
	c.enter(c.b.State().Limit)
	for range 20 {
		w := &bulkhead.Waiter{Wake: func() { woken++; c.in++ }, Until: c.now + allowed}
		if v := c.b.Enqueue(c.now, w); v != bulkhead.Queued {
			t.Fatal(v)
		}
	}
	rounds := 0
	for ; c.b.State().Queued > 0 && rounds < 10; rounds++ {
		c.now += 50 * ms
		c.end(c.in, 50*ms, true)
	}
	if woken != 20 || rounds > 3 {
		t.Errorf("%d of 20 that waited were let in within %d round trips", woken, rounds)
	}
	c.end(c.in, 50*ms, true)
	for range 30 {
		c.enter(5)
		c.now += 50 * ms
		c.end(5, 50*ms, true)
	}
	c.want("all is well again", false)
}

func TestAnAdaptiveLimitStaysBelowTheFixedOne(t *testing.T) {
	b := bulkhead.New(bulkhead.Config{Limit: bulkhead.AdaptiveLimit, MaxConcurrentCalls: 7})
	c := &crowd{t: t, b: b, now: time.Hour}
	if got := c.enter(20); got != 7 || b.State().Limit != 7 {
		t.Errorf("%d let in, state %+v", got, b.State())
	}
}

func TestAnAdaptiveLimitCostsNoAllocation(t *testing.T) {
	c := newCrowd(t).calm()
	if n := testing.AllocsPerRun(1000, func() {
		c.enter(1)
		c.end(1, 50*ms, true)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
