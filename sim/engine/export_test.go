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
