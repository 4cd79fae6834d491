package engine

import (
	"time"

	"github.com/abate-go/abate/sim/kernel"
)

// findings are what instances of one program report to each other of their circuit breakers, through Redis. What is
// worth reporting, and what somebody makes of it, is decided by breaker.Breaker.
type findings struct {
	world  *world
	guards *guards
	due    [][]int64 // of instances and their edges: when what a breaker has found is published next
	sent   slab[finding]
}

// finding is one message, on its way to all others.
type finding struct {
	inst, edge int32
	wait       time.Duration
}

const (
	// findingLook is how often an instance looks at its breakers, and findingEvery how often it repeats what it has found
	// while that holds, as adapter/abateredis does it.
	findingLook  = int64(50 * time.Millisecond)
	findingEvery = int64(250 * time.Millisecond)
)

// reset forgets all that was found.
func (f *findings) reset() {
	f.due, f.sent = f.due[:0], f.sent.emptied()
	for i := range f.world.instances {
		f.due = append(f.due, nil)
		for _, k := range f.world.nodeOf(int32(i)).edges {
			if f.world.edges[k].advises {
				f.due[i] = make([]int64, len(f.world.nodeOf(int32(i)).edges))
			}
		}
	}
}

// begin schedules the first looks: no two instances are in step.
func (f *findings) begin() {
	for i, due := range f.due {
		if due != nil {
			name, number, _ := f.world.program(int32(i))
			s := f.world.stream(name, number, "findings")
			f.world.queue.Push(int64(s.Float64()*float64(findingLook)), uint32(i), kernel.Meta(evFinding, 0))
		}
	}
}

// look publishes what an instance's breakers have found.
func (f *findings) look(i int32) {
	w := f.world
	w.queue.Push(w.now+findingLook, uint32(i), kernel.Meta(evFinding, 0))
	inst := &w.instances[i]
	for slot, k := range w.nodeOf(i).edges {
		b := f.guards.of[i][slot].Breaker()
		if !w.edges[k].advises || b == nil {
			continue
		}
		wait, found := b.Finding(time.Duration(w.now))
		if !found {
			f.due[i][slot] = 0
			continue
		}
		if w.now < f.due[i][slot] || inst.cutOff > 0 {
			continue
		}
		f.due[i][slot] = w.now + findingEvery
		m, sent := f.sent.get()
		*sent = finding{i, k, wait}
		way := &w.scenario.Redis.Latency
		w.queue.Push(w.now+way.Sample(&inst.stream)+way.Sample(&inst.stream), m, kernel.Meta(evFound, f.sent.generation(m)))
	}
}

// arrives passes a message on to all other instances that can be reached.
func (f *findings) arrives(m uint32) {
	sent := *f.sent.at(m)
	f.sent.put(m)
	w := f.world
	slot, node := w.edges[sent.edge].slot, w.nodeOf(sent.inst)
	for i := node.first; i < node.first+node.count; i++ {
		if i == sent.inst || w.instances[i].cutOff > 0 {
			continue
		}
		if b := f.guards.of[i][slot].Breaker(); b != nil {
			b.Advise(time.Duration(w.now), sent.wait)
		}
	}
}
