package balance

import (
	"cmp"
	"slices"
	"time"
)

// Carry takes over what from knows, after a reload: endpoint i of b was endpoint index[i] of from. An index that from
// does not have (-1), and one that is missing, is a new endpoint. Streaks and ejections carry over, the latter as far
// as b's configuration allows: no more endpoints than it may eject, those that come back last, and none for longer than
// its MaxEjectionTime. Attempts that are pending stay with from, and their results go to it. Call Carry before b
// is used.
func (b *Balancer) Carry(from *Balancer, index []int) {
	was := from.records()
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []*endpoint
	for i := range min(len(b.endpoints), len(index)) {
		if uint(index[i]) >= uint(len(was)) {
			continue
		}
		e := &b.endpoints[i]
		e.take(was[index[i]], b.config)
		if e.out {
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(x, y *endpoint) int { return cmp.Compare(y.until, x.until) })
	for _, e := range out[min(len(out), b.mayBeOut):] {
		e.comeBack()
	}
	b.choose()
}

// record is what Carry takes over of an endpoint.
type record struct {
	streak, sinceReturn int64
	out                 bool
	multiplier          int32
	ejections           uint32
	since, until        time.Duration
}

func (b *Balancer) records() []record {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]record, len(b.endpoints))
	for i := range b.endpoints {
		e := &b.endpoints[i]
		all[i] = record{e.streak.Load(), e.sinceReturn(), e.out, e.multiplier, e.ejections, e.since, e.until}
	}
	return all
}

func (e *endpoint) take(r record, c Config) {
	e.streak.Store(r.streak)
	e.begunAtBack = -r.sinceReturn
	e.ejections, e.out, e.since, e.until = r.ejections, r.out, r.since, r.until
	if !c.Enabled() {
		return
	}
	e.multiplier = min(r.multiplier, c.maxMultiplier())
	e.lately.Store(e.multiplier > 0)
	if e.out {
		e.until = min(e.until, later(e.since, c.MaxEjectionTime))
	}
}
