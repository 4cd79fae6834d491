package breaker_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/breaker"
)

// FuzzNobodyWaitsForEver drives the line of a circuit as drivers do, who look when they are to and when they are woken.
// While somebody waits who has the time that an answer takes, somebody looks out, and no place is free; and once the
// service answers, all go.
func FuzzNobodyWaitsForEver(f *testing.F) {
	rnd := rand.New(rand.NewPCG(5, 8))
	for range 60 {
		script := make([]byte, 400)
		for i := range script {
			script[i] = byte(rnd.Uint32())
		}
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		x := &lineRig{t: t, b: adaptive()}
		for _, c := range script[:min(len(script), 1000)] {
			x.step(c)
		}
		x.recovers()
	})
}

type lineRig struct {
	t       *testing.T
	b       *breaker.Breaker
	now     time.Duration
	hangs   bool
	flying  []lineFlight
	waiting []*lineWaiter
}

type lineFlight struct {
	permit breaker.Permit
	ends   time.Duration // breaker.Never if it hangs
}

// lineWaiter is a driver that waits.
type lineWaiter struct {
	breaker.Waiter
	look, until time.Duration
	woken       bool
}

func (x *lineRig) step(c byte) {
	arg := time.Duration(c / 8)
	switch c % 8 {
	case 0, 1, 2:
		x.call(x.now + 10*ms + 100*ms*arg)
	case 3: // an attempt is given up
		if n := len(x.flying); n > 0 {
			i := int(arg) % n
			x.land(i, breaker.Failure)
		}
	case 4: // a caller leaves
		if n := len(x.waiting); n > 0 {
			x.leave(x.waiting[int(arg)%n])
		}
	case 5:
		x.hangs = arg%2 == 0
	default:
		x.sleep(x.now + ms<<(arg%11))
	}
	x.check()
}

func (x *lineRig) call(deadline time.Duration) {
	if p, ok := x.b.AllowFor(x.now, deadline-x.now); ok {
		x.fly(p)
		return
	}
	w := &lineWaiter{until: deadline}
	w.Wake = func() { w.woken = true }
	x.waiting = append(x.waiting, w)
	x.verdict(w)(x.b.Hold(x.now, deadline, deadline-x.now, &w.Waiter))
	x.settle()
}

func (x *lineRig) fly(p breaker.Permit) {
	ends := x.now + 5*ms
	if x.hangs {
		ends = breaker.Never
	}
	x.flying = append(x.flying, lineFlight{p, ends})
}

func (x *lineRig) land(i int, r breaker.Result) {
	p := x.flying[i].permit
	x.flying = append(x.flying[:i:i], x.flying[i+1:]...)
	x.b.Record(x.now, p, r)
	x.settle()
}

func (x *lineRig) verdict(w *lineWaiter) func(breaker.Permit, breaker.Verdict, time.Duration) {
	return func(p breaker.Permit, v breaker.Verdict, look time.Duration) {
		if w.look = look; v == breaker.Waits {
			return
		}
		if x.drop(w); v == breaker.Admitted {
			x.fly(p)
		}
	}
}

func (x *lineRig) drop(w *lineWaiter) {
	for i := range x.waiting {
		if x.waiting[i] == w {
			x.waiting = append(x.waiting[:i:i], x.waiting[i+1:]...)
			return
		}
	}
}

func (x *lineRig) leave(w *lineWaiter) {
	x.drop(w)
	if p, ok := x.b.Leave(x.now, &w.Waiter); ok {
		x.fly(p)
	}
	x.settle()
}

// settle has those look who have been woken, or who are to, until nobody is.
func (x *lineRig) settle() {
	for again := true; again; {
		again = false
		for _, w := range append([]*lineWaiter(nil), x.waiting...) {
			if w.woken || w.look <= x.now {
				w.woken, again = false, true
				x.verdict(w)(x.b.Look(x.now, &w.Waiter))
			}
		}
	}
}

// sleep lets the time pass until then, with all that is due on the way.
func (x *lineRig) sleep(until time.Duration) {
	for {
		next := until
		for _, w := range x.waiting {
			next = min(next, w.look, w.until)
		}
		for _, a := range x.flying {
			next = min(next, a.ends)
		}
		x.now = max(x.now, next)
		for i := 0; i < len(x.flying); i++ {
			if x.flying[i].ends <= x.now {
				x.land(i, breaker.Success)
				i = -1
			}
		}
		for _, w := range append([]*lineWaiter(nil), x.waiting...) {
			if w.until <= x.now {
				x.leave(w)
			}
		}
		x.settle()
		if x.now >= until {
			return
		}
	}
}

func (x *lineRig) check() {
	st := x.b.Snapshot(x.now)
	usual := st.Learned.Latency
	able, lookout := 0, false
	for _, w := range x.waiting {
		if x.now+usual < w.until {
			able++
		}
		lookout = lookout || w.look < breaker.Never
	}
	switch {
	case able > 0 && !lookout:
		x.t.Fatalf("at %v %d calls wait, and nobody looks out: %+v", x.now, able, st)
	case able > 0 && st.State == breaker.HalfOpen && st.Probes < st.Learned.Places, st.State == breaker.Closed &&
		len(x.waiting) > 0:
		x.t.Fatalf("at %v %d calls wait beside places that are free: %+v", x.now, len(x.waiting), st)
	}
}

// recovers has the service answer again: whoever comes then, and has the time, is let in.
func (x *lineRig) recovers() {
	x.hangs = false
	for i := range x.flying { // what hung is answered late
		x.flying[i].ends = min(x.flying[i].ends, x.now+s)
	}
	x.sleep(x.now + 2*s)
	for range 20 {
		x.call(x.now + time.Minute)
	}
	if x.sleep(x.now + 5*s); len(x.waiting) > 0 {
		x.t.Fatalf("%d calls still wait 5 s later: %+v", len(x.waiting), x.b.Snapshot(x.now))
	}
}
