package engine

import (
	"fmt"
	"slices"
	"strconv"
)

// Climb is a run on the way to a long queue. Two climbs with the same scenario and the same first seeds are the same
// up to the level that the last of those belongs to, and unrelated after it: so a run is cloned by playing it again.
type Climb struct {
	// Service is the one whose queue is watched: the longest in one replica, as the measure queue has it, after the
	// warm-up.
	Service string
	// Levels are lengths of the queue, each longer than the one before.
	Levels []int
	// Seeds are those of the run, first the one that it begins with. From when the queue is as long as Levels[i] for the
	// first time, all random numbers that are drawn are those of Seeds[i+1]; levels without a seed are not looked at.
	// What is drawn by then stays: the next arrival, work under way.
	Seeds []uint64
	// Until ends the run once the queue is so long; 0 for never.
	Until int
}

// Climbed is what came of a Climb.
type Climbed struct {
	Longest int   // the longest queue
	Events  int64 // of the engine
}

// Climb makes a run that is only about the queue of one service. It ends with the time in which requests are offered.
// When stop answers true the run ends early, and whole is false. An error means that there is no such service.
func (e *Engine) Climb(c Climb, stop func() bool) (r Climbed, whole bool, err error) {
	n := slices.IndexFunc(e.world.nodes, func(n node) bool { return n.service != nil && n.name == c.Service })
	if n < 0 {
		return r, false, fmt.Errorf("there is no service %q", c.Service)
	}
	if err := e.reset(c.Seeds[0], false); err != nil {
		return r, false, err
	}
	e.begin()
	up := climber{climb: c, engine: e, node: int32(n)}
	e.servers.watched = int32(n) + 1
	whole = e.play(stop, up.step)
	return Climbed{Longest: int(up.longest), Events: e.rec.record.Events}, whole, nil
}

// climber is how far a climb has come.
type climber struct {
	climb   Climb
	engine  *Engine
	node    int32
	begun   bool  // the warm-up is over
	passed  int   // levels
	longest int32 // queue so far
}

// step looks at the queue after an event, and reports whether the run is over.
func (c *climber) step() bool {
	w, s := &c.engine.world, &c.engine.servers
	if w.now >= w.end {
		return true
	}
	if !c.begun {
		if w.now < w.warm {
			return false
		}
		c.begun = true
		s.highest = 0
		node := &w.nodes[c.node]
		for i := range node.count {
			s.highest = max(s.highest, s.replicas[node.first+i].waiting)
		}
	}
	c.longest = s.highest
	for c.passed+1 < len(c.climb.Seeds) && int(s.highest) >= c.climb.Levels[c.passed] {
		c.passed++
		c.engine.reseed(c.climb.Seeds[c.passed])
	}
	return c.climb.Until > 0 && int(s.highest) >= c.climb.Until
}

// reseed has all random numbers that are drawn from now on come from another seed.
func (e *Engine) reseed(seed uint64) {
	w := &e.world
	w.seed = seed
	for i := range w.instances {
		node, number, _ := w.program(int32(i))
		w.instances[i].stream = w.stream(node, number)
	}
	for n := range e.fleets.all {
		name := w.nodes[n].name
		e.fleets.all[n].stream, e.fleets.all[n].sheds = w.stream(name), w.stream(name, "shed")
	}
	for i := range e.fleets.schedules {
		node, number, _ := w.program(int32(i))
		e.fleets.schedules[i].stream = w.stream(node, number, "arrivals")
	}
	for n := range e.servers.spreads {
		e.servers.spreads[n].stream = w.stream(w.nodes[n].name)
	}
	for i, stream := range w.lent {
		*stream = w.stream("lent", strconv.Itoa(i))
	}
}
