package throttle

import (
	"math"
	"time"
)

const steps = 10

// tally is what happened to the requests made in one step of the window.
type tally struct {
	made               int64 // all of them, those refused here included
	refused            int64 // here
	accepted, rejected int64 // by the dependency; those that are in neither are still out
}

// sent is how many left.
func (t *tally) sent() int64 { return t.made - t.refused }

// window counts the requests of the last ten steps. Each request and what became of it stand in the step in which it
// was made, so they leave the window together.
type window struct {
	step           time.Duration
	begun          bool  // head is set
	head           int64 // the number of the step that runs: [head*step, (head+1)*step)
	ends           time.Duration
	made, accepted int64 // the sums of all steps
	tally          [steps]tally
}

// at is the tally of step n, which is in the window.
func (w *window) at(n int64) *tally { return &w.tally[((n%steps)+steps)%steps] }

// number is the step that t is in, rounded down also before the origin.
func (w *window) number(t time.Duration) int64 {
	n := int64(t / w.step)
	if t%w.step < 0 {
		n--
	}
	return n
}

// advance moves the window to now. Time that runs backwards stands still.
func (w *window) advance(now time.Duration) {
	if w.begun && now < w.ends {
		return
	}
	n := w.number(now)
	if !w.begun {
		w.begun, w.head = true, n
	}
	for i := max(w.head+1, n-steps+1); i <= n; i++ {
		gone := w.at(i)
		w.made -= gone.made
		w.accepted -= gone.accepted
		*gone = tally{}
	}
	w.head = n
	if w.ends = now - (now%w.step+w.step)%w.step + w.step; w.ends < now {
		w.ends = math.MaxInt64
	}
}

// of is the tally of the step in which began is, nil if that has left the window. A clock that has jumped back still
// shows how long ago began was.
func (w *window) of(now, began time.Duration) *tally {
	if began >= w.ends-w.step { // nearly always; and the divisions are dear
		return w.at(w.head)
	}
	age := max(w.number(now)-w.number(began), 0)
	if age >= steps {
		return nil
	}
	return w.at(w.head - age)
}

// settle forgets the requests without an answer.
func (w *window) settle() {
	for i := range w.tally {
		t := &w.tally[i]
		out := t.sent() - t.accepted - t.rejected
		t.made -= out
		w.made -= out
	}
}

// resize gives the steps another length. What was counted in a step counts in the one in which that step began.
func (w *window) resize(step time.Duration) {
	if step == w.step || !w.begun {
		w.step = step
		return
	}
	old := *w
	*w = window{step: step}
	w.advance(time.Duration(old.head) * old.step)
	for i := old.head - steps + 1; i <= old.head; i++ {
		if t := w.of(time.Duration(old.head)*old.step, time.Duration(i)*old.step); t != nil {
			t.add(old.at(i))
			w.made += old.at(i).made
			w.accepted += old.at(i).accepted
		}
	}
}

const (
	young    = 2  // steps in which a request without an answer is one that waits for it
	evidence = 10 // requests with a known end that it takes to judge the dependency
)

// rejection is the share of the requests to refuse at k requests for each accept:
//
//	(requests - k*accepts) / (requests + 1)
//
// with two corrections. A request that was sent a moment ago has no answer yet; it is counted as accepted in the share
// of the young ones that have one. And what was refused here counts only for times in which the dependency refused too,
// that is, accepted less than halfway between 1/k of what was sent, where this balances, and all.
func (w *window) rejection(k float64) float64 {
	var requests, accepts float64
	var recent tally
	for i := range int64(young) {
		recent.add(w.at(w.head - i))
	}
	share := recent.share()
	var since tally // the steps since there was evidence
	known := int64(0)
	for i := range int64(steps) {
		t := w.at(w.head - i)
		out := t.sent() - t.accepted - t.rejected
		requests += float64(t.made)
		accepts += float64(t.accepted)
		known += t.sent()
		if i < young {
			accepts += share * float64(out)
			known -= out
		}
		since.add(t)
		if known >= evidence {
			if float64(since.accepted) > (1+1/k)/2*float64(known) {
				requests -= float64(since.refused)
			}
			since, known = tally{}, 0
		}
	}
	return max((requests-k*accepts)/(requests+1), 0)
}

func (t *tally) add(o *tally) {
	t.made += o.made
	t.refused += o.refused
	t.accepted += o.accepted
	t.rejected += o.rejected
}

// share is that of the accepted ones among those that were answered, 1 if none was.
func (t *tally) share() float64 {
	if t.accepted+t.rejected == 0 {
		return 1
	}
	return float64(t.accepted) / float64(t.accepted+t.rejected)
}
