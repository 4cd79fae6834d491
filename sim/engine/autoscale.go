package engine

import (
	"math"
	"time"

	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// scaler adds and removes the replicas of a service.
type scaler struct {
	spec          scenario.Autoscale
	busy, workers int64 // of replicas that are ready, added up since the last decision, once a second
	starting      int64 // workers of those that are not
	looks         int64 // when the next one is
	fewer         int64 // since when fewer replicas would be enough; never while they are not
}

// lookEvery is how often the share of busy workers is looked at.
const lookEvery = int64(time.Second)

// tolerance is how far the share may be from its target, as a part of it, before anything is done.
const tolerance = 0.1

func newScaler(n *node) scaler {
	if n.service == nil || n.service.Autoscale.Max == 0 {
		return scaler{}
	}
	spec := n.service.Autoscale.WithDefaults(n.service.Replicas)
	return scaler{spec: spec, looks: int64(spec.Every), fewer: never}
}

// watch schedules the first look at a service that an autoscaler watches.
func (ls *lives) watch(n int32) {
	if ls.scalers[n].spec.Max > 0 {
		ls.world.queue.Push(ls.world.now+lookEvery, uint32(n), kernel.Meta(evScale, 0))
	}
}

// look adds up how busy a service is, and decides when it is time.
func (ls *lives) look(n int32) {
	s, now, node := &ls.scalers[n], ls.world.now, &ls.world.nodes[n]
	for i := range node.count {
		if l := &ls.of[node.first+i]; !l.ready && !l.absent {
			s.starting += int64(node.service.Workers)
		}
	}
	for _, i := range ls.servers.ready[n] {
		r := &ls.servers.replicas[i]
		s.busy += int64(min(r.busy, r.workers))
		s.workers += int64(r.workers)
	}
	if now >= s.looks {
		s.looks = now + int64(s.spec.Every)
		if s.workers > 0 {
			share := float64(s.busy) / float64(s.workers)
			if share > s.spec.Target { // those that start will take some of it
				share = max(s.spec.Target, float64(s.busy)/float64(s.workers+s.starting))
			}
			ls.decide(n, share)
		}
		s.busy, s.workers, s.starting = 0, 0, 0
	}
	ls.watch(n)
}

// decide adds or removes replicas: as many as bring the share of busy workers to the target.
func (ls *lives) decide(n int32, share float64) {
	s, node := &ls.scalers[n], &ls.world.nodes[n]
	have := 0
	for i := range node.count {
		if !ls.of[node.first+i].absent {
			have++
		}
	}
	want := have
	if ratio := share / s.spec.Target; math.Abs(ratio-1) > tolerance {
		want = int(math.Ceil(float64(float64(have)*ratio) - 1e-9))
	}
	want = min(max(want, s.spec.Min), s.spec.Max)
	switch {
	case want >= have:
		s.fewer = never
		ls.add(n, min(want-have, s.spec.Step))
	case s.fewer == never:
		s.fewer = ls.world.now
	case ls.world.now-s.fewer >= int64(s.spec.CoolDown):
		ls.remove(n, min(have-want, s.spec.Step))
	}
}

// add lets so many replicas start, after the delay.
func (ls *lives) add(n int32, count int) {
	node, s := &ls.world.nodes[n], &ls.scalers[n]
	for i := node.first; i < node.first+node.count && count > 0; i++ {
		l := &ls.of[i]
		if !l.absent {
			continue
		}
		ls.faults.down(i, +1)
		ls.goes(i)
		ls.faults.restart(i)
		l.absent, l.down, l.row = false, true, 0
		takes := node.service.Start.Takes.Sample(&ls.world.instances[i].stream)
		ls.comesAt(i, ls.world.now+int64(s.spec.Delay)+takes)
		count--
	}
}

// remove takes the last replicas away. They finish what they have.
func (ls *lives) remove(n int32, count int) {
	node := &ls.world.nodes[n]
	for i := node.first + node.count - 1; i >= node.first && count > 0; i-- {
		l := &ls.of[i]
		if l.absent || l.down {
			continue
		}
		ls.goes(i)
		l.absent = true
		count--
	}
}
