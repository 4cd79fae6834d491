package breaker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/breaker"
)

// A watch is a dependency that fails at once, and those who wait for a sign of life of it.
type watch struct {
	t       *testing.T
	b       *breaker.Breaker
	now     time.Duration
	waiters []*breaker.Waiter
	last    bool // who fails has one retry left
}

// failing returns a dependency that was well, and has failed so often that nothing but failures is known.
func failing(t *testing.T) *watch {
	x := &watch{t: t, b: adaptive()}
	x.now = healthy(x.b, 0, 500, 20*ms, 20*ms)
	for range 3 {
		x.end(x.begin(), ms, breaker.Failure)
	}
	return x
}

func (x *watch) begin() breaker.Permit {
	x.t.Helper()
	p, ok := x.b.AllowFor(x.now, s)
	if !ok {
		x.t.Fatalf("refused at %v: %+v", x.now, x.b.Snapshot(x.now))
	}
	return p
}

func (x *watch) end(p breaker.Permit, after time.Duration, r breaker.Result) {
	x.now += after
	x.b.Record(x.now, p, r)
}

// fails has n calls fail, which wait from then on, each for so long and among so many.
func (x *watch) fails(n int, patience time.Duration, among int) {
	x.t.Helper()
	for range n {
		began := x.now
		x.end(x.begin(), ms, breaker.Failure)
		if d := x.b.Discourages(x.now, began, false); d != breaker.Lifeless {
			x.t.Fatalf("it is %v that another attempt fails", d)
		}
		x.waits(patience, among)
	}
}

// waits has a call wait for a sign.
func (x *watch) waits(patience time.Duration, among int) {
	x.t.Helper()
	w := &breaker.Waiter{Sign: true, Among: among, Last: x.last}
	if _, v, _ := x.b.Hold(x.now, x.now+patience, s, w); v != breaker.Waits {
		x.t.Fatalf("%v", v)
	}
	x.waiters = append(x.waiters, w)
}

// freed returns the permits of those who may go on.
func (x *watch) freed() (permits []breaker.Permit) {
	var left []*breaker.Waiter
	for _, w := range x.waiters {
		switch p, v, look := x.b.Look(x.now, w); {
		case v == breaker.Admitted:
			permits = append(permits, p)
		case v == breaker.Waits && look-x.now < 2*ms:
			x.t.Errorf("who waits for a sign is to look again after %v", look-x.now)
		case v == breaker.Waits:
			left = append(left, w)
		}
	}
	x.waiters = left
	return permits
}

func TestASignOfLifeIsASuccessThatBeganAfterTheFailure(t *testing.T) {
	x := failing(t)
	earlier := x.begin()
	x.fails(2, s, 100)
	x.end(earlier, ms, breaker.Success)
	if n := len(x.freed()); n != 0 {
		t.Errorf("%d go on after the success of an attempt that began before they failed", n)
	}
	x.end(x.begin(), ms, breaker.Failure)
	x.end(x.begin(), ms, breaker.Neutral)
	if n := len(x.freed()); n != 0 {
		t.Errorf("%d go on without a success", n)
	}
	x.end(x.begin(), 20*ms, breaker.Success)
	if n := len(x.freed()); n != 1 {
		t.Errorf("%d go on after a success, want one", n)
	}
}

func TestRetriesThatHaveWaitedDoubleInARoundTrip(t *testing.T) {
	x := failing(t)
	x.fails(100, 10*s, 1000)
	x.end(x.begin(), 20*ms, breaker.Success)
	for round, want := range []int{1, 2, 4, 8, 16, 32, 37, 0} {
		freed := x.freed()
		if len(freed) != want {
			t.Fatalf("round %d: %d go on, want %d", round, len(freed), want)
		}
		for i, p := range freed {
			x.end(p, time.Duration(20*(1-min(i, 1)))*ms, breaker.Success)
		}
	}
	if st := x.b.Snapshot(x.now); st.Learned.Waiting != 0 || st.Learned.InFlight != 0 || st.State != breaker.Closed {
		t.Errorf("%+v", st)
	}
}

func TestRetriesThatFailTakeTheRoomOfOthers(t *testing.T) {
	grown := func(t *testing.T) (*watch, []breaker.Permit) {
		x := failing(t)
		x.fails(100, 10*s, 1000)
		x.end(x.begin(), 20*ms, breaker.Success)
		for range 3 {
			for i, p := range x.freed() {
				x.end(p, time.Duration(20*(1-min(i, 1)))*ms, breaker.Success)
			}
		}
		return x, x.freed() // eight
	}
	t.Run("one of eight", func(t *testing.T) {
		x, out := grown(t)
		x.end(out[0], 20*ms, breaker.Failure)
		x.end(out[1], 0, breaker.Success)
		for _, p := range out[2:4] { // four may be out: the others
			x.end(p, 0, breaker.Neutral)
		}
		if n := len(x.freed()); n > 1 {
			t.Errorf("%d go on, after a failure that leaves room for four or five", n)
		}
		for _, p := range out[4:] {
			x.end(p, 0, breaker.Neutral)
		}
		if n := len(x.freed()); n < 3 || n > 5 {
			t.Errorf("%d go on, want about four", n)
		}
	})
	t.Run("one that is late", func(t *testing.T) {
		x := failing(t)
		x.fails(100, 10*s, 1000)
		x.end(x.begin(), 20*ms, breaker.Success)
		x.end(x.freed()[0], 20*ms, breaker.Success)
		out := x.freed() // two
		x.end(out[0], 900*ms, breaker.Success)
		if n := len(x.freed()); n != 0 {
			t.Errorf("%d go on after one of two was late, want none", n)
		}
		x.end(out[1], 0, breaker.Neutral)
		if n := len(x.freed()); n != 1 {
			t.Errorf("%d go on when there is room for one", n)
		}
	})
	t.Run("all", func(t *testing.T) {
		x, out := grown(t)
		for _, p := range out {
			x.end(p, ms, breaker.Failure)
		}
		if n := len(x.freed()); n != 0 {
			t.Errorf("%d go on where nothing but failures is known again", n)
		}
		x.end(x.begin(), 20*ms, breaker.Success)
		if n := len(x.freed()); n != 1 {
			t.Errorf("%d go on after the next sign of life, want one", n)
		}
	})
}

