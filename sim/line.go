package sim

import (
	"sync"
	"sync/atomic"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

// line makes the runs of one variant in the order of their seeds, on goroutines that stay from one checkpoint to the
// next: each prepares itself once, and while the last runs before a checkpoint are under way, those after it begin that
// will be needed in any case. Nobody sees from the results how many goroutines there were.
type line struct {
	st      *study
	prepare func() (run, error)
	look    func(i int, r *engine.Record) outcome
	over    atomic.Bool // what is under way is not needed

	mu       sync.Mutex
	turn     sync.Cond // something below has changed
	most     int       // runs
	next     int       // the run that begins next
	limit    int       // no run from this one on may begin yet
	running  int       // goroutines
	outcomes []outcome
	made     []bool
	problem  error
	wait     sync.WaitGroup
}

// newLine prepares at most so many runs.
func (st *study) newLine(s *scenario.Scenario, v *scenario.Variant, most int,
	look func(i int, r *engine.Record) outcome) *line {
	l := &line{st: st, prepare: func() (run, error) { return runs(s, v) }, look: look, most: most}
	l.turn.L = &l.mu
	return l
}

// upTo returns the first so many outcomes, fewer if the study was interrupted. further is how many runs are needed in
// any case, whatever becomes of those.
func (l *line) upTo(n, further int) ([]outcome, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = min(n+l.st.options.Parallel, max(n, further), l.most)
	if more := l.limit - len(l.made); more > 0 {
		l.outcomes = append(l.outcomes, make([]outcome, more)...)
		l.made = append(l.made, make([]bool, more)...)
	}
	for range min(l.st.options.Parallel-l.running, l.limit-l.next) { // a later checkpoint may have work for more
		l.running++
		l.wait.Go(l.work)
	}
	l.turn.Broadcast()
	for l.done(n) < n && l.problem == nil && l.running > 0 {
		l.turn.Wait()
	}
	if l.problem != nil {
		return nil, l.problem
	}
	return l.outcomes[:l.done(n)], nil
}

// done is how many of the first n runs have been made, up to the first that has not.
func (l *line) done(n int) int {
	for i, made := range l.made[:n] {
		if !made {
			return i
		}
	}
	return n
}

// close ends what is under way.
func (l *line) close() {
	l.over.Store(true)
	l.mu.Lock()
	l.turn.Broadcast()
	l.mu.Unlock()
	l.wait.Wait()
}

// stopped reports whether no further run is wanted.
func (l *line) stopped() bool { return l.over.Load() || l.st.ctx.Err() != nil }

// take waits for a run to make; false when there will be none.
func (l *line) take() (i int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.next >= l.limit && l.limit < l.most && !l.stopped() && l.problem == nil {
		l.turn.Wait()
	}
	i = l.next
	if i >= l.limit || l.stopped() || l.problem != nil {
		return 0, false
	}
	l.next++
	return i, true
}

// work makes one run after the other.
func (l *line) work() {
	do, err := l.prepare()
	for err == nil {
		i, ok := l.take()
		if !ok {
			break
		}
		var r *engine.Record
		if r, err = do(l.st.options.Seed+uint64(i), i == 0, l.stopped); r == nil || err != nil {
			break
		}
		o := l.look(i, r)
		l.st.made(r.Events)
		l.mu.Lock()
		l.outcomes[i], l.made[i] = o, true
		l.turn.Broadcast()
		l.mu.Unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.problem = err
	}
	l.running--
	l.turn.Broadcast()
}

// needed is how many runs it takes at least until every expectation can hold; at most as many as may be made.
func needed(expected []expect.Expectation, most int) int {
	runs := 0
	for i := range expected {
		n := expect.RunsNeeded(expected[i])
		if n == 0 {
			n = most
		}
		runs = max(runs, min(n, most))
	}
	return runs
}
