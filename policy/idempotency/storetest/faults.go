package storetest

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/idempotency"
)

// FaultOptions say which schedules Faults runs, and what can go wrong.
type FaultOptions struct {
	// Schedules is how many are run, with the seeds from Seed on.
	Schedules int
	// Seed is that of the first.
	Seed uint64
	// Save returns all that the store has of a key, and Load puts it in place of what the store has. Both are for
	// stores whose servers have replicas: the schedules contain failovers that lose what had not been replicated. nil:
	// there are none.
	Save func(key string) (any, error)
	// Load is the other half of Save.
	Load func(key string, saved any) error
}

// FaultCount is what came up in the schedules.
type FaultCount struct {
	// Runs is how often work began, Crashes how often an instance died in it, Failovers how often a server did.
	Runs, Crashes, Failovers int
	// Faults is how many questions to the store went wrong, Held how many answers were held back for good.
	Faults, Held int
	// Twice is how often work began although no instance had died: and nobody had got the answer of the first.
	Twice int
}

// Faults runs random schedules: three instances drive the holders of one key over store, through requests and answers
// that come late or not at all, partitions, crashes and failovers. In each it holds that
//
//   - work never begins once anybody got the answer that it was done, and all who get an answer get the same one;
//   - in the end, when all is well again, somebody gets an answer: an attempt that crashed is taken over, and nothing
//     hangs.
//
// Time is virtual, the operations are real: a lease that is over in the schedule is ended with a Renew for no time. A
// failing schedule is printed with its seed.
func Faults(t *testing.T, store idempotency.Store, o FaultOptions) FaultCount {
	t.Helper()
	var count FaultCount
	for i := range o.Schedules {
		s := newSchedule(store, o, o.Seed+uint64(i), &count)
		if s.play(); s.wrong != "" {
			t.Fatalf("seed %d: %s\n%s", o.Seed+uint64(i), s.wrong, strings.Join(s.trace, "\n"))
		}
	}
	return count
}

// Terms of a schedule, in virtual time.
const (
	lease   = time.Second
	trouble = 8 * lease // how long things go wrong
	ending  = trouble + 40*lease
)

// schedule is one of them: an event queue over the store.
type schedule struct {
	store     idempotency.Store
	o         FaultOptions
	random    *rand.Rand
	count     *FaultCount
	key       string
	now       time.Duration
	events    events
	instances [3]*instance
	holder    owner // of the key, as the store has it
	saved     any   // what the replica has
	savedFor  owner
	answered  int // the run whose answer somebody has; 0 for none
	runs      int
	crashed   bool
	wrong     string
	trace     []string
}

// owner is whose lease ends when.
type owner struct {
	token uint64
	until time.Duration
}

type instance struct {
	n     int
	life  int // of how many that were killed
	cut   time.Duration
	holds *try
}

func newSchedule(store idempotency.Store, o FaultOptions, seed uint64, count *FaultCount) *schedule {
	s := &schedule{store: store, o: o, random: rand.New(rand.NewPCG(seed, 16)), count: count,
		key: fmt.Sprint("schedule ", seed)}
	for i := range s.instances {
		s.instances[i] = &instance{n: i}
	}
	s.replicate()
	for range 3 + s.random.IntN(5) {
		in := s.instances[s.random.IntN(3)]
		s.at(s.upTo(trouble), func() { s.request(in, 6) })
	}
	for range s.random.IntN(3) {
		in, long := s.instances[s.random.IntN(3)], s.upTo(3*lease)
		s.at(s.upTo(trouble), func() { in.cut = s.now + long })
	}
	for range s.random.IntN(3) {
		in := s.instances[s.random.IntN(3)]
		s.at(s.upTo(trouble), func() { s.crash(in) })
	}
	if o.Save != nil {
		for range s.random.IntN(3) {
			s.at(s.upTo(trouble), s.failOver)
		}
	}
	s.at(trouble+lease, func() { s.request(s.instances[s.random.IntN(3)], 40) }) // who does not give up
	return s
}

