package shed_test

import (
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/shed"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

// full is a shedder with one place, which is taken.
func full(t *testing.T, c shed.Config) (*shed.Shedder, shed.Permit) {
	t.Helper()
	c.Concurrency, c.MaxConcurrency = shed.Fixed, 1
	s := shed.New(c)
	p, v, reason := s.Admit(0, shed.Request{Priority: shed.CriticalPlus})
	if v != shed.Admitted || reason != shed.None {
		t.Fatalf("the first request: %v %v", v, reason)
	}
	return s, p
}

// waiter is a request on its way through a shedder.
type waiter struct {
	w     shed.Waiter
	until time.Duration
	woken int
}

// send is what a driver does with an arrival.
func send(s *shed.Shedder, now time.Duration, r shed.Request) (w *waiter, v shed.Verdict, reason shed.Reason) {
	w = &waiter{}
	_, v, reason = s.Admit(now, r)
	if v == shed.Full {
		w.w.Wake = func() { w.woken++ }
		v, w.until = s.Enqueue(now, &w.w, r)
		_, reason = w.w.Outcome()
	}
	return w, v, reason
}

func queued(t *testing.T, s *shed.Shedder, now time.Duration, r shed.Request) *waiter {
	t.Helper()
	w, v, reason := send(s, now, r)
	if v != shed.Queued {
		t.Fatalf("%+v at %v: %v %v, want queued", r, now, v, reason)
	}
	return w
}

func (w *waiter) refused(t *testing.T, want shed.Reason) {
	t.Helper()
	if _, reason := w.w.Outcome(); reason != want || w.woken != 1 {
		t.Errorf("reason %q, woken %d times; want %q, once", reason, w.woken, want)
	}
}

func (w *waiter) admitted(t *testing.T) shed.Permit {
	t.Helper()
	p, reason := w.w.Outcome()
	if reason != shed.None || p == (shed.Permit{}) || w.woken != 1 {
		t.Fatalf("permit %v, reason %q, woken %d times; want a permit", p, reason, w.woken)
	}
	return p
}

func TestZeroConfigRefusesNothing(t *testing.T) {
	for _, c := range []shed.Config{{}, {Disabled: true, Concurrency: shed.Fixed, MaxConcurrency: 1}} {
		s := shed.New(c)
		for range 100 {
			if _, v, reason := s.Admit(2, shed.Request{Deadline: 1, Priority: shed.Sheddable}); v != shed.Admitted ||
				reason != shed.None {
				t.Fatalf("%+v: %v %v", c, v, reason)
			}
		}
		if st := s.State(2); st.InFlight != 100 || st.Limit != 0 {
			t.Errorf("state %+v, want 100 in flight without a limit", st)
		}
	}
}

func TestOldestFirstWhileDelaysAreShort(t *testing.T) {
	s, p := full(t, shed.Config{MaxQueue: 3})
	ws := []*waiter{queued(t, s, 1, shed.Request{}), queued(t, s, 2, shed.Request{}), queued(t, s, 3, shed.Request{})}
	for i, w := range ws {
		s.Release(time.Duration(i)+4, p, shed.Done)
		p = w.admitted(t)
	}
}

func TestNewestFirstAndOnlyFreshOnesInAStandingQueue(t *testing.T) {
	s, p := full(t, shed.Config{MaxQueue: 100, QueueTarget: 10 * ms, QueueInterval: 100 * ms})
	now := time.Duration(0)
	var waits []time.Duration
	came := map[*waiter]time.Duration{}
	for now = ms; now < sec; now += ms { // an arrival each millisecond, a place each fifth
		if w, v, _ := send(s, now, shed.Request{}); v == shed.Queued {
			came[w] = now
		}
		if now%(5*ms) == 0 {
			s.Release(now, p, shed.Done)
			for w, at := range came {
				if got, _ := w.w.Outcome(); got != (shed.Permit{}) {
					p = got
					waits = append(waits, now-at)
					delete(came, w)
				} else if w.woken > 0 {
					w.refused(t, shed.QueueDelay)
					delete(came, w)
				}
			}
		}
	}
	if len(waits) < 190 {
		t.Errorf("%d of 199 places used", len(waits))
	}
	if first := slices.Max(waits[:20]); first < 50*ms {
		t.Errorf("the first waited for up to %v: newest first before the queue was a standing one", first)
	}
	if last := slices.Max(waits[60:]); last > 10*ms {
		t.Errorf("later ones waited for up to %v, want at most the target", last)
	}
}

func TestQueueIsCalmAgainWhenItHasBeenEmpty(t *testing.T) {
	s, p := full(t, shed.Config{MaxQueue: 100, QueueTarget: 10 * ms, QueueInterval: 100 * ms})
	for now := time.Duration(0); now < 300*ms; now += 5 * ms {
		send(s, now, shed.Request{})
	}
	if w := queued(t, s, 300*ms, shed.Request{}); w.until != 310*ms {
		t.Errorf("may wait until %v, want the target from now", w.until)
	}
	s.Release(sec, p, shed.Done) // everybody's time is up
	p, _, _ = s.Admit(sec, shed.Request{})
	if w := queued(t, s, sec, shed.Request{}); w.until != sec+100*ms {
		t.Errorf("may wait until %v, want the interval from now", w.until)
	}
	s.Release(sec, p, shed.Done)
}

func TestRefusalOrder(t *testing.T) {
	low, retry, plain, dear := shed.Request{Priority: shed.SheddablePlus}, shed.Request{Attempt: 2}, shed.Request{},
		shed.Request{Priority: shed.CriticalPlus, Attempt: 3}
	tests := []struct {
		name          string
		first, second shed.Request
		displaced     shed.Reason // of the first; None: it stays
		refused       shed.Reason // of the second; None: it waits
	}{
		{"newest among equals", plain, plain, shed.None, shed.QueueFull},
		{"newest among equal retries", retry, retry, shed.None, shed.QueueFull},
		{"lower priority arrives", plain, low, shed.None, shed.LowPriority},
		{"lower priority waits", low, plain, shed.LowPriority, shed.None},
		{"retry arrives", plain, retry, shed.None, shed.LaterAttempt},
		{"retry waits", retry, plain, shed.LaterAttempt, shed.None},
		{"priority counts before attempts", retry, low, shed.None, shed.LowPriority},
		{"a dear retry displaces a plain one", plain, dear, shed.LowPriority, shed.None},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, p := full(t, shed.Config{MaxQueue: 1})
			first := queued(t, s, 1, test.first)
			second, v, reason := send(s, 2, test.second)
			if reason != test.refused || (v == shed.Queued) != (test.refused == shed.None) {
				t.Errorf("second: %v %q", v, reason)
			}
			winner := first
			if test.displaced != shed.None {
				first.refused(t, test.displaced)
				winner = second
			}
			s.Release(3, p, shed.Done)
			winner.admitted(t)
		})
	}
}

