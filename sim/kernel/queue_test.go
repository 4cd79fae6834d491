package kernel_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/abate-go/abate/sim/kernel"
)

// pair drives the queue and the reference side by side.
type pair struct {
	t          testing.TB
	q          *kernel.Queue
	r          *reference
	now        int64
	lanes      []int
	operations int
}

func newPair(t testing.TB, q *kernel.Queue, lanesFirst bool, delays ...int64) *pair {
	q.LanesFirst = lanesFirst
	p := &pair{t: t, q: q, r: &reference{lanesFirst: lanesFirst, delays: delays}}
	for _, d := range delays {
		p.lanes = append(p.lanes, q.Lane(d))
	}
	return p
}

func (p *pair) push(delay int64) {
	p.operations++
	if p.now > math.MaxInt64-delay {
		delay = math.MaxInt64 - p.now
	}
	id := uint32(p.operations)
	p.q.Push(p.now+delay, id, ^id)
	p.r.Push(p.now+delay, id, ^id)
}

func (p *pair) pushLane(i int) {
	p.operations++
	if p.now > math.MaxInt64-p.r.delays[i] {
		return
	}
	id := uint32(p.operations)
	p.q.PushLane(p.lanes[i], p.now, id, ^id)
	p.r.PushLane(i, p.now, id, ^id)
}

func (p *pair) pop() (ok bool) {
	p.operations++
	e, ok := p.q.Pop()
	want, wantOk := p.r.Pop()
	if e != want || ok != wantOk {
		p.t.Fatalf("operation %d: Pop = %v, %v; want %v, %v", p.operations, e, ok, want, wantOk)
	}
	if ok {
		p.now = e.At
	}
	if p.q.Len() != len(p.r.events) {
		p.t.Fatalf("operation %d: Len = %d, want %d", p.operations, p.q.Len(), len(p.r.events))
	}
	return ok
}

func (p *pair) drain() {
	for p.pop() {
	}
}

// delays are shapes of the time between a push and its event.
var delays = []struct {
	name string
	next func(s *kernel.Stream) int64
}{
	{"exponential", func(s *kernel.Stream) int64 { return int64(s.Exp() * 1e6) }},
	{"few instants", func(s *kernel.Stream) int64 { return int64(s.IntN(4)) * 1000 }},
	{"constant", func(*kernel.Stream) int64 { return 1e9 }},
	{"now", func(*kernel.Stream) int64 { return 0 }},
	{"every scale", func(s *kernel.Stream) int64 { return int64(s.Uint64() >> (2 + s.IntN(60))) }},
	{"near and far", func(s *kernel.Stream) int64 { return int64(s.IntN(2))*1e9 + int64(s.IntN(30)) }},
	{"a far instant", func(s *kernel.Stream) int64 { return int64(s.IntN(2))*1e12 + int64(s.IntN(2)*s.IntN(500)) }},
	{"falling", func() func(*kernel.Stream) int64 {
		delay := int64(0)
		return func(s *kernel.Stream) int64 {
			if delay -= int64(s.IntN(50)); delay < 0 {
				delay = 1e6
			}
			return delay
		}
	}()},
}

func TestEventsComeByTimeThenByPush(t *testing.T) {
	for _, shape := range delays {
		for _, lanes := range [][]int64{nil, {500}, {1e6, 1000, 0, 1e9, 40}} {
			for _, lanesFirst := range []bool{false, true} {
				name := fmt.Sprintf("%s/%d lanes/lanes first %v", shape.name, len(lanes), lanesFirst)
				t.Run(name, func(t *testing.T) {
					q := new(kernel.Queue)
					for seed := range uint64(12) {
						q.Reset()
						p := newPair(t, q, lanesFirst, lanes...)
						grow(p, seed, shape.next)
						p.drain()
					}
				})
			}
		}
	}
}

