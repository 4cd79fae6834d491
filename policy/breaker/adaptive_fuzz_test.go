package breaker_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/breaker"
)

// FuzzAdaptive drives a breaker of the kind Adaptive by bytes: attempts, results, waiters that look and leave, reloads.
// No permit is given twice or lost, and once all is well again everybody passes.
func FuzzAdaptive(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	hang := []byte{}
	for range 40 {
		hang = append(hang, 0, 11, 16)
	}
	f.Add(append(hang, 5, 5, 5, 1, 6, 7, 8, 9))
	dead := []byte{}
	for range 20 {
		dead = append(dead, 0, 27, 2)
	}
	for range 10 { // fail and wait, until there is a sign of life
		dead = append(dead, 0, 27, 3, 0x38, 27)
	}
	f.Add(append(dead, 0, 0, 27, 2, 2, 9, 25, 2, 9, 25, 41, 3, 10, 10, 10))
	f.Fuzz(func(t *testing.T, script []byte) {
		x := &adaptiveRig{t: t, b: adaptive()}
		for _, c := range script[:min(len(script), 2000)] {
			x.step(c)
		}
		x.settle()
	})
}

type adaptiveRig struct {
	t      *testing.T
	b      *breaker.Breaker
	now    time.Duration
	flying []breaker.Permit
	held   []*breaker.Waiter
}

func (x *adaptiveRig) step(c byte) {
	arg := int(c / 16)
	switch c % 16 {
	case 0, 1:
		if p, ok := x.b.AllowFor(x.now, fuzzSteps[arg%9]); ok {
			x.flying = append(x.flying, p)
		}
	case 2, 3, 4, 5, 6:
		if len(x.flying) > 0 {
			i := arg % len(x.flying)
			x.b.Record(x.now, x.flying[i], breaker.Result(c%16-2))
			x.flying = append(x.flying[:i:i], x.flying[i+1:]...)
		}
	case 7, 8:
		w := &breaker.Waiter{Sign: c%16 == 8, Among: arg % 5}
		x.verdict(w, true)(x.b.Hold(x.now, x.now+fuzzSteps[arg%9], fuzzSteps[arg%7], w))
	case 9:
		if len(x.held) > 0 {
			w := x.held[arg%len(x.held)]
			x.verdict(w, false)(x.b.Look(x.now, w))
		}
	case 10:
		if len(x.held) > 0 {
			w := x.held[arg%len(x.held)]
			x.drop(w)
			if p, ok := x.b.Leave(x.now, w); ok {
				x.flying = append(x.flying, p)
			}
		}
	case 11, 12, 13:
		x.now += fuzzSteps[arg%len(fuzzSteps)]
	case 14:
		x.b.Reconfigure(x.now, []breaker.Config{{Kind: breaker.Adaptive}, {FailureThreshold: 2},
			{Kind: breaker.Adaptive, Mode: breaker.Shadow}, {Kind: breaker.Adaptive, WhileOpen: breaker.Refuse}}[arg%4])
	case 15:
		x.b.Discourages(x.now, x.now-fuzzSteps[arg%9], arg%2 == 0)
		x.b.Patience(fuzzSteps[arg%9], arg%2 == 0)
		x.b.Advise(x.now, s)
		x.b.Finding(x.now)
	}
	x.check()
}

func (x *adaptiveRig) verdict(w *breaker.Waiter, fresh bool) func(breaker.Permit, breaker.Verdict, time.Duration) {
	return func(p breaker.Permit, v breaker.Verdict, look time.Duration) {
		switch {
		case v == breaker.Admitted:
			x.flying = append(x.flying, p)
			x.drop(w)
		case v == breaker.Refused:
			x.drop(w)
		case look <= x.now:
			x.t.Fatalf("at %v a waiter is to look at %v: its driver would spin", x.now, look)
		case fresh:
			x.held = append(x.held, w)
		}
	}
}

func (x *adaptiveRig) drop(w *breaker.Waiter) {
	for i := range x.held {
		if x.held[i] == w {
			x.held = append(x.held[:i:i], x.held[i+1:]...)
			return
		}
	}
}

func (x *adaptiveRig) check() {
	st := x.b.Snapshot(x.now)
	if l := st.Learned; st.Probes < 0 || l.Held+l.Waiting > len(x.held) || l.Waiting > 4 || l.InFlight < 0 ||
		l.Surprise < 0 || l.Overdue < 0 {
		x.t.Fatalf("%+v, %d held", st, len(x.held))
	}
}

// settle ends everything, and then all is well.
func (x *adaptiveRig) settle() {
	x.b.Reconfigure(x.now, breaker.Config{Kind: breaker.Adaptive})
	for _, w := range x.held {
		if p, ok := x.b.Leave(x.now, w); ok {
			x.flying = append(x.flying, p)
		}
	}
	for _, p := range x.flying {
		x.b.Record(x.now, p, breaker.Neutral)
	}
	if st := x.b.Snapshot(x.now); st.Learned.InFlight != 0 || st.Learned.Held != 0 ||
		st.Learned.Waiting != 0 {
		x.t.Fatalf("something is left: %+v", st)
	}
	x.now += time.Hour
	for range 200 {
		if p, ok := x.b.AllowFor(x.now, s); ok {
			x.b.Record(x.now+ms, p, breaker.Success)
		}
		x.now += s
	}
	if st := x.b.State(); st != breaker.Closed {
		x.t.Fatalf("all is well, and it is %v: %+v", st, x.b.Snapshot(x.now))
	}
}