func TestExpiredOnesGoBeforeAnybodyElseIsRefused(t *testing.T) {
	s, _ := full(t, shed.Config{MaxQueue: 2})
	dear := queued(t, s, 1, shed.Request{Priority: shed.CriticalPlus, Deadline: 10})
	cheap := queued(t, s, 2, shed.Request{Priority: shed.Sheddable})
	queued(t, s, 10, shed.Request{})
	dear.refused(t, shed.Expired)
	if cheap.woken != 0 {
		t.Error("another was refused for one that had expired")
	}
	if _, v, reason := s.Admit(20, shed.Request{Deadline: 20}); v != shed.Refused || reason != shed.Expired {
		t.Errorf("arrives expired: %v %v", v, reason)
	}
}

func TestExpiredWaiterIsNotAdmitted(t *testing.T) {
	s, p := full(t, shed.Config{MaxQueue: 2})
	w := queued(t, s, 1, shed.Request{Deadline: 10})
	if w.until != 10 {
		t.Errorf("until %v, want its deadline", w.until)
	}
	s.Release(10, p, shed.Done)
	w.refused(t, shed.Expired)
	if st := s.State(11); st.InFlight != 0 || st.Queued != 0 {
		t.Errorf("state %+v, want nothing", st)
	}
}

func TestMoreImportantOnesAreAdmittedFirst(t *testing.T) {
	s, p := full(t, shed.Config{MaxQueue: 10})
	requests := []shed.Request{{Priority: shed.Sheddable}, {Attempt: 3}, {}, {Priority: shed.CriticalPlus, Attempt: 2},
		{Priority: shed.CriticalPlus}, {}}
	order := []int{4, 3, 2, 5, 1, 0}
	var ws []*waiter
	for i, r := range requests {
		ws = append(ws, queued(t, s, time.Duration(i), r))
	}
	for _, i := range order {
		s.Release(10, p, shed.Done)
		p = ws[i].admitted(t)
	}
}

func TestArrivalOvertakesOnlyWhatMattersLess(t *testing.T) {
	s := shed.New(shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 8})
	for range 7 {
		s.Admit(0, shed.Request{})
	}
	// The eighth place is kept free of this one, so it waits while a place is free.
	w := queued(t, s, 1, shed.Request{Priority: shed.Sheddable})
	if _, v, _ := s.Admit(2, shed.Request{Priority: shed.Sheddable}); v != shed.Full {
		t.Errorf("its equal: %v, want full", v)
	}
	if _, v, _ := s.Admit(3, shed.Request{}); v != shed.Admitted {
		t.Errorf("what matters more: %v, want admitted", v)
	}
	if w.woken != 0 {
		t.Error("the waiter has an outcome")
	}
}

