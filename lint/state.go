package lint

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/abate-go/abate/topology"
)

// never is the time of what does not end.
const never = time.Duration(math.MaxInt64)

// someday is a time of which nobody knows when it is: after every limit.
const someday = never - 1

// later adds times without overflow.
func later(a, b time.Duration) time.Duration {
	if a == never || b == never || a > never-b {
		return never
	}
	return a + b
}

func times(n float64, d time.Duration) time.Duration {
	if d == 0 || n == 0 {
		return 0
	}
	if d == never || n*float64(d) >= float64(never) {
		return never
	}
	return time.Duration(n * float64(d))
}

// step is a moment from which more attempts can have reached the failing service.
type step struct {
	at   time.Duration
	n    float64 // attempts of one request
	mean float64 // the same on average over many, with the budgets
}

// failure is how something can fail, as its caller sees it, and when: the earliest and the latest. One that comes never
// is a hang without an end.
type failure struct {
	seen        topology.Outcome
	least, most time.Duration
}

// state is what one execution of something (the failing service, a layer, a service that calls them) comes to while one
// service fails.
type state struct {
	steps   []step
	fails   []failure
	longest time.Duration // until it has failed, or succeeded at the last try
	cancels bool          // it stops when its caller leaves
	// vague reports that nobody knows when it fails, because a value is unknown. Only what is proved is ever vague: a
	// limit of time around it may cut off everything but what begins at once.
	vague bool
	// base is how many attempts there are while nobody makes an extra one of the call tree's allowance, and best how many
	// one extra one adds at most. Both mean nothing behind a service that does not take part.
	base, best float64
}

func (s *state) total() (n, mean float64) {
	for _, st := range s.steps {
		n, mean = n+st.n, mean+st.mean
	}
	return n, mean
}

// last returns when everything can have been tried.
func (s *state) last() time.Duration {
	if len(s.steps) == 0 {
		return 0
	}
	return s.steps[len(s.steps)-1].at
}

// fail adds a way to fail.
func (s *state) fail(f failure) {
	for i := range s.fails {
		if g := &s.fails[i]; g.seen == f.seen {
			g.least, g.most = min(g.least, f.least), max(g.most, f.most)
			return
		}
	}
	s.fails = append(s.fails, f)
}

// started returns the state as its caller counts it when it leaves early: what does not stop makes all its attempts.
func (s *state) started() []step {
	if s.cancels || len(s.steps) < 2 {
		return s.steps
	}
	n, mean := s.total()
	return []step{{s.steps[0].at, n, mean}}
}

// maxSteps is how finely attempts are told apart by time.
const maxSteps = 64

// tidy sorts the steps, puts those of one moment together, and keeps no more than maxSteps: of several the earliest
// counts in the worst case, else the latest.
func (a *assumption) tidy(steps []step) []step {
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	out := steps[:0]
	for _, s := range steps {
		if n := len(out); n > 0 && out[n-1].at == s.at {
			out[n-1].n += s.n
			out[n-1].mean += s.mean
			continue
		}
		out = append(out, s)
	}
	for len(out) > maxSteps {
		half := out[:0]
		for i := 0; i < len(out); i += 2 {
			s := out[i]
			if i+1 < len(out) {
				s.n, s.mean = s.n+out[i+1].n, s.mean+out[i+1].mean
				if !a.worst {
					s.at = out[i+1].at
				}
			}
			half = append(half, s)
		}
		out = half
	}
	return out
}

// limit lowers the whole to n attempts, those of the end first.
func (s *state) limit(n float64) {
	left := n
	for i := range s.steps {
		st := &s.steps[i]
		if st.n > left {
			if st.n > 0 && !math.IsInf(st.n, 1) {
				st.mean = min(st.mean, st.mean*left/st.n)
			} else {
				st.mean = min(st.mean, left)
			}
			st.n = left
		}
		left -= st.n
		if math.IsNaN(left) {
			left = 0
		}
	}
}

// either is the state of a call that is one of two.
func either(a, b state) state {
	out := state{longest: max(a.longest, b.longest), cancels: a.cancels && b.cancels, vague: a.vague || b.vague,
		base: max(a.base, b.base), best: max(a.best, b.best)}
	for _, f := range a.fails {
		out.fail(f)
	}
	for _, f := range b.fails {
		out.fail(f)
	}
	var n, mean float64
	for one, other := (&until{left: a.steps}), (&until{left: b.steps}); len(one.left)+len(other.left) > 0; {
		t := min(one.next(), other.next())
		one.pass(t)
		other.pass(t)
		if more, moreMean := max(one.n, other.n), max(one.mean, other.mean); more > n || moreMean > mean {
			out.steps = append(out.steps, step{t, more - n, moreMean - mean})
			n, mean = more, moreMean
		}
	}
	return out
}

// until is how much has begun until a time, which moves on.
type until struct {
	n, mean float64
	left    []step
}

func (u *until) next() time.Duration {
	if len(u.left) == 0 {
		return never
	}
	return u.left[0].at
}

func (u *until) pass(t time.Duration) {
	for ; len(u.left) > 0 && u.left[0].at <= t; u.left = u.left[1:] {
		u.n, u.mean = u.n+u.left[0].n, u.mean+u.left[0].mean
	}
}

// inTime reports that a limit of a try that nobody knows ends none of its tries: all of them fail, or succeed, at once.
func inTime(l *topology.Layer, in *state) bool {
	return !in.vague && in.longest == 0 && !l.Overall.IsUnknown() && !unknownWait(&l.Backoff)
}

// atOnce is what is certain of a vague state inside of a limit of time: what begins at once. How it ends is not.
func (s *state) atOnce() state {
	n, mean := s.until(0)
	return state{steps: []step{{0, n, mean}}, cancels: s.cancels, vague: true,
		base: s.base, best: s.best}
}

// until returns how many attempts can have started by a time, that time included.
func (s *state) until(t time.Duration) (n, mean float64) {
	for _, st := range s.steps {
		if st.at <= t {
			n, mean = n+st.n, mean+st.mean
		}
	}
	return n, mean
}
