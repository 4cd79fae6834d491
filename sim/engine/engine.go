package engine

import (
	"math"
	"time"

	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// The kinds of events. The target of an event is an index into the slice named in brackets.
const (
	evArrival       uint8 = iota // a request of an open loop, or of once [nodes]; of one instance [insts] if it has a schedule of its own
	evUser                       // a user of a closed loop has thought enough [users of a fleet, see fleet.go]
	evReach                      // an attempt reaches its replica [tasks]
	evWorkDone                   // a worker is done with its own part of the work [tasks]
	evReply                      // an answer reaches the caller [attempts]
	evTimeout                    // an attempt's time is up [attempts]
	evDeadline                   // the same, of an attempt whose time is not its policy's attempt timeout [attempts]
	evHedge                      // a further copy may be sent [calls]
	evResume                     // a back-off is over [calls]
	evAdmitted                   // the guard's bulkhead has a permit for a waiting call [calls]
	evLeaveQueue                 // or it has waited too long [calls]
	evWoken                      // a gate's queue has an outcome for who waits in it [arrivals]
	evOutOfPatience              // or he has waited long enough [arrivals]
	evConnected                  // a new connection is ready [tasks]
	evDialTimeout                // one attempt to connect has taken too long [dials]
	evDialResume                 // a wait before the next one is over [dials]
	evLane                       // a partition may have a message to deliver [lanes]
	evBehind                     // consumers count what is due [nodes]
	evFault                      // a fault begins, goes on to a further instance, or ends [faults]
	evWindow                     // a window of the run ends
)

// Engine plays runs of one variant of a scenario, one after the other. It is used by one goroutine at a time.
type Engine struct {
	scenario *scenario.Scenario
	variant  *scenario.Variant

	queue kernel.Queue
	now   int64 // ns since the start, warm-up included
	warm  int64 // when the warm-up ends
	end   int64 // when the last request is offered
	seed  uint64

	nodes  []node // fleets, then services, in the order of the scenario
	insts  []instance
	edges  []edge
	faults []fault
	lanes  []lane // partitions of what fleets consume

	tasks    slab[task]
	calls    slab[call]
	attempts slab[attempt]
	dials    slab[dial]
	arrivals slab[arrival]
	messages slab[message]
	trees    trees    // of tasks
	callers  []caller // of instances, by index; nil without gates

	record   *Record
	bin      int    // of the series; the last one, which is cut off, outside of the run
	tickAt   int64  // when the next bin begins, before anything else that happens then; never after the last one
	window   Window // outside when nothing is measured
	underway int    // requests of fleets that have not ended, and messages that are not done
	tried    int    // attempts of the call that ended last
	taking   int    // requests being taken up, one within the other
	tracer   tracer
	detail   bool
}

// New prepares runs of one variant. The scenario must have been checked: see scenario.Parse.
func New(s *scenario.Scenario, v *scenario.Variant) (*Engine, error) {
	e := &Engine{scenario: s, variant: v}
	e.warm = int64(s.WarmUp)
	e.end = e.warm + int64(s.Duration)
	e.queue.LanesFirst = s.Model.Ties == scenario.TimeoutFirst
	if err := e.build(); err != nil {
		return nil, err
	}
	return e, nil
}

// Run plays one run. With detail it also keeps what only pictures need. When stop answers true, which it is asked now
// and then, the run ends early and Run returns nil.
func (e *Engine) Run(seed uint64, detail bool, stop func() bool) (*Record, error) {
	if err := e.reset(seed, detail); err != nil {
		return nil, err
	}
	e.begin()
	last := e.end + int64(e.scenario.Model.Drain)
	const often = 1 << 16
	for {
		event, ok := e.queue.Pop()
		if !ok || event.At > last || event.At >= e.end && e.underway == 0 {
			break
		}
		for event.At >= e.tickAt {
			e.tick()
		}
		e.now = event.At
		e.record.Events++
		if e.record.Events%often == 0 && stop != nil && stop() {
			return nil, nil
		}
		e.handle(event)
	}
	e.finish()
	return e.record, nil
}

// handle plays one event. Events of entities that have moved on since (another generation) do nothing.
func (e *Engine) handle(event kernel.Event) {
	i, generation := event.Target, event.Generation()
	switch event.Kind() {
	case evArrival:
		e.arrival(i, generation)
	case evUser:
		e.userArrives(i, generation)
	case evReach:
		if e.tasks.is(i, generation) {
			e.reach(i)
		}
	case evWorkDone:
		if e.tasks.is(i, generation) {
			e.workDone(i)
		}
	case evReply:
		if e.attempts.is(i, generation) {
			e.deliver(i, e.attempts.at(i).answer)
		}
	case evTimeout:
		if e.attempts.is(i, generation) {
			e.timeout(i)
		}
	case evDeadline:
		if e.attempts.is(i, generation) {
			e.deadline(i, generation)
		}
	case evHedge:
		if e.calls.is(i, generation) {
			e.hedge(i)
		}
	case evResume:
		if e.calls.is(i, generation) {
			e.take(i, e.calls.at(i).Resume(time.Duration(e.now)))
		}
	case evAdmitted:
		if e.calls.is(i, generation) {
			e.take(i, e.calls.at(i).Admitted(time.Duration(e.now)))
		}
	case evLeaveQueue:
		if e.calls.is(i, generation) {
			c := e.calls.at(i)
			e.take(i, c.LeaveQueue(time.Duration(e.now), c.waiter, nil))
		}
	case evWoken, evOutOfPatience:
		if e.arrivals.is(i, generation) {
			e.lineEnds(i, event.Kind() == evWoken)
		}
	case evConnected, evDialTimeout, evDialResume:
		e.dialMoves(event.Kind(), i, generation)
	case evLane, evBehind:
		e.consume(event.Kind(), i, generation)
	case evFault:
		e.faultMoves(i, generation)
	case evWindow:
		e.window = Window(generation)
	}
}

const never = math.MaxInt64

// outside is the window of what is not measured: the warm-up, and what comes after the end.
const outside Window = 3

// begin schedules what happens by itself.
func (e *Engine) begin() {
	r := e.record
	for w, at := range [...]time.Duration{0, r.Begin, r.End, r.Duration} {
		if w > 0 || at < r.Duration {
			e.queue.Push(e.warm+int64(at), 0, kernel.Meta(evWindow, uint32(w)))
		}
	}
	e.window = outside
	e.tickAt = e.warm
	for i := range e.faults {
		e.schedule(i)
	}
	for i := range e.nodes {
		if e.nodes[i].fleet != nil {
			e.startFleet(i)
			if e.nodes[i].group != nil {
				e.startGroup(i)
			}
		}
	}
}

// tick ends one bin of the series and begins the next.
func (e *Engine) tick() {
	bins := len(e.record.Fleets[0].Offered) - 1
	e.now = e.tickAt
	e.sample()
	if e.now == e.warm {
		e.bin = 0
	} else {
		e.bin = min(e.bin+1, bins)
	}
	e.tickAt += int64(e.record.Bin)
	if e.bin == bins {
		e.tickAt = never
	}
}

// finish counts what has not ended and closes the record.
func (e *Engine) finish() {
	for e.tickAt != never {
		e.tick()
	}
	e.leftovers()
	e.tasks.each(func(_ uint32, t *task) {
		if node := &e.nodes[e.insts[t.inst].node]; t.root && t.window != outside && node.group == nil {
			f := &e.record.Fleets[node.index]
			f.Ends[Unanswered]++
			f.Bad[t.mark]++
		}
	})
	e.close()
}
