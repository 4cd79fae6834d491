package abate_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/shed"
)

// placed is one request of a program at a gate.
type placed struct {
	inbound.Arrival
	w       shed.Waiter
	asks    bool // the fleet
	enqueue bool // has been told to
	queued  bool
	woken   bool
	handled bool
	lent    bool // while it is handled
}

// placesProgram is a gate, its requests, and the books that are kept beside them.
type placesProgram struct {
	t    *testing.T
	dice dice
	gate *inbound.Gate
	rnd  *rand.Rand
	now  time.Duration
	live []*placed
	log  bytes.Buffer

	exact   bool // every request that is handled has a place
	most    int  // the highest limit that there was, if exact
	loans   int  // the most that were lent at a time: by so many more may be handled
	asked   int  // arrivals
	ended   int
	away    int // refused
	refused int // by the events
	inside  int // by the events
	deaf    int // events until the observer panics
	quit    int // events until the observer ends the goroutine, in this step
}

// fleet decides by the dice.
type fleet struct{ x *placesProgram }

func (f fleet) decide() ratelimit.Decision {
	over := f.x.dice.roll(4) == 1
	return ratelimit.Decision{Allowed: !over, Over: over, Limit: 10, RetryAfter: time.Second}
}

func (f fleet) TryTake(time.Duration, string, float64) (ratelimit.Decision, bool) {
	if f.x.dice.roll(2) == 1 {
		return ratelimit.Decision{}, false
	}
	return f.decide(), true
}

func (f fleet) Take(context.Context, string, float64) ratelimit.Decision { return f.decide() }

func (x *placesProgram) protection() inbound.Protection {
	d := &x.dice
	p := d.protection()
	p.Shed.NoQueue = d.roll(5) == 1
	p.Shed.MaxCallerShare = []float64{0, 0.3, 0.9}[d.roll(3)]
	if x.exact {
		p.Shed.Shadow, p.Shed.CPU, p.Shed.Concurrency, p.Shed.MaxConcurrency = false, 0, shed.Fixed, 2+d.roll(3)
		x.most = max(x.most, p.Shed.MaxConcurrency)
	}
	if p.RateLimit.Enabled() && d.roll(3) == 1 {
		p.Fleet = fleet{x}
	}
	p.Rand = x.rnd.Uint64
	p.CPU = func() float64 { return float64(x.dice.roll(10)) / 9 }
	p.Observer = inbound.GateObserverFunc(x.observe)
	return p
}

func (x *placesProgram) observe(e inbound.GateEvent) {
	switch {
	case e.Kind == inbound.RequestAdmitted:
		x.inside++
	case e.Kind == inbound.RequestDone:
		x.inside--
	case e.Kind == inbound.RequestRefused && !e.Shadow:
		x.refused++
	}
	if x.deaf--; x.deaf == 0 {
		panic("observer")
	}
	if x.quit--; x.quit != 0 {
		return
	}
	switch { // nobody will hear what the step comes to
	case e.Kind == inbound.RequestAdmitted:
		x.inside--
	case e.Kind == inbound.RequestRefused && !e.Shadow:
		x.away++
	}
	runtime.Goexit()
}

// playPlaces plays the program that input stands for.
func playPlaces(t *testing.T, input []byte) {
	x := &placesProgram{t: t, dice: dice(input), rnd: rand.New(rand.NewPCG(3, 4)), now: time.Hour}
	x.exact = x.dice.roll(2) == 1
	x.gate = gate(t, x.protection())
	for step := 0; len(x.dice) > 0 && step < 400 && !t.Failed(); step++ {
		x.step()
		x.check()
	}
	for len(x.live) > 0 && !t.Failed() {
		x.end(x.live[0])
		x.check()
	}
	if !t.Failed() {
		x.finally()
	}
	if t.Failed() {
		t.Logf("the program %x:\n%s", input, x.log.String())
	}
}

func (x *placesProgram) note(format string, args ...any) {
	fmt.Fprintf(&x.log, "%v "+format+"\n", append([]any{x.now - time.Hour}, args...)...)
}

