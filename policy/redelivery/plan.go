package redelivery

import "time"

// Plan is a Config made ready: the retry topics in their order, and what becomes of a failure. It has no state, and is
// safe for concurrent use.
type Plan struct {
	c     Config
	hops  []Hop
	total int // deliveries that count, the first included
}

const (
	holds     = 3 // how often a message is held after a failure while the circuit is open, before it goes to a retry topic
	firstHold = 100 * time.Millisecond
	longHold  = 5 * time.Second // where nobody says how long
)

// Brief is how long a driver stops a partition after our own policies have refused one of its messages, if nobody says
// how long: the next one would be refused, too.
const Brief = 20 * time.Millisecond

// ProbeEvery is how often a driver looks, at most, whether a circuit that lets nobody in lets somebody in again.
const ProbeEvery = 100 * time.Millisecond

// NewPlan makes a plan. c must be valid. A plan of a Config that is off has no retry topics: every failure that counts
// is the last.
func NewPlan(c Config) *Plan {
	p := &Plan{c: c.WithDefaults(), total: 1}
	if c.Enabled() {
		p.hops = p.c.Hops()
	}
	for _, h := range p.hops {
		p.total += h.Deliveries
	}
	return p
}

// Hops are the retry topics. The slice is shared: do not change it.
func (p *Plan) Hops() []Hop { return p.hops }

// Deliveries is how often a message is delivered at most, the first time included; failures that were excused do not
// count.
func (p *Plan) Deliveries() int { return p.total }

// Next decides what becomes of a message after a failure. It asks, in this order:
//
//  1. Did our own policies refuse it? Then the service has not seen it: it is held for as long as they said, and
//     nothing is used up. After 24 h it is tried again, whatever they said.
//  2. Can another delivery succeed? If not it is a dead letter, also while the circuit is open.
//  3. Is it older than the timeout? Then it is a dead letter, also while the circuit is open: whoever sets a timeout
//     says that nobody waits for it any more.
//  4. Is the circuit open? Then the service is ill and not the message: it is held three times, and after that goes on
//     to the next retry topic, from the last one to the last one again, excused: the delivery does not count. An outage
//     makes no dead letters.
//  5. Are deliveries left? Then it goes to the next retry topic, or to the first after it that waits as long as the
//     service asked for.
//  6. Else it was the last, and dltStrategy says.
//
// A message that was excused may stand further along than its deliveries say. It goes on from where it stands, never
// back, and is delivered from the last retry topic until it has had as many deliveries as any other.
//
// It costs some 10 ns, and 20 ns for each pattern in retryErrors and neverRetryErrors.
func (p *Plan) Next(f Failure) Verdict {
	switch {
	case f.Refused:
		return p.refused(f)
	case f.Permanent:
		return p.end("permanent")
	case p.never(f.Class):
		return p.end("never-retry")
	case p.c.Timeout > 0 && f.Age > p.c.Timeout:
		return p.end("timeout")
	case f.CircuitOpen:
		return p.ill(f)
	case f.Delivery < p.total:
		return p.forward(f, "retry")
	case p.c.DLTStrategy == RetryLast && len(p.hops) > 0:
		f.Tier = len(p.hops) // behind the last is the last
		return p.forward(f, "exhausted")
	}
	return p.end("exhausted")
}

// Remaining is how long a message must still wait before it is delivered: until due, but never longer than the delay of
// its topic, so that a clock that is ahead elsewhere delays nothing for days, and not below 0.
func (p *Plan) Remaining(tier int, untilDue time.Duration) time.Duration {
	if tier < 0 || tier >= len(p.hops) {
		return 0
	}
	return min(max(untilDue, 0), p.hops[tier].Delay)
}

// refused: the guard's own policies said no.
func (p *Plan) refused(f Failure) Verdict {
	wait := max(f.Wait, f.RetryAfter)
	if wait <= 0 {
		wait = min(firstHold<<min(max(f.Held, 0), 6), longHold)
	}
	return Verdict{Action: Hold, Tier: f.Tier, Delay: min(wait, longest), Reason: "refused"}
}

// Rest is what a Hold asks of its partition: the message is delivered again after delay, and nothing else is started
// before stop, because the others would fare no better. circuit is how long the service's circuit lets nothing through,
// 0 if it does. With a concurrency of 1 a refused message stays the first, so that the order of the partition is kept.
func (p *Plan) Rest(f Failure, v Verdict, circuit time.Duration) (delay, stop time.Duration) {
	switch {
	case circuit > 0:
		return v.Delay, max(circuit, Brief)
	case f.Refused && p.c.Concurrency <= 1:
		stop = max(f.Wait, Brief)
		return stop, stop
	case f.Refused:
		return v.Delay, Brief
	}
	return v.Delay, 0
}

// ill: the circuit is open. A retry topic is the better place to wait only for what has been held for long, or is to
// wait longer than its delay.
func (p *Plan) ill(f Failure) Verdict {
	if len(p.hops) > 0 && (f.Held >= holds || f.RetryAfter > p.hops[p.after(f)].Delay) {
		v := p.forward(f, "excused")
		v.Excused = true
		return v
	}
	return Verdict{Action: Hold, Tier: f.Tier, Delay: min(max(f.Wait, f.RetryAfter, firstHold), longest),
		Reason: "circuit-open"}
}

// forward sends a message on. There is a retry topic.
func (p *Plan) forward(f Failure, reason string) Verdict {
	to := p.after(f)
	for to < len(p.hops)-1 && p.hops[to].Delay < f.RetryAfter {
		to++
	}
	return Verdict{Action: Forward, Tier: to, Delay: p.hops[to].Delay, Reason: reason}
}

// after is the retry topic behind the one where a message stands: the last one is behind itself. Only the last one
// delivers more than once, because delays do not fall.
func (p *Plan) after(f Failure) int { return min(max(f.Tier, Main)+1, len(p.hops)-1) }

// end gives a message up.
func (p *Plan) end(reason string) Verdict {
	if p.c.DLTStrategy == DropLast {
		return Verdict{Action: Drop, Reason: reason}
	}
	return Verdict{Action: DeadLetter, Reason: reason}
}

// never reports whether the policy says that errors of this class are not worth another delivery.
func (p *Plan) never(class string) bool {
	return anyMatches(p.c.NeverRetryErrors, class) || len(p.c.RetryErrors) > 0 && !anyMatches(p.c.RetryErrors, class)
}
