package engine

import (
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/shed"
	"github.com/abate-go/abate/sim/kernel"
)

// traffic is what is under way: requests, the calls that they make, the attempts of those, and again the requests that
// arrive with them. Each names the one it belongs to by index; what may be over by then is named with its generation.
type traffic struct {
	world    *world
	tasks    slab[task]
	calls    herd[call]
	attempts herd[attempt]
	asides   slab[aside]   // of calls
	trees    trees         // of tasks
	pending  int           // requests of fleets that have not ended, and messages that are not done
	luck     kernel.Stream // see chance.go
}

// task is one request where it is being handled: at the fleet that it began with, or, one per attempt, at a replica.
type task struct {
	since    int64 // when it began; at a replica: when it joined the queue, then when its worker took it
	deadline int64 // when the caller gives up, if that is known; at a replica, once it is worked on: when it arrived
	drawn    int64 // service time drawn on arrival; or what all its random numbers are made from, see chance.go

	inst       int32
	attempt    uint32 // at a replica: the attempt it answers,
	generation uint32 // which may be over
	call       uint32 // + 1: first of the calls under way for it
	user       uint32 // + 1: of a closed loop; of a delivery: its message; at a gate: its arrival
	mark       uint32 // of a fleet's request: the bin it began in; at a replica: its position in line, then what it read
	step       uint16
	pending    uint16 // calls under way
	trace      uint16

	priority shed.Priority // if its caller said one

	stage   stage
	window  Window
	failed  EndKind // how the call ended that spoilt it; 0 while all is well
	ranked  bool    // priority is set
	root    bool
	again   bool // is not the first delivery of its message
	poison  bool // is the delivery of a message that nobody can handle; in a queue: is a probe, see lives
	connect bool // is the making of a connection
	tree    bool // it came with an allowance: see trees
}

// stage is how far a request has come at its replica.
type stage uint8

const (
	outsideService stage = iota // on its way, at the gate, or done with its worker
	queued
	working // holds a worker
	dead    // cancelled while it waited in a queue, which lets go of it when it comes to it
)

// deadlineOf is when the caller of a call that a request makes gives up.
func (t *task) deadlineOf() time.Duration {
	if t.root {
		return time.Duration(t.deadline)
	}
	return core.NoDeadline
}

// call is one guarded call under way. Every decision about it is core.Call's.
type call struct {
	task      uint32
	next      uint32 // + 1: of the same task
	edge      int32
	inst      int32  // of the caller
	sent      uint32 // + 1: the attempt in the air, without its hedges
	aside     uint32 // + 1: what few calls need
	span      int32
	trace     uint16
	last      EndKind
	which     uint8 // of the calls that began at once
	core.Call       // 160 bytes in all: three cache lines
}

// aside is what a call needs that sends hedges, or that waits for a permit or for its circuit.
type aside struct {
	waiter *bulkhead.Waiter           // nil while it waits for nothing
	hedges [core.MaxCopies - 1]uint32 // + 1: attempts in the air
}

// attempt is one attempt in the air.
type attempt struct {
	call    uint32
	task    uint32 // + 1: its request at the replica
	until   int64
	replica int32 // instance
	span    int32
	copy    uint8
	answer  EndKind // on its way back
	number  uint16  // among those of its call, from 1
	pooled  uint8   // what it has of a connection
	told    uint16  // + 1: the extra attempts that its callee may use; 0 if nothing is said about them
	epoch   uint32
	dial    uint32 // + 1: the opening of its connection under a guard

	// What the answer says of further attempts.
	retryAfter time.Duration
	noRetry    bool
	said       bool   // that so many were made behind the callee,
	final      bool   // and that there should be no more
	unopened   bool   // it got no connection, see connections.dialEnds
	picked     bool   // a balancer chose the replica, and has to hear what becomes of it
	made       uint16 // see traffic.report
}

// What an attempt has of a connection.
const (
	noConnection uint8 = iota
	waitsForConnection
	connecting
	holdsConnection
)

// reset ends everything that was under way.
func (tr *traffic) reset() {
	*tr = traffic{world: tr.world, tasks: tr.tasks.emptied(), calls: tr.calls.emptied(), attempts: tr.attempts.emptied(),
		asides: tr.asides.emptied(), trees: tr.trees}
}

// aside returns what is kept beside a call, and makes it if there is nothing yet.
func (tr *traffic) aside(c *call) *aside {
	if c.aside == 0 {
		i, beside := tr.asides.get()
		*beside = aside{}
		c.aside = i + 1
	}
	return tr.asides.at(c.aside - 1)
}

// copyOf is where the number of an attempt's copy in the air is kept, + 1.
func (tr *traffic) copyOf(c *call, copy int) *uint32 {
	if copy == 0 {
		return &c.sent
	}
	return &tr.aside(c).hedges[copy-1]
}

// putCall gives a call back that has ended.
func (tr *traffic) putCall(ci uint32, c *call) {
	if c.aside != 0 {
		tr.asides.at(c.aside - 1).waiter = nil
		tr.asides.put(c.aside - 1)
	}
	tr.calls.put(ci)
}

// awaited reports whether the attempt that a request arrived with is still in the air.
func (tr *traffic) awaited(t *task) bool { return tr.attempts.is(t.attempt, t.generation) }

// unlink takes a call off its request's list.
func (tr *traffic) unlink(ti, ci uint32, c *call) {
	at := &tr.tasks.at(ti).call
	for *at != ci+1 {
		at = &tr.calls.at(*at - 1).next
	}
	*at = c.next
}

// latency draws the time that something takes on the network between the caller of a call and a replica of the callee.
func (tr *traffic) latency(c *call, replica int32) int64 {
	return tr.world.way(&tr.world.edges[c.edge], c.inst, replica)
}

// reply sends an answer on its way to the caller, by an event even if it takes no time.
func (tr *traffic) reply(ai uint32, end EndKind) {
	a := tr.attempts.at(ai)
	a.task = 0
	tr.replyIn(ai, end, tr.latency(tr.calls.at(a.call), a.replica))
}

// replyIn lets an answer arrive after a while.
func (tr *traffic) replyIn(ai uint32, end EndKind, delay int64) {
	tr.attempts.at(ai).answer = end
	tr.world.queue.Push(tr.world.now+delay, ai, kernel.Meta(evReply, tr.attempts.generation(ai)))
}
