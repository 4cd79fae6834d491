package engine

import (
	"math"
	"time"

	"github.com/abate-go/abate/policy/balance"
	"unsafe"
)

// Sizes in bytes of what comes and goes by the million.
const (
	CallSize    = unsafe.Sizeof(call{})
	TaskSize    = unsafe.Sizeof(task{})
	AttemptSize = unsafe.Sizeof(attempt{})
)

// RememberEverybody makes requests that nobody waits for cost as much memory as all others.
func (e *Engine) RememberEverybody() { e.servers.crowd = math.MaxUint32 }

// ForgetAtOnce has requests forgotten that nobody waits for as soon as there are this many of all kinds.
func (e *Engine) ForgetAtOnce(crowd uint32) { e.servers.crowd = crowd }

// Remembered is for how many requests the engine has had room at once.
func (e *Engine) Remembered() int { return int(e.traffic.tasks.fresh) }

// Unsettled is how many attempts more count as pending with the balancers than are in the air, and how many more the
// engine holds that it has not ended.
func (e *Engine) Unsettled() (n int) {
	for i := range e.balancers.of {
		for slot, k := range e.world.nodeOf(int32(i)).edges {
			x, callee := &e.balancers.of[i][slot], &e.world.nodes[e.world.edges[k].callee]
			for at := range int(callee.count) {
				if x.balancer != nil && !callee.lives {
					n += x.balancer.Endpoint(at, time.Duration(e.world.now)).Pending
				}
			}
		}
	}
	for _, a := range e.balancers.begun {
		if a != (balance.Attempt{}) {
			n++
		}
	}
	e.traffic.attempts.each(func(_ uint32, a *attempt) {
		if !a.picked {
			return
		}
		n--
		if !e.world.nodeOf(a.replica).lives {
			n--
		}
	})
	return n
}

// Herd is one of numbers.
type Herd struct{ h herd[int] }

// Get takes a free one and returns its index.
func (h *Herd) Get() uint32 { i, _ := h.h.get(); return i }

// Put gives it back.
func (h *Herd) Put(i uint32) { h.h.put(i) }

// Room is for how many the herd has been used.
func (h *Herd) Room() int { return int(h.h.fresh) }

// Empty makes all of them free.
func (h *Herd) Empty() { h.h = h.h.emptied() }

// DueOff makes a run, and returns by how many messages at most the count of those that are due and not being delivered
// was off in any lane, and how many were the most in one.
func (e *Engine) DueOff(seed uint64) (off, most int64, err error) {
	if err := e.reset(seed, false); err != nil {
		return 0, 0, err
	}
	e.begin()
	cs, events := &e.consumers, 0
	e.play(nil, func() bool {
		if events++; events%37 != 0 {
			return false
		}
		due := make([]int64, len(cs.lanes))
		cs.messages.each(func(_ uint32, m *message) {
			if m.due <= cs.world.now {
				due[m.lane]++
			}
		})
		e.traffic.tasks.each(func(_ uint32, t *task) {
			if t.root {
				due[cs.messages.at(t.user-1).lane]--
			}
		})
		for i, want := range due {
			got := cs.dueIn(&cs.lanes[i])
			off, most = max(off, got-want, want-got), max(most, want)
		}
		return false
	})
	return off, most, nil
}