func TestSheddableRequestsLeavePlacesFree(t *testing.T) {
	for _, test := range []struct {
		p    shed.Priority
		want int
	}{{shed.Sheddable, 70}, {shed.SheddablePlus, 75}, {shed.Critical, 80}, {shed.CriticalPlus, 80}, {-100, 70},
		{100, 80}} {
		s := shed.New(shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 80, NoQueue: true})
		n, last := 0, shed.None
		for range 100 {
			_, v, reason := s.Admit(0, shed.Request{Priority: test.p})
			if v == shed.Admitted {
				n++
			}
			last = reason
		}
		reason := shed.QueueFull
		if test.want < 80 {
			reason = shed.LowPriority
		}
		if n != test.want || last != reason {
			t.Errorf("%v: %d of 80 places, then %q; want %d, %q", test.p, n, last, test.want, reason)
		}
	}
}

func TestLeave(t *testing.T) {
	s, p := full(t, shed.Config{MaxQueue: 3})
	late, expired, gone := queued(t, s, 1, shed.Request{}), queued(t, s, 1, shed.Request{Deadline: 50}),
		queued(t, s, 1, shed.Request{})
	for _, test := range []struct {
		w        *waiter
		timedOut bool
		want     shed.Reason
	}{{late, true, shed.QueueDelay}, {expired, true, shed.Expired}, {gone, false, shed.Expired}} {
		if !s.Leave(60, &test.w.w, test.timedOut) && test.w != expired {
			t.Error("it had an outcome already")
		}
		if got, reason := test.w.w.Outcome(); reason != test.want || got != (shed.Permit{}) {
			t.Errorf("outcome %v %q, want %q", got, reason, test.want)
		}
		if s.Leave(61, &test.w.w, true) {
			t.Error("it left twice")
		}
	}
	w := queued(t, s, 70, shed.Request{})
	s.Release(80, p, shed.Done)
	if s.Leave(81, &w.w, true) {
		t.Error("left after it was admitted")
	}
	w.admitted(t)
}

func TestReleaseMayBeGivenTheTimeOfItsAdmit(t *testing.T) {
	s, p := full(t, shed.Config{MaxQueue: 4, QueueInterval: 10 * ms})
	late, w := queued(t, s, 5*ms, shed.Request{}), queued(t, s, 20*ms, shed.Request{})
	late.refused(t, shed.QueueDelay)
	if !s.NeedsTime(p) {
		t.Error("somebody waits, and the time does not matter")
	}
	s.Release(0, p, shed.Ignored) // as if it had been told so before anybody came
	p = w.admitted(t)
	if st := s.State(20 * ms); st.QueueDelay != 0 {
		t.Errorf("it waited for %v", st.QueueDelay)
	}
	s.Release(21*ms, p, shed.Done)
}

func TestNobodyWaitsWithoutAQueue(t *testing.T) {
	s, _ := full(t, shed.Config{NoQueue: true, MaxQueue: 7})
	if _, v, reason := s.Admit(1, shed.Request{}); v != shed.Refused || reason != shed.QueueFull {
		t.Errorf("%v %q", v, reason)
	}
}

func TestDefaultQueueIsHalfOfTheLimit(t *testing.T) {
	s := shed.New(shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 10})
	n := map[shed.Verdict]int{}
	for range 30 {
		_, v, _ := send(s, 0, shed.Request{})
		n[v]++
	}
	if n[shed.Admitted] != 10 || n[shed.Queued] != 5 || n[shed.Refused] != 15 {
		t.Errorf("%v", n)
	}
}

func TestReleaseWithoutAPermitPanics(t *testing.T) {
	s, p := full(t, shed.Config{})
	s.Release(1, shed.Permit{}, shed.Done)
	s.Release(1, p, shed.Done)
	defer func() {
		if recover() == nil {
			t.Error("the limit would not hold any more, and nobody says so")
		}
		if st := s.State(2); st.InFlight != 0 {
			t.Errorf("state %+v", st)
		}
	}()
	s.Release(1, p, shed.Done)
}

func TestWakeMayUseTheShedder(t *testing.T) {
	s, p := full(t, shed.Config{MaxQueue: 1})
	w := &shed.Waiter{}
	w.Wake = func() {
		got, _ := w.Outcome()
		s.State(2)
		s.Release(2, got, shed.Done)
	}
	s.Admit(1, shed.Request{})
	s.Enqueue(1, w, shed.Request{})
	s.Release(2, p, shed.Done)
	if st := s.State(3); st.InFlight != 0 {
		t.Errorf("state %+v, want nothing in flight", st)
	}
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range shed.Reasons {
		if name := r.String(); name == "" || seen[name] {
			t.Errorf("%d is called %q", r, name)
		} else {
			seen[name] = true
		}
	}
	for _, v := range []shed.Verdict{shed.Admitted, shed.Full, shed.Queued, shed.Refused, 99} {
		if name := v.String(); seen[name] {
			t.Errorf("%d is called %q", v, name)
		} else {
			seen[name] = true
		}
	}
	if name := shed.Reason(99).String(); name != "unknown" {
		t.Error(name)
	}
}
