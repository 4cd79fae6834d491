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
	for end := now + 3*time.Second; look() == breaker.Closed; now += 50 * ms {
		if now > end {
			t.Fatal("closed for 3 s of silence")
		}
	}
}
