package population

import (
	"errors"
	"time"

	"github.com/abate-go/abate/policy/retry"
	"github.com/abate-go/abate/sim/kernel"
)

// ErrStopped is returned by Exact when it was asked to stop.
var ErrStopped = errors.New("population: stopped before the end of the run")

// The streams of random numbers of a run.
const (
	delayStream uint64 = iota
	beginStream
)

// stopEvery is how many events pass between two questions whether to stop; a power of two.
const stopEvery = 1 << 16

// Exact runs every client of the population and returns what happened. The same seed gives the same bytes. It asks stop
// now and then, if there is one, and returns ErrStopped when it says so. The error of a bad Config holds everything
// that is wrong with it.
func Exact(c Config, seed uint64, stop func() bool) (*Curve, error) {
	c, err := c.prepare()
	if err != nil {
		return nil, err
	}
	e := newExact(&c, seed)
	for e.step() {
		if e.curve.Events%stopEvery == 0 && stop != nil && stop() {
			return nil, ErrStopped
		}
	}
	e.curve.Waiting = float64(e.waiting)
	return e.curve, nil
}

// exact is one run. An attempt is one event: when it arrives, the server knows what will come of it.
type exact struct {
	c       *Config
	policy  *retry.Policy
	packing packing
	queue   kernel.Queue
	server  server
	delays  kernel.Stream
	begins  kernel.Stream
	curve   *Curve
	end     int64
	waiting int64 // requests that will not end within the run
	arrived int   // of a population that calls once: clients that are in the queue or were
	slot    int   // in which the last event lay
	slotEnd int64
}

func newExact(c *Config, seed uint64) *exact {
	policy := retry.New(c.Retry)
	e := &exact{
		c: c, policy: policy, packing: newPacking(c, policy.Config()), server: newServer(c), curve: newCurve(c),
		delays: kernel.NewStream(seed, delayStream), begins: kernel.NewStream(seed, beginStream),
		end: int64(c.Duration), slotEnd: int64(c.Slot),
	}
	if c.Think == 0 {
		e.nextClient()
		return e
	}
	for range c.Clients {
		e.think(0)
	}
	return e
}

// nextClient brings in the next client of a population that calls once. Only one is in the queue before its time.
func (e *exact) nextClient() {
	if e.arrived == e.c.Clients {
		return
	}
	share := float64(e.arrived) + e.begins.Float64()
	e.arrived++
	e.begin(int64(float64(share / float64(e.c.Clients) * float64(e.c.Within))))
}

// think lets a client of a closed loop think from t on.
func (e *exact) think(t int64) {
	e.begin(t + int64(float64(e.begins.Exp()*float64(e.c.Think))))
}

func (e *exact) begin(t int64) {
	if t < e.end {
		e.queue.Push(t, 0, freshBit>>32)
	}
}

// step runs the next event and reports whether there was one.
func (e *exact) step() bool {
	event, ok := e.queue.Pop()
	if !ok {
		return false
	}
	e.curve.Events++
	for event.At >= e.slotEnd {
		e.slot++
		e.slotEnd += int64(e.c.Slot)
	}
	if event.Meta&(freshBit>>32) == 0 {
		e.attempt(event.At, e.packing.unpack(event.Target, event.Meta))
		return true
	}
	if e.c.Think == 0 {
		e.nextClient()
	}
	e.curve.Offered[e.slot]++
	e.attempt(event.At, client{start: time.Duration(event.At)})
	return true
}

// attempt sends an attempt at t and sees to what comes of it.
func (e *exact) attempt(t int64, who client) {
	e.curve.Attempts[e.slot]++
	failed := t
	deadline := int64(never)
	if e.c.Patience > 0 {
		deadline = int64(who.start + e.c.Patience)
	}
	if answer, refused := e.server.arrive(t); !refused {
		leaves := deadline
		if e.c.AttemptTimeout > 0 {
			leaves = min(leaves, t+int64(e.c.AttemptTimeout))
		}
		if answer <= leaves {
			e.over(e.curve.Served, answer)
			return
		}
		failed = leaves
	}
	delay, verdict := e.policy.Next(retry.Question{
		Retries: who.retries, Elapsed: time.Duration(failed) - who.start, Previous: who.previous, Rand: e.delays.Uint64(),
	})
	again := failed + int64(delay)
	switch {
	case verdict != retry.Retry || again >= deadline:
		e.over(e.curve.Failed, failed)
	case again >= e.end:
		e.waiting++
	default:
		target, meta := e.packing.pack(client{who.retries + 1, who.start, delay})
		e.queue.Push(again, target, meta)
	}
}

// over ends a request at t, served or failed.
func (e *exact) over(series []float64, t int64) {
	if t >= e.end {
		e.waiting++
		return
	}
	slot := e.slot
	if t >= e.slotEnd {
		slot = int(t / int64(e.c.Slot))
	}
	series[slot]++
	if e.c.Think > 0 {
		e.think(t)
	}
}
