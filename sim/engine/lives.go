package engine

import (
	"slices"
	"time"

	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// lives are how replicas come and go by themselves: they die of their load, fail probes, come up, and are added and
// removed.
type lives struct {
	world     *world
	rec       *recorder
	servers   *servers
	balancers *balancers
	faults    *faults
	of        []life   // of instances, by index
	scalers   []scaler // of nodes, by index
	next      []int32  // memory for a list
}

// life is that of one replica.
type life struct {
	down   bool // its program is not running
	absent bool // it does not exist: an autoscaler has removed it, or not added it yet
	ready  bool
	era    uint32    // of its program: what is said about an earlier one means nothing
	up     int64     // since when
	row    int32     // restarts in a row
	probes [2]asking // liveness, readiness
}

// asking is one of its probes.
type asking struct {
	number          uint32 // of the last one
	waits           bool   // for its answer
	failed, success int32  // in a row
}

const (
	liveness  = 0
	readiness = 1

	longRow    = int64(10 * time.Minute) // that a program runs until its restarts are forgotten
	maxBackoff = 5 * time.Minute
)

// about packs what an event about a replica says.
func (l *life) about(what uint32, which int) uint32 {
	return what | uint32(which)<<3 | l.era&0xff<<4 | l.probes[which].number&0xfff<<12
}

// reset puts all replicas there that are there when a run begins.
func (ls *lives) reset() {
	*ls = lives{world: ls.world, rec: ls.rec, servers: ls.servers, balancers: ls.balancers, faults: ls.faults,
		of: ls.of[:0], scalers: ls.scalers[:0]}
	ls.of = append(ls.of, make([]life, len(ls.world.instances))...)
	for n := range ls.world.nodes {
		node := &ls.world.nodes[n]
		ls.scalers = append(ls.scalers, newScaler(node))
		if !node.lives {
			continue
		}
		for i := range node.count {
			ls.of[node.first+i] = life{ready: i < node.initial, absent: i >= node.initial, up: longAgo}
		}
		ls.servers.replicas[node.first+node.count].refuse = 1 // the address that nobody stands behind
		ls.list(int32(n))
	}
}

// begin schedules the first probes: no two replicas are asked in step.
func (ls *lives) begin() {
	for n := range ls.world.nodes {
		node := &ls.world.nodes[n]
		if !node.lives {
			continue
		}
		for i := range node.initial {
			_, number, _ := ls.world.program(node.first + i)
			phase := ls.world.stream(node.name, number, "probes")
			for which := range 2 {
				if p := probe(node.service, which); p.Period > 0 {
					ls.askAt(node.first+i, which, int64(phase.Float64()*float64(p.Period)))
				}
			}
		}
		ls.watch(int32(n))
	}
}

// probe is one of a service's probes.
func probe(s *scenario.Service, which int) scenario.Probe {
	if which == liveness {
		return s.Probes.Liveness.WithDefaults()
	}
	return s.Probes.Readiness.WithDefaults()
}

// list finds out which replicas of a service requests are sent to.
func (ls *lives) list(n int32) {
	node := &ls.world.nodes[n]
	list := ls.next[:0]
	for i := range node.count {
		if ls.of[node.first+i].ready {
			list = append(list, node.first+i)
		}
	}
	ls.next = ls.servers.ready[n]
	ls.servers.ready[n] = list
	if !slices.Equal(list, ls.next) {
		ls.balancers.relist(n)
	}
}

// moves processes an event about a replica.
func (ls *lives) moves(i int32, about uint32) {
	l, what, which := &ls.of[i], about&7, int(about>>3&1)
	if what == lifeCrashes {
		if ls.servers.replicas[i].dying {
			ls.dies(i)
		}
		return
	}
	if about>>4&0xff != l.era&0xff {
		return
	}
	p := &l.probes[which]
	switch current := about>>12 == p.number&0xfff; {
	case what == lifeBegins:
		ls.comesUp(i)
	case what == lifeAsked:
		ls.ask(i, which)
	case !current || !p.waits:
	default:
		p.waits = false
		ls.passes(i, which, what == lifeAnswered)
	}
}

// askAt schedules the next probe.
func (ls *lives) askAt(i int32, which int, at int64) {
	ls.world.queue.Push(at, uint32(i), kernel.Meta(evLife, ls.of[i].about(lifeAsked, which)))
}

// ask asks a replica how it is.
func (ls *lives) ask(i int32, which int) {
	l, node := &ls.of[i], ls.world.nodeOf(i)
	if l.down || l.absent {
		return
	}
	p, spec := &l.probes[which], probe(node.service, which)
	p.number++
	answered, waits := ls.servers.asked(i, l.about(lifeAnswered, which), 0)
	if p.waits = waits; waits {
		late := ls.world.now + int64(spec.Timeout)
		ls.world.queue.Push(late, uint32(i), kernel.Meta(evLife, l.about(lifeLate, which)))
	}
	ls.askAt(i, which, ls.world.now+int64(spec.Period))
	if !waits {
		ls.passes(i, which, answered)
	}
}

// passes notes whether a replica has passed a probe, and does what follows.
func (ls *lives) passes(i int32, which int, passed bool) {
	l, n := &ls.of[i], ls.world.instances[i].node
	p, spec := &l.probes[which], probe(ls.world.nodes[n].service, which)
	if passed {
		p.failed, p.success = 0, p.success+1
		if which == readiness && !l.ready && p.success >= int32(spec.SuccessThreshold) {
			l.ready = true
			ls.list(n)
		}
		return
	}
	p.failed, p.success = p.failed+1, 0
	if p.failed < int32(spec.FailureThreshold) {
		return
	}
	if which == liveness {
		ls.dies(i)
	} else if l.ready {
		l.ready = false
		ls.list(n)
	}
}

// dies ends the program of a replica, and starts it again.
func (ls *lives) dies(i int32) {
	l, n := &ls.of[i], ls.world.instances[i].node
	start := &ls.world.nodes[n].service.Start
	ls.rec.service(n).world.Restarts[ls.rec.bin]++
	if ls.world.now-l.up >= longRow {
		l.row = 0
	}
	wait := int64(0)
	if l.row > 0 && start.Backoff > 0 {
		most := start.MaxBackoff
		if most == 0 {
			most = max(maxBackoff, start.Backoff)
		}
		wait = min(int64(start.Backoff)<<min(l.row-1, 20), int64(most))
	}
	l.row++
	if !l.down {
		ls.faults.down(i, +1)
	}
	ls.goes(i)
	ls.faults.restart(i)
	l.down = true
	ls.comesAt(i, ls.world.now+wait+start.Takes.Sample(&ls.world.instances[i].stream))
}

// goes takes a replica away from those who are asked.
func (ls *lives) goes(i int32) {
	l := &ls.of[i]
	l.era++
	l.ready, l.probes = false, [2]asking{}
	ls.servers.replicas[i].dying = false
	ls.list(ls.world.instances[i].node)
}

func (ls *lives) comesAt(i int32, at int64) {
	ls.world.queue.Push(at, uint32(i), kernel.Meta(evLife, ls.of[i].about(lifeBegins, 0)))
}

// comesUp is when a program can answer.
func (ls *lives) comesUp(i int32) {
	l, n := &ls.of[i], ls.world.instances[i].node
	service := ls.world.nodes[n].service
	ls.faults.down(i, -1)
	l.down, l.up = false, ls.world.now
	l.ready = service.Probes.Readiness.Period == 0
	for which := range 2 {
		if p := probe(service, which); p.Period > 0 {
			ls.askAt(i, which, ls.world.now+int64(p.InitialDelay))
		}
	}
	ls.list(n)
}

// sample records how many replicas are ready at the end of a bin.
func (ls *lives) sample() {
	for n := range ls.world.nodes {
		if ls.world.nodes[n].lives {
			ls.rec.service(int32(n)).world.Ready[ls.rec.bin] = uint32(len(ls.servers.ready[n]))
		}
	}
}