func (x *placesProgram) step() {
	d := &x.dice
	switch n := d.roll(16); {
	case n < 5 && len(x.live) < 12:
		x.arrive()
	case n == 5:
		x.now += time.Duration(d.roll(60)) * ms
	case n == 6 && d.roll(4) == 1:
		x.note("update")
		if err := x.gate.UpdateAt(x.now, x.protection()); err != nil {
			x.t.Fatal(err)
		}
	case n == 7 && d.roll(4) == 1:
		x.deaf = 1 + d.roll(6)
	case len(x.live) > 0:
		if d.roll(12) == 1 {
			x.quit = 1 + d.roll(2)
		}
		a := x.live[d.roll(len(x.live))]
		x.do(a, func() { x.move(a) })
	}
}

// do has f take a step of a. If its goroutine ends in the middle nobody is left who knows of a.
func (x *placesProgram) do(a *placed, f func()) {
	ended := false
	play := func() {
		defer func() {
			if v := recover(); v != nil {
				x.t.Errorf("panic: %v\n%s", v, debug.Stack())
			}
		}()
		f()
		ended = true
	}
	if x.quit > 0 {
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			play()
		}()
		<-gone
	} else {
		play()
	}
	if x.quit = 0; !ended {
		x.note("which ended in the middle")
		x.gone(a)
	}
}

func (x *placesProgram) arrive() {
	d := &x.dice
	r := inbound.Request{
		Deadline: core.NoDeadline,
		Key:      []string{"", "a", "b"}[d.roll(3)],
		Priority: shed.Priorities[d.roll(4)],
		Attempt:  d.roll(4),
		Caller:   uint64(d.roll(3)),
		Cost:     float64(d.roll(3)),
	}
	if n := d.roll(5); n > 0 {
		r.Deadline = x.now + time.Duration(n-1)*40*ms
	}
	a := new(placed)
	x.live = append(x.live, a)
	x.asked++
	x.note("request %d", x.asked)
	if d.roll(12) == 1 {
		x.quit = 1 + d.roll(2)
	}
	x.do(a, func() { x.take(a, x.gate.Arrive(&a.Arrival, x.now, r)) })
}

func (x *placesProgram) take(a *placed, step core.Step) {
	a.asks, a.queued, a.woken, a.enqueue = step.Action == core.Ask, step.Action == core.Queued, a.woken &&
		step.Action == core.Queued, step.Action == core.Queue
	switch step.Action {
	case core.Measure:
		x.take(a, a.Measured(x.now, a.ReadCPU()))
	case core.Handle:
		a.handled = true
		x.note("is handled")
	case core.Refuse:
		x.note("is refused: %v", step.Err)
		if r := a.Refusal(); r.Reason == nil || r.RetryAfter < 0 {
			x.t.Errorf("refused: %+v", r)
		}
		x.away++
		x.gone(a)
	}
}

func (x *placesProgram) gone(a *placed) {
	x.ended++
	for i, other := range x.live {
		if other == a {
			x.live = append(x.live[:i:i], x.live[i+1:]...)
		}
	}
}

// move does something of what the driver of a may do next.
func (x *placesProgram) move(a *placed) {
	d := &x.dice
	switch {
	case a.handled && d.roll(3) > 0:
		x.lend(a, d.roll(2) == 1)
	case a.handled:
		x.note("done")
		x.done(a, abate.Class(d.roll(4)))
	case a.asks:
		x.take(a, a.Limited(x.now, a.AskFleet(context.Background())))
	case a.enqueue:
		a.w.Wake = func() { a.woken = true }
		a.queued = true // it may be woken before Enqueue has returned
		x.note("enqueued")
		x.take(a, a.Enqueue(x.now, &a.w))
	case d.roll(3) == 1:
		x.leave(a, context.Canceled)
	case a.woken && d.roll(4) > 0:
		a.woken = false
		x.take(a, a.Woken(x.now, &a.w))
	case d.roll(3) == 1:
		x.leave(a, nil)
	}
}

// lend has a's slot lent or taken again, also once more than needed.
func (x *placesProgram) lend(a *placed, lend bool) {
	if a.lent = lend; lend {
		x.note("is lent")
		a.Lend(x.now)
	} else {
		x.note("is resumed")
		a.Resume(x.now)
	}
	lent := 0
	for _, other := range x.live {
		if other.handled && other.lent {
			lent++
		}
	}
	x.loans = max(x.loans, lent)
}

func (x *placesProgram) leave(a *placed, cause error) {
	x.note("leaves the queue: %v, woken %t", cause, a.woken)
	a.woken = false
	x.take(a, a.LeaveQueue(x.now, &a.w, cause))
}

