package abate_test

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/shed"
)

// obedient is a service with ten workers, of which each takes 50 ms for a request, so that it can do 200 a second,
// behind a gate; and clients who come back when they are told to.
type obedient struct {
	*virtual
	t       *testing.T
	gate    *inbound.Gate
	told    map[int64]int // refusals by what Retry-After said
	back    map[int64]int // those who came back, by the second
	served  int
	refused int
	worst   time.Duration // from the first try to the end
	fixed   int64         // what all are told instead; 0: what the gate says
}

func newObedient(t *testing.T) *obedient {
	p := inbound.Protection{Shed: shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 10, NoQueue: true},
		Rand: rand.New(rand.NewPCG(1, 2)).Uint64}
	s := &obedient{virtual: &virtual{}, t: t, gate: gate(t, p), told: map[int64]int{}, back: map[int64]int{}}
	for i := range 400 { // at half of what it can do, so that the gate knows how long a request takes
		s.after(time.Duration(i)*10*ms, func() { s.arrive(s.now) })
	}
	s.run()
	if s.refused > 0 {
		t.Fatalf("%d refused at half of the load", s.refused)
	}
	return s
}

// arrive is one try of a client that came first at since.
func (s *obedient) arrive(since time.Duration) {
	a := new(inbound.Arrival)
	step := s.gate.Arrive(a, s.now, inbound.Request{Deadline: core.NoDeadline})
	if step.Action == core.Handle {
		s.after(50*ms, func() {
			a.Done(s.now, abate.Success)
			s.served++
			s.worst = max(s.worst, s.now-since)
		})
		return
	}
	s.refused++
	seconds := a.Refusal().WholeSeconds()
	if s.fixed > 0 {
		seconds = s.fixed
	}
	s.told[seconds]++
	if s.refused > 500_000 {
		s.t.Fatal("they are refused for ever")
	}
	s.after(time.Duration(seconds)*time.Second, func() {
		s.back[int64(s.now/time.Second)]++
		s.arrive(since)
	})
}

// In the storm of this size that was measured, 1,985 of 1,985 refusals said 2.
func TestThoseWhoAreRefusedComeBackAtTheRateThatTheServiceCanTake(t *testing.T) {
	s := newObedient(t)
	start := s.now
	for i := range 2185 { // in a second: 200 can be done
		s.after(time.Duration(i)*time.Second/2185, func() { s.arrive(s.now) })
	}
	for s.queue.Len() > 0 && s.now < start+2*time.Second { // the first wave of refusals
		e := heap.Pop(&s.queue).(virtualEvent)
		s.now = e.at
		e.do()
	}
	if len(s.told) < 10 || s.refused < 1900 {
		t.Errorf("%d refusals say %d different times: %v", s.refused, len(s.told), s.told)
	}
	s.run()
	for second, n := range s.back {
		if n > 300 {
			t.Errorf("%d come back in second %d, of a service that can do 200", n, second)
		}
	}
	if s.served != 400+2185 || s.worst > 20*time.Second {
		t.Errorf("%d served, the last after %v; told %v, back %v", s.served, s.worst, s.told, s.back)
	}
	t.Logf("refused %d times, the last served after %v; told %v; back %v", s.refused, s.worst, s.told, s.back)
}

// 2,000 clients that obey to the second, of a service that can do 200 a second: with one time for all they are the next
// overload, again and again. What the gate says brings them back at about the rate that the service can do.
func TestAGateTellsBetterTimesThanOneForAll(t *testing.T) {
	storm := func(fixed int64) (refused, most int, worst time.Duration) {
		s := newObedient(t)
		s.fixed = fixed
		for i := range 2000 { // in a second
			s.after(time.Duration(i)*time.Second/2000, func() { s.arrive(s.now) })
		}
		s.run()
		for _, n := range s.back {
			most = max(most, n)
		}
		if s.served != 400+2000 {
			t.Errorf("told %d: %d served", fixed, s.served)
		}
		t.Logf("told %d (0: what the gate says): refused %d times, at most %d back in one second, the last served after %v",
			fixed, s.refused, most, s.worst)
		return s.refused, most, s.worst
	}
	refused, most, worst := storm(0)
	if most > 300 || refused > 2*2000 || worst > 20*time.Second {
		t.Errorf("refused %d times, %d back in one second, the last served after %v", refused, most, worst)
	}
	for _, fixed := range []int64{1, 2, 5} {
		if r, m, w := storm(fixed); r < 3*refused || m < 5*most {
			t.Errorf("told %d: refused %d times, %d back in one second, the last served after %v", fixed, r, m, w)
		}
	}
}

func TestAFewWhoAreRefusedNeedNotWaitLong(t *testing.T) {
	s := newObedient(t)
	for range 30 { // ten are handled, twenty refused: a tenth of what can be done in a second
		s.arrive(s.now)
	}
	if s.told[1] != 20 {
		t.Errorf("told %v, want all of them 1", s.told)
	}
}

func TestNobodyIsToldToStayAwayForLongerThanHalfAMinute(t *testing.T) {
	s := newObedient(t)
	for range 15_000 {
		s.arrive(s.now)
	}
	for seconds, n := range s.told {
		if seconds < 1 || seconds > 30 || n > 800 { // 15,000 in 30 seconds: 500 each
			t.Errorf("%d are told %d", n, seconds)
		}
	}
}

