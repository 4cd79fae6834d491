package abatekafka

import (
	"errors"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/policy/redelivery"
)

// beforehand looks for reasons not to deliver a record at all. over tells that there is one.
func (p *partition) beforehand(d *delivery) (end ending, over bool) {
	if p.tier == redelivery.Main {
		return p.behind(d)
	}
	l := &d.message.Letter
	if l.Group != "" && l.Group != p.s.r.c.Group && !p.s.r.names.GroupInNames {
		p.s.r.foreign(p, d.message)
		p.observe(withReason(d.event(redelivery.Foreign), "another-group"))
		return ending{}, true
	}
	if d.slot.held == 0 && d.slot.refused == 0 && p.repeated(d.message) {
		p.observe(withReason(d.event(redelivery.Duplicate), "forwarded-twice"))
		return ending{}, true
	}
	if flooded(d.message) {
		if _, since := ages(p.s.r.date(d.began), d.message); p.s.r.flood.Waits(d.began, since) {
			return p.waitsOut(d), true
		}
	}
	return p.behind(d)
}

// waitsOut keeps a message undelivered while a flood lasts. Where others wait behind a window that is full of such messages, it goes to the end of its topic
// instead: the service is to get those. It has been looked at before then, so that a topic with a short delay is not written again and again.
func (p *partition) waitsOut(d *delivery) ending {
	e := withReason(d.event(redelivery.Held), flood)
	if d.slot.refused == 0 || !p.crowded() || p.parking != nil && d.slot.keyed { // those with its key would overtake it
		p.observe(e)
		return ending{action: hold, delay: redelivery.FloodAgain, refused: true, flooded: true}
	}
	rec := p.way.forward.waiting(d.message, p.tier, flood)
	e.To = rec.Topic
	return ending{action: send, out: &outgoing{p: p, rec: rec, event: e, tier: p.tier}}
}

// crowded reports whether records wait for room in the window.
func (p *partition) crowded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.backlog.records > 0
}

// flood is why a message is held that would be one of too many dead letters.
const flood = "flood"

// flooded reports whether a message was forwarded last because of a flood of dead letters.
func flooded(m *Message) bool { return m.Letter.Reason == flood }

func withReason(e redelivery.Event, why string) redelivery.Event {
	e.Reason = why
	return e
}

// failed decides what becomes of a message whose delivery failed.
func (p *partition) failed(d *delivery, now time.Duration, err error) ending {
	if p.ctx.Err() != nil { // cut off at shutdown or by a rebalance: that is nobody's failure
		return ending{action: left}
	}
	f := p.failure(d, now, err)
	v := p.s.r.flood.Next(now, p.s.r.view().plan, f)
	e := withReason(d.event(0), v.Reason)
	e.Class, e.Delay, e.Err = f.Class, v.Delay, err
	switch v.Action {
	case redelivery.Hold:
		e.Kind = redelivery.Held
		p.observe(e)
		return p.held(f, v, now, err)
	case redelivery.Drop:
		return p.dropped(d, e)
	case redelivery.DeadLetter:
		rec, l := p.way.forward.dead(d.message, v, err)
		if rec == nil {
			return p.dropped(d, e)
		}
		e.Kind, e.To = redelivery.DeadLettered, rec.Topic
		return ending{action: send, out: &outgoing{p: p, rec: rec, event: e, letter: &l}}
	}
	if v.Tier == p.tier && p.parking != nil && d.slot.keyed {
		return p.stays(d, v, e, err)
	}
	rec := p.way.forward.hop(d.message, v, err)
	e.Kind, e.To = redelivery.Forwarded, rec.Topic
	return ending{action: send, out: &outgoing{p: p, rec: rec, event: e, tier: v.Tier}}
}

// dropped forgets a message, because the policy says so.
func (p *partition) dropped(d *delivery, e redelivery.Event) ending {
	p.log.Warn("message dropped after its last delivery, as the policy says", "offset", e.Offset, "original_topic", d.message.Topic,
		"original_offset", d.message.Offset, "delivery", e.Delivery, "reason", e.Reason, "class", e.Class, "error", e.Err)
	e.Kind = redelivery.Dropped
	p.observe(e)
	return ending{}
}

// held keeps a message, and stops its partition if the plan says so.
func (p *partition) held(f redelivery.Failure, v redelivery.Verdict, now time.Duration, err error) ending {
	end := ending{action: hold, delay: v.Delay, refused: f.Refused, why: pacing}
	circuit := time.Duration(0)
	if b := p.s.r.c.Guard.Breaker(); b != nil && b.ClosedOff(now) {
		end.why, circuit = circuitOpen, max(b.RetryIn(now), redelivery.Brief)
	}
	if circuit > 0 || refusal(err) { // what Once makes wait is one message's own affair
		end.delay, end.stop = p.s.r.view().plan.Rest(f, v, circuit)
	}
	return end
}

// failure is what the plan is told of it.
func (p *partition) failure(d *delivery, now time.Duration, err error) redelivery.Failure {
	r := p.s.r
	m := d.message
	f := redelivery.Failure{
		Tier: p.tier, Delivery: m.Delivery, Class: letter.Class(err), Held: d.slot.held,
		RetryAfter: d.outcome.RetryAfter,
	}
	f.Age, f.Since = ages(r.date(now), m)
	f.Flooded = flooded(m)
	wait, busy := refusedFor(err)
	if f.Refused = d.attempts == 0 && refusal(err) || busy; f.Refused {
		f.Held, f.Wait = d.slot.refused, wait
	} else {
		// What a guard inside the handler gave up on may be well later, whatever it told this one about repeating it at once.
		f.Permanent = d.outcome.NoRetry && !innerGuard(d.outcome.Err) || reused(err)
	}
	if b := r.c.Guard.Breaker(); b != nil {
		if b.Rejecting(now) {
			f.Wait = max(f.Wait, b.RetryIn(now), redelivery.Brief) // half-open and ramping up, it says nothing, but will let some through soon
		}
		if f.CircuitOpen = b.ClosedOff(now); f.CircuitOpen { // not while it ramps up: then a message that fails is to blame
			r.trouble(now)
		}
	}
	// A guard inside the handler refused, so what is ill is what that one calls. This service is not: no trouble.
	f.CircuitOpen = f.CircuitOpen || !f.Refused && refusal(err) && errors.Is(err, abate.ErrCircuitOpen)
	return f
}

// ages are how old a message is and how long ago it failed first. A timestamp that cannot be, before 2000 or more than a day ahead, says nothing of the
// message's age: then what is known is when it failed first.
func ages(now time.Time, m *Message) (age, since time.Duration) {
	if first := m.Letter.First; letter.Credible(first, now) {
		since = max(now.Sub(first), 0)
	}
	if !letter.Credible(m.Timestamp, now) {
		return since, since
	}
	return max(now.Sub(m.Timestamp), since), since
}

// innerGuard tells whether an attempt's error is the end of a call under another guard.
func innerGuard(err error) bool {
	var e *abate.Error
	return errors.As(err, &e)
}
