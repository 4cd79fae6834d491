//go:build unix

package outages_test

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// patience is how long a query may take, waiting for a connection included.
const patience = 2 * time.Second

// queriesPerSecond is the load of an outage.
const queriesPerSecond = 150

// query is one use of a pool.
type query func(ctx context.Context) error

// side is one of the two that are compared: a pool, and what became of its queries.
type side struct {
	name  string
	ask   query
	dials *atomic.Int64

	mu     sync.Mutex
	failed map[string]int // by kind
	asked  int
	late   int               // that failed more than a second after the server was up again
	first  map[string]string // the first error of each kind
}

func newSide(name string, ask query, dials *atomic.Int64) *side {
	return &side{name: name, ask: ask, dials: dials, failed: make(map[string]int), first: make(map[string]string)}
}

// load asks so many queries a second until stop is closed, of all sides at the same moments: what they lost is then
// compared without the chance that one was asked more often. It returns a function that waits for the last of them.
func load(stop <-chan struct{}, kind string, perSecond float64, up *atomic.Int64, sides ...*side) (wait func()) {
	var running sync.WaitGroup
	running.Go(func() {
		for {
			gap := time.NewTimer(time.Duration(rand.ExpFloat64() / perSecond * float64(time.Second)))
			select {
			case <-stop:
				gap.Stop()
				return
			case <-gap.C:
			}
			for _, s := range sides {
				running.Go(func() { s.query(kind, up) })
			}
		}
	})
	return running.Wait
}

func (s *side) query(kind string, up *atomic.Int64) {
	began := time.Now()
	ctx, done := context.WithTimeout(context.Background(), patience)
	err := s.ask(ctx)
	done()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if err == nil {
		return
	}
	s.failed[kind]++
	if at := up.Load(); at > 0 && began.UnixNano() > at+int64(time.Second) {
		s.late++
	}
	if s.first[kind] == "" {
		s.first[kind] = err.Error()
	}
}

// counted is a dial function that counts.
func counted(n *atomic.Int64) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		n.Add(1)
		return new(net.Dialer).DialContext(ctx, network, address)
	}
}

// pass lets time go by: what is measured does not wait for anybody.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-t.Context().Done():
	case <-time.After(d):
	}
}

// compare prints what both have lost, and wants the guarded side to have lost no more than the plain one, and a
// twentieth. room is for what a busy machine does to either.
func compare(t *testing.T, plain, guarded *side, kind string, room int) {
	t.Helper()
	for _, s := range []*side{plain, guarded} {
		t.Logf("%-8s %5d asked, %s failed: %4d, of these a second after the server was up or later: %d; %d dials; %s",
			s.name, s.asked, kind, s.failed[kind], s.late, s.dials.Load(), s.first[kind])
	}
	if p, g := plain.failed[kind], guarded.failed[kind]; g > p+p/20+room {
		t.Errorf("%s: %d failed, without us %d", kind, g, p)
	}
	if guarded.late > plain.late+room {
		t.Errorf("%s: %d failed when the server was up for a second, without us %d", kind, guarded.late, plain.late)
	}
}