func TestThoseAboveTheRateLimitComeBackAsTheirBucketFills(t *testing.T) {
	g := gate(t, inbound.Protection{RateLimit: limited(perSecond(10, 10)), Rand: rand.New(rand.NewPCG(1, 2)).Uint64})
	v := &virtual{}
	back := map[string]map[int64]int{"a": {}, "b": {}}
	refusals, passed := 0, 0
	var try func(key string)
	try = func(key string) {
		a, step := arrive(g, v.now, inbound.Request{Deadline: core.NoDeadline, Key: key})
		if step.Action == core.Handle {
			passed++
			return
		}
		refusals++
		seconds := a.Refusal().WholeSeconds()
		if wait := a.Refusal().RetryAfter; seconds < 1 || seconds > 30 || time.Duration(seconds)*time.Second < wait {
			t.Errorf("told %d, has to wait %v", seconds, wait)
		}
		v.after(time.Duration(seconds)*time.Second, func() { back[key][int64(v.now/time.Second)]++; try(key) })
	}
	for range 110 {
		try("a")
	}
	for range 12 { // of which two are refused, whatever the others do
		try("b")
	}
	if refusals != 102 {
		t.Fatalf("%d refused", refusals)
	}
	v.run()
	for second, n := range back["a"] {
		if n > 15 {
			t.Errorf("%d come back in second %d, of a bucket that gets ten", n, second)
		}
	}
	if passed != 122 || back["b"][1] != 2 || refusals > 120 {
		t.Errorf("%d passed, %d refused, back %v", passed, refusals, back)
	}
}

// A limit of one an hour: nobody is told to wait twice as long as that, and the one who is alone not longer than it
// must.
func TestALongWaitForATokenIsAtMostDoubled(t *testing.T) {
	p := limited(perSecond(1.0/3600, 1))
	g := gate(t, inbound.Protection{RateLimit: p, Rand: rand.New(rand.NewPCG(1, 2)).Uint64})
	arrive(g, 0, inbound.Request{Deadline: core.NoDeadline})
	for i := range 50 {
		a, _ := arrive(g, 0, inbound.Request{Deadline: core.NoDeadline})
		wait := a.Refusal().RetryAfter
		if wait < 59*time.Minute || wait > 2*time.Hour || i == 0 && wait > time.Hour {
			t.Errorf("number %d: %v", i, wait)
		}
	}
}

func TestThoseWhomAnOpenCircuitRefusesComeBackOneAfterTheOther(t *testing.T) {
	p := abate.Policy{Rand: rand.New(rand.NewPCG(1, 2)).Uint64, CircuitBreaker: breaker.Config{
		FailureThreshold: 1, WaitDurationInOpenState: 10 * time.Second, WaitDurationJitter: 0.001,
	}}
	g := guard(t, p)
	var c core.Call
	g.Begin(&c, 0, core.NoDeadline)
	c.AttemptDone(0, 0, failure())
	until := g.StateAt(0).Breaker.OpenUntil
	told := map[time.Duration]int{}
	for i := range 1000 {
		wait := g.ComeBackAt(2*time.Second, abate.ErrCircuitOpen)
		if wait < until-2*time.Second || wait > until-2*time.Second+until {
			t.Errorf("number %d: %v", i, wait)
		}
		if i < 20 && wait > until-500*ms {
			t.Errorf("number %d of a few: %v", i, wait)
		}
		told[wait/time.Second]++
	}
	for seconds, n := range told {
		if n > 150 {
			t.Errorf("%d are told %d", n, seconds)
		}
	}
	if other := guard(t, p); other.ComeBackAt(0, abate.ErrBulkheadFull) != time.Second ||
		other.ComeBackAt(0, abate.ErrBulkheadFull) <= time.Second {
		t.Error("not one after the other")
	}
}

func TestThoseWhoseKeyIsInUseComeBackOneAfterTheOther(t *testing.T) {
	g := gate(t, inbound.Protection{Rand: rand.New(rand.NewPCG(1, 2)).Uint64})
	told := map[time.Duration]int{}
	for range 500 {
		told[g.ComeBackAt(0)/time.Second]++
	}
	for seconds, n := range told {
		if seconds < 1 || seconds > 30 || n > 35 {
			t.Errorf("%d are told %d", n, seconds)
		}
	}
}

func TestWholeSecondsAreNeverTooEarlyForABucketAndNeverNone(t *testing.T) {
	for _, test := range []struct {
		reason error
		wait   time.Duration
		want   int64
	}{
		{abate.ErrRateLimited, 0, 0}, {abate.ErrRateLimited, 1, 1}, {abate.ErrRateLimited, time.Second, 1},
		{abate.ErrRateLimited, time.Second + 1, 2},
		{abate.ErrOverloaded, 0, 0}, {abate.ErrOverloaded, 1, 1}, {abate.ErrOverloaded, time.Second, 1},
		{abate.ErrOverloaded, 2*time.Second - 1, 1}, {abate.ErrOverloaded, 2 * time.Second, 2},
	} {
		if got := (&inbound.Refusal{Reason: test.reason, RetryAfter: test.wait}).WholeSeconds(); got != test.want {
			t.Errorf("%v, %v: %d, want %d", test.reason, test.wait, got, test.want)
		}
	}
}
