package abate_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/shed"
)

func (d *dice) protection() inbound.Protection {
	p := inbound.Protection{Timeout: time.Duration(d.roll(3)) * 100 * ms}
	if d.roll(2) == 1 {
		p.RateLimit = limited(perSecond(float64(d.roll(200)), 1+d.roll(5)))
		p.RateLimit.Shadow = d.roll(4) == 1
	}
	p.Shed = shed.Config{
		Concurrency:        []shed.Algorithm{"", shed.Fixed, shed.Gradient, shed.Vegas, shed.AIMD, shed.BBR}[d.roll(6)],
		MaxConcurrency:     1 + d.roll(3),
		MinConcurrency:     1,
		InitialConcurrency: 1,
		MaxQueue:           d.roll(4),
		QueueTarget:        5 * ms,
		QueueInterval:      20 * ms,
		CPU:                float64(d.roll(2)) * 0.5,
		Shadow:             d.roll(6) == 1,
		MaxCallerShare:     float64(d.roll(2)) * 0.5,
	}
	return p
}

// visit is one request of the fuzz under the virtual clock.
type visit struct {
	*virtual
	inbound.Arrival
	takes  time.Duration
	leaves time.Duration // how long it waits at most; 0 for as long as it takes
	w      shed.Waiter
	ended  int
	served bool
	left   bool // the queue
}

func (c *visit) step(step core.Step) {
	switch step.Action {
	case core.Handle:
		c.served = true
		c.after(c.takes, func() { c.Done(c.now, abate.Class(uint(c.takes/ms)%4)); c.ended++ })
	case core.Measure:
		c.step(c.Measured(c.now, c.ReadCPU()))
	case core.Queue:
		c.w.Wake = func() { c.after(0, c.woken) }
		c.step(c.Enqueue(c.now, &c.w))
	case core.Queued:
		c.after(step.Until-c.now, func() { c.leave(nil) })
		if c.leaves > 0 {
			c.after(c.leaves, func() { c.leave(context.Canceled) })
		}
	case core.Refuse:
		c.ended++
	}
}

func (c *visit) woken() {
	if !c.left {
		c.left = true
		c.step(c.Woken(c.now, &c.w))
	}
}

func (c *visit) leave(cause error) {
	if !c.left {
		c.left = true
		c.step(c.LeaveQueue(c.now, &c.w, cause))
	}
}

// FuzzArrival plays requests at gates of any protection, which changes meanwhile. Whatever happens, every request ends
// once, and nothing is held after the last.
func FuzzArrival(f *testing.F) {
	f.Add([]byte("requests"))
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 30 {
		seed := make([]byte, 120)
		for i := range seed {
			seed[i] = byte(rnd.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		d := dice(input)
		p := d.protection()
		p.Rand = rand.New(rand.NewPCG(3, 4)).Uint64
		p.CPU = func() float64 { return float64(d.roll(10)) / 9 }
		g := gate(t, p)
		v := &virtual{now: -time.Duration(d.roll(2)) * 300 * ms} // that is, around the origin too
		for range d.roll(3) {                                    // whoever is at the gate stays under what was in force
			next := d.protection()
			next.Rand, next.CPU = p.Rand, p.CPU
			v.after(time.Duration(d.roll(30))*4*ms, func() {
				if err := g.UpdateAt(v.now, next); err != nil {
					t.Fatal(err)
				}
			})
		}
		var visits []*visit
		for range 1 + d.roll(20) {
			c := &visit{virtual: v, takes: time.Duration(1+d.roll(20)) * 3 * ms, leaves: time.Duration(d.roll(4)) * 7 * ms}
			r := inbound.Request{
				Deadline: core.NoDeadline,
				Key:      []string{"", "a", "b"}[d.roll(3)],
				Priority: shed.Priorities[d.roll(4)],
				Attempt:  d.roll(4),
				Caller:   uint64(d.roll(3)),
				Cost:     float64(d.roll(3)),
			}
			if n := d.roll(5); n > 0 {
				r.Deadline = v.now + time.Duration(n)*40*ms
			}
			visits = append(visits, c)
			v.after(time.Duration(d.roll(20))*5*ms, func() { c.step(g.Arrive(&c.Arrival, v.now, r)) })
		}
		v.run()
		for i, c := range visits {
			if c.ended != 1 {
				t.Errorf("request %d ended %d times under %+v", i, c.ended, p)
			}
			if !c.served && c.Refusal().Reason == nil {
				t.Errorf("request %d was refused for no reason", i)
			}
			if r := c.Refusal().RetryAfter; r < 0 || r > time.Hour {
				t.Errorf("request %d is told to come back in %v", i, r)
			}
		}
		if err := g.UpdateAt(v.now, inbound.Protection{Shed: places(9, 9)}); err != nil { // so that there is a state to see
			t.Fatal(err)
		}
		if st := g.StateAt(v.now).Shed; st.InFlight != 0 || st.Queued != 0 {
			t.Errorf("places lost: %+v under %+v", st, p.Shed)
		}
	})
}
