package engine

import (
	"errors"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// Engine makes runs of one variant of a scenario, one after the other. It is used by one goroutine at a time.
//
// Its parts are listed from the bottom up: each knows those above it in the list, and none below. See the package
// comment.
type Engine struct {
	world       world
	rec         recorder
	traffic     traffic
	limits      fleetLimits
	gates       gates
	servers     servers
	guards      guards
	sharing     sharing
	findings    findings
	balancers   balancers
	connections connections
	sessions    sessions
	caches      caches
	calls       calls
	requests    requests
	consumers   consumers
	fleets      fleets
	faults      faults
	lives       lives

	ahead ahead
}

// New prepares runs of one variant. The scenario must have been checked: see scenario.Parse.
func New(s *scenario.Scenario, v *scenario.Variant) (*Engine, error) {
	t, err := newTopology(s, v)
	if err != nil {
		return nil, err
	}
	e := &Engine{}
	w, n := &e.world, t.programs
	*w = world{topology: t, warm: int64(s.WarmUp), end: int64(s.WarmUp + s.Duration)}
	w.queue.LanesFirst = s.Model.Ties == scenario.TimeoutFirst

	rec, tr := &e.rec, &e.traffic
	replicas := make([]replica, n)
	e.rec = recorder{world: w}
	e.traffic = traffic{world: w}
	e.limits = fleetLimits{world: w, replicas: replicas}
	e.gates = gates{world: w, rec: rec, traffic: tr, limits: &e.limits, replicas: replicas}
	e.servers = servers{world: w, rec: rec, traffic: tr, gates: &e.gates, replicas: replicas,
		crowd: crowd}
	e.guards = guards{world: w, rec: rec, replicas: replicas, of: make([][]*abate.Guard, n)}
	e.sharing = sharing{world: w, guards: &e.guards}
	e.findings = findings{world: w, guards: &e.guards}
	e.connections = connections{world: w, rec: rec, traffic: tr, servers: &e.servers,
		pools: make([][]pool, n), dialers: make([][]*abate.Guard, n)}
	e.sessions = sessions{world: w, rec: rec, servers: &e.servers, connections: &e.connections}
	e.balancers = balancers{world: w, traffic: tr, servers: &e.servers, of: make([][]endpoints, n)}
	e.balancers.checks = checks{world: w, servers: &e.servers, balancers: &e.balancers}
	e.caches = caches{world: w, rec: rec, traffic: tr}
	e.calls = calls{world: w, rec: rec, traffic: tr, servers: &e.servers, guards: &e.guards,
		connections: &e.connections, balancers: &e.balancers, caches: &e.caches}
	e.requests = requests{world: w, traffic: tr, servers: &e.servers, calls: &e.calls}
	e.consumers = consumers{world: w, rec: rec, traffic: tr, guards: &e.guards, calls: &e.calls, requests: &e.requests}
	e.fleets = fleets{world: w, rec: rec, traffic: tr, requests: &e.requests, consumers: &e.consumers,
		sessions: &e.sessions}
	e.faults = faults{world: w, servers: &e.servers, guards: &e.guards, sharing: &e.sharing, balancers: &e.balancers,
		connections: &e.connections, sessions: &e.sessions, caches: &e.caches, requests: &e.requests, fleets: &e.fleets}
	e.lives = lives{world: w, rec: rec, servers: &e.servers, balancers: &e.balancers, faults: &e.faults}

	// All that runs upwards.
	e.servers.begin = e.requests.advance
	e.calls.ended = e.requests.callEnded
	e.requests.ended = e.fleets.ended

	e.gates.identify()
	e.consumers.build()
	e.caches.build()
	return e, nil
}

// reset puts everything back to the start of a run.
func (e *Engine) reset(seed uint64, detail bool) error {
	e.world.reset(seed)
	e.rec.reset(detail)
	e.traffic.reset()
	e.gates.reset()
	err := errors.Join(e.servers.reset(), e.guards.reset(), e.connections.reset())
	e.sharing.reset()
	e.findings.reset()
	e.sessions.reset()
	e.balancers.reset()
	e.caches.reset()
	e.calls.reset()
	e.consumers.reset()
	e.fleets.reset()
	e.faults.reset()
	e.lives.reset()
	e.ahead = ahead{}
	return err
}

// Run makes one run. With detail it also keeps what only pictures need. When stop answers true, which it is asked now
// and then, the run ends early and Run returns nil.
func (e *Engine) Run(seed uint64, detail bool, stop func() bool) (*Record, error) {
	if err := e.reset(seed, detail); err != nil {
		return nil, err
	}
	e.begin()
	if !e.play(stop, nil) {
		return nil, nil
	}
	for e.rec.tickAt != never {
		e.tick()
	}
	e.consumers.leftovers()
	e.fleets.leftovers()
	return e.rec.finish(), nil
}

// play processes one event after the other until nothing is left to do, or until over, if it is not nil and asked after
// every event, says so. It reports false if stop has ended it.
func (e *Engine) play(stop, over func() bool) bool {
	w, record := &e.world, e.rec.record
	last := w.end + int64(w.scenario.Model.Drain)
	const often = 1 << 16 // a multiple of glance
	for {
		event, ok := w.queue.Pop()
		if !ok || event.At >= w.end && (event.At > last || e.traffic.pending == 0) {
			break
		}
		for event.At >= e.rec.tickAt {
			e.tick()
		}
		w.now = event.At
		if record.Events++; record.Events%glance == 0 {
			e.lookAhead()
			if record.Events%often == 0 && stop != nil && stop() {
				return false
			}
		}
		e.handle(event)
		if over != nil && over() {
			break
		}
	}
	return true
}

// handle processes one event. Events of entities that have moved on since, which have another generation, do nothing.
func (e *Engine) handle(event kernel.Event) {
	i, generation := event.Target, event.Generation()
	switch event.Kind() {
	case evArrival:
		e.fleets.arrival(i, generation)
	case evUser:
		e.fleets.user(i, generation)
	case evReach:
		if e.traffic.tasks.is(i, generation) {
			e.servers.reach(i, e.traffic.tasks.at(i))
		}
	case evWorkDone:
		if e.traffic.tasks.is(i, generation) {
			e.requests.workDone(i)
		}
	case evReply:
		if e.traffic.attempts.is(i, generation) {
			a := e.traffic.attempts.at(i)
			e.calls.deliver(i, a, a.answer)
		}
	case evTimeout:
		if e.traffic.attempts.is(i, generation) {
			e.calls.timeout(i)
		}
	case evDeadline:
		if e.traffic.attempts.is(i, generation) {
			e.calls.deadline(i, generation)
		}
	case evHedge:
		if e.traffic.calls.is(i, generation) {
			e.calls.hedge(i)
		}
	case evResume:
		if e.traffic.calls.is(i, generation) {
			e.calls.resume(i)
		}
	default:
		e.handleRarer(event.Kind(), i, generation)
	}
}

// handleRarer processes the events that most runs have few of.
func (e *Engine) handleRarer(kind uint8, i, generation uint32) {
	switch kind {
	case evAdmitted:
		if e.traffic.calls.is(i, generation) {
			e.calls.admitted(i)
		}
	case evLeaveQueue:
		if e.traffic.calls.is(i, generation) {
			e.calls.leaveQueue(i)
		}
	case evWoken, evOutOfPatience:
		if e.gates.arrivals.is(i, generation) {
			e.servers.lineEnds(i, kind == evWoken)
		}
	case evConnected:
		if e.traffic.tasks.is(i, generation) {
			e.connections.connected(i)
		}
	case evDialTimeout:
		if e.connections.dials.is(i, generation) {
			e.connections.dialTimeout(i)
		}
	case evDialResume:
		if e.connections.dials.is(i, generation) {
			e.connections.dialResumes(i)
		}
	case evSession:
		e.fleets.session(i, generation)
	case evLife:
		e.lives.moves(int32(i), generation)
	case evHealth:
		e.balancers.checks.moves(i, generation)
	case evScale:
		e.lives.look(int32(i))
	case evUnparked:
		if e.caches.parked.is(i, generation) {
			e.calls.unparked(i)
		}
	case evLane:
		e.consumers.woken(i, generation)
	case evBehind:
		e.consumers.behind(i)
	case evFault:
		e.faults.move(i, generation)
	case evWindow:
		e.rec.window = Window(generation)
	default:
		e.handleShared(kind, i, generation)
	}
}

// handleShared processes the events of what instances share through Redis.
func (e *Engine) handleShared(kind uint8, i, generation uint32) {
	switch kind {
	case evShare:
		e.sharing.exchange(int32(i))
	case evExchange:
		e.sharing.arrives(i)
	case evFinding:
		e.findings.look(int32(i))
	case evFound:
		e.findings.arrives(i)
	case evLeases:
		e.limits.keep(int32(i), generation)
	case evLimitTrip, evLimitTimeout:
		if e.limits.trips.is(i, generation) {
			e.servers.limitMoves(i, kind == evLimitTimeout)
		}
	}
}

// begin schedules what happens by itself.
func (e *Engine) begin() {
	w, r := &e.world, e.rec.record
	for window, at := range [...]time.Duration{0, r.Begin, r.End, r.Duration} {
		if window > 0 || at < r.Duration {
			w.queue.Push(w.warm+int64(at), 0, kernel.Meta(evWindow, uint32(window)))
		}
	}
	e.faults.begin()
	e.lives.begin()
	e.sharing.begin()
	e.findings.begin()
	e.fleets.begin()
}

// tick ends one bin of the series and begins the next.
func (e *Engine) tick() {
	e.world.now = e.rec.tickAt
	e.servers.sample()
	e.caches.sample()
	e.sessions.sample()
	e.lives.sample()
	e.consumers.sample()
	e.guards.sample()
	e.rec.nextBin()
}
