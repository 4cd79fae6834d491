package pacing_test

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/abate-go/abate/policy/pacing"
)

// pace is what lets connections begin: an Opener.
type pace interface {
	Enter(now, since time.Duration, draw uint64, probe bool) (wait time.Duration)
	Leave(now, began time.Duration, r pacing.Result)
	Hopeful(since, patience time.Duration) bool
	State(now time.Duration) pacing.State
}

// system is a server that goes away under instances with a pool each, which queries come to at random moments or, if
// there are workers, from workers of each, one after the other.
type system struct {
	instances, pool int
	pgx             bool // who waits for an opening gets nothing else; else what abatesql does
	places          int  // connections that the server has
	open            time.Duration
	cores           int // openings at once, from which on they take longer
	serve           time.Duration
	atOnce          int     // queries, from which on they take longer
	rate            float64 // queries a second for each instance
	workers         int
	patience, down  time.Duration
	kinds           bool // half of all openings take a twentieth of open, the others nearly twice as long
}

const (
	away     = time.Second     // when the server goes
	watched  = 8 * time.Second // how long after it is back
	slot     = 100 * time.Millisecond
	maxWait  = 5 * time.Second // of ConnectionPolicy
	handOver = 20 * time.Millisecond
)

// outcome is what became of the queries that were asked from the crash to the end, and of the openings.
type outcome struct {
	asked, failed, late int // late ones were asked more than a second after the server was back
	peak, refused       int // openings in the worst slot; those that the server turned away
	serving             int // instances with an answer in the last second
	had                 int // with an answer since the server was back
}

type event struct {
	at time.Duration
	n  int
	do func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].n < e[j].n
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// fleet is a system at work.
type fleet struct {
	system
	outcome
	random *rand.Rand
	now    time.Duration
	queue  events
	n      int

	life                    int // the server's: 0 before the crash, 1 during it, 2 after
	used, opening, querying int
	all                     []*instance
	slots                   map[time.Duration]int
	last                    map[*instance]bool // that had an answer in the last second
}

// instance is a pool, its circuit and its pace.
type instance struct {
	*fleet
	pace      pace // nil without a guard
	out, idle int  // places of the pool that are taken; connections nobody uses
	conns     int
	line      []*opening // that wait, not dialling
	waiting   []*query   // for a place in the pool
	failures  int        // in a row
	opens     int        // how often the circuit has stayed open
	shut      bool
	until     time.Duration // when the circuit asks again
	probing   bool
	served    bool // since the server was back
}

type query struct {
	in     *instance
	began  time.Duration
	until  time.Duration
	worker bool
	held   *opening // that it waits for
	over   bool
	served bool // it has, or had, a connection
}

// opening is a connection on its way, or that waits to be.
type opening struct {
	in      *instance
	by      *query // nil if whoever wanted it has left
	since   time.Duration
	until   time.Duration
	tries   int
	probe   bool
	dialled time.Duration
	gone    bool // somebody else's connection was had instead
}

// play plays a system without a guard if there is no pace.
func play(s system, seed uint64, newPace func() pace) outcome {
	f := &fleet{system: s, random: rand.New(rand.NewPCG(seed, 1)), slots: map[time.Duration]int{},
		last: map[*instance]bool{}}
	for range s.instances {
		in := &instance{fleet: f}
		if newPace != nil {
			in.pace = newPace()
		}
		f.all = append(f.all, in)
		for range s.workers {
			f.in(f.draw(slot), func() { in.ask(true) })
		}
		if s.workers == 0 {
			in.arrive()
		}
	}
	f.in(away, f.crash)
	f.in(away+s.down, func() { f.life = 2 })
	for end := away + s.down + watched; len(f.queue) > 0 && f.queue[0].at <= end; {
		e := heap.Pop(&f.queue).(event)
		f.now = e.at
		e.do()
	}
	for _, n := range f.slots {
		f.peak = max(f.peak, n)
	}
	f.serving = len(f.last)
	return f.outcome
}

func (f *fleet) in(d time.Duration, do func()) {
	f.n++
	heap.Push(&f.queue, event{f.now + max(d, 0), f.n, do})
}