// grow lets a queue swell and shrink several times.
func grow(p *pair, seed uint64, next func(*kernel.Stream) int64) {
	s := kernel.NewStream(seed, 1)
	for range 6 {
		pushes := 1 + s.IntN(9)
		for range 50 + s.IntN(400) {
			switch r := s.IntN(12); {
			case r < pushes && len(p.lanes) > 0 && s.IntN(2) == 0:
				p.pushLane(s.IntN(len(p.lanes)))
			case r < pushes:
				p.push(next(&s))
			default:
				p.pop()
			}
		}
	}
}

func TestManyEventsOfOneInstantKeepTheirOrder(t *testing.T) {
	p := newPair(t, new(kernel.Queue), false, 1e6)
	for range 1000 {
		p.push(1e6)
	}
	for range 100 {
		p.pushLane(0)
	}
	for range 500 {
		p.pop()
		p.push(0) // behind those that wait already
		p.push(1)
	}
	p.drain()
}

func TestEventsPushedBeforeAPopMayComeFirst(t *testing.T) {
	p := newPair(t, new(kernel.Queue), false, 10)
	for i := range int64(200) {
		p.push(1e9 + i*1e6)
	}
	for range 200 {
		p.pushLane(0)
		p.push(20)
		p.push(5)
		p.pop()
	}
	p.drain()
}

func TestFarBucketIsNotOpenedForLanes(t *testing.T) {
	p := newPair(t, new(kernel.Queue), false, 7)
	for i := range int64(5000) {
		p.push(1<<40 + i%3)
	}
	p.pushLane(0)
	for i := range 20000 {
		p.pop()
		p.pushLane(0)
		if i%10 == 0 {
			p.push(int64(i % 100))
		}
	}
	p.drain()
}

func TestLanesComeBeforeLaterEventsOfTheSameSlot(t *testing.T) {
	for _, spread := range []int64{1, 3, 1000, 1e6} {
		p := newPair(t, new(kernel.Queue), false, 1e5)
		for i := range int64(200) {
			p.push(1e9 + i%spread)
		}
		for range 11_000 { // the lane alone walks far into the slot of the others
			p.pushLane(0)
			p.pop()
			if p.now > 98e7 {
				p.push(4e4)
				p.pop()
			}
		}
		p.drain()
	}
}

func TestTimesUpToTheLastNanosecond(t *testing.T) {
	p := newPair(t, new(kernel.Queue), false, 0, math.MaxInt64)
	for range 100 {
		p.push(math.MaxInt64)
		p.push(math.MaxInt64 - 1)
		p.pushLane(1)
	}
	for range 250 {
		p.pop()
	}
	p.pushLane(0)
	p.push(0)
	p.drain()
}

func panics(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic", what)
		}
	}()
	f()
}

func TestTimeDoesNotRunBackwards(t *testing.T) {
	var q kernel.Queue
	panics(t, "before the start", func() { q.Push(-1, 0, 0) })
	panics(t, "negative delay", func() { q.Lane(-1) })
	lane := q.Lane(5)
	q.Push(10, 0, 0)
	q.Pop()
	panics(t, "Push", func() { q.Push(9, 0, 0) })
	panics(t, "PushLane before the last Pop", func() { q.PushLane(lane, 9, 0, 0) })
	panics(t, "PushLane beyond the last time", func() { q.PushLane(lane, math.MaxInt64-2, 0, 0) })
	q.PushLane(lane, 12, 0, 0)
	panics(t, "PushLane out of order", func() { q.PushLane(lane, 11, 0, 0) })
	if q.Len() != 1 {
		t.Errorf("Len = %d after refused pushes, want 1", q.Len())
	}
}

func TestOneLanePerDelay(t *testing.T) {
	var q kernel.Queue
	if a, b, again := q.Lane(5), q.Lane(6), q.Lane(5); a != 0 || b != 1 || again != 0 {
		t.Errorf("lanes %d, %d, %d; want 0, 1, 0", a, b, again)
	}
	q.Reset()
	if got := q.Lane(6); got != 0 {
		t.Errorf("lane %d after Reset, want 0", got)
	}
}

