package shed_test

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/abate-go/abate/policy/shed"
)

// service is a simulated service behind a shedder, and its clients, who send whatever happens.
type service struct {
	workers int
	mean    time.Duration
	work    func(r *rand.Rand) float64 // of one request, in units of mean, 1 on average
	// all requests progress at once, each more slowly; otherwise they wait for a worker
	shares bool
	// work lost for each request above the workers, as a share of the workers
	thrash   float64
	slower   func(t time.Duration) float64          // how much longer a request takes at t; nil: 1
	load     func(t time.Duration) float64          // arrivals, in units of capacity
	timeout  time.Duration                          // of the clients
	leaves   bool                                   // a place is given back at the deadline, and the work goes on
	request  func(r *rand.Rand, q *shed.Request)    // nil: all alike
	answered func(q shed.Request)                   // nil: nobody asks
	spy      func(t time.Duration, s *shed.Shedder) // called every 10 ms; nil: not
}

func (c *service) capacity() float64 { return float64(c.workers) / c.mean.Seconds() }

// job is one request in the simulation.
type job struct {
	came time.Duration
	r    shed.Request
	p    shed.Permit
	w    shed.Waiter
	work float64 // in units of the mean
	left float64 // virtual time at which it is done
	gone bool    // its place was given back
}

// seen is what was observed of a run.
type seen struct {
	good    []float64       // work of answers in time, in units of the mean, for each tenth of a second
	took    []time.Duration // from the arrival of a request to its answer, of the admitted
	at      []time.Duration // when each of those came
	limits  []int           // every 10 ms
	queued  int             // at most
	refused map[shed.Reason]int
}

// simulation is one run: events in virtual time.
type simulation struct {
	c       *service
	s       *shed.Shedder
	rnd     *rand.Rand
	now     time.Duration
	v       float64 // seconds of work done by each of the active
	active  jobs
	backlog []*job
	timers  timers
	out     seen
}

type jobs []*job

func (h jobs) Len() int           { return len(h) }
func (h jobs) Less(i, j int) bool { return h[i].left < h[j].left }
func (h jobs) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *jobs) Push(x any)        { *h = append(*h, x.(*job)) }
func (h *jobs) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

type timer struct {
	at     time.Duration
	j      *job
	inside bool // its caller gives up, else it leaves the queue
}
type timers []timer

func (h timers) Len() int           { return len(h) }
func (h timers) Less(i, j int) bool { return h[i].at < h[j].at }
func (h timers) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *timers) Push(x any)        { *h = append(*h, x.(timer)) }
func (h *timers) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// run simulates the service for a time.
func (c *service) run(config shed.Config, length time.Duration) *seen {
	m := &simulation{c: c, s: shed.New(config), rnd: rand.New(rand.NewPCG(1, 2))}
	m.out.refused = map[shed.Reason]int{}
	m.out.good = make([]float64, int(length/(100*time.Millisecond))+1)
	arrival, tick := m.nextArrival(), time.Duration(0)
	for m.now < length {
		done := m.nextDone()
		next := min(arrival, done, tick)
		if len(m.timers) > 0 {
			next = min(next, m.timers[0].at)
		}
		m.advance(next)
		switch {
		case next == done:
			m.finish()
		case next == tick:
			st := m.s.State(m.now)
			m.out.limits = append(m.out.limits, st.Limit)
			m.out.queued = max(m.out.queued, st.Queued)
			if c.spy != nil {
				c.spy(m.now, m.s)
			}
			tick += 10 * time.Millisecond
		case next == arrival:
			m.arrive()
			arrival = m.nextArrival()
		default:
			t := heap.Pop(&m.timers).(timer)
			if t.inside {
				m.abandon(t.j)
			} else if m.s.Leave(m.now, &t.j.w, true) {
				_, reason := t.j.w.Outcome()
				m.out.refused[reason]++
			}
		}
	}
	return &m.out
}

func (m *simulation) nextArrival() time.Duration {
	t := m.now
	for {
		load := m.c.load(t)
		if load > 0 {
			return t + time.Duration(m.rnd.ExpFloat64()/(load*m.c.capacity())*1e9) + 1
		}
		t += time.Second // nobody comes for a while
	}
}

// speed is how fast the active requests progress.
func (m *simulation) speed() float64 {
	speed := 1.0
	if m.c.slower != nil {
		speed /= m.c.slower(m.now)
	}
	n, workers := float64(len(m.active)+len(m.backlog)), float64(m.c.workers)
	if m.c.shares {
		speed *= min(1, workers/max(n, 1))
	}
	return speed / (1 + m.c.thrash*max(0, n-workers)/workers)
}

