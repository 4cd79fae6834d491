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
	var out []int
	for i := range min(len(b.endpoints), len(index)) {
		if uint(index[i]) >= uint(len(was)) {
			if len(was) > 0 {
				b.ramps.begin(i, fromThere)
			}
			continue
		}
		if r := was[index[i]]; r.ramp != warm {
			b.ramps.begin(i, r.ramp)
		}
		e := &b.endpoints[i]
		e.take(was[index[i]], b.config)
		if e.out {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(x, y int) int {
		return cmp.Compare(b.endpoints[y].until, b.endpoints[x].until)
	})
	for _, i := range out[min(len(out), b.mayBeOut):] {
		b.endpoints[i].comeBack()
		b.ramps.begin(i, fromThere)
	}
	b.choose(fromThere) // the first attempt says what time it is
}

// record is what Carry takes over of an endpoint.
type record struct {
	streak, sinceReturn int64
	out                 bool
	multiplier          int32
	ejections           uint32
	since, until        time.Duration
	ramp                time.Duration
}

func (b *Balancer) records() []record {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]record, len(b.endpoints))
	for i := range b.endpoints {
		e := &b.endpoints[i]
		all[i] = record{e.streak.Load(), e.sinceReturn(), e.out, e.multiplier, e.ejections, e.since, e.until, warm}
		if b.ramps.since != nil {
			all[i].ramp = b.ramps.since[i]
		}
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
