package bulkhead_test

import (
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/bulkhead"
)

// model is the bulkhead as one would explain it.
type model struct {
	c        bulkhead.Config
	inFlight int
	away     int
	queue    []int
	again    []int
	since    map[int]time.Duration
	pressed  bool
	woken    []int
}

func (m *model) waiting() int { return len(m.queue) + len(m.again) }

func (m *model) room() bool { return !m.c.Enabled() || m.inFlight < m.c.MaxConcurrentCalls }

func (m *model) enqueue(id int, now time.Duration, again bool) bulkhead.Verdict {
	switch {
	case m.waiting() == 0 && m.room():
		m.inFlight++
		return bulkhead.Admitted
	case again:
		m.again = append(m.again, id)
	case m.c.NoQueue, m.c.MaxQueue > 0 && m.waiting() >= m.c.MaxQueue:
		return bulkhead.Full
	default:
		m.queue = append(m.queue, id)
	}
	m.since[id] = now
	if len(m.queue) > 0 && 2*(now-m.since[m.queue[0]]) > patience {
		m.pressed = true
	}
	return bulkhead.Queued
}

// leave takes id out of the queues, and reports whether it was there.
func (m *model) leave(id int) (left bool) {
	for _, q := range []*[]int{&m.queue, &m.again} {
		if at := slices.Index(*q, id); at >= 0 {
			*q, left = slices.Delete(*q, at, at+1), true
		}
	}
	if m.waiting() == 0 {
		m.pressed = false
	}
	return left
}

func (m *model) admit() {
	for m.waiting() > 0 && m.room() {
		q := m.queue
		if len(m.again) > 0 {
			q = m.again
		}
		id := q[0]
		if m.c.Order == bulkhead.LIFO || m.c.Order != bulkhead.FIFO && m.pressed {
			id = q[len(q)-1]
		}
		m.leave(id)
		m.woken = append(m.woken, id)
		m.inFlight++
	}
}

// game plays operations on a bulkhead and on the model.
type game struct {
	*testing.T
	m *model
	l *line
}

// FuzzModel runs random operations on a bulkhead and on the model. One byte is one
// operation: its low bits say which, the others with what.
func FuzzModel(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 1, 1, 3, 3, 3, 3})
	f.Add([]byte{0, 1, 1, 1, 1, 2, 4, 3, 132, 3, 3, 12})
	f.Add([]byte{4, 0, 0, 1, 68, 1, 1, 255, 3, 3})
	f.Add([]byte{0, 0, 1, 1, 247, 1, 3, 3, 5, 9, 6})
	f.Fuzz(func(t *testing.T, ops []byte) {
		g := &game{T: t, m: &model{c: bulkhead.Config{MaxConcurrentCalls: 2, MaxQueue: 4}, since: map[int]time.Duration{}}}
		g.l = &line{b: bulkhead.New(g.m.c)}
		for i, op := range ops {
			g.play(i, int(op%8), int(op>>3))
			m, got := g.m, g.l.b.State()
			if got.InFlight != m.inFlight || got.Queued != m.waiting() || got.Away != m.away ||
				!slices.Equal(g.l.woken, m.woken) {
				t.Fatalf("op %d: state %+v, woken %v; want %+v", i, got, g.l.woken, m)
			}
		}
	})
}

func (g *game) play(i, op, arg int) {
	m, l := g.m, g.l
	switch op {
	case 0:
		want := m.waiting() == 0 && m.room()
		if want {
			m.inFlight++
		}
		if got := l.b.TryAcquire(); got != want {
			g.Fatalf("op %d: TryAcquire %v, want %v", i, got, want)
		}
	case 1:
		g.wait(i, false)
	case 2:
		if len(l.waiters) == 0 {
			return
		}
		id := len(l.waiters) - 1 - arg%len(l.waiters)
		left := m.leave(id)
		m.pressed = m.pressed || left && m.waiting() > 0
		if got := l.b.Abandon(l.waiters[id]); got != left {
			g.Fatalf("op %d: Abandon %v", i, got)
		}
	case 3, 5:
		if m.inFlight == 0 {
			return
		}
		m.inFlight--
		if op == 5 {
			m.away++
		}
		m.admit()
		if op == 5 {
			l.b.Pause()
		} else {
			l.b.Release()
		}
	case 4:
		m.c = bulkhead.Config{MaxConcurrentCalls: arg % 4, MaxQueue: arg % 7, Order: orders[arg%len(orders)],
			NoQueue: arg%5 == 1}
		m.admit()
		l.b.Reconfigure(m.c)
	case 6:
		if m.away > 0 {
			m.away--
			g.wait(i, true)
			l.b.Back()
		}
	case 7:
		l.now += time.Duration(arg) * patience / 20
	}
}

func (g *game) wait(i int, again bool) {
	want := g.m.enqueue(len(g.l.waiters), g.l.now, again)
	if got := g.l.wait(again); got != want {
		g.Fatalf("op %d: Enqueue %v, want %v", i, got, want)
	}
}

var orders = []bulkhead.Order{bulkhead.FIFO, bulkhead.LIFO, bulkhead.Adaptive, ""}
