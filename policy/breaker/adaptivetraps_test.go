package breaker_test

import (
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/breaker"
)

// A day is traffic at a steady rate on a dependency, in virtual time: latency returns how long the answer to a call
// takes, 0 for one that never comes. What is refused is not held. It returns how many of the calls that began after a
// time were refused.
type day struct {
	b        *breaker.Breaker
	gap      time.Duration
	patience time.Duration // 0: none
	latency  func(now time.Duration) time.Duration
}

func (d day) play(from, to, after time.Duration) (refused, calls int) {
	type end struct {
		at     time.Duration
		permit breaker.Permit
		r      breaker.Result
	}
	var ends []end
	for now := from; now < to; now += d.gap {
		for i := 0; i < len(ends); {
			if e := ends[i]; e.at <= now {
				d.b.Record(e.at, e.permit, e.r)
				ends = append(ends[:i], ends[i+1:]...)
				continue
			}
			i++
		}
		p, ok := d.b.AllowFor(now, d.patience)
		if now >= after {
			calls++
		}
		if !ok {
			if now >= after {
				refused++
			}
			continue
		}
		took := d.latency(now)
		switch {
		case took > 0 && (d.patience == 0 || took <= d.patience):
			ends = append(ends, end{now + took, p, breaker.Success})
		case d.patience > 0:
			ends = append(ends, end{now + d.patience, p, breaker.Failure})
		}
	}
	return refused, calls
}

func TestADependencyThatComesBackSlowerIsNotHeldBackForEver(t *testing.T) {
	for _, usual := range []time.Duration{50 * ms, 600 * ms} {
		d := day{b: adaptive(), gap: 20 * ms, patience: s, latency: func(now time.Duration) time.Duration {
			switch {
			case now < 30*s:
				return usual
			case now < 35*s:
				return 0
			}
			return 600 * ms
		}}
		refused, calls := d.play(0, 3*time.Minute, time.Minute)
		if refused > 0 {
			t.Errorf("usually %v, then 600ms of the second that callers give it: %d of %d refused, %+v", usual, refused, calls,
				d.b.Snapshot(3*time.Minute))
		}
	}
}

func TestWhatHangsSinceAnOutageSaysNothingOfToday(t *testing.T) {
	d := day{b: adaptive(), gap: 20 * ms, latency: func(now time.Duration) time.Duration {
		if now >= 30*s && now < 32*s {
			return 0 // for ever: nobody has set a timeout
		}
		return 20 * ms
	}}
	d.play(0, 40*s, 0)
	d.gap = s // now few come, and each is answered
	refused, calls := d.play(40*s, 5*time.Minute, time.Minute)
	if refused > 0 {
		t.Errorf("%d of %d refused, though each is answered: %+v", refused, calls, d.b.Snapshot(5*time.Minute))
	}
}

func TestAProbeThatHangsForEverDoesNotKeepTheCircuitHalfOpen(t *testing.T) {
	b := adaptive()
	now := time.Duration(0)
	for n := range 2000 { // half of them fail
		p, _ := b.AllowFor(now, 0)
		if n%2 == 0 {
			b.Record(now+20*ms, p, breaker.Failure)
		} else {
			b.Record(now+20*ms, p, breaker.Success)
		}
		now += 20 * ms
	}
	_, now = hang(b, now, now+10*s, 20*ms, s, breaker.Failure)
	if b.State() != breaker.Open {
		t.Fatal(b.State())
	}
	now += s
	p, _ := b.AllowFor(now, 0)
	b.Record(now+20*ms, p, breaker.Success)
	now += 20 * ms
	p, _ = b.AllowFor(now, 0)
	b.Record(now+s, p, breaker.Failure)
	now += s
	if st := b.Snapshot(now); st.State != breaker.HalfOpen || st.Learned.Places != 1 {
		t.Fatalf("%+v", st)
	}
	passed := 0
	for range 60 { // one takes the place, and hangs
		if _, ok := b.AllowFor(now, 0); ok {
			passed++
		}
		now += s
	}
	if passed < 30 {
		t.Errorf("%d of 60 calls in a minute were let pass, want a probe each second: %+v", passed, b.Snapshot(now))
	}
}