func TestResetIsAsGoodAsNewAndKeepsMemory(t *testing.T) {
	q := new(kernel.Queue)
	run := func() {
		q.Reset()
		lane := q.Lane(1000)
		s := kernel.NewStream(1, 1)
		now := int64(0)
		for i := range uint32(5000) {
			q.Push(now+int64(s.Exp()*1e6), i, 0)
			q.PushLane(lane, now, i, 1)
			if i%3 == 0 {
				e, _ := q.Pop()
				now = e.At
			}
		}
	}
	run()
	if n := testing.AllocsPerRun(5, run); n != 0 {
		t.Errorf("%v allocations in a run after Reset, want 0", n)
	}
	q.Reset()
	if q.Len() != 0 {
		t.Errorf("Len = %d after Reset", q.Len())
	}
	if _, ok := q.Pop(); ok {
		t.Error("Pop found an event after Reset")
	}
	newPair(t, q, false, 3).drain()
}

func TestSteadyQueueDoesNotAllocate(t *testing.T) {
	var q kernel.Queue
	s := kernel.NewStream(1, 1)
	for range 10000 {
		q.Push(int64(s.Exp()*1e6), 0, 0)
	}
	hold := func() {
		for range 20000 {
			e, _ := q.Pop()
			q.Push(e.At+int64(s.Exp()*1e6), 0, 0)
		}
	}
	for range 10 {
		hold()
	}
	if n := testing.AllocsPerRun(10, hold); n > 1 {
		t.Errorf("%v allocations per 20,000 events, want none", n)
	}
}

func TestMetaPacksKindAndGeneration(t *testing.T) {
	for _, row := range []struct {
		kind             uint8
		generation, want uint32
	}{{0, 0, 0}, {255, 1<<24 - 1, 1<<24 - 1}, {7, 1<<24 + 3, 3}} {
		e := kernel.Event{Meta: kernel.Meta(row.kind, row.generation)}
		if e.Kind() != row.kind || e.Generation() != row.want {
			t.Errorf("Meta(%d, %d) gives %d, %d", row.kind, row.generation, e.Kind(), e.Generation())
		}
	}
}

// FuzzQueue reads operations from bytes: the low bits say what, the rest how far.
func FuzzQueue(f *testing.F) {
	f.Add([]byte("push, pop, lanes"), uint8(3), false)
	f.Add([]byte{0, 8, 16, 24, 5, 5, 5, 0, 255, 255, 4, 4, 4}, uint8(40), true)
	f.Fuzz(func(t *testing.T, operations []byte, scale uint8, lanesFirst bool) {
		p := newPair(t, new(kernel.Queue), lanesFirst, 0, 1<<(scale%50), 3)
		for _, b := range operations {
			far := int64(b>>3) << (scale % 50)
			switch b % 8 {
			case 0, 1:
				p.push(far)
			case 2:
				for range b {
					p.push(far)
				}
			case 3:
				p.pushLane(int(b>>3) % 3)
			case 5:
				for range b {
					p.pop()
				}
			default:
				p.pop()
			}
		}
		p.drain()
	})
}

func TestWhatIsComingIsWhatComes(t *testing.T) {
	var q kernel.Queue
	lane := q.Lane(1000)
	s := kernel.NewStream(1, 1)
	for i := range uint32(200) {
		q.Push(int64(s.IntN(2000)), i, 0)
		q.PushLane(lane, int64(i)*5, 1000+i, 0)
	}
	looked := 0
	for {
		if run, lanes := q.Coming(4); len(run) > 4 || len(lanes) > 4 {
			t.Fatalf("%d and %d events, four were asked for", len(run), len(lanes))
		}
		run, lanes := q.Coming(1)
		next := append(append([]kernel.Event(nil), run...), lanes...)
		e, ok := q.Pop()
		if !ok {
			break
		}
		if len(run) == 0 { // the sorted run is filled by Pop
			continue
		}
		if looked++; e != next[0] && e != next[len(next)-1] {
			t.Fatalf("%v came, %v were coming", e, next)
		}
	}
	if looked < 100 {
		t.Errorf("looked %d times only", looked)
	}
}
