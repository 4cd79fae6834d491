package breaker_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/breaker"
)

// alone has time pass in which nobody calls, until somebody goes on, and returns who does and after how long.
func (x *watch) alone(most time.Duration) (permits []breaker.Permit, after time.Duration) {
	for ; after < most && len(permits) == 0; after += 10 * ms {
		x.now += 10 * ms
		permits = x.freed()
	}
	return permits, after
}

// Whoever calls alone waits in vain for others: after a silence that means something he finds out himself.
func TestWhereNobodyElseCallsOneOfThoseWhoWaitFindsOut(t *testing.T) {
	x := failing(t)
	x.fails(3, 3600*s, 1000)
	if n := len(x.freed()); n != 0 {
		t.Fatalf("%d go on at once", n)
	}
	freed, waited := x.alone(10 * s)
	if len(freed) != 1 || waited > 2*s {
		t.Fatalf("%d go on after %v, want one within a second or two", len(freed), waited)
	}
	x.end(freed[0], ms, breaker.Failure)
	if n := len(x.freed()); n != 0 {
		t.Errorf("%d go on after a failure", n)
	}
	if freed, waited = x.alone(10 * s); len(freed) != 1 || waited < 2*s {
		t.Fatalf("%d go on after another %v, want one after a longer silence", len(freed), waited)
	}
	x.end(freed[0], ms, breaker.Success)
	if n := len(x.freed()); n != 1 {
		t.Errorf("%d go on after a success, want the third", n)
	}
}

// Each that finds out spends a retry that could be answered later: so they do it seldom, and the last retry is late.
func TestWhoCallsAloneFindsOutEverMoreSeldom(t *testing.T) {
	for _, row := range []struct {
		patience    time.Duration
		last, rare  bool
		atMost      int
		first, then time.Duration
	}{
		{3600 * s, false, false, 7, s, s}, // after 1, 4, 16, 64, 256 and 1024 s
		{3600 * s, true, false, 4, s, 15 * s},
		{3600 * s, true, true, 3, 12 * s, 100 * s},
		{10 * s, true, true, 201, 4 * s, 4 * s}, // after half of the time that they had
	} {
		x := failing(t)
		if row.rare {
			x.now = healthy(x.b, x.now, 50, 20*ms, s)
			for range 3 {
				x.end(x.begin(), ms, breaker.Failure)
			}
		}
		x.last = row.last
		x.fails(1, row.patience, 1000)
		from, sent := x.now, 0
		for x.now-from < 1000*s {
			freed, waited := x.alone(1000 * s)
			want := row.then
			if sent == 0 {
				want = row.first
			}
			if waited < want {
				t.Errorf("%+v: number %d after %v", row, sent, waited)
			}
			for _, p := range freed {
				x.end(p, ms, breaker.Failure)
				sent++
				x.waits(row.patience, 1000)
			}
		}
		if sent == 0 || sent > row.atMost {
			t.Errorf("%+v: %d attempts in 1000 s", row, sent)
		}
	}
}

// While others call it is they who find out.
func TestWhoWaitsForASignDoesNotFindOutWhileOthersCall(t *testing.T) {
	x := failing(t)
	x.fails(1, 3600*s, 1000)
	for range 200 {
		x.end(x.begin(), 5*ms, breaker.Neutral)
		x.end(x.begin(), 5*ms, breaker.Neutral)
		if n := len(x.freed()); n != 0 {
			t.Fatalf("%d go on while others call", n)
		}
	}
}

// An attempt that never ends, such as a stream that nothing comes of, is nobody who could give a sign.
func TestWhoWaitsForASignIsNotKeptByWhatHangs(t *testing.T) {
	x := failing(t)
	x.begin()
	x.fails(2, 3600*s, 1000)
	for n := range 2 { // the first hangs, too
		if freed, waited := x.alone(20 * s); len(freed) != 1 {
			t.Fatalf("%d: nobody has gone on after %v", n, waited)
		}
	}
}

// Who waits for a sign of life and is alone probes an open circuit, too: nobody else would.
func TestWhoWaitsForASignAloneProbesAnOpenCircuit(t *testing.T) {
	x := failing(t)
	x.fails(3, 3600*s, 1000)
	_, x.now = hang(x.b, x.now, x.now+5*s, 20*ms, s, breaker.Failure)
	if st := x.b.State(); st != breaker.Open {
		t.Fatal(st)
	}
	for len(x.waiters) > 0 {
		freed, waited := x.alone(60 * s)
		if len(freed) == 0 {
			t.Fatalf("%v: %d still wait after %v", x.b.State(), len(x.waiters), waited)
		}
		for _, p := range freed {
			x.end(p, 20*ms, breaker.Success)
		}
	}
	if st := x.b.State(); st != breaker.Closed {
		t.Error(st)
	}
}

// A retry that hangs takes no place for ever: when others are answered, who waits goes on.
func TestARetryThatHangsKeepsNobodyFromASign(t *testing.T) {
	x := failing(t)
	x.fails(10, 3600*s, 1000)
	x.end(x.begin(), 20*ms, breaker.Success)
	hung := x.freed()
	if len(hung) != 1 {
		t.Fatalf("%d go on", len(hung))
	}
	for range 100 {
		x.end(x.begin(), 20*ms, breaker.Success)
		for _, p := range x.freed() {
			x.end(p, 20*ms, breaker.Success)
		}
	}
	if n := len(x.waiters); n != 0 {
		t.Errorf("%d of 9 still wait after a hundred answers", n)
	}
	x.end(hung[0], ms, breaker.Failure)
	if st := x.b.Snapshot(x.now); st.Learned.Waiting != 0 || st.Learned.InFlight != 0 {
		t.Errorf("%+v", st)
	}
}

// Whatever has happened, and whatever hangs: who is left alone is let go before half of his time is over, if he looks
// when he is told to.
func TestWhoIsLeftAloneIsNeverForgotten(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 5))
		x := failing(t)
		var out []breaker.Permit
		for range 200 {
			x.now += time.Duration(r.IntN(50)) * ms
			switch p, ok := x.b.AllowFor(x.now, s); {
			case ok && r.IntN(4) == 0:
				x.waits(time.Duration(r.IntN(100))*s, 8)
				x.b.Record(x.now, p, breaker.Failure)
			case ok:
				out = append(out, p)
			}
			for len(out) > 0 && r.IntN(2) == 0 {
				i := r.IntN(len(out))
				x.b.Record(x.now, out[i], breaker.Result(r.IntN(5)))
				out = append(out[:i], out[i+1:]...)
			}
			out = append(out, x.freed()...)
		}
		for _, w := range x.waiters {
			if p, ok := x.b.Leave(x.now, w); ok {
				out = append(out, p)
			}
		}
		w, from := &breaker.Waiter{Sign: true, Among: 8, Last: seed%2 == 0}, x.now
		_, v, look := x.b.Hold(x.now, x.now+3600*s, s, w)
		for looks := 0; v == breaker.Waits; looks++ {
			if look <= x.now || looks > 50 {
				t.Fatalf("%d: at %v he is to look at %v", seed, x.now, look)
			}
			x.now = look
			_, v, look = x.b.Look(x.now, w)
		}
		if v != breaker.Admitted || x.now-from > 1800*s {
			t.Errorf("%d: %v after %v, %v", seed, v, x.now-from, x.b.State())
		}
		for _, p := range out {
			x.b.Record(x.now, p, breaker.Neutral)
		}
		if st := x.b.Snapshot(x.now); st.Learned.Waiting != 0 || st.Learned.InFlight != 1 {
			t.Errorf("%d: %+v", seed, st)
		}
	}
}
