package proxy

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/abate-go/abate"
)

// berths are the connections to services that speak HTTP/1.1, of which each exchange needs one of its own. Every client has one for
// certain. A client of HTTP/2 that wants one for each of its streams takes the others from a stock that all share: else it
// could take the descriptors of everybody.
type berths struct {
	stock   int64 // less than 0: any number
	taken   atomic.Int64
	waiting atomic.Int64  // attempts that wait for one
	freed   chan struct{} // told when one is given back to the stock
}

// take takes one for a client, and reports whether there was one.
func (b *berths) take(from *origin) bool {
	if b.stock < 0 || from.berths.Add(1) == 1 {
		return true
	}
	if b.taken.Add(1) <= b.stock {
		return true
	}
	b.leave(from)
	return false
}

// leave gives one back.
func (b *berths) leave(from *origin) {
	if b.stock < 0 || from.berths.Add(-1) == 0 {
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

// berth waits for a berth, within the attempt's time.
func (a *answer) berth() error {
	x, b := a.x, &a.x.plane.out.berths
	from := x.client.origin()
	if b.take(from) {
		a.berthOf = from
		return nil
	}
	b.waiting.Add(1)
	defer b.waiting.Add(-1)
	for !b.take(from) {
		now := abate.Now()
		switch {
		case a.cancelled.Load() || x.gone():
			return errGone
		case now >= a.until:
			return errNoBerth
		}
		wait := time.NewTimer(min(glance/4, a.until-now))
		select {
		case <-b.freed:
		case <-wait.C:
		}
		wait.Stop()
	}
	a.berthOf = from
	return nil
}

// unberth gives the attempt's berth back, if it has one.
func (a *answer) unberth() {
	if from := a.berthOf; from != nil {
		a.berthOf = nil
		a.x.plane.out.berths.leave(from)
	}
}
