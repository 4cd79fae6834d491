package engine

import (
	"math/bits"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// fleets are where requests come from, each at a time of its own, and where they end.
type fleets struct {
	world     *world
	rec       *recorder
	traffic   *traffic
	requests  *requests
	consumers *consumers
	sessions  *sessions
	all       []fleet    // by index, which is that of their nodes, too
	schedules []schedule // of their instances, by index
}

// fleet is what one of them has sent, and will send.
type fleet struct {
	record  *FleetRecord
	stream  kernel.Stream // of arrivals
	passed  float64       // the area under the load's curve up to the last request
	segment int32         // of the curve, which has that area
	sent    int           // requests of once
	number  uint64        // of the last request, where they have random numbers of their own
	shed    float64       // the share of its requests that an operator sheds
	sheds   kernel.Stream // of which ones
	serving int32         // instances that serve again after the trouble
}

// schedule is the life of one instance: what it sends and when, if it has a schedule of its own.
type schedule struct {
	stream  kernel.Stream
	area    float64 // operational time of the next request
	segment int32   // of the load's curve
	serves  bool    // it had an answer after the trouble
	down    int32   // restarts under way
}

// reset starts all fleets: nothing is sent yet.
func (fs *fleets) reset() {
	*fs = fleets{world: fs.world, rec: fs.rec, traffic: fs.traffic, requests: fs.requests, consumers: fs.consumers,
		sessions: fs.sessions, all: fs.all[:0], schedules: fs.schedules[:0]}
	for n := range fs.world.nodes {
		node := &fs.world.nodes[n]
		if node.fleet == nil {
			break // the rest are services
		}
		fs.all = append(fs.all, fleet{record: &fs.rec.record.Fleets[n], stream: fs.world.stream(node.name),
			sheds: fs.world.stream(node.name, "shed")})
		for i := range node.count {
			_, number, _ := fs.world.program(node.first + i)
			fs.schedules = append(fs.schedules, schedule{stream: fs.world.stream(node.name, number, "arrivals")})
		}
	}
}

// begin schedules the first requests of all fleets.
func (fs *fleets) begin() {
	for n := range fs.all {
		fs.start(n)
		fs.consumers.start(n)
	}
}

// start schedules a fleet's first requests.
func (fs *fleets) start(n int) {
	node, stream := &fs.world.nodes[n], &fs.all[n].stream
	f := node.fleet
	switch {
	case f.Once > 0:
		fs.world.queue.Push(fs.world.warm, uint32(n), kernel.Meta(evArrival, 0))
	case f.HoldsSessions(): // all have one
	case f.Users > 0:
		for u := range f.Users {
			fs.world.queue.Push(f.Think.Sample(stream), uint32(u), kernel.Meta(evUser, uint32(n)))
		}
	case f.Arrivals == scenario.Even || f.Arrivals == scenario.Jittered:
		for i := range node.count {
			s := &fs.schedules[node.first+i]
			s.area = s.stream.Float64() // no two instances in step
			fs.nextOf(node, node.first+i)
		}
	default:
		fs.nextPoisson(n)
	}
}

// ofInstance is the generation of arrivals at one instance.
const ofInstance = generationMask

// arrival is a request that is due by itself: of a whole fleet, or, for fleets whose instances have schedules of their
// own, of one instance; the generation shows which.
func (fs *fleets) arrival(i, generation uint32) {
	if generation == ofInstance {
		n := fs.world.instances[i].node
		fs.request(int(n), int32(i), 0)
		fs.nextOf(&fs.world.nodes[n], int32(i))
		return
	}
	node := &fs.world.nodes[i]
	if node.fleet.Once > 0 {
		fs.once(int(i))
		return
	}
	fs.request(int(i), node.first+int32(fs.all[i].stream.IntN(int(node.count))), 0)
	fs.nextPoisson(int(i))
}

// nextPoisson schedules the next request of a fleet whose requests are independent.
func (fs *fleets) nextPoisson(n int) {
	f, w := &fs.all[n], fs.world
	f.passed += f.stream.Exp()
	if at, ok := w.nodes[n].load.when(f.passed, &f.segment); ok && at < w.end {
		w.queue.Push(max(at, w.now), uint32(n), kernel.Meta(evArrival, 0))
	}
}

// nextOf schedules the next request of an instance with a schedule of its own: one per unit of its share of the load.
func (fs *fleets) nextOf(node *node, i int32) {
	s, w := &fs.schedules[i], fs.world
	due := s.area
	s.area++
	if node.fleet.Arrivals == scenario.Jittered {
		due = float64(int64(due)) + s.stream.Float64()
	}
	if at, ok := node.load.when(due*float64(node.count), &s.segment); ok && at < w.end {
		w.queue.Push(max(at, w.now), uint32(i), kernel.Meta(evArrival, ofInstance))
	}
}

// once sends the next of a fixed number of requests, spread evenly over a time.
func (fs *fleets) once(n int) {
	f, node, w := &fs.all[n], &fs.world.nodes[n], fs.world
	spec := node.fleet
	fs.request(n, node.first+int32(f.sent)%node.count, 0)
	if f.sent++; f.sent < spec.Once {
		high, low := bits.Mul64(uint64(spec.Within), uint64(f.sent)) // exactly, where a float64 would be 1 ns off
		offset, _ := bits.Div64(high, low, uint64(spec.Once))
		at := w.warm + int64(offset)
		w.queue.Push(max(at, w.now), uint32(n), kernel.Meta(evArrival, 0))
	}
}

// user is user number u of a closed loop, fleet n, who has thought long enough.
func (fs *fleets) user(u, n uint32) {
	if fs.world.now >= fs.world.end {
		return
	}
	node := &fs.world.nodes[n]
	fs.request(int(n), node.first+int32(u)%node.count, u+1)
}

// session is a user of a fleet who wants a session now, or whose session has lasted.
func (fs *fleets) session(i, number uint32) {
	s := &fs.sessions.all[i]
	if fs.world.now < fs.world.end && fs.sessions.moves(i, number) {
		fs.user(uint32(s.user), uint32(s.fleet))
	}
}

// request begins one request at an instance of a fleet. user is its number + 1, 0 in open loops.
func (fs *fleets) request(n int, i int32, user uint32) {
	w := fs.world
	node := &w.nodes[n]
	f := &fs.all[n]
	f.record.Offered[fs.rec.bin]++
	if node.consumes {
		fs.consumers.write(n)
		return
	}
	ti, t := fs.traffic.tasks.get()
	*t = task{root: true, inst: i, since: w.now, mark: uint32(fs.rec.bin), window: fs.rec.window, user: user,
		deadline: int64(core.NoDeadline)}
	if node.fleet.Patience > 0 {
		t.deadline = w.now + int64(node.fleet.Patience)
	}
	if w.own {
		f.number++
		t.drawn = fs.traffic.chanceOfRoot(n, f.number)
	}
	fs.traffic.pending++
	if fs.rec.detail {
		t.trace = fs.rec.traces.root(node.name)
	}
	if f.shed > 0 && f.sheds.Float64() < f.shed {
		fs.ended(ti, t, Shed)
		return
	}
	if fs.schedules[i].down > 0 { // the program that would send it is not there
		fs.ended(ti, t, RefusedConnection)
		return
	}
	fs.requests.advance(ti, t)
}

// serves notes an answer after the trouble: the first one of the last instance is when all of them serve again.
func (fs *fleets) serves(n int, i int32) {
	if s := &fs.schedules[i]; fs.rec.window == After && !s.serves {
		s.serves = true
		f := &fs.all[n]
		if f.serving++; f.serving == fs.world.nodes[n].count {
			f.record.Serving = time.Duration(fs.world.now - fs.world.warm)
		}
	}
}

// ended records the end of a fleet's request. The user who waited for it begins to think.
func (fs *fleets) ended(ti uint32, t *task, end EndKind) {
	w := fs.world
	n := int(w.instances[t.inst].node)
	if w.nodes[n].consumes {
		fs.consumers.delivered(ti, end)
		return
	}
	f := fs.all[n].record
	switch {
	case end == Answered:
		fs.rec.handled(f, t.mark, t.window, w.now-t.since)
		fs.serves(n, t.inst)
	case end.refused():
		f.Refused[fs.rec.bin]++
	default:
		f.Failed[fs.rec.bin]++
		f.Bad[t.mark]++
	}
	fs.rec.ended(f, t.window, end)
	fs.rec.traces.end(t.trace, 0, end)
	user := t.user
	fs.traffic.pending--
	fs.traffic.tasks.put(ti)
	switch {
	case user == 0:
	case w.nodes[n].fleet.HoldsSessions():
		fs.sessions.opened(fs.sessions.of(n, user-1), end)
	default:
		think := w.nodes[n].fleet.Think.Sample(&fs.all[n].stream)
		w.queue.Push(w.now+think, user-1, kernel.Meta(evUser, uint32(n)))
	}
}

// leftovers counts the requests that have not ended when the run does.
func (fs *fleets) leftovers() {
	fs.traffic.tasks.each(func(_ uint32, t *task) {
		if n := fs.world.instances[t.inst].node; t.root && !fs.world.nodes[n].consumes {
			fs.rec.unanswered(fs.all[n].record, t.mark, t.window)
		}
	})
}