// draw draws between half of d and one and a half.
func (f *fleet) draw(d time.Duration) time.Duration {
	return d/2 + time.Duration(f.random.Float64()*float64(d))
}

func (f *fleet) crash() {
	f.life, f.used = 1, 0
	for _, in := range f.all {
		in.out -= in.conns
		in.conns, in.idle = 0, 0
	}
}

func (in *instance) arrive() {
	in.in(time.Duration(in.random.ExpFloat64()/in.rate*float64(time.Second)), func() {
		in.ask(false)
		in.arrive()
	})
}

func (in *instance) ask(worker bool) {
	q := &query{in: in, began: in.now, until: in.now + in.patience, worker: worker}
	in.in(in.patience, func() { q.expire() })
	switch {
	case in.idle > 0:
		in.idle--
		q.start()
	case in.out < in.pool:
		in.grow(q, q.until)
	default:
		in.waiting = append(in.waiting, q)
	}
}

// end counts a query once, if it belongs to what is looked at.
func (q *query) end(ok bool) {
	in := q.in
	if q.over {
		return
	}
	q.over = true
	if q.worker {
		in.in(in.draw(slot), func() { in.ask(true) })
	}
	if q.began >= away {
		in.asked++
		if !ok {
			in.failed++
			if q.began > away+in.down+time.Second {
				in.late++
			}
		}
	}
	if ok && q.began >= away && in.life == 2 && !in.served {
		in.served = true
		in.had++
	}
	if ok && in.now > away+in.down+watched-time.Second {
		in.last[in] = true
	}
}

// expire is the end of a query's patience. In pgx what is being opened for it goes on.
func (q *query) expire() {
	if q.over || q.served {
		return
	}
	q.end(false)
	o := q.held
	if o == nil {
		return
	}
	o.by = nil
	if !q.in.pgx && o.dialled == 0 {
		o.drop()
		q.in.fill()
	}
}

// start serves a query on a connection of its own.
func (q *query) start() {
	in, life := q.in, q.in.life
	q.served = true
	in.querying++
	took := time.Duration(float64(in.draw(in.serve)) * max(1, float64(in.querying)/float64(in.atOnce)))
	cut := in.now+took > q.until
	in.in(min(took, q.until-in.now), func() {
		in.querying--
		switch {
		case life != in.life && life != 2: // the server went meanwhile
			q.end(false)
		case cut:
			q.end(false)
			in.close()
		default:
			q.end(true)
			in.free()
		}
	})
}

// close closes a connection that is in use.
func (in *instance) close() {
	in.used--
	in.conns--
	in.out--
	in.fill()
}

// free gives a connection to whom it may concern.
func (in *instance) free() {
	if !in.pgx && in.pace != nil {
		for len(in.line) > 0 {
			o := in.line[0]
			in.line = in.line[1:]
			if o.gone || o.dialled != 0 || o.by == nil || o.by.over {
				continue
			}
			q := o.by
			o.drop()
			q.start()
			in.fill()
			return
		}
	}
	if q := in.next(); q != nil {
		q.start()
		return
	}
	in.idle++
}

// next is whoever has waited for a place of the pool: database/sql takes anybody.
func (in *instance) next() *query {
	for len(in.waiting) > 0 {
		i := 0
		if !in.pgx {
			i = in.random.IntN(len(in.waiting))
		}
		q := in.waiting[i]
		if in.pgx {
			in.waiting = in.waiting[1:]
		} else {
			in.waiting[i] = in.waiting[len(in.waiting)-1]
			in.waiting = in.waiting[:len(in.waiting)-1]
		}
		if !q.over {
			return q
		}
	}
	return nil
}

// fill opens connections for those who wait for a place.
func (in *instance) fill() {
	for in.out < in.pool {
		q := in.next()
		if q == nil {
			return
		}
		if in.pgx {
			in.grow(q, q.until)
			continue
		}
		in.waiting = append(in.waiting, q) // database/sql opens it for anybody
		in.grow(nil, 1<<62)
		if in.out >= in.pool || len(in.waiting) <= in.out {
			return
		}
	}
}
