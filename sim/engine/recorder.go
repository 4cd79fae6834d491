package engine

import (
	"time"

	"github.com/abate-go/abate/policy/shed"
)

// recorder writes down what happens in a run, in the bin and the window in which it happens.
type recorder struct {
	world  *world
	record *Record
	bin    int          // of the series; the last one, which is cut off, outside of the run
	tickAt int64        // when the next bin begins, before anything else that happens then; never after the last one
	window Window       // outside when nothing is measured
	edges  []EdgeRecord // of the record
	of     []tally      // of services: of nodes, by index; those of fleets are unused
	traces tracer
	detail bool
}

// tally is what is counted of a service between two entries of its record.
type tally struct {
	record  *ServiceRecord
	held    int32 // workers held
	heldAt  int64 // since when nobody has added their time up
	arrived peak
	knocked peak // connections
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

// reset begins a new record. With detail it has what only pictures need.
func (r *recorder) reset(detail bool) {
	w := r.world
	record := newRecord(&w.topology, w.seed)
	*r = recorder{world: w, record: record, bin: record.members() - 1, window: outside, tickAt: w.warm,
		edges: record.Edges, of: make([]tally, len(w.nodes)), detail: detail}
	for n := range w.nodes {
		if node := &w.nodes[n]; node.service != nil {
			r.of[n].record = &record.Services[node.index]
		}
	}
	if detail {
		record.Detail = newDetail(record)
		r.traces = newTracer(w, record)
	}
}

// nextBin ends one bin of the series and begins the next.
func (r *recorder) nextBin() {
	last := r.record.members() - 1
	if r.world.now == r.world.warm {
		r.bin = 0
	} else {
		r.bin = min(r.bin+1, last)
	}
	r.tickAt += int64(r.record.Bin)
	if r.bin == last {
		r.tickAt = never
	}
}

// service returns the record of a service, which is node n.
func (r *recorder) service(n int32) *ServiceRecord { return r.of[n].record }

// since is a moment as the record has it: since the end of the warm-up.
func (r *recorder) since(at int64) time.Duration { return time.Duration(at - r.world.warm) }

// sent records an attempt of edge k on its way to a service.
func (r *recorder) sent(k, service int32, retry, hedge bool) {
	r.record.Attempts++
	edge := &r.edges[k]
	edge.Attempts++
	if hedge {
		edge.Hedges++
	}
	t := &r.of[service]
	s := t.record
	s.Arrived[r.bin]++
	if retry {
		s.Retries[r.bin]++
	}
	if most := t.arrived.add(r.world.now, peakWidth); most > s.Peak[r.window] {
		s.Peak[r.window] = most
	}
	if r.detail {
		r.fine(service)
	}
}

// connects records an attempt to open a connection to a service.
func (r *recorder) connects(n int32) {
	t := &r.of[n]
	t.record.Connects[r.bin]++
	most := t.knocked.add(r.world.now, connectPeakWidth)
	t.record.ConnectPeak[r.window] = max(t.record.ConnectPeak[r.window], most)
}

// waited records how long a request waited for its worker.
func (r *recorder) waited(n int32, wait int64) {
	s := r.service(n)
	s.WaitNS[r.bin] += wait
	s.Waits[r.bin]++
	s.Wait[r.window].Add(wait)
}

// knocks records a request that has come to a gate.
func (r *recorder) knocks(n int32, p shed.Priority) {
	r.service(n).classes[p-shed.Sheddable].came[r.bin]++
}

// turnedAway records what a gate refused. It is among those rejected, too.
func (r *recorder) turnedAway(n int32, end EndKind, why shed.Reason, p shed.Priority) {
	s := r.service(n)
	if end == RateLimited {
		s.Limited[r.bin]++
		return
	}
	s.Shed[r.bin]++
	s.classes[p-shed.Sheddable].shed[r.bin]++
	if r.window != outside {
		s.Reasons[why]++
	}
}

// hold adds the time up that workers of a service were held, up to now, and changes how many are.
func (r *recorder) hold(n, change int32) {
	t, now := &r.of[n], r.world.now
	t.record.HeldNS[r.bin] += int64(t.held) * (now - t.heldAt)
	t.held, t.heldAt = t.held+change, now
}

// freed records what the work was good for that held a worker so long.
func (r *recorder) freed(n int32, held int64, end EndKind, awaited bool) {
	s := r.service(n)
	s.WorkNS[r.bin] += held
	switch {
	case !awaited:
		s.Wasted[r.bin]++
		s.WasteNS[r.bin] += held
	case end == Answered:
		s.Served[r.bin]++
	default:
		s.Errors[r.bin]++
	}
}

// handled records a fleet's request, or message, that began in the bin mark and took so long.
func (r *recorder) handled(f *FleetRecord, mark uint32, window Window, took int64) {
	f.Answered[r.bin]++
	f.Good[mark]++
	f.Latency[window].Add(took)
	r.heat(took)
}

// ended records how a fleet's request, or message, ended.
func (r *recorder) ended(f *FleetRecord, window Window, end EndKind) {
	if window != outside {
		f.Ends[end]++
		r.record.LastEnd = r.since(r.world.now)
	}
}

// unanswered records a request, or message, that has not ended when the run does.
func (r *recorder) unanswered(f *FleetRecord, mark uint32, window Window) {
	if window != outside {
		f.Ends[Unanswered]++
		f.Bad[mark]++
	}
}

// finish closes the record.
func (r *recorder) finish() *Record {
	r.record.cut()
	if r.detail {
		r.record.Detail.Sample = r.traces.best()
	}
	return r.record
}