func TestWhoWaitsForASignLetsThoseGoFirstWhomTheCircuitHolds(t *testing.T) {
	x := failing(t)
	x.fails(2, time.Minute, 100)
	_, x.now = hang(x.b, x.now, x.now+5*s, 20*ms, s, breaker.Failure)
	if st := x.b.State(); st != breaker.Open {
		t.Fatal(st)
	}
	probe, ok := x.b.AllowFor(x.now, s)
	for ; !ok; probe, ok = x.b.AllowFor(x.now, s) {
		x.now += 20 * ms
	}
	x.end(probe, 20*ms, breaker.Success)
	if st, n := x.b.State(), len(x.freed()); st != breaker.HalfOpen || n != 0 {
		t.Errorf("%v, and %d go on after the first success, want none", st, n)
	}
	for x.b.State() != breaker.Closed && len(x.waiters) == 2 {
		x.end(x.begin(), 20*ms, breaker.Success)
	}
	x.end(x.begin(), 20*ms, breaker.Success)
	if n := len(x.freed()); n != 1 {
		t.Errorf("%d go on when the circuit is closed, want one", n)
	}
}

func TestTheOldestWhoHasTimeGoesOn(t *testing.T) {
	x := failing(t)
	x.fails(1, 30*ms, 100) // which is over, but for less than an answer takes
	x.fails(1, 2*s, 100)
	x.fails(1, 10*s, 100)
	first, second := x.waiters[0], x.waiters[1]
	x.end(x.begin(), 20*ms, breaker.Success)
	if _, v, _ := x.b.Look(x.now, first); v != breaker.Waits {
		t.Errorf("%v for who has no time for an answer", v)
	}
	if p, v, _ := x.b.Look(x.now, second); v != breaker.Admitted {
		t.Errorf("%v for the oldest who has", v)
	} else {
		x.b.Record(x.now, p, breaker.Neutral)
	}
	if _, admitted := x.b.Leave(x.now, first); admitted {
		t.Error("who has left has a permit")
	}
}

func TestTheOldestLeavesForTheNewest(t *testing.T) {
	x := failing(t)
	x.fails(3, s, 3)
	woken := 0
	oldest := x.waiters[0]
	oldest.Wake = func() { woken++ }
	x.fails(1, s, 3)
	if st := x.b.Snapshot(x.now); st.Learned.Waiting != 3 || woken != 1 {
		t.Errorf("%d wait, and the oldest was woken %d times", st.Learned.Waiting, woken)
	}
	st := x.b.Snapshot(x.now)
	if text := st.Explain(); !strings.HasPrefix(text, "Nothing but failures since the last answer; 3 calls wait") {
		t.Errorf("%q", text)
	}
	if _, v, _ := x.b.Look(x.now, oldest); v != breaker.Refused {
		t.Errorf("the oldest: %v", v)
	}
}

func TestNobodyWaitsForASignWhoMayNot(t *testing.T) {
	for name, row := range map[string]struct {
		config breaker.Config
		scarce bool
		want   breaker.Doubt
	}{
		"free":                   {breaker.Config{}, false, breaker.Lifeless},
		"a worker":               {breaker.Config{}, true, breaker.Doubtful},
		"a worker, told to hold": {breaker.Config{WhileOpen: breaker.Hold}, true, breaker.Lifeless},
		"told to refuse":         {breaker.Config{WhileOpen: breaker.Refuse}, false, breaker.Doubtful},
		"shadow":                 {breaker.Config{Mode: breaker.Shadow}, false, breaker.Doubtful},
	} {
		x := failing(t)
		row.config.Kind = breaker.Adaptive
		x.b.Reconfigure(x.now, row.config)
		if d := x.b.Discourages(x.now, x.now-ms, row.scarce); d != row.want {
			t.Errorf("%s: %v, want %v", name, d, row.want)
		}
	}
}

func TestWhoWaitsForASignGoesOnWhenNobodyMayWait(t *testing.T) {
	x := failing(t)
	x.fails(2, s, 10)
	woken := 0
	for _, w := range x.waiters {
		w.Wake = func() { woken++ }
	}
	x.b.Reconfigure(x.now, breaker.Config{FailureThreshold: 3})
	if n := len(x.freed()); n != 2 || woken != 2 {
		t.Errorf("%d of 2 were woken, %d go on", woken, n)
	}
}
