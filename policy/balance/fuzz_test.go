package balance_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/balance"
)

// model is the balancer as one would explain it.
type model struct {
	c         balance.Config // with its defaults
	on        bool
	endpoints []*peer
}

type peer struct {
	pending, streak, begunSinceReturn int
	out, sick                         bool
	ejected, until, quietFrom         time.Duration
	multiplier, ejections             int
}

func newModel(c balance.Config, n int) *model {
	m := &model{c: c.WithDefaults(), on: c.Enabled()}
	for range n {
		m.endpoints = append(m.endpoints, &peer{})
	}
	return m
}

// pass ends the ejections that are over.
func (m *model) pass(now time.Duration) {
	for _, p := range m.endpoints {
		if p.out && now >= p.until {
			m.back(p)
		}
	}
}

// forgiven is the multiplier without the quiet base times until now.
func (m *model) forgiven(p *peer, now time.Duration) int {
	left := p.multiplier
	for from := p.quietFrom; !p.out && left > 0 && now >= from+m.c.BaseEjectionTime; from += m.c.BaseEjectionTime {
		left--
	}
	return left
}

func (m *model) back(p *peer) {
	p.out, p.streak, p.begunSinceReturn, p.quietFrom = false, 0, 0, p.until
}

// mayEject reports whether one more may be out.
func (m *model) mayEject() bool {
	n, out := len(m.endpoints), 0
	for _, p := range m.endpoints {
		if p.out {
			out++
		}
	}
	return m.on && out+1 < n && (out == 0 || float64(out+1) <= m.c.MaxEjectionShare*float64(n)+1e-6)
}

// in is who is in the choice: all, if too few are left.
func (m *model) in() (in []int) {
	for i, p := range m.endpoints {
		if !p.out && !p.sick {
			in = append(in, i)
		}
	}
	least := m.c.PanicThreshold
	if least == 0 {
		least = 0.5
	}
	if len(in) > 0 && float64(len(in)) >= least*float64(len(m.endpoints)) {
		return in
	}
	in = nil
	for i, p := range m.endpoints {
		if !p.out {
			in = append(in, i)
		}
	}
	return in
}

// othersDoBetter reports whether one of the others is in the choice and has not failed last.
func (m *model) othersDoBetter(i int) bool {
	for _, j := range m.in() {
		if j != i && m.endpoints[j].streak == 0 {
			return true
		}
	}
	return false
}

// allFail reports whether some are out, and all in the choice fail as often as those did.
func (m *model) allFail() bool {
	for _, i := range m.in() {
		if m.endpoints[i].streak < m.c.ConsecutiveFailures {
			return false
		}
	}
	return slices.ContainsFunc(m.endpoints, func(p *peer) bool { return p.out })
}

func (m *model) allBack(now time.Duration) {
	for _, p := range m.endpoints {
		if p.out {
			p.until = min(p.until, now)
			m.back(p)
		}
	}
}

func (m *model) pick(now time.Duration, rnd uint64, avoid int) int {
	m.pass(now)
	in := m.in()
	if at := slices.Index(in, avoid); at >= 0 && len(in) > 1 {
		in = slices.Delete(in, at, at+1)
	}
	if len(in) == 0 {
		return -1
	}
	draw := func(bits uint64) int { // takes one out of in
		at := int(float64(bits) / (1 << 32) * float64(len(in)))
		i := in[at]
		in = slices.Delete(in, at, at+1)
		return i
	}
	best := draw(rnd >> 32)
	if len(in) > 0 {
		if other := draw(rnd & (1<<32 - 1)); m.endpoints[other].pending < m.endpoints[best].pending {
			best = other
		}
	}
	m.endpoints[best].pending++
	m.endpoints[best].begunSinceReturn++
	return best
}

func (m *model) done(p *peer, now time.Duration, r balance.Result) {
	p.pending--
	i := slices.Index(m.endpoints, p)
	if r == balance.Failure && i >= 0 {
		m.pass(now)
	}
	switch {
	case i < 0: // it is gone
	case p.out || r == balance.Neutral:
	case r == balance.Success:
		p.streak = 0
	default:
		p.streak++
		p.multiplier = m.forgiven(p, now)
		p.quietFrom = max(p.quietFrom, now)
		if m.allFail() {
			m.allBack(now)
			return
		}
		limit := m.c.ConsecutiveFailures
		if p.streak >= limit && p.begunSinceReturn >= limit && m.mayEject() && m.othersDoBetter(i) {
			if time.Duration(p.multiplier)*m.c.BaseEjectionTime < m.c.MaxEjectionTime {
				p.multiplier++
			}
			p.ejections++
			p.out, p.streak, p.ejected = true, 0, now
			p.until = now + min(time.Duration(p.multiplier)*m.c.BaseEjectionTime, m.c.MaxEjectionTime)
		}
	}
}

