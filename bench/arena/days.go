package main

import (
	"time"
)

// The rig. Every contender gets the same.
const (
	workers     = 20
	serviceTime = 50 * time.Millisecond // of one request
	queueLength = 900                   // FIFO; who finds it full gets a 503 at once
	requestRate = 250.0                 // a second, at times drawn from a Poisson process

	attemptTimeout = time.Second     // of one attempt at the service
	patience       = 2 * time.Second // a caller waits no longer, whatever is tried for it

	dayLength  = 25 * time.Second
	faultStart = 5 * time.Second
	faultEnd   = 10 * time.Second
	bucket     = 500 * time.Millisecond // what the curves and "back to 95 %" are made of
)

// condition is how the service is at one moment. The zero value is a healthy one.
type condition struct {
	slower  float64       // service times take so many times as long; 0 is as usual
	hangs   float64       // share of requests whose worker waits until the condition has ended, then does its work
	fails   float64       // share of requests answered with a 503
	failsIn time.Duration // a worker is busy for so long with one that fails
	loses   float64       // share of requests that are never answered, and of which no worker hears
	workers int           // that work; 0 for all
	down    bool          // nobody listens, and what was begun or queued is lost
}

// day is what happens to the service and how many requests come, from 0 to dayLength.
type day struct {
	name    string
	what    string // for the page and docs/arena.md
	healthy bool
	quick   bool // belongs to the three that -quick runs

	endpoints int                                     // that the workers and the queue are divided among; 0 is 1
	sick      int                                     // endpoints that the fault is at; 0 for all
	faults    []fault                                 // in order of time, not overlapping
	rate      func(at time.Duration) (factor float64) // of requestRate; nil for 1
}

// fault is a condition for a while.
type fault struct {
	from, to time.Duration
	condition
}

// during is one fault in the usual five seconds.
func during(c condition) []fault { return []fault{{faultStart, faultEnd, c}} }

// allDays are the storms of the issue first, so that -quick and a whole run begin alike.
var allDays = []day{
	{name: "hang", quick: true, what: "the database hangs: whatever a worker has begun takes until it is back",
		faults: during(condition{hangs: 1})},
	{name: "slow", quick: true, what: "everything takes five times as long", faults: during(condition{slower: 5})},
	{name: "errors", quick: true, what: "a 503 at once",
		faults: during(condition{fails: 1, failsIn: time.Millisecond})},
	{name: "refuse", what: "nobody listens; what was queued is lost", faults: during(condition{down: true})},
	{name: "slow errors", what: "a 503 after half a second of work",
		faults: during(condition{fails: 1, failsIn: 500 * time.Millisecond})},
	{name: "partial hang", what: "one request in fifty hangs, and its worker with it",
		faults: during(condition{hangs: 0.02})},
	{name: "brown-out", what: "30 % of the requests get a 503 at once",
		faults: during(condition{fails: 0.3, failsIn: time.Millisecond})},
	{name: "loss", what: "20 % of the requests get no answer, and no worker hears of them",
		faults: during(condition{loses: 0.2})},
	{name: "capacity", what: "8 of 20 workers are left: 160 requests a second", faults: during(condition{workers: 8})},
	{name: "surge", what: "three times as many requests, nearly twice what the service can do",
		rate: between(faultStart, faultEnd, 3)},
	{name: "restart", what: "two seconds down, then three seconds twice as slow", faults: []fault{
		{faultStart, faultStart + 2*time.Second, condition{down: true}},
		{faultStart + 2*time.Second, faultEnd, condition{slower: 2}}}},
	{name: "flapping", what: "it hangs for half a second, serves for half a second, and so on",
		faults: flapping(condition{hangs: 1})},
	{name: "bad endpoint", what: "one of four endpoints answers 503 at once", endpoints: 4, sick: 1,
		faults: during(condition{fails: 1, failsIn: time.Millisecond})},
	{name: "hung endpoint", what: "one of four endpoints hangs", endpoints: 4, sick: 1,
		faults: during(condition{hangs: 1})},
	{name: "bursts", healthy: true, what: "every two seconds three times as many requests for 200 ms", rate: bursts},
	{name: "cold start", healthy: true,
		what:   "from nothing to the whole load at once, the first three seconds 1.4 times slower",
		faults: []fault{{0, 3 * time.Second, condition{slower: 1.4}}}},
	{name: "slower for good", healthy: true,
		what:   "from the fifth second on everything takes 1.4 times as long: 88 % load",
		faults: []fault{{faultStart, dayLength + patience, condition{slower: 1.4}}}},
}

// between multiplies the rate for a while.
func between(from, to time.Duration, factor float64) func(time.Duration) float64 {
	return func(at time.Duration) float64 {
		if at >= from && at < to {
			return factor
		}
		return 1
	}
}

func bursts(at time.Duration) float64 {
	if at%(2*time.Second) < 200*time.Millisecond {
		return 3
	}
	return 1
}

func flapping(c condition) (all []fault) {
	for at := faultStart; at < faultEnd; at += 2 * bucket {
		all = append(all, fault{at, at + bucket, c})
	}
	return all
}

// at returns the condition of one endpoint, and when it ends; 0 when nothing is wrong.
func (d day) at(now time.Duration, endpoint int) (c condition, until time.Duration) {
	if d.sick > 0 && endpoint >= d.sick {
		return condition{}, 0
	}
	for _, f := range d.faults {
		if now >= f.from && now < f.to {
			return f.condition, f.to
		}
	}
	return condition{}, 0
}

// endpointsOf is how many there are.
func (d day) endpointsOf() int { return max(d.endpoints, 1) }

// rateAt is how many requests a second come.
func (d day) rateAt(now time.Duration) float64 {
	if d.rate == nil {
		return requestRate
	}
	return requestRate * d.rate(now)
}
