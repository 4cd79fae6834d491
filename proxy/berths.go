package proxy

import (
	"fmt"
	"sync/atomic"
	"syscall"
)

// berths are the connections to services that speak HTTP/1.1, of which each exchange needs one of its own. Every
// client has one for certain. A client of HTTP/2 that wants one for each of its streams takes the others from a stock
// that all share: else it could take the descriptors of everybody.
type berths struct {
	stock   int64 // less than 0: any number
	taken   atomic.Int64
	waiting atomic.Int64  // attempts that wait for one
	freed   chan struct{} // told when one is given back to the stock
}

// take takes one for a client, and reports whether there was one.
func (b *berths) take(held *atomic.Int32) bool {
	if b.stock < 0 || held.Add(1) == 1 {
		return true
	}
	if b.taken.Add(1) <= b.stock {
		return true
	}
	b.leave(held)
	return false
}

// leave gives one back.
func (b *berths) leave(held *atomic.Int32) {
	if b.stock < 0 || held.Add(-1) == 0 {
		return
	}
	b.taken.Add(-1)
	select {
	case b.freed <- struct{}{}:
	default:
	}
}

// errNoBerth is nobody's failure but this process's own.
var errNoBerth = fmt.Errorf("as many connections to services as there are descriptors for: %w", syscall.EMFILE)

// berth is one that an attempt has; the zero berth is none. Its client may be another's by the end.
type berth struct {
	of   *berths
	held *atomic.Int32 // how many the client has
}

// take reports whether there was one for a client that has so many.
func (b *berth) take(of *berths, held *atomic.Int32) bool {
	if !of.take(held) {
		return false
	}
	*b = berth{of, held}
	return true
}

func (b *berth) leave() {
	if b.of != nil {
		b.of.leave(b.held)
		*b = berth{}
	}
}
