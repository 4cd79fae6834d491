package scenario

import (
	"math"
	"slices"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/budget"
)

// Estimate is how large one run can get, at most but for a chance of about one in a billion: every retry and hedge that
// the policies allow is counted.
type Estimate struct {
	Events   int64 // of the engine
	Attempts int64 // on all calls, warm-up included
	Bytes    int64 // of memory
}

// What things take in memory, measured on 64 bits.
const (
	callBytes     = 600  // a call under way: its request with its call tree, its attempts, their events
	queuedBytes   = 110  // a request in a queue that nobody waits for any more
	userBytes     = 24   // a user who thinks
	instanceBytes = 400  // an instance or replica
	guardBytes    = 4000 // a guard without hedging
	hedgeBytes    = 4500 // what hedging by quantile adds
	gateBytes     = 20e3 // a gate: its counts of attempts and callers
	arrivalBytes  = 500  // a request at a gate
	endpointBytes = 90   // a replica as a balancer knows it
	serviceBin    = 68   // one bin of the series of a service
	fleetBin      = 20   // of a fleet
	histograms    = 4 * 2600
	bins          = 6002
	fixedBytes    = 4 << 20
)

// estimator adds up one run.
type estimator struct {
	s        *Scenario
	v        *Variant
	services []Service
	index    map[string]int
	at       []traffic // by service
	response []float64 // seconds that a service takes to answer, at most on average
	seconds  float64   // in which requests are offered
	whole    float64   // with the drain

	events, attempts, bytes float64
}

// traffic is what arrives somewhere: how many in all, and how many per second where the load is highest.
type traffic struct{ total, peak float64 }

// Estimate returns the size of one run of a variant. It is finite for every scenario.
func (s *Scenario) Estimate(v *Variant) Estimate {
	e := &estimator{s: s, v: v, services: s.ServicesOf(v), index: map[string]int{}}
	e.seconds = (s.WarmUp + s.Duration).Seconds()
	e.whole = e.seconds + s.Model.Drain.Seconds()
	e.at, e.response = make([]traffic, len(e.services)), make([]float64, len(e.services))
	for i := range e.services {
		e.index[e.services[i].Name] = i
	}
	e.events, e.bytes = bins+10, fixedBytes
	if s.IsPopulation() {
		for i := range s.Clients {
			e.population(&s.Clients[i])
		}
	} else {
		e.topology()
	}
	return Estimate{Events: whole(e.events), Attempts: whole(e.attempts), Bytes: whole(e.bytes)}
}

// topology adds up the traffic from the fleets down, and what is under way from the bottom up: a caller waits for those
// it calls.
func (e *estimator) topology() {
	loads := make([]traffic, len(e.s.Clients))
	for i := range e.s.Clients {
		f := &e.s.Clients[i]
		loads[i] = e.load(f)
		e.consumer(f, &loads[i])
		e.events += loads[i].total + float64(max(f.Instances, 1)) // and the next request of each
		calls := Edges(f.Calls)
		if f.HoldsSessions() { // each opening makes a connection
			calls = slices.Clone(calls)
			for k := range calls {
				calls[k].Pool = 1
			}
			e.events += loads[i].total * 2 // it ends, and its user comes back
		}
		e.calls(f.Name, max(f.Instances, 1), calls, loads[i], f.Patience)
	}
	order := e.order()
	for _, i := range order {
		s := &e.services[i]
		e.calls(s.Name, s.Most(), Edges(s.Calls), e.at[i], 0)
	}
	for _, i := range slices.Backward(order) {
		e.service(i)
	}
	for i := range e.s.Clients {
		e.fleet(&e.s.Clients[i], loads[i])
	}
	e.faults()
}

// whole rounds up, within what an int64 holds.
func whole(x float64) int64 {
	const most = 1 << 60
	if !(x < most) {
		return most
	}
	return int64(math.Ceil(x))
}

// surely is what a count with a mean does not exceed but for a chance of about one in a billion.
func surely(mean float64) float64 { return mean + float64(6*math.Sqrt(mean)) + 10 }

// fleet adds what a fleet has in memory.
func (e *estimator) fleet(f *Fleet, load traffic) {
	e.bytes += float64(max(f.Instances, 1)*instanceBytes) + bins*fleetBin + histograms
	hold := e.hold(f.Name, Edges(f.Calls))
	if f.Patience > 0 {
		hold = math.Min(hold, f.Patience.Seconds())
	}
	under := math.Min(load.total, surely(float64(load.peak*hold)))
	if f.Users > 0 {
		under = float64(f.Users)
		e.bytes += float64(f.Users) * userBytes
	}
	e.bytes += float64(under * callBytes)
}

