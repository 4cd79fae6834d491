package bulkhead_test

import (
	"slices"
	"testing"

	"github.com/abate-go/abate/policy/bulkhead"
)

// model is the bulkhead as one would explain it.
type model struct {
	c        bulkhead.Config
	inFlight int
	queue    []int
	woken    []int
}

func (m *model) free() bool {
	return len(m.queue) == 0 && (!m.c.Enabled() || m.inFlight < m.c.MaxConcurrentCalls)
}

func (m *model) enqueue(id int) bulkhead.Verdict {
	switch {
	case m.free():
		m.inFlight++
		return bulkhead.Admitted
	case len(m.queue) >= m.c.MaxQueue:
		return bulkhead.Full
	}
	m.queue = append(m.queue, id)
	return bulkhead.Queued
}

func (m *model) admit() {
	for len(m.queue) > 0 && (!m.c.Enabled() || m.inFlight < m.c.MaxConcurrentCalls) {
		i := 0
		if m.c.Order == bulkhead.LIFO || m.c.Order != bulkhead.FIFO && 2*len(m.queue) > m.c.MaxQueue {
			i = len(m.queue) - 1
		}
		m.woken = append(m.woken, m.queue[i])
		m.queue = slices.Delete(m.queue, i, i+1)
		m.inFlight++
	}
}

// FuzzModel runs random operations on a bulkhead and on the model. One byte is one
// operation: its low bits say which, the others with what.
func FuzzModel(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 1, 1, 3, 3, 3, 3})
	f.Add([]byte{0, 1, 1, 1, 1, 2, 4, 3, 132, 3, 3, 12})
	f.Add([]byte{4, 0, 0, 1, 68, 1, 1, 255, 3, 3})
	f.Fuzz(func(t *testing.T, ops []byte) {
		orders := []bulkhead.Order{bulkhead.FIFO, bulkhead.LIFO, bulkhead.Adaptive, ""}
		m := &model{c: bulkhead.Config{MaxConcurrentCalls: 2, MaxQueue: 4}}
		l := &line{b: bulkhead.New(m.c)}
		for i, op := range ops {
			arg := int(op >> 3)
			switch op % 5 {
			case 0:
				want := m.free()
				if want {
					m.inFlight++
				}
				if got := l.b.TryAcquire(); got != want {
					t.Fatalf("op %d: TryAcquire %v, want %v", i, got, want)
				}
			case 1:
				want := m.enqueue(len(l.waiters))
				if got := l.enqueue(); got != want {
					t.Fatalf("op %d: Enqueue %v, want %v", i, got, want)
				}
			case 2:
				if len(l.waiters) == 0 {
					continue
				}
				id := len(l.waiters) - 1 - arg%len(l.waiters)
				at := slices.Index(m.queue, id)
				if got := l.b.Abandon(l.waiters[id]); got != (at >= 0) {
					t.Fatalf("op %d: Abandon %v", i, got)
				}
				if at >= 0 {
					m.queue = slices.Delete(m.queue, at, at+1)
				}
			case 3:
				if m.inFlight == 0 {
					continue
				}
				m.inFlight--
				m.admit()
				l.b.Release()
			case 4:
				m.c = bulkhead.Config{MaxConcurrentCalls: arg % 4, MaxQueue: arg % 7, Order: orders[arg%len(orders)]}
				m.admit()
				l.b.Reconfigure(m.c)
			}
			got := l.b.State()
			if got.InFlight != m.inFlight || got.Queued != len(m.queue) || !slices.Equal(l.woken, m.woken) {
				t.Fatalf("op %d: state %+v, woken %v; want %d in flight, %d queued, woken %v", i, got, l.woken, m.inFlight,
					len(m.queue), m.woken)
			}
		}
	})
}
