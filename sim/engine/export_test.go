package engine

import (
	"time"
	"unsafe"
)

// Sizes in bytes of what comes and goes by the million.
const (
	CallSize    = unsafe.Sizeof(call{})
	TaskSize    = unsafe.Sizeof(task{})
	AttemptSize = unsafe.Sizeof(attempt{})
)

// Unsettled is how many attempts more count as pending with the balancers than are in the air.
func (e *Engine) Unsettled() (n int) {
	for i := range e.balancers.of {
		for slot, k := range e.world.nodeOf(int32(i)).edges {
			x := &e.balancers.of[i][slot]
			for at := range int(e.world.nodes[e.world.edges[k].callee].count) {
				if x.balancer != nil && x.known == 0 {
					n += x.balancer.Endpoint(at, time.Duration(e.world.now)).Pending
				}
			}
		}
	}
	for _, k := range e.balancers.known {
		for at := range k.list {
			n += k.balancer.Endpoint(at, time.Duration(e.world.now)).Pending
		}
	}
	e.traffic.attempts.each(func(_ uint32, a *attempt) {
		if a.picked {
			n--
		}
	})
	return n
}
