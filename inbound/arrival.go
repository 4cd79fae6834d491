package inbound

import (
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/clock"
	"github.com/abate-go/abate/policy/comeback"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/shed"
)

// Request is what a gate is told of an arriving request.
type Request struct {
	// Deadline is when its caller stops waiting, on the guards' clock, or NoDeadline.
	Deadline time.Duration
	// Key chooses its bucket of the rate limit. It is not kept.
	Key string
	// Cost is how many tokens it takes; 0 means the cost in the protection.
	Cost float64
	// Priority is how much it matters.
	Priority shed.Priority
	// Attempt is its number among those of the same call, from 1.
	Attempt int
	// Caller tells callers apart, for fairness: a hash. 0 is nobody in particular.
	Caller uint64
}

// Arrival is one request at a gate as a state machine: the receiving side's Call. It is told what happened and when,
// and answers what to do next; it starts no goroutine, reads no clock, does not look at the processor and never blocks.
// The order of its decisions:
//
//	deadline → rate limit → shed { expired, priority, attempt, newest } → the service
//
// An Arrival is used by one goroutine at a time, once. Gate.Arrive starts it; one that came to Handle must come to
// Done, else its place is lost.
type Arrival struct {
	s        *gateSettings
	arrived  time.Duration
	handled  time.Duration // since when the service has it
	permit   shed.Permit
	limit    ratelimit.Decision
	refusal  Refusal
	request  Request
	deadline time.Duration
	limited  bool // limit is set
	held     bool // permit is
	lending
}

// Refusal is why a gate refused a request, and what its caller should be told.
type Refusal struct {
	// Reason is ErrRateLimited, ErrOverloaded, ErrDeadline, or a context's error.
	Reason error
	// Shed says more about ErrOverloaded.
	Shed shed.Reason
	// RetryAfter is how long the caller should stay away; 0 when there is nothing to say. Those who are refused are told
	// to come back one after the other, as the service can do them, or as their bucket fills: at most half a minute later
	// than the first, or twice as late as the bucket needs for the first. WholeSeconds is what HTTP says.
	RetryAfter time.Duration
	// NoRetry reports that the caller should not try again: too many of the requests that arrive are retries already,
	// or it would never succeed.
	NoRetry bool
}

// Arrive begins a, for a request that arrives now.
func (g *Gate) Arrive(a *Arrival, now time.Duration, r Request) core.Step {
	s := g.inForce()
	a.s, a.arrived, a.request, a.deadline = s, now, r, r.Deadline
	if t := s.protection.Timeout; t > 0 {
		a.deadline = min(a.deadline, clock.Later(now, t))
	}
	if now >= a.deadline {
		return a.refuse(now, core.ErrDeadline, shed.Expired)
	}
	if a.request.Cost == 0 {
		a.request.Cost = s.protection.RateLimit.Cost
	}
	if s.fleet != nil {
		d, ok := s.fleet.TryTake(now, r.Key, a.request.Cost)
		if !ok {
			return core.Step{Action: core.Ask}
		}
		return a.Limited(now, d)
	}
	if s.limiter != nil {
		return a.Limited(now, s.limiter.Allow(now, r.Key, a.request.Cost))
	}
	return a.admit(now, false)
}

// Limited goes on with what the rate limit decided.
func (a *Arrival) Limited(now time.Duration, d ratelimit.Decision) core.Step {
	a.limit, a.limited = d, true
	if a.s.observer != nil {
		a.s.emit(GateEvent{Kind: LimitDecided, At: now, Priority: a.request.Priority, Over: d.Over, Shadow: d.Over &&
			d.Allowed})
	}
	switch {
	case !d.Allowed:
		return a.refuse(now, core.ErrRateLimited, shed.None)
	case now >= a.deadline:
		return a.refuse(now, core.ErrDeadline, shed.Expired)
	}
	return a.admit(now, false)
}

// admit asks the shedder. It has to know how busy the processor is: measured says that it was just told.
func (a *Arrival) admit(now time.Duration, measured bool) core.Step {
	s := a.s
	if s.shedder == nil {
		return a.handle(now)
	}
	if s.cpu && !measured && s.gate.cpuDue(now) {
		return core.Step{Action: core.Measure}
	}
	permit, verdict, reason := s.shedder.Admit(now, a.shedRequest())
	switch verdict {
	case shed.Full:
		return core.Step{Action: core.Queue}
	case shed.Refused:
		return a.refuse(now, core.ErrOverloaded, reason)
	}
	return a.admitted(now, permit, reason)
}

// Measured goes on after a Measure step. share is which share of the processor time that there is was used lately, 0 to
// 1.
func (a *Arrival) Measured(now time.Duration, share float64) core.Step {
	a.s.shedder.SetCPU(now, share)
	return a.admit(now, true)
}

func (a *Arrival) shedRequest() shed.Request {
	r := shed.Request{Priority: a.request.Priority, Attempt: a.request.Attempt, Caller: a.request.Caller}
	switch a.deadline {
	case core.NoDeadline:
	case 0:
		r.Deadline = -1 // 0 is none
	default:
		r.Deadline = a.deadline
	}
	return r
}

// admitted takes a permit. reason is why a shadow would have refused it.
func (a *Arrival) admitted(now time.Duration, permit shed.Permit, reason shed.Reason) core.Step {
	a.permit, a.held = permit, true
	if reason != shed.None && a.s.observer != nil {
		a.tell(now, GateEvent{Kind: RequestRefused, At: now, Priority: a.request.Priority, Attempt: a.request.Attempt,
			Reason: core.ErrOverloaded, Shed: reason, Shadow: true})
	}
	return a.handle(now)
}

