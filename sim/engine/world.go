package engine

import (
	"hash/fnv"
	"math"
	"strconv"

	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// The kinds of events. The target of an event is an index into the slice or slab named in brackets.
const (
	// A request of an open loop, or of once [nodes]; of one instance if it has a schedule of its own [instances].
	evArrival       uint8 = iota
	evUser                // a user of a closed loop has thought long enough [users of a fleet, see fleet.go]
	evReach               // an attempt reaches its replica [tasks]
	evWorkDone            // a worker has finished its own part of the work [tasks]
	evReply               // an answer reaches the caller [attempts]
	evTimeout             // an attempt's time is up [attempts]
	evDeadline            // the same, of an attempt whose time is not its policy's attempt timeout [attempts]
	evHedge               // a further copy may be sent [calls]
	evResume              // a back-off is over [calls]
	evAdmitted            // the guard's bulkhead has a permit for a waiting call [calls]
	evLeaveQueue          // a call has waited too long for a permit [calls]
	evWoken               // a gate's queue has an outcome for a request that waits in it [arrivals]
	evOutOfPatience       // a request has waited long enough in a gate's queue [arrivals]
	evConnected           // a new connection is ready [tasks]
	evDialTimeout         // one attempt to connect has taken too long [dials]
	evDialResume          // a wait before the next one is over [dials]
	evLane                // a partition may have a message to deliver [lanes]
	evBehind              // consumers count what is due [nodes]
	evFault               // a fault begins, goes on to a further instance, or ends [faults]
	evSession             // a user has waited for long enough, or its session has lasted [sessions]
	evLife                // a replica comes up, dies, or is asked how it is [instances]
	evHealth              // a caller asks a replica how it is, or has its answer [checks]
	evScale               // an autoscaler looks at its service [nodes]
	evShare               // an instance exchanges what it shares [instances]
	evExchange            // an offer has come to Redis, or the answer to it has come back [exchanges]
	evFinding             // an instance looks what its breakers have found [instances]
	evFound               // the others hear it [findings]
	evLeases              // a replica says that it lives, and brings back what it holds of limits [instances]
	evLimitTrip           // a question about a limit has come to Redis, or the answer to it has come back [trips]
	evLimitTimeout        // the answer to one has taken too long [trips]
	evUnparked            // a call has waited for what another one fetches [parked calls]
	evWindow              // a window of the run ends
)

const never = math.MaxInt64

// world is what every other part of a run stands on: virtual time, the events to come, and the programs with their
// random numbers. Time never runs backwards.
type world struct {
	topology
	queue     kernel.Queue
	now       int64 // ns since the start, warm-up included
	warm      int64 // when the warm-up ends
	end       int64 // when the last request is offered
	seed      uint64
	own       bool // requests have random numbers of their own
	instances []instance
	lent      []*kernel.Stream // that guards and gates hold, of this run
}

// instance is one program: an instance of a fleet, or a replica of a service.
type instance struct {
	node     int32
	restarts int32
	cutOff   int32 // from Redis: faults under way
	stream   kernel.Stream
}

// reset goes back to the start of time, with programs that have just started.
func (w *world) reset(seed uint64) {
	w.now, w.seed = 0, seed
	w.own = w.scenario.Model.ServiceTimeDrawn == scenario.DrawnWithRequest
	w.queue.Reset()
	w.lent = w.lent[:0]
	w.instances = w.instances[:0]
	for n := range w.nodes {
		node := &w.nodes[n]
		for i := range node.count {
			w.instances = append(w.instances, instance{node: int32(n), stream: w.stream(node.name, strconv.Itoa(int(i)))})
		}
		if node.lives {
			w.instances = append(w.instances, instance{node: int32(n), stream: w.stream(node.name, "nobody")})
		}
	}
}

// stream returns the random numbers of the entity with a name.
func (w *world) stream(parts ...string) kernel.Stream {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p))
		_, _ = h.Write([]byte{0})
	}
	return kernel.NewStream(w.seed, h.Sum64())
}

// lend is stream for somebody who keeps it, and whom nobody can find later.
func (w *world) lend(parts ...string) *kernel.Stream {
	s := w.stream(parts...)
	w.lent = append(w.lent, &s)
	return &s
}

// program returns the names of an instance: its node's, its number within the node, and how often it has been
// restarted.
func (w *world) program(i int32) (node, number, restarts string) {
	inst := &w.instances[i]
	n := &w.nodes[inst.node]
	return n.name, strconv.Itoa(int(i - n.first)), strconv.Itoa(int(inst.restarts))
}

// nodeOf returns the fleet or service that an instance belongs to.
func (w *world) nodeOf(i int32) *node { return &w.nodes[w.instances[i].node] }

// way draws the time that something takes on the network between a caller and a replica.
func (w *world) way(edge *edge, caller, replica int32) int64 {
	if edge.near {
		return 0
	}
	return w.longWay(edge, caller, replica)
}

// longWay is way for an edge on which it takes time.
func (w *world) longWay(edge *edge, caller, replica int32) int64 {
	stream := &w.instances[caller].stream
	took := edge.call.Latency.Sample(stream)
	if edge.call.AcrossZones.IsZero() {
		return took
	}
	from, to := &w.nodes[edge.caller], &w.nodes[edge.callee]
	if from.zone(caller-from.first) != to.zone(replica-to.first) {
		took += edge.call.AcrossZones.Sample(stream)
	}
	return took
}
