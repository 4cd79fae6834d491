package breaker_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/breaker"
)

// Calls whose caller is still sending are no silence of the dependency; once they are handed over, they are.
func TestACallThatIsStillBeingSentIsNotLate(t *testing.T) {
	const ms = time.Millisecond
	b := breaker.New(breaker.Config{Kind: breaker.Adaptive}.WithDefaults(), nil, nil)
	now := time.Duration(0)
	for range 200 { // it learns that an answer takes 10 ms
		p, ok := b.AllowFor(now, time.Second)
		if !ok {
			t.Fatal("refused while all is well")
		}
		now += 10 * ms
		b.Record(now, p, breaker.Success)
	}
	permits := make([]breaker.Permit, 50)
	for i := range permits {
		permits[i], _ = b.AllowFor(now, time.Second)
	}
	look := func() breaker.State { // a call that asks, and is not made
		if p, ok := b.AllowFor(now, time.Second); ok {
			b.Record(now, p, breaker.Neutral)
		}
		return b.State()
	}
	for range 100 {
		for i := range permits {
			permits[i] = breaker.Restart(b, now, permits[i], now+250*ms)
		}
		now += 250 * ms
		if s := look(); s != breaker.Closed {
			t.Fatalf("%v while the callers send", s)
		}
	}
	for i := range permits {
		permits[i] = breaker.Restart(b, now, permits[i], now)
	}
	for end := now + 3*time.Second; look() == breaker.Closed; now += 50 * ms {
		if now > end {
			t.Fatal("closed for 3 s of silence")
		}
	}
}

// The same of the other kind, whose clock is finer than what its driver reports.
func TestACallThatIsStillBeingSentDoesNotHang(t *testing.T) {
	const ms = time.Millisecond
	b := breaker.New(breaker.Config{SlowCallRateThreshold: 0.5, SlowCallDurationThreshold: 100 * ms,
		MinimumNumberOfCalls: 4}.WithDefaults(), nil, nil)
	now := time.Hour
	permits := make([]breaker.Permit, 10)
	for i := range permits {
		permits[i], _ = b.Allow(now)
	}
	look := func() breaker.Snapshot {
		if p, ok := b.Allow(now); ok {
			b.Record(now, p, breaker.Neutral)
		}
		return b.Snapshot(now)
	}
	for range 8 {
		for i := range permits {
			permits[i] = breaker.Restart(b, now, permits[i], now+500*ms)
		}
		now += 250 * ms
		if s := look(); s.State != breaker.Closed || s.Hanging != 0 {
			t.Fatalf("while the callers send: %+v", s)
		}
	}
	for i := range permits[:5] {
		b.Record(now, permits[i], breaker.Success)
	}
	if s := look(); s.State != breaker.Closed || s.SlowRate != 0 {
		t.Fatalf("when five have been answered before they had sent all: %+v", s)
	}
	for i := range permits[5:] {
		permits[5+i] = breaker.Restart(b, now, permits[5+i], now)
	}
	now += 50 * ms
	if s := look(); s.State != breaker.Closed || s.Hanging != 0 {
		t.Fatalf("50 ms after they have sent all: %+v", s)
	}
	now += 100 * ms
	if s := look(); s.State != breaker.Open {
		t.Errorf("150 ms after they have sent all: %+v", s)
	}
}

// A probe may be sent by a caller who takes his time, too.
func TestAProbeMayBeSentSlowly(t *testing.T) {
	for _, slow := range []float64{0, 0.5} {
		b := breaker.New(breaker.Config{FailureThreshold: 1, WaitDurationInOpenState: time.Second,
			SlowCallRateThreshold: slow, SlowCallDurationThreshold: time.Second, SuccessThreshold: 1}.WithDefaults(), nil, nil)
		now := time.Hour
		p, _ := b.Allow(now)
		b.Record(now, p, breaker.Failure)
		now += time.Minute
		if p, _ = b.Allow(now); b.State() != breaker.HalfOpen {
			t.Fatal(b.State())
		}
		p = breaker.Restart(b, now, p, now+time.Second)
		now += time.Second
		p = breaker.Restart(b, now, p, now)
		if b.Record(now, p, breaker.Success); b.State() != breaker.Closed {
			t.Errorf("%v after its success", b.State())
		}
	}
}

// A breaker that has learned nothing yet takes many who send for no silence either, nor the moment when they are done.
func TestManyWhoSendAtFirstAreNoSilence(t *testing.T) {
	const ms = time.Millisecond
	b := breaker.New(breaker.Config{Kind: breaker.Adaptive}.WithDefaults(), nil, nil)
	permits := make([]breaker.Permit, 100)
	now := time.Hour
	for i := range permits {
		p, ok := b.AllowFor(now, 0)
		if !ok {
			t.Fatalf("caller %d is refused", i)
		}
		permits[i] = breaker.Restart(b, now, p, now+500*ms)
		now += 200 * ms
	}
	for i := range permits {
		permits[i] = breaker.Restart(b, now, permits[i], now)
	}
	if p, ok := b.AllowFor(now+ms, 0); !ok {
		t.Error("refused when all have just been handed over")
	} else {
		b.Record(now+ms, p, breaker.Neutral)
	}
	for _, p := range permits {
		b.Record(now+10*ms, p, breaker.Success)
	}
	if s := b.State(); s != breaker.Closed {
		t.Errorf("%v after all have been answered", s)
	}
}

// Callers who send for long take no place of a half-open circuit: else two of them would keep all others out. When they
// are done they take it again.
func TestThoseWhoStillSendTakeNoPlaceOfAHalfOpenCircuit(t *testing.T) {
	const ms = time.Millisecond
	b := breaker.New(breaker.Config{Kind: breaker.Adaptive}.WithDefaults(), nil, nil)
	now := time.Duration(0)
	for range 200 { // it learns that an answer takes 10 ms, one at a time
		p, _ := b.AllowFor(now, time.Second)
		now += 10 * ms
		b.Record(now, p, breaker.Success)
	}
	for b.State() == breaker.Closed { // it falls silent
		b.AllowFor(now, time.Second)
		now += 10 * ms
	}
	for b.State() == breaker.Open { // until a probe is answered
		now += 10 * ms
		if p, ok := b.AllowFor(now, time.Second); ok {
			b.Record(now+10*ms, p, breaker.Success)
		}
	}
	var out []breaker.Permit
	full := func() int {
		for {
			p, ok := b.AllowFor(now, time.Second)
			if !ok || len(out) > 100 {
				return len(out)
			}
			out = append(out, p)
		}
	}
	places := full()
	if places == 0 || places > 10 || b.State() != breaker.HalfOpen {
		t.Fatalf("%d places, %v", places, b.State())
	}
	for i := range out {
		out[i] = breaker.Restart(b, now, out[i], now+250*ms)
	}
	if n := full(); n != 2*places {
		t.Errorf("beside %d who send, %d are let in", places, n-places)
	}
	for i := range out[:places] {
		out[i] = breaker.Restart(b, now, out[i], now)
	}
	for _, p := range out[places:] {
		b.Record(now+10*ms, p, breaker.Neutral)
	}
	if n := full(); n != 2*places {
		t.Errorf("beside %d who have sent all, %d more are let in", places, n-2*places)
	}
}