// tell tells the observer of a request that has its place. If the observer ends the goroutine nobody is left who would
// say Done.
func (a *Arrival) tell(now time.Duration, e GateEvent) {
	told := false
	defer func() {
		if !told && a.held {
			a.held = false
			a.s.shedder.Release(now, a.permit, shed.Ignored)
		}
	}()
	a.s.emit(e)
	told = true
}

func (a *Arrival) handle(now time.Duration) core.Step {
	a.handled = now
	if a.s.observer != nil {
		a.tell(now, GateEvent{Kind: RequestAdmitted, At: now, Priority: a.request.Priority, Attempt: a.request.Attempt,
			Delay: now - a.arrived})
	}
	return core.Step{Action: core.Handle, Until: a.deadline}
}

// Enqueue puts the request in the queue, after a Queue step. w must not move until the request leaves the queue.
func (a *Arrival) Enqueue(now time.Duration, w *shed.Waiter) core.Step {
	switch verdict, until := a.s.shedder.Enqueue(now, w, a.shedRequest()); verdict {
	case shed.Queued:
		return core.Step{Action: core.Queued, Until: min(a.deadline, until)}
	default:
		return a.Woken(now, w)
	}
}

// Woken goes on after the queue: w has an outcome.
func (a *Arrival) Woken(now time.Duration, w *shed.Waiter) core.Step {
	permit, reason := w.Outcome()
	switch {
	case reason != shed.None:
		return a.refuse(now, core.ErrOverloaded, reason)
	case now >= a.deadline: // it took its time to wake up
		a.s.shedder.Release(now, permit, shed.Ignored)
		return a.refuse(now, core.ErrDeadline, shed.Expired)
	}
	return a.admitted(now, permit, shed.None)
}

// LeaveQueue ends the wait: the time is up (cause nil) or the caller has left (cause its context's error). If an
// outcome came at the same moment, a request whose time was up goes on with it.
func (a *Arrival) LeaveQueue(now time.Duration, w *shed.Waiter, cause error) core.Step {
	left := a.s.shedder.Leave(now, w, cause == nil)
	if cause == nil {
		return a.Woken(now, w)
	}
	if permit, reason := w.Outcome(); !left && reason == shed.None {
		a.s.shedder.Release(now, permit, shed.Ignored)
	}
	return a.refuse(now, cause, shed.None)
}

// Done ends an arrival that was handled: the service is through with it. What it came to teaches the limits: the time
// of a Success counts; an Overload, or what ended past its deadline, was too much; other failures say nothing.
// While the slot was lent the service was not at work, so that time does not count.
func (a *Arrival) Done(now time.Duration, class core.Class) {
	a.Resume(now)
	if a.held {
		a.held = false
		a.s.shedder.Release(now, a.permit, a.result(now, class))
	}
	if a.s.observer != nil {
		a.s.emit(GateEvent{Kind: RequestDone, At: now, Priority: a.request.Priority, Attempt: a.request.Attempt,
			Class: class, Latency: now - a.handled - a.away})
	}
}

func (a *Arrival) result(now time.Duration, class core.Class) shed.Result {
	switch {
	case class == core.Overload, class == core.Failure && now-a.away >= a.deadline:
		return shed.Dropped
	case class == core.Success:
		return shed.Done
	}
	return shed.Ignored
}

// refuse ends the arrival without handling it.
func (a *Arrival) refuse(now time.Duration, reason error, why shed.Reason) core.Step {
	a.refusal = Refusal{Reason: reason, Shed: why}
	switch r := &a.refusal; reason {
	case core.ErrRateLimited:
		if r.NoRetry = a.limit.RetryAfter == ratelimit.Never; !r.NoRetry {
			r.RetryAfter = a.s.comeBackForTokens(now, a)
		}
	case core.ErrOverloaded:
		r.RetryAfter, r.NoRetry = comeback.Soonest, a.s.shedder.RetriesTooMany(now)
		if why != shed.Expired { // who does not wait any more takes no place among those who come back
			r.RetryAfter = a.s.comeBackForLoad(now)
		}
	}
	if a.s.observer != nil {
		a.s.emit(GateEvent{Kind: RequestRefused, At: now, Priority: a.request.Priority, Attempt: a.request.Attempt,
			Reason: reason, Shed: why, Delay: now - a.arrived})
	}
	return core.Step{Action: core.Refuse, Err: reason}
}

// Refusal is why the request was refused, after a Refuse step.
func (a *Arrival) Refusal() *Refusal { return &a.refusal }

// Limit is what the rate limit said, and whether there is one: for the headers of the answer.
func (a *Arrival) Limit() (ratelimit.Decision, bool) { return a.limit, a.limited }

// NoRetry reports whether the answer should ask its caller not to try again, whatever it is: too many of the requests
// that arrive are retries already.
func (a *Arrival) NoRetry(now time.Duration) bool {
	return a.s.shedder != nil && a.s.shedder.RetriesTooMany(now)
}

// cpuInterval is how often the processor is looked at.
const cpuInterval = 250 * time.Millisecond

// cpuDue reports whether the processor was not looked at lately, to one request in so many: that one pays for the look.
func (g *Gate) cpuDue(now time.Duration) bool {
	next := g.nextCPU.Load()
	return int64(now) >= next && g.nextCPU.CompareAndSwap(next, int64(clock.Later(now, cpuInterval)))
}
