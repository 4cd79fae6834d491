package engine

import (
	"strconv"
	"time"

	"github.com/abate-go/abate/policy/shed"
	"github.com/abate-go/abate/sim/scenario"
)

const (
	finestBin = 100 * time.Millisecond
	mostBins  = 6000
	peakWidth = int64(10 * time.Millisecond)
	// Connecting takes milliseconds and not microseconds.
	connectPeakWidth = int64(100 * time.Millisecond)
)

// BinOf is the width of the bins of a series: a tenth of a second, or for long runs a multiple of it.
func BinOf(duration time.Duration) time.Duration {
	return max(1, (duration+mostBins*finestBin-1)/(mostBins*finestBin)) * finestBin
}

// Empty returns the record of a run in which nothing happened yet, for models that count by themselves.
func Empty(s *scenario.Scenario, v *scenario.Variant, seed uint64) *Record {
	e := &Engine{scenario: s, variant: v, seed: seed}
	if err := e.build(); err != nil {
		return &Record{}
	}
	e.record = e.newRecord()
	e.close()
	return e.record
}

// newRecord makes an empty record. Its series have one member more than there are bins, for what is not measured.
func (e *Engine) newRecord() *Record {
	s := e.scenario
	r := &Record{Seed: e.seed, Scale: max(s.Scale, 1), Model: s.Model, Bin: BinOf(s.Duration), Duration: s.Duration}
	r.Begin, r.End = s.Trouble()
	bins := int((s.Duration+r.Bin-1)/r.Bin) + 1
	for n := range e.nodes {
		node := &e.nodes[n]
		if node.fleet != nil {
			f := newFleetRecord(node.name, bins)
			if node.group != nil {
				f.Topic = newTopicRecord(bins)
			}
			r.Fleets = append(r.Fleets, f)
			continue
		}
		service := newServiceRecord(node.name, bins)
		service.Workers = int(node.count) * node.service.Workers
		service.Capacity = node.service.Capacity()
		service.Visits = e.visits(int32(n))
		r.Services = append(r.Services, service)
	}
	if e.detail {
		r.Detail = e.newDetail(r)
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
	return FleetRecord{Name: name, Offered: s.next(), Good: s.next(), Bad: s.next(), Answered: s.next(), Failed: s.next(), Refused: s.next()}
}

func newServiceRecord(name string, bins int) ServiceRecord {
	s := series{bins, make([]uint32, 16*bins)}
	return ServiceRecord{
		Name: name, Arrived: s.next(), Retries: s.next(), Served: s.next(), Errors: s.next(), Rejected: s.next(), Wasted: s.next(),
		Waiting: s.next(), Longest: s.next(), Busy: s.next(), Conns: s.next(), Waits: s.next(),
		Shed: s.next(), Limited: s.next(), Limit: s.next(), Connects: s.next(), Unopened: s.next(),
		WorkNS: make([]int64, bins), HeldNS: make([]int64, bins), WasteNS: make([]int64, bins), WaitNS: make([]int64, bins),
	}
}

// visits is how many calls to a service one request of each fleet needs.
func (e *Engine) visits(callee int32) []float64 {
	known := make(map[int32]float64) // a node may be reached on many ways
	var all []float64
	for n := range e.nodes {
		if e.nodes[n].fleet != nil {
			all = append(all, e.visitsFrom(int32(n), callee, known))
		}
	}
	return all
}

func (e *Engine) visitsFrom(from, callee int32, known map[int32]float64) float64 {
	if visits, ok := known[from]; ok {
		return visits
	}
	var sum float64
	for _, k := range e.nodes[from].edges {
		edge := &e.edges[k]
		often := edge.call.Often()
		if edge.callee == callee {
			sum += often
		}
		sum += float64(often * e.visitsFrom(edge.callee, callee, known)) // there are no cycles
	}
	known[from] = sum
	return sum
}

// peak counts what comes in steps of equal length.
type peak struct {
	slot  int64
	count uint32
}

// add counts one more at a time, and returns how many that are in its step.
func (p *peak) add(now, width int64) uint32 {
	if slot := now / width; slot != p.slot {
		*p = peak{slot: slot}
	}
	p.count++
	return p.count
}

// sentTo records an attempt on its way to a service.
func (e *Engine) sentTo(n int32, retry bool) {
	node := &e.nodes[n]
	r := &e.record.Services[node.index]
	r.Arrived[e.bin]++
	if retry {
		r.Retries[e.bin]++
	}
	r.Peak[e.window] = max(r.Peak[e.window], node.peak.add(e.now, peakWidth))
	if e.detail {
		e.fine(node.index)
	}
}

// connects records an attempt to open a connection to a service.
func (e *Engine) connects(n int32) {
	node := &e.nodes[n]
	r := &e.record.Services[node.index]
	r.Connects[e.bin]++
	r.ConnectPeak[e.window] = max(r.ConnectPeak[e.window], node.knocks.add(e.now, connectPeakWidth))
}

// waited records how long a request waited for its worker.
func (e *Engine) waited(n int32, wait int64) {
	r := &e.record.Services[e.nodes[n].index]
	r.WaitNS[e.bin] += wait
	r.Waits[e.bin]++
	r.Wait[e.window].Add(wait)
}

// admitted records how long a gate let a request wait before it let it in.
func (e *Engine) admitted(n int32, wait int64) {
	e.record.Services[e.nodes[n].index].GateWait[e.window].Add(wait)
}

// turnedAway records what a gate refused. It is among those rejected, too.
func (e *Engine) turnedAway(n int32, end EndKind, why shed.Reason) {
	r := &e.record.Services[e.nodes[n].index]
	if end == RateLimited {
		r.Limited[e.bin]++
		return
	}
	r.Shed[e.bin]++
	if e.window != outside {
		r.Reasons[why]++
	}
}

// limitOf is how many requests the gates of a service let in at once.
func (e *Engine) limitOf(node *node) uint32 {
	if node.protection == nil {
		return 0
	}
	sum := 0
	for i := range node.count {
		sum += e.insts[node.first+i].gate.StateAt(time.Duration(e.now)).Shed.Limit
	}
	return uint32(sum)
}

// hold adds the time up that workers of a service were held, up to now, and changes how many are.
func (e *Engine) hold(n, change int32) {
	node := &e.nodes[n]
	e.record.Services[node.index].HeldNS[e.bin] += int64(node.held) * (e.now - node.heldAt)
	node.held, node.heldAt = node.held+change, e.now
}

// sample notes the state of all services at the end of a bin.
func (e *Engine) sample() {
	for n := range e.nodes {
		node := &e.nodes[n]
		if node.group != nil {
			t := e.record.Fleets[node.index].Topic
			t.Left[e.bin] = t.left
		}
		if node.service == nil {
			continue
		}
		e.hold(int32(n), 0)
		var waiting, busy, conns, most int32
		for i := range node.count {
			inst := &e.insts[node.first+i]
			waiting += inst.waiting
			most = max(most, inst.waiting)
			busy += inst.busy
			conns += inst.conns
		}
		r := &e.record.Services[node.index]
		r.Waiting[e.bin], r.Busy[e.bin] = uint32(waiting), uint32(busy)
		r.Longest[e.bin] = uint32(node.longest)
		r.Limit[e.bin] = e.limitOf(node)
		r.Conns[e.bin] = max(r.Conns[e.bin], uint32(conns))
		node.longest = most // they still wait as the next bin begins
	}
	if e.detail {
		e.sampleGuards()
	}
}

// close cuts off what was not measured.
func (e *Engine) close() {
	r := e.record
	for i := range r.Fleets {
		f := &r.Fleets[i]
		for _, s := range []*[]uint32{&f.Offered, &f.Good, &f.Bad, &f.Answered, &f.Failed, &f.Refused} {
			*s = (*s)[:len(*s)-1]
		}
		if f.Topic != nil {
			f.Topic.cut()
		}
	}
	for i := range r.Services {
		s := &r.Services[i]
		for _, p := range []*[]uint32{&s.Arrived, &s.Retries, &s.Served, &s.Errors, &s.Rejected, &s.Wasted, &s.Waiting, &s.Longest, &s.Busy, &s.Conns, &s.Waits, &s.Shed, &s.Limited, &s.Limit, &s.Connects, &s.Unopened} {
			*p = (*p)[:len(*p)-1]
		}
		for _, p := range []*[]int64{&s.WorkNS, &s.HeldNS, &s.WasteNS, &s.WaitNS} {
			*p = (*p)[:len(*p)-1]
		}
	}
	for k := range e.edges {
		r.Edges = append(r.Edges, e.edges[k].record)
	}
	if e.detail {
		e.closeDetail()
	}
}

// instanceNumber is the number of an instance within its node, as its streams are named.
func instanceNumber(e *Engine, i int32) string {
	return strconv.Itoa(int(i - e.nodes[e.insts[i].node].first))
}
