package pacing_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/pacing"
)

// handshake draws how long an opening takes on a server that does nothing else.
func (f *fleet) handshake() time.Duration {
	switch {
	case !f.kinds:
		return f.draw(f.open)
	case f.random.IntN(2) == 0:
		return f.open / 20
	}
	return 39 * f.open / 20
}

// Under an overload all openings are slow. Where a quick one comes after a slow one it was of another kind, as on
// another replica, or without a session to go on with.
func TestAQuickSuccessAfterASlowOneEndsTheLongRound(t *testing.T) {
	for _, quick := range []bool{false, true} {
		o := back(t)
		for _, at := range []time.Duration{860 * ms, 930 * ms} {
			if o.Enter(2*s+at, 0, middle, false) != 0 {
				t.Fatalf("nothing begins after %v", at)
			}
		}
		o.Leave(2*s+980*ms, 2*s, pacing.Opened) // took most of a second
		if quick {
			o.Leave(2*s+990*ms, 2*s+980*ms, pacing.Opened)
		}
		n := 0
		for now := 2*s + 995*ms; now < 3*s+600*ms; now += 10 * ms {
			n += begins(o, now, 9)
		}
		if quick != (n > 1) {
			t.Errorf("a quick one follows: %v; %d begin in the rest of the round", quick, n)
		}
	}
}

func TestOpeningsOfTwoKindsCostNoMoreThanWithoutAGuard(t *testing.T) {
	plain, guarded := 0, 0
	for seed := range uint64(40) {
		d := busy(seed)
		d.kinds = true
		plain += play(d, seed, nil).failed
		guarded += play(d, seed, opener).failed
	}
	t.Logf("%d failed, without a guard %d", guarded, plain)
	if guarded*100 > plain*95 {
		t.Errorf("%d failed, without a guard %d", guarded, plain)
	}
}