func TestAnHourInWhichNobodyAskedIsNoSilence(t *testing.T) {
	b := adaptive()
	now := healthy(b, 0, 500, 50*ms, 20*ms)
	var flying []breaker.Permit
	for range 40 { // a batch whose caller leaves, before an answer is overdue
		p, _ := b.AllowFor(now, s)
		flying = append(flying, p)
	}
	for _, p := range flying {
		b.Record(now+45*ms, p, breaker.Abandoned)
	}
	if st := b.State(); st != breaker.Closed {
		t.Fatal(st)
	}
	now += time.Hour
	if _, ok := b.AllowFor(now, s); !ok {
		t.Errorf("the first call after an hour is refused: %+v", b.Snapshot(now))
	}
}

func TestTheImpatientDoNotTakeThePlacesOfOthers(t *testing.T) {
	b, now := hung(t)
	now += s
	p, ok := b.AllowFor(now, s)
	if !ok {
		t.Fatal("no probe")
	}
	b.Record(now+20*ms, p, breaker.Success)
	now += 20 * ms
	before := b.Snapshot(now).Learned.Places
	p, _ = b.AllowFor(now, 5*ms) // an answer takes 20
	b.Record(now+5*ms, p, breaker.Failure)
	if places := b.Snapshot(now + 5*ms).Learned.Places; places != before {
		t.Errorf("one that gave the dependency a quarter of what an answer takes: %d places, before %d", places, before)
	}
}

func TestWhoHasNoTimeDoesNotKeepWatchForThoseWhoHave(t *testing.T) {
	b, now := hung(t)
	for !b.Rejecting(now) {
		b.AllowFor(now, s)
	}
	hurried := &breaker.Waiter{}
	b.Hold(now, now+18*ms, s, hurried) // too little for an answer, which takes 20
	now += b.RetryIn(now)
	if _, v, look := b.Look(now, hurried); v != breaker.Waits || look > now+18*ms && look != breaker.Never {
		t.Fatal(v, look)
	}
	if _, ok := b.AllowFor(now, s); !ok { // somebody else comes, and is the probe
		t.Fatal("no probe")
	}
	w := &breaker.Waiter{}
	if _, v, look := b.Hold(now, now+s, s, w); v != breaker.Waits || look == breaker.Never {
		t.Errorf("%v, look %v: nobody looks out for the next probe, which is due in %v", v, look, b.RetryIn(now))
	}
}

func TestWhoWaitsWithoutADeadlineIsAdmittedOnAnyClock(t *testing.T) {
	b := adaptive()
	now := healthy(b, -time.Hour, 500, 20*ms, 20*ms)
	_, now = hang(b, now, now+3*s, 20*ms, s, breaker.Failure)
	for !b.Rejecting(now) {
		b.AllowFor(now, s)
	}
	w := &breaker.Waiter{}
	b.Hold(now, math.MaxInt64, s, w)
	now += b.RetryIn(now)
	if _, v, _ := b.Look(now, w); v != breaker.Admitted {
		t.Errorf("%v at %v, when the probe is due", v, now)
	}
}

func TestAChangeOfSettingsIsNoChangeOfState(t *testing.T) {
	b, now := hung(t)
	for _, c := range []breaker.Config{{Kind: breaker.Adaptive, WhileOpen: breaker.Refuse},
		{Kind: breaker.Adaptive, Fleet: true}, {Kind: breaker.Adaptive, Mode: breaker.Shadow}, {Kind: breaker.Adaptive}} {
		if change := b.Reconfigure(now, c); change.From != change.To || b.State() != breaker.Open {
			t.Errorf("%+v: %+v, %v", c, change, b.State())
		}
	}
}

func TestASwitchToShadowLetsThoseWhoWaitGo(t *testing.T) {
	b, now := hung(t)
	for !b.Rejecting(now) {
		b.AllowFor(now, s)
	}
	woken := 0
	ws := make([]*breaker.Waiter, 3)
	for i := range ws {
		ws[i] = &breaker.Waiter{Wake: func() { woken++ }}
		b.Hold(now, now+s, s, ws[i])
	}
	b.Reconfigure(now, breaker.Config{Kind: breaker.Adaptive, Mode: breaker.Shadow})
	if woken < len(ws) {
		t.Errorf("%d of %d were woken", woken, len(ws))
	}
	for _, w := range ws {
		if _, v, _ := b.Look(now, w); v != breaker.Admitted {
			t.Error(v)
		}
	}
}

