package engine

import (
	"time"

	"github.com/abate-go/abate/sim/scenario"
)

const (
	finestBin = 100 * time.Millisecond
	mostBins  = 6000
	peakWidth = int64(10 * time.Millisecond)
	// Connecting takes milliseconds and not microseconds.
	connectPeakWidth = int64(100 * time.Millisecond)
)

// outside is the window of what is not measured: the warm-up, and what comes after the end.
const outside Window = 3

// BinOf is the width of the bins of a series: a tenth of a second, or for long runs a multiple of it.
func BinOf(duration time.Duration) time.Duration {
	return max(1, (duration+mostBins*finestBin-1)/(mostBins*finestBin)) * finestBin
}

// Empty returns the record of a run in which nothing happened yet, for models that count by themselves.
func Empty(s *scenario.Scenario, v *scenario.Variant, seed uint64) *Record {
	t, err := newTopology(s, v)
	if err != nil {
		return &Record{}
	}
	r := newRecord(&t, seed)
	r.cut()
	return r
}

// newRecord makes an empty record. Its series have one member more than there are bins, for what is not measured.
func newRecord(t *topology, seed uint64) *Record {
	s := t.scenario
	r := &Record{Seed: seed, Scale: max(s.Scale, 1), Model: s.Model, Bin: BinOf(s.Duration), Duration: s.Duration}
	r.Begin, r.End = s.Trouble()
	bins := int((s.Duration+r.Bin-1)/r.Bin) + 1
	for n := range t.nodes {
		node := &t.nodes[n]
		if node.fleet != nil {
			f := newFleetRecord(node.name, bins)
			if node.consumes {
				f.Topic = newTopicRecord(bins)
			}
			if node.fleet.HoldsSessions() {
				f.sessions = newSessionRecord(node.fleet.Users, bins)
			}
			r.Fleets = append(r.Fleets, f)
			continue
		}
		service := newServiceRecord(node.name, bins)
		service.Workers = int(node.initial) * node.service.Workers
		service.Capacity = node.service.Capacity()
		service.Visits = t.visits(int32(n))
		service.world = newWorldRecord(node, bins)
		if node.protection != nil {
			service.classes = newClasses(bins)
		}
		r.Services = append(r.Services, service)
	}
	for k := range t.edges {
		edge := &t.edges[k]
		r.Edges = append(r.Edges, EdgeRecord{Caller: t.nodes[edge.caller].name, Callee: t.nodes[edge.callee].name})
	}
	return r
}

// series cuts pieces of equal length out of one allocation.
type series struct {
	bins int
	rest []uint32
}

func (s *series) next() []uint32 {
	piece := s.rest[:s.bins:s.bins]
	s.rest = s.rest[s.bins:]
	return piece
}

func newFleetRecord(name string, bins int) FleetRecord {
	s := series{bins, make([]uint32, 6*bins)}
	return FleetRecord{Name: name, Offered: s.next(), Good: s.next(), Bad: s.next(), Answered: s.next(),
		Failed: s.next(), Refused: s.next()}
}

func newServiceRecord(name string, bins int) ServiceRecord {
	s := series{bins, make([]uint32, 16*bins)}
	return ServiceRecord{
		Name: name, Arrived: s.next(), Retries: s.next(), Served: s.next(), Errors: s.next(), Rejected: s.next(),
		Wasted: s.next(), Waiting: s.next(), Longest: s.next(), Busy: s.next(), Conns: s.next(), Waits: s.next(),
		Shed: s.next(), Limited: s.next(), Limit: s.next(), Connects: s.next(), Unopened: s.next(),
		WorkNS: make([]int64, bins), HeldNS: make([]int64, bins), WasteNS: make([]int64, bins), WaitNS: make([]int64, bins),
	}
}

// cut takes the bin away that is outside of the run.
func (r *Record) cut() {
	for i := range r.Fleets {
		f := &r.Fleets[i]
		for _, s := range []*[]uint32{&f.Offered, &f.Good, &f.Bad, &f.Answered, &f.Failed, &f.Refused} {
			*s = (*s)[:len(*s)-1]
		}
		if f.Topic != nil {
			f.Topic.cut()
		}
		if f.sessions != nil {
			f.sessions.cut()
		}
	}
	for i := range r.Services {
		s := &r.Services[i]
		for _, p := range []*[]uint32{&s.Arrived, &s.Retries, &s.Served, &s.Errors, &s.Rejected, &s.Wasted, &s.Waiting,
			&s.Longest, &s.Busy, &s.Conns, &s.Waits, &s.Shed, &s.Limited, &s.Limit, &s.Connects, &s.Unopened} {
			*p = (*p)[:len(*p)-1]
		}
		for _, p := range []*[]int64{&s.WorkNS, &s.HeldNS, &s.WasteNS, &s.WaitNS} {
			*p = (*p)[:len(*p)-1]
		}
		if s.world != nil {
			s.world.cut()
		}
		if s.classes != nil {
			s.classes.cut()
		}
	}
}

// members is how many members the series have.
func (r *Record) members() int { return len(r.Fleets[0].Offered) }
