package engine

import (
	"time"

	"github.com/abate-go/abate/policy/redelivery"
	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// group is a fleet that consumes: a topic, its retry topics, and what its instances know of them. What becomes of a message
// that fails, which is next and how fast a backlog goes is decided by package redelivery, as in production.
type group struct {
	topic    *scenario.Topic
	config   redelivery.Config
	plan     *redelivery.Plan // nil: messages are tried again in place
	hops     []redelivery.Hop
	first    int32              // of its lanes: the partitions of the main topic, then those of each retry topic
	paces    []*redelivery.Pace // of each instance; nil without a plan
	floods   []*redelivery.FloodGuard
	parking  []*redelivery.Parking // of each partition number; nil if no order is kept across topics
	turn     uint32                // partition of the next message without a key
	finished int64                 // when the last message was done that was written before the trouble was over
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
	flying   bool // it is being delivered
}

// newGroup makes the group of a fleet that consumes.
func (e *Engine) newGroup(n int32) *group {
	node := &e.nodes[n]
	g := &group{topic: &node.fleet.Topic, first: int32(len(e.lanes))}
	config := e.edges[node.edges[0]].policy.Kafka.WithDefaults()
	if config.Enabled() {
		g.config, g.plan = config, redelivery.NewPlan(config)
		g.hops = g.plan.Hops()
	} else {
		g.config = redelivery.Config{Concurrency: 1, Window: 1}
	}
	for tier := redelivery.Main; tier < len(g.hops); tier++ {
		for p := range g.topic.Partitions {
			e.lanes = append(e.lanes, lane{node: n, tier: int32(tier), number: int32(p), owner: node.first + int32(p)%node.count})
		}
	}
	return g
}

// resetGroup empties the topics of a fleet that consumes, as its instances start.
func (e *Engine) resetGroup(node *node) {
	g := node.group
	g.turn, g.finished = 0, 0
	g.paces, g.floods, g.parking = g.paces[:0], g.floods[:0], g.parking[:0]
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
	for i := range g.lanes(e) {
		g.lanes(e)[i].reset(g)
	}
}

// lanes are all partitions of the group.
func (g *group) lanes(e *Engine) []lane {
	return e.lanes[g.first:][:g.topic.Partitions*(1+len(g.hops))]
}

// write puts a new message into the topic.
func (e *Engine) write(node *node) {
	g := node.group
	mi, m := e.messages.get()
	*m = message{written: e.now, mark: uint32(e.bin), window: e.window}
	partition := g.turn
	if g.topic.Keys > 0 {
		m.key = uint64(node.keys.IntN(g.topic.Keys))
		partition = uint32(m.key) % uint32(g.topic.Partitions)
	} else {
		g.turn = (g.turn + 1) % uint32(g.topic.Partitions)
	}
	m.poison = g.topic.Poison > 0 && node.keys.Float64() < g.topic.Poison
	e.underway++
	e.record.Fleets[node.index].Topic.left++
	e.append(g.first+int32(partition), mi)
}

// forward puts a message that is in no lane any more into a retry topic.
func (e *Engine) forward(g *group, mi uint32, tier int, delay time.Duration) {
	m := e.messages.at(mi)
	number := e.lanes[m.lane].number
	m.due, m.held, m.refused = e.now+int64(delay), 0, 0
	if len(g.parking) > 0 {
		g.parking[number].Enter(tier, m.key)
	}
	e.append(g.first+int32((1+tier)*g.topic.Partitions)+number, mi)
}

// leaves notes that a message is in its topic no longer.
func (g *group) leaves(l *lane, m *message) {
	if len(g.parking) > 0 && l.tier >= 0 {
		g.parking[l.number].Leave(int(l.tier), m.key)
	}
}

// parked tells whether a message has to wait behind another with its key, in the next retry topic.
func (g *group) parked(l *lane, m *message) bool {
	return len(g.parking) > 0 && g.parking[l.number].Ahead(int(l.tier), m.key)
}

// consume plays an event of a group.
func (e *Engine) consume(kind uint8, i, generation uint32) {
	if kind == evLane {
		e.woken(i, generation)
		return
	}
	e.behind(i)
}

// startGroup schedules what consumers do by themselves: they look once a second how much is due.
func (e *Engine) startGroup(n int) {
	if len(e.nodes[n].group.paces) > 0 {
		e.queue.Push(int64(time.Second), uint32(n), kernel.Meta(evBehind, 0))
	}
}

// behind tells each instance's pace what is due and has not been delivered.
func (e *Engine) behind(n uint32) {
	node := &e.nodes[n]
	g := node.group
	due := make([]int64, node.count)
	for i := range g.lanes(e) {
		l := &g.lanes(e)[i]
		due[l.owner-node.first] += e.dueIn(l)
	}
	for i, pace := range g.paces {
		pace.Behind(time.Duration(e.now), due[i])
	}
	e.queue.Push(e.now+int64(time.Second), n, kernel.Meta(evBehind, 0))
}

// dueIn is how many messages of a lane are due and not being delivered.
func (e *Engine) dueIn(l *lane) (n int64) {
	count := func(mi uint32) {
		if m := e.messages.at(mi); m.due <= e.now && !m.flying {
			n++
		}
	}
	for i := range l.log.count {
		count(l.log.ring[(l.log.oldest+i)&uint32(len(l.log.ring)-1)])
	}
	for seq := l.redelivery.First(); seq < l.pushed; seq++ {
		if at := *l.at(seq); at > 0 {
			count(at - 1)
		}
	}
	return n
}

// done ends a message: it was handled, or is a dead letter.
func (e *Engine) done(node *node, mi uint32, end EndKind) {
	m := e.messages.at(mi)
	f := &e.record.Fleets[node.index]
	if end == Answered {
		took := e.now - m.written
		f.Answered[e.bin]++
		f.Good[m.mark]++
		f.Latency[m.window].Add(took)
		e.heat(took)
	} else {
		f.Failed[e.bin]++
		f.Bad[m.mark]++
		f.Topic.Dead[e.bin]++
	}
	if m.window != outside {
		f.Ends[end]++
		e.record.LastEnd = time.Duration(e.now - e.warm)
	}
	if m.written < e.warm+int64(e.record.End) {
		node.group.finished = e.now
	}
	f.Topic.left--
	e.underway--
	e.messages.put(mi)
}

// leftovers counts the messages that are not done when the run ends.
func (e *Engine) leftovers() {
	for n := range e.nodes {
		if node := &e.nodes[n]; node.group != nil {
			drained := time.Duration(node.group.finished - e.warm)
			e.record.Fleets[node.index].Topic.Drained = max(drained-e.record.End, 0)
		}
	}
	e.messages.each(func(_ uint32, m *message) {
		f := &e.record.Fleets[e.nodes[e.lanes[m.lane].node].index]
		if m.written < e.warm+int64(e.record.End) {
			f.Topic.Drained = NeverDrained
		}
		if m.window != outside {
			f.Ends[Unanswered]++
			f.Bad[m.mark]++
		}
	})
}
