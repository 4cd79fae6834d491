package shed_test

import (
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/shed"
)

// person is a waiter in the model.
type person struct {
	id           int
	r            shed.Request
	since, until time.Duration
}

func (p person) rank() int { return int(p.r.Priority+2)*4 + 4 - min(max(p.r.Attempt, 1), 4) }

// outcome is what a waiter was told.
type outcome struct {
	id     int
	reason shed.Reason
}

// model is the shedder as one would explain it, with a fixed limit.
type model struct {
	limit, room      int
	inFlight         int
	line             []person // in the order of arrival
	told             []outcome
	above, standing  bool
	since, now       time.Duration
	target, interval time.Duration
}

func (m *model) places(r shed.Request) int {
	switch r.Priority {
	case shed.Sheddable:
		return m.limit - m.limit/8
	case shed.SheddablePlus:
		return m.limit - m.limit/16
	}
	return m.limit
}

// watch is CoDel.
func (m *model) watch() {
	oldest := time.Duration(1 << 62)
	for _, p := range m.line {
		oldest = min(oldest, p.since)
	}
	switch {
	case len(m.line) == 0:
		m.above, m.standing = false, false
	case m.standing:
	case m.now-oldest < m.target:
		m.above = false
	case !m.above:
		m.above, m.since = true, m.now
	default:
		m.standing = m.now-m.since >= m.interval
	}
}

func (m *model) remove(i int, reason shed.Reason) {
	m.told = append(m.told, outcome{m.line[i].id, reason})
	m.line = slices.Delete(m.line, i, i+1)
}

// expire refuses those whose time is up, in the order of that time. Times are unique enough for the order to matter
// only among equals, which the comparison sorts.
func (m *model) expire() {
	for i := 0; i < len(m.line); {
		p := m.line[i]
		if p.until > m.now {
			i++
			continue
		}
		reason := shed.QueueDelay
		if p.r.Deadline > 0 && p.r.Deadline <= m.now {
			reason = shed.Expired
		}
		m.remove(i, reason)
	}
	m.watch()
}

// first is the index of the one to be admitted next, extreme reports whether a is a better choice than b.
func (m *model) pick(better func(a, b person) bool) int {
	best := 0
	for i := range m.line {
		if better(m.line[i], m.line[best]) {
			best = i
		}
	}
	return best
}

func (m *model) serve() {
	m.expire()
	for len(m.line) > 0 {
		i := m.pick(func(a, b person) bool {
			return a.rank() > b.rank() || a.rank() == b.rank() && m.standing && a.id > b.id
		})
		if m.inFlight >= m.places(m.line[i].r) {
			return
		}
		m.inFlight++
		m.remove(i, shed.None)
	}
}

func (m *model) least() int {
	return m.pick(func(a, b person) bool { return a.rank() < b.rank() || a.rank() == b.rank() && a.id > b.id })
}

// arrive returns whether a request gets a place, has to wait, or why it is refused.
func (m *model) arrive(p person) (shed.Verdict, shed.Reason) {
	if p.r.Deadline > 0 && m.now >= p.r.Deadline {
		return shed.Refused, shed.Expired
	}
	if len(m.line) > 0 {
		last := m.line[m.least()]
		due := slices.ContainsFunc(m.line, func(p person) bool { return p.until <= m.now })
		if len(m.line) >= m.room && p.rank() <= last.rank() && !due {
			return shed.Refused, below(p, last)
		}
		m.expire()
		defer m.watch()
	}
	ahead := slices.ContainsFunc(m.line, func(o person) bool { return o.rank() >= p.rank() })
	switch {
	case !ahead && m.inFlight < m.places(p.r):
		m.inFlight++
		return shed.Admitted, shed.None
	case m.room == 0 && m.inFlight < m.limit:
		return shed.Refused, shed.LowPriority
	case m.room == 0:
		return shed.Refused, shed.QueueFull
	case len(m.line) >= m.room && p.rank() <= m.line[m.least()].rank():
		return shed.Refused, below(p, m.line[m.least()])
	}
	return shed.Full, shed.None
}

func below(p, other person) shed.Reason {
	switch {
	case p.r.Priority < other.r.Priority:
		return shed.LowPriority
	case p.rank() < other.rank():
		return shed.LaterAttempt
	}
	return shed.QueueFull
}

// join is what follows Full.
func (m *model) join(p person) {
	m.expire()
	p.since, p.until = m.now, m.now+m.interval
	if m.standing {
		p.until = m.now + m.target
	}
	if p.r.Deadline > 0 {
		p.until = min(p.until, p.r.Deadline)
	}
	m.line = append(m.line, p)
	if i := m.least(); len(m.line) > m.room && m.line[i].rank() < p.rank() {
		m.remove(i, below(m.line[i], p))
	}
	m.watch()
}

