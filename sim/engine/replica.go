package engine

import (
	"math"
	"slices"

	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// replica is what an instance of a service has: a queue, workers, a gate, connections, and the faults at work on it.
type replica struct {
	node    int32 // its service
	line    line  // who waits
	waiting int32
	longest int32 // most that waited within this bin of the record
	busy    int32 // workers held, or requests under way where workers are not limited
	workers int32 // 0 for no limit
	full    int32 // workers that there are when nothing is wrong
	version uint32
	codel   codel
	taking  bool  // its queue is being taken up
	dying   bool  // it has more requests than it can keep
	probes  int32 // in the line
	begun   int64 // when its program came up, if that was in this run

	gate    *inbound.Gate // nil without one
	held    int32         // requests that wait at the gate
	debt    int64         // what refusals have cost, and work that begins has yet to pay
	busyNS  int64         // time that workers were busy since
	asked   int64         // the gate asked for it,
	tallied int64         // up to this moment

	conns     int32 // open, or being made
	connBusy  int32 // being made
	connLine  line
	connEpoch uint32 // connections of an earlier one are broken

	connOutside line // who waits until one of the connections is closed

	hang, mute int32 // outages under way, by kind
	refuse     int32 // and restarts
	fail       int32
	faults     []*scenario.Fault // at work on it: slowdowns, errors, loss, capacity
	slowdowns  []*scenario.Fault // of those
	errors     float64
	loss       float64
}

// longAgo is when replicas came up that were there when the run began.
const longAgo = math.MinInt64 / 2

// started is the replica of a node as its program starts, with so many workers; it keeps its memory.
func (r *replica) started(node, workers int32) replica {
	return replica{node: node, line: r.line.cleared(), connLine: r.connLine.cleared(), faults: r.faults[:0],
		connOutside: r.connOutside.cleared(), slowdowns: r.slowdowns[:0], workers: workers, full: workers, begun: longAgo}
}

// Scarce has the guards of the same program know what its gate knows, and nothing else: how many workers are free the
// service does not tell them.
func (r *replica) Scarce() bool { return r.gate.Scarce() }

// load is what a balancer that counts requests sees.
func (r *replica) load() int32 { return r.busy + r.waiting + r.held }

// free reports whether a worker is free and may work.
func (r *replica) free() bool {
	return r.hang == 0 && (r.workers == 0 || r.busy < r.workers)
}

// slowness is the factor on a service time that begins now, for load alone.
func (r *replica) slowness(s *scenario.Service) float64 {
	factor := 1.0
	if s.SlowsDown > 0 {
		factor *= 1 + float64(s.SlowsDown*float64(r.busy-1))
	}
	if s.SlowsQueued > 0 {
		most := s.SlowsQueuedMax
		if most == 0 {
			most = 10
		}
		factor *= math.Min(1+float64(s.SlowsQueued*float64(r.waiting)), most)
	}
	return factor
}

// slowed is a service time under the slowdowns at work: each hits a share of the requests.
func (r *replica) slowed(took int64, random *kernel.Stream) int64 {
	var added int64
	factor := 1.0
	for _, s := range r.slowdowns {
		if s.Requests > 0 && random.Float64() >= s.Requests {
			continue
		}
		if s.Factor > 0 {
			factor *= s.Factor
		}
		added += s.Add.Sample(random)
	}
	return int64(float64(took)*factor) + added
}

// suffer adds a fault to those at work on the replica, or takes it away, and works out anew what they come to together:
// so nothing is left of one that is over, in whatever order they end.
func (r *replica) suffer(f *scenario.Fault, sign int32) {
	if sign > 0 {
		r.faults = append(r.faults, f)
	} else if i := slices.Index(r.faults, f); i >= 0 {
		r.faults = slices.Delete(r.faults, i, i+1)
	}
	r.slowdowns = r.slowdowns[:0]
	sound, through, share := 1.0, 1.0, 1.0
	for _, s := range r.faults {
		kind, _ := s.Kind()
		rate := s.Rate
		if rate == 0 && kind != scenario.DeployFault {
			rate = 1
		}
		switch kind {
		case scenario.SlowdownFault, scenario.DeployFault:
			r.slowdowns = append(r.slowdowns, s)
			if kind == scenario.DeployFault {
				sound = float64(sound * (1 - rate))
			}
		case scenario.ErrorsFault:
			sound = float64(sound * (1 - rate))
		case scenario.LossFault:
			through = float64(through * (1 - rate))
		case scenario.CapacityFault, scenario.OperatorFault:
			share = float64(share * s.Factor)
		}
	}
	r.errors, r.loss = 1-sound, 1-through
	if r.full > 0 {
		r.workers = max(1, int32(math.Round(float64(r.full)*share)))
	}
}

// tally adds the time up that the workers were busy, which only a gate asks for. It has to be called before that
// changes.
func (r *replica) tally(now int64) {
	if r.gate != nil {
		r.busyNS += int64(r.busy) * (now - r.tallied)
		r.tallied = now
	}
}

// share is which part of its workers a replica used since it was asked last: what it has instead of a processor.
func (r *replica) share(now int64) float64 {
	if r.workers == 0 || now == r.asked {
		return 0
	}
	r.tally(now)
	share := float64(r.busyNS) / (float64(r.workers) * float64(now-r.asked))
	r.busyNS, r.asked = 0, now
	return share
}

// breakConnections closes all connections of a replica that restarts.
func (r *replica) breakConnections() {
	r.connEpoch++
	r.conns, r.connBusy = 0, 0
	r.connLine, r.connOutside = r.connLine.cleared(), r.connOutside.cleared()
}