// carry returns the model after a change.
func (m *model) carry(c balance.Config, index []int) *model {
	next := newModel(c, len(index))
	var out []int
	for i, j := range index {
		if j < 0 || j >= len(m.endpoints) {
			continue
		}
		p := m.endpoints[j]
		if slices.Contains(next.endpoints, p) {
			twin := *p
			p, twin.pending = &twin, 0
		}
		next.endpoints[i] = p
		if !next.on {
			p.multiplier = 0
		}
		for next.on && p.multiplier > 0 && time.Duration(p.multiplier-1)*next.c.BaseEjectionTime >= next.c.MaxEjectionTime {
			p.multiplier--
		}
		if p.out {
			if next.on {
				p.until = min(p.until, p.ejected+next.c.MaxEjectionTime)
			}
			out = append(out, i)
		}
	}
	// Those that come back last are ejected anew, as far as there is room.
	slices.SortStableFunc(out, func(i, j int) int { return int(next.endpoints[j].until - next.endpoints[i].until) })
	for _, i := range out {
		next.endpoints[i].out = false
	}
	for _, i := range out {
		if p := next.endpoints[i]; next.mayEject() {
			p.out = true
		} else {
			next.back(p)
		}
	}
	return next
}

// pair is a balancer and its model, and the attempts that are pending.
type pair struct {
	b       *balance.Balancer
	m       *model
	pending []begun
	now     time.Duration
	rnd     *rand.Rand
}

// begun is an attempt, which ends at the balancer that chose its endpoint.
type begun struct {
	by *balance.Balancer
	i  int
	at *peer
}

func (p *pair) step(t *testing.T, op, arg byte) {
	n := len(p.m.endpoints)
	switch op % 9 {
	case 0, 1:
		rnd, avoid := p.rnd.Uint64(), int(arg)%(n+2)-1
		got, want := p.b.Pick(p.now, rnd, avoid), p.m.pick(p.now, rnd, avoid)
		if got != want {
			t.Fatalf("at %v Pick(%x, avoid %d) = %d, want %d", p.now, rnd, avoid, got, want)
		}
		if got >= 0 {
			p.pending = append(p.pending, begun{p.b, got, p.m.endpoints[got]})
		}
	case 2, 3, 4:
		if len(p.pending) == 0 {
			return
		}
		at := int(arg) % len(p.pending)
		a := p.pending[at]
		p.pending = slices.Delete(p.pending, at, at+1)
		r := []balance.Result{
			balance.Failure, balance.Failure, balance.Failure, balance.Success, balance.Neutral,
		}[int(arg>>3)%5]
		a.by.Done(a.i, p.now, r)
		p.m.done(a.at, p.now, r)
	case 5:
		p.now += time.Duration(arg) * time.Duration(arg) * time.Millisecond
	case 6:
		p.now -= time.Duration(arg) * time.Millisecond
	case 7:
		c := configOf(arg, p.rnd)
		index := p.rnd.Perm(n + 1)[:1+int(arg)%(n+1)] // one too many: an endpoint that is new
		if arg%16 == 0 {
			index = append(index, -1, 0)
		}
		if len(index) > 12 {
			index = index[:12]
		}
		next := balance.New(c, len(index))
		next.Carry(p.b, index)
		p.b, p.m = next, p.m.carry(c, index)
	case 8:
		if n > 0 {
			i, sick := int(arg)%n, arg >= 96
			p.b.Judge(i, p.now, !sick)
			p.m.endpoints[i].sick = sick
		}
	}
}

func (p *pair) check(t *testing.T) {
	p.m.pass(p.now)
	for i, e := range p.m.endpoints {
		want := balance.EndpointState{Pending: e.pending, ConsecutiveFailures: e.streak, Ejected: e.out,
			Ejections: e.ejections, Multiplier: p.m.forgiven(e, p.now), Unhealthy: e.sick}
		if e.out {
			want.EjectedUntil = e.until
		}
		if got := p.b.Endpoint(i, p.now); got != want {
			t.Fatalf("at %v endpoint %d: %+v, want %+v", p.now, i, got, want)
		}
	}
}

func configOf(b byte, rnd *rand.Rand) balance.Config {
	return balance.Config{
		Disabled:            b%11 == 10,
		ConsecutiveFailures: 1 + int(b%4),
		BaseEjectionTime:    time.Duration(1+rnd.IntN(4)) * 700 * time.Millisecond,
		MaxEjectionTime:     time.Duration(rnd.IntN(8000)) * time.Millisecond,
		MaxEjectionShare:    math.Round(rnd.Float64()*20) / 20,
		PanicThreshold:      math.Round(rnd.Float64()*10) / 10,
	}
}

// FuzzModel runs random operations on a balancer and on the model. Two bytes are one operation.
func FuzzModel(f *testing.F) {
	f.Add(uint64(1), byte(0), byte(2), []byte{0, 0, 2, 0, 0, 0, 2, 0, 5, 30, 0, 0, 2, 0})
	f.Add(uint64(2), byte(1), byte(6), slices.Repeat([]byte{0, 0, 1, 3, 2, 0, 5, 20}, 40))
	f.Add(uint64(3), byte(2), byte(4), slices.Repeat([]byte{0, 1, 2, 0, 2, 1, 5, 9, 6, 40, 7, 33}, 40))
	f.Add(uint64(4), byte(3), byte(1), slices.Repeat([]byte{0, 1, 2, 0, 5, 90}, 40))
	f.Fuzz(func(t *testing.T, seed uint64, config, n byte, ops []byte) {
		p := &pair{rnd: rand.New(rand.NewPCG(seed, 0))}
		c := configOf(config, p.rnd)
		p.b, p.m = balance.New(c, int(n%8)), newModel(c, int(n%8))
		for ; len(ops) >= 2 && len(ops) <= 4000; ops = ops[2:] {
			p.step(t, ops[0], ops[1])
			if ops[0] >= 128 {
				p.check(t)
			}
		}
		p.check(t)
	})
}