func (s *schedule) play() {
	for len(s.events) > 0 && s.wrong == "" {
		e := heap.Pop(&s.events).(event)
		if s.now = e.at; s.now > ending {
			break
		}
		e.do()
	}
	for _, in := range s.instances {
		if s.wrong == "" && in.holds != nil {
			s.fail("instance %d still holds the key at the end", in.n)
		}
	}
	if s.wrong == "" && s.answered == 0 {
		s.fail("nobody got an answer")
	}
}

func (s *schedule) upTo(d time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(d)))
}

func (s *schedule) chance(percent int) bool { return s.now < trouble && s.random.IntN(100) < percent }

func (s *schedule) at(when time.Duration, do func()) {
	heap.Push(&s.events, event{when, len(s.trace), do})
}

func (s *schedule) after(d time.Duration, do func()) { s.at(s.now+d, do) }

func (s *schedule) note(format string, args ...any) {
	s.trace = append(s.trace, fmt.Sprintf("%8v ", s.now.Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

func (s *schedule) fail(format string, args ...any) { s.wrong = fmt.Sprintf(format, args...) }

// crash kills an instance, which starts again at once and knows nothing.
func (s *schedule) crash(in *instance) {
	s.note("instance %d crashes", in.n)
	if in.holds != nil {
		s.crashed = true
		s.count.Crashes++
	}
	in.life, in.holds = in.life+1, nil
}

// failOver makes the replica the server.
func (s *schedule) failOver() {
	s.note("the server dies, and its replica takes over")
	s.count.Failovers++
	if err := s.o.Load(s.key, s.saved); err != nil {
		s.fail("Load: %v", err)
	}
	s.holder = s.savedFor
}

// replicate brings the replica up to date.
func (s *schedule) replicate() {
	if s.o.Save == nil {
		return
	}
	saved, err := s.o.Save(s.key)
	if err != nil {
		s.fail("Save: %v", err)
	}
	s.saved, s.savedFor = saved, s.holder
}

// errAway is what an instance hears when it hears nothing.
var errAway = errors.New("the store does not answer")

// ask carries a question to the store and its answer back, or not. ended is called once, on an instance that lives.
func (s *schedule) ask(in *instance, what string, limit time.Duration, op func() error, ended func(error)) {
	life, over := in.life, false
	end := func(err error) {
		if !over && in.life == life {
			over = true
			s.note("instance %d: %s: %v", in.n, what, err)
			ended(err)
		}
	}
	there, back := s.upTo(lease/20), s.upTo(lease/20)
	fault := s.chance(30)
	if fault {
		s.count.Faults++
	}
	switch kind := s.random.IntN(4); {
	case in.cut > s.now, fault && kind == 0: // it does not arrive
	default:
		if fault && kind == 1 {
			there = s.upTo(3 * lease)
		}
		if fault && kind == 2 {
			back = s.upTo(3 * lease)
		}
		s.after(there, func() {
			err := s.apply(op)
			s.note("instance %d: %s arrives: %v", in.n, what, err)
			if !(fault && kind == 3) && in.cut <= s.now { // else its answer is lost
				s.after(back, func() { end(err) })
			}
		})
	}
	s.after(limit, func() { end(errAway) })
}

// apply has the store do something, and the replica too: if that lags behind, nobody hears that it was done.
func (s *schedule) apply(op func() error) error {
	if s.holder.token != 0 && s.holder.until <= s.now {
		_ = s.store.Renew(context.Background(), s.key, s.holder.token, 0)
	}
	err := op()
	if s.o.Save == nil {
		return err
	}
	if s.chance(25) {
		return fmt.Errorf("not replicated: %w", errAway)
	}
	s.replicate()
	return err
}

type event struct {
	at  time.Duration
	nth int
	do  func()
}

// events is a heap of them, the next one on top.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].nth < e[j].nth
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push is for package heap.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

// Pop is for package heap.
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}
