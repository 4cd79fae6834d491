package core

import (
	"sync"
	"time"

	"github.com/abate-go/abate/internal/clock"
)

// Handing is how an operation reports that a request has a body which takes its time to come: when the dependency had
// it all, or that its sender is waited for, see HandedOver. Run has one for operations with a method Hands() bool that
// returns true. The contexts of their attempts last as long as the call: the operation itself ends an attempt whose
// dependency has had Sending.Patience for the request.
type Handing struct {
	mu   *sync.Mutex // of copies, which report too; nil for none
	call *Call
}

// Over is HandedOver for the attempt that the Handing came with. It must not be called when Attempt has returned, nor
// by two goroutines at once.
func (h *Handing) Over(now, at time.Duration) {
	if h.mu != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
	}
	HandedOver(h.call, now, at)
}

// ends is when the context of an attempt ends that has time until then.
func (h *Handing) ends(until time.Duration) time.Duration {
	if h != nil {
		return h.call.deadline
	}
	return until
}

// told returns s with what an operation that hands over is told of an attempt that has time until then.
func (h *Handing) told(s Sending, until time.Duration) Sending {
	if h != nil {
		s.Handing = h
		if until != NoDeadline {
			s.Patience = max(until-clock.Now(), 1) // it may be late already: zero would be without a limit
		}
	}
	return s
}

// hands reports whether an operation hands over.
func hands(op any) bool {
	o, ok := op.(interface{ Hands() bool })
	return ok && o.Hands()
}

// handingDriver is a Driver beside which another goroutine reports.
type handingDriver struct {
	Driver
	handing Handing
}