func (m *simulation) nextDone() time.Duration {
	if len(m.active) == 0 {
		return math.MaxInt64
	}
	return m.now + time.Duration(max(m.active[0].left-m.v, 0)/m.speed()*1e9) + 1
}

func (m *simulation) advance(t time.Duration) {
	m.v += (t - m.now).Seconds() * m.speed()
	m.now = t
}

// enter is the begin of a request's stay in the service.
func (m *simulation) enter(j *job) {
	if m.c.leaves {
		heap.Push(&m.timers, timer{j.r.Deadline, j, true})
	}
	m.begin(j)
}

// abandon is the end of a caller's patience, of which the service does not hear.
func (m *simulation) abandon(j *job) {
	if !j.gone {
		j.gone = true
		m.s.Release(m.now, j.p, shed.Dropped)
	}
}

func (m *simulation) begin(j *job) {
	if !m.c.shares && len(m.active) >= m.c.workers {
		m.backlog = append(m.backlog, j)
		return
	}
	j.left = m.v + j.work*m.c.mean.Seconds()
	heap.Push(&m.active, j)
}

func (m *simulation) arrive() {
	r := shed.Request{Deadline: m.now + m.c.timeout}
	if m.c.request != nil {
		m.c.request(m.rnd, &r)
	}
	p, v, reason := m.s.Admit(m.now, r)
	if v == shed.Refused {
		m.out.refused[reason]++
		return
	}
	j := &job{came: m.now, work: m.c.work(m.rnd), r: r, p: p}
	if v == shed.Full {
		j.w.Wake = func() { m.woken(j) }
		var until time.Duration
		if v, until = m.s.Enqueue(m.now, &j.w, r); v == shed.Queued {
			heap.Push(&m.timers, timer{at: until, j: j})
			return
		}
		if j.p, reason = j.w.Outcome(); reason != shed.None {
			m.out.refused[reason]++
			return
		}
	}
	m.enter(j)
}

func (m *simulation) woken(j *job) {
	p, reason := j.w.Outcome()
	if reason != shed.None {
		m.out.refused[reason]++
		return
	}
	j.p = p
	m.enter(j)
}

func (m *simulation) finish() {
	j := heap.Pop(&m.active).(*job)
	if len(m.backlog) > 0 {
		next := m.backlog[0]
		m.backlog = m.backlog[1:]
		m.begin(next)
	}
	if j.gone {
		return
	}
	j.gone = true
	result := shed.Done
	if m.now > j.r.Deadline {
		result = shed.Dropped
	} else {
		m.out.good[m.now/(100*time.Millisecond)] += j.work
		if m.c.answered != nil {
			m.c.answered(j.r)
		}
	}
	m.out.took = append(m.out.took, m.now-j.came)
	m.out.at = append(m.out.at, j.came)
	m.s.Release(m.now, j.p, result)
}

// quantile is of the times of those that came in [from, to).
func (o *seen) quantile(q float64, from, to time.Duration) time.Duration {
	var took []time.Duration
	for i, at := range o.at {
		if at >= from && at < to {
			took = append(took, o.took[i])
		}
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[int(q*float64(len(took)-1))]
}

// goodput is the mean and the worst second in [from, to), as a share of the capacity.
func (o *seen) goodput(c *service, from, to time.Duration) (mean, worst float64) {
	tenths := o.good[from/(100*time.Millisecond) : to/(100*time.Millisecond)]
	worst = math.Inf(1)
	for i := 0; i+10 <= len(tenths); i++ {
		sum := 0.0
		for _, n := range tenths[i : i+10] {
			sum += n
		}
		worst = min(worst, sum/c.capacity())
	}
	sum := 0.0
	for _, n := range tenths {
		sum += n
	}
	return sum / c.capacity() / (to - from).Seconds(), worst
}

func fixedWork(*rand.Rand) float64    { return 1 }
func randomWork(r *rand.Rand) float64 { return r.ExpFloat64() }
func mixedWork(r *rand.Rand) float64 { // nine cheap ones and a dear one
	if r.IntN(10) == 0 {
		return 5.5
	}
	return 0.5
}

// between is a load that is high in [from, to) and low otherwise.
func between(low, high float64, from, to time.Duration) func(time.Duration) float64 {
	return func(t time.Duration) float64 {
		if t >= from && t < to {
			return high
		}
		return low
	}
}