func (x *placesProgram) done(a *placed, class abate.Class) {
	a.Done(x.now, class)
	x.gone(a)
}

// end brings a to its end, as drivers whose clients all leave.
func (x *placesProgram) end(a *placed) {
	switch {
	case a.handled:
		x.done(a, abate.Ignored)
	case a.queued:
		x.leave(a, context.Canceled)
	default: // it has not been decided, and holds nothing
		x.gone(a)
	}
}

// check compares the gate with the books.
func (x *placesProgram) check() {
	handled, waiting, awake, undecided, lent := 0, 0, 0, 0, 0
	for _, a := range x.live {
		_, reason := a.w.Outcome()
		switch {
		case a.handled:
			if handled++; a.lent {
				lent++
			}
		case a.queued && !a.woken:
			waiting++
		case a.queued && reason == shed.None:
			awake++
		default:
			undecided++
		}
	}
	st := x.gate.StateAt(x.now).Shed
	switch {
	case x.exact && (st.InFlight != handled-lent+awake || st.Queued != waiting):
		x.t.Errorf("%d requests have a place, %d of them lent, %d were given one, %d wait; %+v", handled, lent, awake,
			waiting, st)
	case x.exact && st.InFlight > x.most+x.loans,
		st.InFlight < st.Limit && st.Queued > 0 && !x.gate.Describe().Shed.Shadow:
		x.t.Errorf("%+v", st)
	case st.InFlight+st.Queued > handled-lent+awake+waiting:
		x.t.Errorf("%d requests have a place, %d of them lent, %d were given one, %d wait; %+v", handled, lent, awake,
			waiting, st)
	}
	if x.inside != handled || x.refused != x.away {
		x.t.Errorf("the observer knows of %d requests inside and %d refused, there are %d and %d", x.inside, x.refused,
			handled, x.away)
	}
	if len(x.live) != handled+waiting+awake+undecided || len(x.live)+x.ended != x.asked {
		x.t.Errorf("%d requests came, %d ended, %d are there", x.asked, x.ended, len(x.live))
	}
}

// finally checks what holds when all requests have ended: each caller has all of its share, and no more.
func (x *placesProgram) finally() {
	one := inbound.Protection{
		Shed: shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 4, MaxQueue: 9, MaxCallerShare: 0.25}, Rand: x.rnd.Uint64,
	}
	if err := x.gate.UpdateAt(x.now, one); err != nil {
		x.t.Fatal(err)
	}
	if st := x.gate.StateAt(x.now).Shed; st.InFlight != 0 || st.Queued != 0 {
		x.t.Errorf("at last: %+v", st)
	}
	var all [4]inbound.Arrival
	for i := range all {
		if step := x.gate.Arrive(&all[i], x.now, inbound.Request{Deadline: core.NoDeadline}); step.Action != core.Handle {
			x.t.Errorf("place %d: %+v", i, step)
		}
	}
	for caller := range uint64(3) {
		var a, more inbound.Arrival
		r := inbound.Request{Deadline: core.NoDeadline, Caller: caller}
		if step := x.gate.Arrive(&a, x.now, r); step.Action != core.Queue {
			x.t.Errorf("caller %d may not wait: %+v %v", caller, step, a.Refusal().Shed)
		} else if step := a.Enqueue(x.now, new(shed.Waiter)); step.Action != core.Queued {
			x.t.Errorf("caller %d does not wait: %+v %v", caller, step, a.Refusal().Shed)
		}
		if step := x.gate.Arrive(&more, x.now, r); caller > 0 && more.Refusal().Shed != shed.Unfair {
			x.t.Errorf("caller %d may have more than its share: %+v %v", caller, step, more.Refusal().Shed)
		}
	}
}

// FuzzPlaces plays requests at a gate under any protection, which changes meanwhile, in any order of events: places,
// waiters and what was given back add up after each of them.
func FuzzPlaces(f *testing.F) {
	for _, program := range programs(17, 20, 300) {
		f.Add(program)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		panicsLogged(t)
		playPlaces(t, input)
	})
}

func TestPlacesAddUpAfterEveryEventOfAnyProgram(t *testing.T) {
	panicsLogged(t)
	for _, program := range programs(19, rounds(), 600) {
		if playPlaces(t, program); t.Failed() {
			return
		}
	}
}