// load is what a fleet offers.
func (e *estimator) load(f *Fleet) traffic {
	switch {
	case f.Once > 0:
		n := float64(f.Once)
		return traffic{n, n / math.Max(f.Within.Seconds(), 1)}
	case f.Users > 0:
		// Lorden's inequality: the mean number of renewals up to t is at most t/mean + 1 + CV².
		users, mean, spread := float64(f.Users), math.Max(f.pause().Mean().Seconds(), leastThink.Seconds()), 1+f.pause().CV2()
		total := users * (e.seconds/mean + spread)
		return traffic{total + float64(6*math.Sqrt(float64(total*spread))) + 10, users / mean}
	}
	return e.openLoad(f)
}

// attemptsOf is how many attempts a policy makes at most of so many calls from so many instances.
func (e *estimator) attemptsOf(p *abate.Policy, calls, guards float64) float64 {
	retries, hedges := float64(p.MaxRetries), 0.0
	if p.Hedge.Enabled() {
		hedges = float64(min(p.Hedge.MaxHedges, core.MaxCopies-1))
	}
	extra := calls * (float64((1+retries)*(1+hedges)) - 1)
	if b := &p.RetryBudget; b.Enabled() {
		extra = math.Min(extra, e.budgetOf(b, calls, guards))
	}
	return calls + extra
}

// budgetOf is how many extra attempts a budget pays for at most.
func (e *estimator) budgetOf(b *budget.Config, calls, guards float64) float64 {
	switch b.Kind {
	case budget.Tokens: // every call has one success at most
		earned := float64(guards*(b.MaxTokens+float64(b.RefillPerSecond*e.whole))) + float64(b.DepositPerSuccess*calls)
		return earned / b.CostPerRetry
	case budget.Adaptive:
		return float64(b.MaxRatio*calls) + float64(guards*(b.Reserve+1))
	}
	return float64(b.Ratio*calls) + float64(guards*(b.Reserve+1))
}

// calls adds the attempts that a node makes to the traffic of those it calls, and its guards.
func (e *estimator) calls(caller string, instances int, calls []Call, from traffic, patience time.Duration) {
	n := float64(instances)
	restarts := float64(1 + e.restarts(caller))
	for i := range calls {
		c := &calls[i]
		p := e.v.PolicyOf(caller, c.To).WithDefaults()
		_, gated := e.v.ProtectionOf(c.To)
		often := c.Often()
		made := from.total * often
		if c.Share > 0 && c.Share < 1 {
			made = surely(made)
		}
		attempts := e.attemptsOf(&p.Policy, made, float64(n*restarts))
		e.attempts += attempts
		e.events += float64(attempts*eventsPerAttempt(&p.Policy, c, patience, gated)) + float64(made*eventsPerCall(&p.Policy))
		guard := guardBytes + float64(p.CircuitBreaker.SlidingWindow.Calls)
		if p.Hedge.Enabled() {
			guard += hedgeBytes
		}
		e.bytes += float64(n * (guard + float64(c.Pool*16)))
		if k, ok := e.index[c.To]; ok {
			if to := &e.services[k]; to.Balancing == LeastRequest && to.Replicas > 1 {
				e.bytes += n * float64(to.Replicas) * endpointBytes
			}
			to := &e.at[k]
			to.total += attempts
			to.peak += float64(from.peak*often) * attempts / math.Max(made, 1)
		}
	}
}

// eventsPerAttempt counts the end of the work or a refusal, the answer, and what the settings add.
func eventsPerAttempt(p *abate.Policy, c *Call, patience time.Duration, gated bool) float64 {
	n := 2
	for _, more := range []bool{
		p.Timeout > 0 || p.AttemptTimeout > 0 || patience > 0, // its time is up
		!c.Latency.IsZero() || c.Pool > 0,                     // it arrives
		c.Pool > 0, c.Pool > 0,                                // a new connection does, and is ready
		p.MaxRetries > 0, // the back-off before it is over
		p.RateLimit.Enabled() && p.RateLimit.MaxWait > 0, // its token is due
		gated, gated, // it may leave the gate's queue, and has left it
		p.Hedge.Enabled(), // the time for a further copy has come
	} {
		if more {
			n++
		}
	}
	return float64(n)
}

// eventsPerCall counts the permit of a bulkhead, and the end of the wait for it.
func eventsPerCall(p *abate.Policy) float64 {
	if p.Bulkhead.Enabled() {
		return 2
	}
	return 0
}

// hold is how long a node waits for all its calls, in seconds, at most on average.
func (e *estimator) hold(caller string, calls []Call) float64 {
	var sum float64
	for i := range calls {
		c := &calls[i]
		k, ok := e.index[c.To]
		if !ok {
			continue
		}
		p := e.v.PolicyOf(caller, c.To).WithDefaults()
		attempt := e.response[k] + float64(4*c.Latency.Mean().Seconds())
		if p.AttemptTimeout > 0 {
			attempt = math.Min(attempt, p.AttemptTimeout.Seconds())
		}
		n := float64(p.MaxRetries)
		one := float64((n+1)*attempt) + float64(n*(p.MaxDelay+2*e.services[k].RetryAfter).Seconds())
		if p.Bulkhead.Enabled() {
			one += max(p.Bulkhead.MaxWait, time.Second).Seconds() // without a deadline nobody waits for more
		}
		if p.Timeout > 0 {
			one = math.Min(one, p.Timeout.Seconds())
		}
		sum += float64(math.Min(one, e.whole) * c.Often())
	}
	return sum
}

