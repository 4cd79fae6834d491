package engine

import (
	"sort"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// consumers are the fleets whose requests are messages, and the topics that these are in. A message is in one place
// until it is done: in the log of a partition, read by its owner, or being delivered.
type consumers struct {
	world    *world
	rec      *recorder
	traffic  *traffic
	guards   *guards
	calls    *calls
	requests *requests
	groups   []*group // of fleets, by index; nil of those that do not consume
	lanes    []lane   // partitions of what fleets consume
	messages slab[message]
}

// group is a fleet that consumes: a topic, its retry topics, and what its instances know of them. What becomes of a
// message that fails, which is next and how fast a backlog goes is decided by package redelivery, as in production.
type group struct {
	topic    *scenario.Topic
	config   redelivery.Config
	plan     *redelivery.Plan // nil: messages are tried again in place
	hops     []redelivery.Hop
	first    int32              // of its lanes: the partitions of the main topic, then those of each retry topic
	paces    []*redelivery.Pace // of each instance; nil without a plan
	floods   []*redelivery.FloodGuard
	parking  []*redelivery.Parking // of each partition number; nil if no order is kept across topics
	keys     kernel.Stream
	next     uint32 // partition of the next message without a key
	finished int64  // when the last message was done that was written before the trouble was over
}

// message is one message, wherever it is until it is done.
type message struct {
	written  int64
	failed   int64 // when a delivery of it failed first; 0 for never
	due      int64 // when it may be delivered from its retry topic
	key      uint64
	seq      uint64 // in its lane
	lane     int32
	mark     uint32 // the bin in which it was written
	delivery int32  // deliveries that counted
	held     int32  // times it was held after an attempt since it was read
	refused  int32  // and without one
	window   Window
	poison   bool
	flooded  bool // it was forwarded last because of a flood of dead letters
}

// build lays out the groups and their partitions.
func (cs *consumers) build() {
	for n := range cs.world.nodes {
		switch node := &cs.world.nodes[n]; {
		case node.consumes:
			cs.groups = append(cs.groups, cs.newGroup(int32(n)))
		case node.fleet != nil:
			cs.groups = append(cs.groups, nil)
		}
	}
}

// newGroup makes the group of a fleet that consumes.
func (cs *consumers) newGroup(n int32) *group {
	node := &cs.world.nodes[n]
	g := &group{topic: &node.fleet.Topic, first: int32(len(cs.lanes))}
	config := cs.world.edges[node.edges[0]].redelivery.WithDefaults()
	if config.Enabled() {
		g.config, g.plan = config, redelivery.NewPlan(config)
		g.hops = g.plan.Hops()
	} else {
		g.config = redelivery.Config{Concurrency: 1, Window: 1}
	}
	for tier := redelivery.Main; tier < len(g.hops); tier++ {
		for p := range g.topic.Partitions {
			owner := node.first + int32(p)%node.count
			cs.lanes = append(cs.lanes, lane{node: n, tier: int32(tier), number: int32(p), owner: owner})
		}
	}
	return g
}

// reset empties all topics, as the instances start.
func (cs *consumers) reset() {
	*cs = consumers{world: cs.world, rec: cs.rec, traffic: cs.traffic, guards: cs.guards, calls: cs.calls,
		requests: cs.requests, groups: cs.groups, lanes: cs.lanes, messages: cs.messages.emptied()}
	for n, g := range cs.groups {
		if g == nil {
			continue
		}
		node := &cs.world.nodes[n]
		*g = group{topic: g.topic, config: g.config, plan: g.plan, hops: g.hops, first: g.first,
			keys: cs.world.stream(node.name, "keys")}
		if g.plan != nil {
			for range node.count {
				g.paces = append(g.paces, redelivery.NewPace(g.config.Drain))
				g.floods = append(g.floods, redelivery.NewFloodGuard(g.config.Flood))
			}
		}
		if g.plan != nil && g.config.Order == redelivery.ParkKey {
			for range g.topic.Partitions {
				g.parking = append(g.parking, redelivery.NewParking(len(g.hops)))
			}
		}
		for i := range cs.lanesOf(g) {
			cs.lanesOf(g)[i].reset(g)
		}
	}
}

// lanesOf are all partitions of a group.
func (cs *consumers) lanesOf(g *group) []lane {
	return cs.lanes[g.first:][:g.topic.Partitions*(1+len(g.hops))]
}

// write puts a new message into the topic of a fleet.
func (cs *consumers) write(n int) {
	g := cs.groups[n]
	mi, m := cs.messages.get()
	*m = message{written: cs.world.now, mark: uint32(cs.rec.bin), window: cs.rec.window}
	partition := g.next
	if g.topic.Keys > 0 {
		m.key = uint64(g.keys.IntN(g.topic.Keys))
		partition = uint32(m.key) % uint32(g.topic.Partitions)
	} else {
		g.next = (g.next + 1) % uint32(g.topic.Partitions)
	}
	m.poison = g.topic.Poison > 0 && g.keys.Float64() < g.topic.Poison
	cs.traffic.pending++
	cs.rec.record.Fleets[n].Topic.left++
	cs.append(g.first+int32(partition), mi)
}

// forward puts a message that is in no lane any more into a retry topic.
func (cs *consumers) forward(g *group, mi uint32, tier int, delay time.Duration) {
	m := cs.messages.at(mi)
	number := cs.lanes[m.lane].number
	m.due, m.held, m.refused = cs.world.now+int64(delay), 0, 0
	if len(g.parking) > 0 {
		g.parking[number].Enter(tier, m.key)
	}
	cs.append(g.first+int32((1+tier)*g.topic.Partitions)+number, mi)
}

// leaves notes that a message is in its topic no longer.
func (g *group) leaves(l *lane, m *message) {
	if len(g.parking) > 0 && l.tier >= 0 {
		g.parking[l.number].Leave(int(l.tier), m.key)
	}
}

// parked reports whether a message has to wait behind another with its key, in the next retry topic.
func (g *group) parked(l *lane, m *message) bool {
	return len(g.parking) > 0 && g.parking[l.number].Ahead(int(l.tier), m.key)
}

// start schedules what the consumers of a fleet do by themselves: they look once a second how much is due.
func (cs *consumers) start(n int) {
	if g := cs.groups[n]; g != nil && len(g.paces) > 0 {
		cs.world.queue.Push(int64(time.Second), uint32(n), kernel.Meta(evBehind, 0))
	}
}

// behind gives each instance's pace what is due and has not been delivered.
func (cs *consumers) behind(n uint32) {
	node := &cs.world.nodes[n]
	g := cs.groups[n]
	due := make([]int64, node.count)
	for i := range cs.lanesOf(g) {
		l := &cs.lanesOf(g)[i]
		due[l.owner-node.first] += cs.dueIn(l)
	}
	for i, pace := range g.paces {
		pace.Behind(time.Duration(cs.world.now), due[i])
	}
	cs.world.queue.Push(cs.world.now+int64(time.Second), n, kernel.Meta(evBehind, 0))
}

// dueIn is how many messages of a lane are due and not being delivered. All that come into a lane wait for the same
// time, so that they are due in their order, and what is not due has not been delivered: so they are counted without a
// look at each, of which there may be very many.
func (cs *consumers) dueIn(l *lane) int64 {
	late := func(mi uint32) bool { return cs.messages.at(mi).due > cs.world.now }
	log := sort.Search(int(l.log.count), func(i int) bool { return late(*l.log.at(l.log.oldest + uint32(i))) })
	first := l.redelivery.First()
	read := sort.Search(int(l.pushed-first), func(i int) bool {
		at := *l.at(first + uint64(i))
		return at > 0 && late(at-1)
	})
	early := int(l.pushed-first) - read
	return int64(log + int(l.unfinished-l.flying) - early)
}

// done ends a message: it was handled, or is a dead letter.
func (cs *consumers) done(n int32, mi uint32, end EndKind) {
	m := cs.messages.at(mi)
	f := &cs.rec.record.Fleets[n]
	if end == Answered {
		cs.rec.handled(f, m.mark, m.window, cs.world.now-m.written)
	} else {
		f.Failed[cs.rec.bin]++
		f.Bad[m.mark]++
		f.Topic.Dead[cs.rec.bin]++
	}
	cs.rec.ended(f, m.window, end)
	if m.written < cs.world.warm+int64(cs.rec.record.End) {
		cs.groups[n].finished = cs.world.now
	}
	f.Topic.left--
	cs.traffic.pending--
	cs.messages.put(mi)
}

// sample records what is left in the topics at the end of a bin.
func (cs *consumers) sample() {
	for n, g := range cs.groups {
		if g != nil {
			t := cs.rec.record.Fleets[n].Topic
			t.Left[cs.rec.bin] = t.left
		}
	}
}

// leftovers counts the messages that are not done when the run ends.
func (cs *consumers) leftovers() {
	record := cs.rec.record
	for n, g := range cs.groups {
		if g != nil {
			drained := time.Duration(g.finished - cs.world.warm)
			record.Fleets[n].Topic.Drained = max(drained-record.End, 0)
		}
	}
	cs.messages.each(func(_ uint32, m *message) {
		f := &record.Fleets[cs.lanes[m.lane].node]
		if m.written < cs.world.warm+int64(record.End) {
			f.Topic.Drained = NeverDrained
		}
		cs.rec.unanswered(f, m.mark, m.window)
	})
}