func TestWhoWaitsIsWokenUnderNoLock(t *testing.T) {
	b, now := hung(t)
	for !b.Rejecting(now) {
		b.AllowFor(now, s)
	}
	verdict := breaker.Waits
	w := &breaker.Waiter{}
	w.Wake = func() { _, verdict, _ = b.Look(now, w); b.Snapshot(now) }
	b.Hold(now, now+s, s, w)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Reconfigure(now, breaker.Config{FailureThreshold: 3, Mode: breaker.ForcedOpen})
	}()
	<-done
	if verdict != breaker.Refused {
		t.Error(verdict)
	}
}

func TestPermitsOfAnotherTimeChangeNothing(t *testing.T) {
	var changes []breaker.Change
	b := breaker.New(breaker.Config{Kind: breaker.Adaptive}, nil, func(c breaker.Change) { changes = append(changes, c) })
	now := healthy(b, 0, 500, 20*ms, 20*ms)
	var flying []breaker.Permit
	for range 50 {
		p, _ := b.AllowFor(now, s)
		flying = append(flying, p)
	}
	b.Reconfigure(now, breaker.Config{FailureThreshold: 3})
	for _, p := range flying {
		b.Record(now+ms, p, breaker.Costly)
	}
	if len(changes) > 0 {
		t.Errorf("the breaker has numbers now, and tells %+v", changes)
	}
	b.Reconfigure(now, breaker.Config{Kind: breaker.Adaptive})
	if st := b.Snapshot(now); st.State != breaker.Closed || st.Learned.InFlight != 0 {
		t.Errorf("%+v", st)
	}
}

func TestAClosedCircuitKeepsNobodyWaiting(t *testing.T) {
	b := adaptive()
	now := healthy(b, 0, 500, 20*ms, 20*ms)
	late, _ := b.AllowFor(now, 10*s)
	_, now = hang(b, now, now+2*s, 20*ms, s, breaker.Failure)
	for !b.Rejecting(now) {
		b.AllowFor(now, s)
	}
	w := &breaker.Waiter{}
	b.Hold(now, now+15*ms, s, w) // an answer takes 20 in the mean: half of them come sooner
	b.Record(now, late, breaker.Success)
	if _, v, _ := b.Look(now, w); b.State() != breaker.Closed || v != breaker.Admitted {
		t.Errorf("%v, and the circuit is %v", v, b.State())
	}
}

func TestAProbeThatIsNotSentIsNoProbe(t *testing.T) {
	b, now := hung(t)
	now += s
	p, ok := b.AllowFor(now, s)
	if !ok {
		t.Fatal("no probe")
	}
	b.Record(now, p, breaker.Neutral) // the rate limit has refused it
	if in := b.RetryIn(now); in > 0 {
		t.Errorf("nothing was sent, and the next probe is %v away", in)
	}
}

func TestAHangFromTheBeginningIsProbedAndNoMore(t *testing.T) {
	for _, patience := range []time.Duration{50 * ms, s, 5 * s, 60 * s} {
		if sent, _ := hang(adaptive(), 0, 60*s, 20*ms, patience, breaker.Failure); sent > 200 {
			t.Errorf("callers give it %v: %d of 3000 calls were sent, though none was ever answered; want at most 200", patience,
				sent)
		}
	}
}

func TestAdviceReachesAlsoWhoHasNotAskedForLong(t *testing.T) {
	b := breaker.New(breaker.Config{Kind: breaker.Adaptive, Fleet: true}, nil, nil)
	now := healthy(b, 0, 50, 20*ms, 20*ms)
	if b.Advise(now, s) {
		t.Error("it has opened, though it had a success just now")
	}
	now += time.Minute
	if !b.Advise(now, s) {
		t.Error("nobody has called for a minute, so nothing speaks against it, and it has not opened")
	}
	now += s
	if _, ok := b.AllowFor(now, s); !ok {
		t.Error("the next call is not the probe")
	}
}
