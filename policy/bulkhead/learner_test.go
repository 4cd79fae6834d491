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

// Those whose callers are still sending are no silence, whatever they take, and not how long it takes until anybody
// knows that they are. They keep nobody else out either, and what is usual does not rise by them.
func TestCallersWhoSendForLongAreNoSilence(t *testing.T) {
	for _, unknown := range []time.Duration{0, 250 * ms} { // until their driver has noticed
		c := newCrowd(t)
		var begun []time.Duration
		told := 0
		for range 200 {
			if c.enter(1) != 1 {
				t.Fatalf("caller %d is refused: %+v", len(begun), c.b.State())
			}
			begun = append(begun, c.now)
			for ; told < len(begun) && begun[told]+unknown <= c.now; told++ {
				c.b.Suspend(begun[told])
			}
			c.now += 50 * ms
		}
		for ; told < len(begun); told++ {
			c.b.Suspend(begun[told])
		}
		c.want("200 who send", false)
		c.calm()
		if s := c.b.State(); s.InFlight != 200 || s.Sending != 200 || s.Learned.Usual > 10 {
			t.Errorf("beside 200 who send and ten others: %+v", s)
		}
		for range begun { // all at once
			c.b.Resume(c.now)
		}
		if got := c.enter(100); got != 100 {
			t.Errorf("%d of 100 were let in when 200 had sent all at once", got)
		}
		c.now += 50 * ms
		c.end(300, 50*ms, true)
		if s := c.b.State(); s.InFlight != 0 || s.Sending != 0 {
			t.Errorf("in the end: %+v", s)
		}
	}
}

// A hang is found beside callers who go on sending for all the time, and who come and go.
func TestAHangIsFoundBesideCallersWhoSend(t *testing.T) {
	c := newCrowd(t).calm()
	for range 3000 {
		began := c.now
		if c.enter(1) == 1 { // one that stays
			c.now += 5 * ms
			if c.enter(1) == 1 {
				c.b.Suspend(began + 5*ms)
			}
		}
		c.now += 20 * ms
	}
	c.want("a hang", true)
	if s := c.b.State(); c.in-s.Sending > 100 {
		t.Errorf("%d calls in a hung dependency that usually has 10, beside %d who send", c.in-s.Sending, s.Sending)
	}
}

// A caller who has sent all is evidence from then on.
func TestAHangIsFoundWhenTheCallersHaveSentAll(t *testing.T) {
	c := newCrowd(t).calm()
	c.enter(50)
	for range 50 {
		c.b.Suspend(c.now)
	}
	c.now += time.Minute
	for range 50 {
		c.b.Resume(c.now)
	}
	for range 400 { // 8 s
		c.enter(1)
		c.now += 20 * ms
	}
	c.want("a hang", true)
}

// Callers who send take no place of a limit in force: else they would keep all others out, and nobody would find out
// that all is well again.
func TestCallersWhoSendTakeNoPlaceOfALimitInForce(t *testing.T) {
	c := newCrowd(t).calm()
	c.enter(50)
	c.now += allowed
	c.end(50, allowed, false)
	c.want("a hang", true)
	places := c.b.State().Limit
	if got := c.enter(100); got != places {
		t.Fatalf("%d let in at a limit of %d", got, places)
	}
	woken := 0
	c.b.Enqueue(c.now, &bulkhead.Waiter{Wake: func() { woken++ }, Until: c.now + allowed})
	for range places {
		c.b.Suspend(c.now)
	}
	if woken != 1 {
		t.Errorf("%d of one that waits was let in when %d begin to send", woken, places)
	}
	if got := c.enter(100); got != places-1 {
		t.Errorf("%d more let in beside %d who send, want %d", got, places, places-1)
	}
	for range places {
		c.b.Resume(c.now)
	}
	if s := c.b.State(); s.Limit != places || s.InFlight != 2*places || c.enter(1) != 0 {
		t.Errorf("when they have sent all: %+v", s)
	}
}

// A limit that somebody has set holds for callers who send too: what they hold here is what it bounds.
func TestCallersWhoSendTakePlacesOfAFixedLimit(t *testing.T) {
	for _, limit := range []bulkhead.Limit{bulkhead.FixedLimit, bulkhead.AdaptiveLimit} {
		b := bulkhead.New(bulkhead.Config{Limit: limit, MaxConcurrentCalls: 7})
		c := &crowd{t: t, b: b, now: time.Hour}
		for i := range 20 {
			if got := c.enter(1); got != 0 != (i < 7) {
				t.Errorf("%s: caller %d of 7: %d let in", limit, i, got)
			} else if got > 0 {
				b.Suspend(c.now)
			}
		}
		b.Reconfigure(bulkhead.Config{Limit: bulkhead.AdaptiveLimit})
		if got := c.enter(20); got != 20 {
			t.Errorf("%s: %d of 20 let in when there is no such limit any more", limit, got)
		}
		b.Reconfigure(bulkhead.Config{MaxConcurrentCalls: 28})
		if got := c.enter(20); got != 1 {
			t.Errorf("%s: %d let in beside 27 at a limit of 28", limit, got)
		}
		for range 7 {
			b.Resume(c.now)
		}
		if s := b.State(); s.Sending != 0 || s.InFlight != 28 || s.Limit != 28 {
			t.Errorf("%s: %+v", limit, s)
		}
	}
}

// A quarter of the places is free, or it is not, whoever sends beside them.
func TestScarcityIsOfPlacesThatCallersWhoSendDoNotTake(t *testing.T) {
	c := newCrowd(t).calm()
	c.enter(50)
	c.now += allowed
	c.end(50, allowed, false)
	places := c.b.State().Limit
	c.enter(places)
	if !c.b.Scarce() {
		t.Error("all places are taken, and they are not scarce")
	}
	for range places {
		c.b.Suspend(c.now)
	}
	if c.b.Scarce() {
		t.Errorf("%d send, no place is taken, and they are scarce", places)
	}
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
		c.b.Suspend(c.now)
		c.b.Resume(c.now)
		c.end(1, 50*ms, true)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