// machine drives the shedder and keeps what it says.
type machine struct {
	s       *shed.Shedder
	waiters []*shed.Waiter
	told    []outcome
	permits []shed.Permit
}

func (d *machine) enqueue(t *testing.T, now time.Duration, r shed.Request) {
	id, w := len(d.waiters), &shed.Waiter{}
	w.Wake = func() {
		p, reason := w.Outcome()
		d.told = append(d.told, outcome{id, reason})
		if reason == shed.None {
			d.permits = append(d.permits, p)
		}
	}
	d.waiters = append(d.waiters, w)
	if v, _ := d.s.Enqueue(now, w, r); v != shed.Queued {
		t.Fatalf("Full, and then %v", v)
	}
}

// FuzzModel runs random operations on a shedder and on the model. Two bytes are one operation.
func FuzzModel(f *testing.F) {
	f.Add([]byte{0, 0, 0, 4, 0, 8, 0, 1, 1, 0, 2, 5, 1, 0, 1, 0})
	f.Add([]byte{0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 3, 2, 60, 0, 2, 0, 2, 2, 60, 0, 2, 1, 0, 1, 1, 1, 2})
	f.Add([]byte{4, 9, 0, 0, 0, 1, 0, 2, 0, 3, 0, 64, 0, 65, 3, 0, 3, 1, 2, 20, 1, 0, 4, 200})
	f.Fuzz(func(t *testing.T, ops []byte) {
		m := &model{limit: 2, room: 3, target: 5 * ms, interval: 20 * ms}
		config := func() shed.Config {
			return shed.Config{Concurrency: shed.Fixed, MaxConcurrency: m.limit, MaxQueue: m.room, NoQueue: m.room == 0,
				QueueTarget: m.target, QueueInterval: m.interval}
		}
		d := &machine{s: shed.New(config())}
		for i := 0; i+1 < len(ops); i += 2 {
			arg := int(ops[i+1])
			switch ops[i] % 5 {
			case 0:
				p := person{
					id: len(d.waiters), r: shed.Request{Priority: shed.Sheddable + shed.Priority(arg&3), Attempt: arg >> 2 & 7},
				}
				if arg&32 != 0 {
					p.r.Deadline = m.now + time.Duration(arg>>6)*4*ms
				}
				v, reason := m.arrive(p)
				got, gotV, gotReason := d.s.Admit(m.now, p.r)
				if gotV != v || gotReason != reason {
					t.Fatalf("op %d: %+v: %v %q, want %v %q", i, p.r, gotV, gotReason, v, reason)
				}
				if v == shed.Admitted {
					d.permits = append(d.permits, got)
				} else if v == shed.Full {
					m.join(p)
					d.enqueue(t, m.now, p.r)
				}
			case 1:
				if len(d.permits) == 0 {
					continue
				}
				k := arg % len(d.permits)
				p := d.permits[k]
				d.permits = slices.Delete(d.permits, k, k+1)
				m.inFlight--
				if len(m.line) > 0 {
					m.serve()
					m.watch()
				}
				d.s.Release(m.now, p, shed.Ignored)
			case 2:
				m.now += time.Duration(arg) * ms / 4
			case 3:
				if len(d.waiters) == 0 {
					continue
				}
				id := arg % len(d.waiters)
				at := slices.IndexFunc(m.line, func(p person) bool { return p.id == id })
				if at >= 0 {
					m.line = slices.Delete(m.line, at, at+1)
					m.expire()
				}
				m.watch()
				if got := d.s.Leave(m.now, d.waiters[id], arg&128 != 0); got != (at >= 0) {
					t.Fatalf("op %d: Leave %v", i, got)
				}
			case 4:
				m.limit, m.room = arg%20+1, arg/20%6
				m.serve()
				m.watch()
				d.s.Reconfigure(m.now, config())
			}
			d.compare(t, i, m)
		}
	})
}

// compare looks at everything that can be seen. Within one operation the order in which waiters are told is free.
func (d *machine) compare(t *testing.T, op int, m *model) {
	t.Helper()
	byID := func(a, b outcome) int { return a.id - b.id }
	slices.SortFunc(d.told, byID)
	slices.SortFunc(m.told, byID)
	st := d.s.State(m.now)
	if st.InFlight != m.inFlight || st.Queued != len(m.line) || st.Limit != m.limit || len(d.permits) != m.inFlight {
		t.Fatalf("op %d: %+v, %d permits; want %d of %d in flight, %d waiting", op, st, len(d.permits), m.inFlight, m.limit,
			len(m.line))
	}
	if !slices.Equal(d.told, m.told) {
		t.Fatalf("op %d: told %v, want %v", op, d.told, m.told)
	}
}