// order lists the services so that callers come before those they call.
func (e *estimator) order() []int {
	callers := make([]int, len(e.services))
	each := func(i int, visit func(int)) {
		for _, c := range Edges(e.services[i].Calls) {
			if to, ok := e.index[c.To]; ok {
				visit(to)
			}
		}
	}
	for i := range e.services {
		each(i, func(to int) { callers[to]++ })
	}
	var list []int
	for i := range callers {
		if callers[i] == 0 {
			list = append(list, i)
		}
	}
	for done := 0; done < len(list); done++ {
		each(list[done], func(to int) {
			if callers[to]--; callers[to] == 0 {
				list = append(list, to)
			}
		})
	}
	return list
}

// service adds what one service has in memory.
func (e *estimator) service(i int) {
	s, in := &e.services[i], e.at[i]
	n := float64(s.Most())
	e.world(s)
	e.bytes += float64(n*instanceBytes) + bins*serviceBin + histograms
	down := e.trouble(s.Name)
	busy := s.ServiceTime.Mean().Seconds() + down + e.hold(s.Name, Edges(s.Calls))
	working, capacity := math.Min(in.total, surely(float64(in.peak*busy))), in.peak
	if s.Workers > 0 {
		workers := n * float64(s.Workers)
		working, capacity = math.Min(in.total, workers), math.Min(in.peak, workers/busy)
	}
	// What comes in above the capacity, what waits for the end of faults, and what chance brings together.
	waiting := float64((in.peak-capacity)*e.seconds) + float64(in.peak*down) +
		6*math.Sqrt(float64(in.total*(1+s.ServiceTime.CV2()))) + 10
	waiting = math.Min(in.total, waiting)
	if q := &s.Queue; q.None {
		waiting = 0
	} else if q.Limit > 0 {
		waiting = math.Min(waiting, n*float64(q.Limit))
	}
	if _, gated := e.v.ProtectionOf(s.Name); gated {
		e.bytes += float64(n*gateBytes) + float64((working+waiting)*arrivalBytes)
	}
	e.bytes += float64(working*callBytes) + float64(waiting*queuedBytes)
	e.response[i] = busy + waiting/math.Max(capacity, 1e-9)
	if e.silent(s) {
		e.response[i] = e.whole
	}
	e.response[i] = math.Min(e.response[i], e.whole)
}

// silent reports whether a service may never answer a request.
func (e *estimator) silent(s *Service) bool {
	return s.Queue.WhenFull == SilenceWhenFull || slices.ContainsFunc(e.s.Faults, func(f Fault) bool {
		return f.Loss == s.Name || f.Outage == s.Name && f.Mode == Blackhole
	})
}

// trouble is for how long faults hit a service, in seconds.
func (e *estimator) trouble(service string) float64 {
	var sum time.Duration
	for i := range e.s.Faults {
		if f := &e.s.Faults[i]; f.hits(service) {
			sum += f.For
		}
	}
	return math.Min(sum.Seconds(), e.whole)
}

// restarts is how often a node's guards are new.
func (e *estimator) restarts(name string) int {
	n := 0
	for i := range e.s.Faults {
		if f := &e.s.Faults[i]; f.Restart == name || f.Operator == name && f.Action == DoRestart {
			n++
		}
	}
	return n
}

// faults adds the events of the faults themselves.
func (e *estimator) faults() {
	sizes := map[string]int{}
	for i := range e.s.Clients {
		sizes[e.s.Clients[i].Name] = max(e.s.Clients[i].Instances, 1)
	}
	for i := range e.services {
		sizes[e.services[i].Name] = max(e.services[i].Replicas, 1)
	}
	for i := range e.s.Faults {
		_, target := e.s.Faults[i].Kind()
		e.events += float64(2*sizes[target] + 1)
	}
}

// population adds a very large fleet, which package population runs: at most three events per attempt, and no guards.
func (e *estimator) population(f *Fleet) {
	load := e.load(f)
	attempts := load.total
	if len(f.Calls) > 0 {
		p := e.v.PolicyOf(f.Name, f.Calls[0].To)
		attempts *= float64(1 + p.MaxRetries)
	}
	const slots = 1_000_000
	e.attempts += attempts
	e.events += load.total + float64(3*attempts) + slots
	e.bytes += float64(max(f.Users, f.Once)*userBytes) + slots*64
}

// SharesFindings reports whether the instances of a caller tell each other what the breakers of their calls to a
// service find out.
func (v *Variant) SharesFindings(caller, callee string) bool {
	b := v.PolicyOf(caller, callee).CircuitBreaker
	return b.Enabled() && b.Fleet
}
