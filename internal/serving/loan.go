package serving

import (
	"sync"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
)

// Loan lends the slot of a request while an operation waits for the request's client. Several goroutines may say so at
// once: one that reads from the client and one that writes to it. The slot is lent while any of them waits: whatever
// else the service does meanwhile, nobody can see, and a client that stands still must not keep others out. The zero
// Loan is closed, and does nothing.
type Loan struct {
	mu      sync.Mutex
	arrival *inbound.Arrival // nil while it is closed
	waits   int              // operations that wait
}

// Open begins it, for a request that its gate has admitted.
func (l *Loan) Open(a *inbound.Arrival) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arrival, l.waits = a, 0
}

// Wait says that an operation waits for the client. Resume must follow.
func (l *Loan) Wait() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wait()
}

// Resume says that an operation does not wait any more.
func (l *Loan) Resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resume()
}

// Close ends it. From here on the arrival is the caller's alone, to be told Done.
func (l *Loan) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arrival = nil
}

func (l *Loan) wait() {
	if l.waits++; l.waits == 1 && l.arrival != nil {
		l.arrival.Lend(core.Now())
	}
}

func (l *Loan) resume() {
	if l.waits--; l.waits == 0 && l.arrival != nil {
		l.arrival.Resume(core.Now())
	}
}
