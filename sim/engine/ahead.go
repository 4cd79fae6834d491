package engine

import "github.com/abate-go/abate/core"

// In a storm a hundred thousand calls are under way, each untouched for a second between two of its events, and the
// engine spends most of its time waiting for memory. The events that come next are known, so what they will need is
// read some events ahead, for several of them at once: memory answers them together.

// glance is how many events lie between two looks ahead, and how many of them are looked at.
const glance = 16

// manyCalls is how many calls were under way at once before they are too many for the processor to keep them at hand.
const manyCalls = 1 << 13

// ahead is how far the engine has looked. What is pushed later for a moment before that has just been in hand.
type ahead struct {
	run, lane int64
	seen      uint32 // nobody wants to know
}

// lookAhead reads what the next events will need. It changes nothing that anybody could see.
func (e *Engine) lookAhead() {
	tr := &e.traffic
	if tr.calls.fresh < manyCalls {
		return
	}
	var calls, tasks [2 * glance]uint32
	n, m := 0, 0
	run, lane := e.world.queue.Coming(glance)
	for _, event := range run {
		if event.At <= e.ahead.run {
			continue
		}
		switch event.Kind() {
		case evReply, evDeadline:
			calls[n] = tr.attempts.at(event.Target).call
			n++
		case evResume, evHedge:
			calls[n] = event.Target
			n++
		case evWorkDone, evReach:
			tasks[m] = event.Target
			m++
		}
	}
	if len(run) > 0 {
		e.ahead.run = run[len(run)-1].At
	}
	for _, event := range lane { // nothing but attempts whose time is up
		if event.At <= e.ahead.lane {
			continue
		}
		a := tr.attempts.at(event.Target)
		calls[n], tasks[m] = a.call, a.task-1
		n++
		if a.task != 0 {
			m++
		}
	}
	if len(lane) > 0 {
		e.ahead.lane = lane[len(lane)-1].At
	}
	seen := e.ahead.seen
	for _, ti := range tasks[:m] {
		seen += uint32(tr.tasks.at(ti).inst)
	}
	for _, ci := range calls[:n] {
		c := tr.calls.at(ci)
		seen += c.task + core.Glance(&c.Call)
	}
	e.ahead.seen = seen
}
