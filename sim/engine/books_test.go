package engine_test

import (
	"fmt"
	"math"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/scenario"
)

// inconsistencies are the sums of a record that do not agree. Every run of these tests is audited with it.
func inconsistencies(s *scenario.Scenario, r *engine.Record) []string {
	a := &audit{scenario: s, record: r}
	for i := range r.Fleets {
		a.fleet(&r.Fleets[i])
	}
	for i := range r.Services {
		a.service(&r.Services[i], &s.ServicesOf(&s.Variants[0])[i])
	}
	var sent int64
	for i := range r.Edges {
		a.edge(&r.Edges[i])
		sent += r.Edges[i].Attempts
	}
	a.same("attempts of the run and of its edges", r.Attempts, sent)
	return a.broken
}

type audit struct {
	scenario *scenario.Scenario
	record   *engine.Record
	broken   []string
}

func (a *audit) same(what string, x, y int64) {
	if x != y {
		a.broken = append(a.broken, fmt.Sprintf("%s differ: %d and %d", what, x, y))
	}
}

func (a *audit) atMost(what string, x, limit int64) {
	if x > limit || x < 0 {
		a.broken = append(a.broken, fmt.Sprintf("%s: %d, at most %d", what, x, limit))
	}
}

// fleet: every offered request ends exactly once.
func (a *audit) fleet(f *engine.FleetRecord) {
	offered := total(f.Offered)
	a.same(f.Name+": offered and ended", offered, total(f.Ends[:]))
	a.atMost(f.Name+": good", total(f.Good), offered)
	var timed int64
	for w := range 3 {
		timed += f.Latency[w].Total
	}
	a.same(f.Name+": answered and timed", f.Ends[engine.Answered], timed)
	if a.scenario.WarmUp == 0 {
		a.same(f.Name+": good and answered", total(f.Good), f.Ends[engine.Answered])
	}
	if f.Topic != nil {
		a.topic(f)
	}
	for k, n := range f.Ends {
		a.atMost(f.Name+": "+engine.EndKind(k).String(), n, offered)
	}
	for b := range f.Good {
		a.atMost(fmt.Sprintf("%s: good of bin %d", f.Name, b), int64(f.Good[b]), int64(f.Offered[b]))
	}
}

// topic: every message that was written is handled, dead or left, at the end of each bin and of the run.
func (a *audit) topic(f *engine.FleetRecord) {
	if a.scenario.WarmUp > 0 {
		return
	}
	var written, handled, dead int64
	for b := range f.Offered {
		written, handled, dead = written+int64(f.Offered[b]), handled+int64(f.Answered[b]), dead+int64(f.Topic.Dead[b])
		a.same(fmt.Sprintf("%s: written and handled, dead or left by bin %d", f.Name, b), written,
			handled+dead+int64(f.Topic.Left[b]))
	}
	a.same(f.Name+": failed and dead", total(f.Failed), dead)
	a.atMost(f.Name+": handled", handled, total(f.Topic.Deliveries))
}

// service: what is served has arrived, and nobody has more workers, places or connections than there are.
func (a *audit) service(x *engine.ServiceRecord, s *scenario.Service) {
	replicas := int64(s.Most())
	var arrived, waits int64
	for i := range a.record.Edges {
		if a.record.Edges[i].Callee == x.Name {
			arrived += a.record.Edges[i].Attempts
		}
	}
	if a.scenario.WarmUp == 0 {
		a.atMost(x.Name+": arrivals", total(x.Arrived), arrived)
		a.atMost(x.Name+": done", total(x.Served)+total(x.Errors)+total(x.Wasted), arrived)
	}
	a.atMost(x.Name+": retries", total(x.Retries), total(x.Arrived))
	a.atMost(x.Name+": refused at the gate", total(x.Shed)+total(x.Limited), total(x.Rejected))
	if a.scenario.WarmUp == 0 {
		a.atMost(x.Name+": refused or let in by the gate",
			total(x.Shed)+total(x.Limited)+x.GateWait[0].Total+x.GateWait[1].Total+x.GateWait[2].Total, arrived)
	}
	for b := range x.Busy {
		a.instant(x, s, b, replicas)
	}
	for w := range 3 {
		waits += x.Wait[w].Total
		a.atMost(x.Name+": longest wait", x.Wait[w].Max, math.MaxInt64)
	}
	if a.scenario.WarmUp == 0 { // what comes after the end is in no bin and in no window
		a.atMost(x.Name+": waits by bin", total(x.Waits), waits+int64(len(x.Waits)))
	}
}

func (a *audit) instant(x *engine.ServiceRecord, s *scenario.Service, b int, replicas int64) {
	at := fmt.Sprintf("%s in bin %d: ", x.Name, b)
	if s.Workers > 0 && !a.losesWorkers(x.Name) {
		a.atMost(at+"busy", int64(x.Busy[b]), replicas*int64(s.Workers))
	}
	if s.Queue.None {
		a.same(at+"waiting without a queue, none", int64(x.Waiting[b]), 0)
	}
	if s.Queue.Limit > 0 {
		a.atMost(at+"longest queue", int64(x.Longest[b]), int64(s.Queue.Limit))
		a.atMost(at+"waiting", int64(x.Waiting[b]), replicas*int64(s.Queue.Limit))
	}
	limit := int64(math.MaxInt32)
	if s.Connections.Max > 0 {
		limit = replicas * int64(s.Connections.Max)
	}
	a.atMost(at+"connections", int64(x.Conns[b]), limit)
	a.atMost(at+"busy", int64(x.Busy[b]), math.MaxInt32)
	a.atMost(at+"waiting", int64(x.Waiting[b]), math.MaxInt32)
	a.atMost(at+"wasted work", x.WasteNS[b], x.WorkNS[b])
	a.atMost(at+"waits", x.WaitNS[b], math.MaxInt64)
}

// losesWorkers reports whether workers may be busy that are no longer there: a service that shrinks finishes what it
// began.
func (a *audit) losesWorkers(name string) bool {
	for i := range a.scenario.Faults {
		f := &a.scenario.Faults[i]
		if f.Capacity == name || f.Operator == name && f.Action == scenario.DoScale {
			return true
		}
	}
	return false
}

// edge: no call ends twice.
func (a *audit) edge(e *engine.EdgeRecord) {
	name := e.Caller + " -> " + e.Callee
	a.atMost(name+": ended", total(e.Ends[:]), e.Calls)
	a.atMost(name+": hedges", e.Hedges, e.Attempts)
	a.atMost(name+": answered", e.Ends[engine.Answered], e.Attempts)
}
