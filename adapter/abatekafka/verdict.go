package abatekafka

import (
	"errors"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/policy/redelivery"
)

// beforehand looks for reasons not to deliver a record at all. over reports that there is one.
func (l *deliverer) beforehand(d *delivery) (end ending, over bool) {
	if l.tier == redelivery.Main {
		return l.behind(d)
	}
	from := d.message.Letter.Group
	if from != "" && from != l.group && !l.shared.names.GroupInNames {
		l.foreign(d.message)
		l.observe(withReason(d.event(redelivery.Foreign), "another-group"))
		return ending{}, true
	}
	if d.record.held == 0 && d.record.refused == 0 && l.repeated(d.message) {
		l.observe(withReason(d.event(redelivery.Duplicate), "forwarded-twice"))
		return ending{}, true
	}
	if flooded(d.message) {
		if _, since := ages(l.shared.date(d.began), d.message); l.shared.flood.Waits(d.began, since) {
			return l.waitsOut(d), true
		}
	}
	return l.behind(d)
}

// waitsOut keeps a message undelivered while a flood lasts. Where others wait behind a window that is full of such
// messages, it goes to the end of its topic instead: the service is to get those. It has been looked at before then, so
// that a topic with a short delay is not written again and again.
func (l *deliverer) waitsOut(d *delivery) ending {
	e := withReason(d.event(redelivery.Held), flood)
	if d.record.refused == 0 || !d.crowded || l.parking != nil && d.record.keyed { // those with its key would overtake it
		l.observe(e)
		return ending{action: hold, delay: redelivery.FloodAgain, refused: true, flooded: true}
	}
	rec := l.way.forward.waiting(d.message, l.tier, flood)
	e.To = rec.Topic
	return ending{action: send, out: &forward{rec: rec, event: e, tier: l.tier}}
}

// flood is why a message is held that would be one of too many dead letters.
const flood = "flood"

// flooded reports whether a message was forwarded last because of a flood of dead letters.
func flooded(m *Message) bool { return m.Letter.Reason == flood }

// failed decides what becomes of a message whose delivery failed.
func (l *deliverer) failed(d *delivery, now time.Duration, err error) ending {
	if l.ctx.Err() != nil { // cut off at shutdown or by a rebalance: that is nobody's failure
		return ending{action: left}
	}
	f := l.failure(d, now, err)
	v := l.shared.flood.Next(now, l.shared.view().plan, f)
	e := withReason(d.event(0), v.Reason)
	e.Class, e.Delay, e.Err = f.Class, v.Delay, err
	switch v.Action {
	case redelivery.Hold:
		e.Kind = redelivery.Held
		l.observe(e)
		return l.held(f, v, now, err)
	case redelivery.Drop:
		return l.dropped(d, e)
	case redelivery.DeadLetter:
		rec, dead := l.way.forward.dead(d.message, v, err)
		if rec == nil {
			return l.dropped(d, e)
		}
		e.Kind, e.To = redelivery.DeadLettered, rec.Topic
		return ending{action: send, out: &forward{rec: rec, event: e, letter: &dead}}
	}
	if v.Tier == l.tier && l.parking != nil && d.record.keyed {
		return l.stays(d, v, e, err)
	}
	rec := l.way.forward.hop(d.message, v, err)
	e.Kind, e.To = redelivery.Forwarded, rec.Topic
	return ending{action: send, out: &forward{rec: rec, event: e, tier: v.Tier}}
}

func (l *deliverer) dropped(d *delivery, e redelivery.Event) ending {
	l.log.Warn("message dropped after its last delivery, as the policy says",
		"offset", e.Offset, "original_topic", d.message.Topic, "original_offset", d.message.Offset,
		"delivery", e.Delivery, "reason", e.Reason, "class", e.Class, "error", e.Err)
	e.Kind = redelivery.Dropped
	l.observe(e)
	return ending{}
}

// held keeps a message, and stops its partition if the plan says so.
func (l *deliverer) held(f redelivery.Failure, v redelivery.Verdict, now time.Duration, err error) ending {
	end := ending{action: hold, delay: v.Delay, refused: f.Refused, why: pacing}
	circuit := time.Duration(0)
	if wait, open := l.shared.closedOff(now); open {
		end.why, circuit = circuitOpen, max(wait, redelivery.Brief)
	}
	if circuit > 0 || refusal(err) { // what Once makes wait is one message's own affair
		end.delay, end.stop = l.shared.view().plan.Rest(f, v, circuit)
	}
	return end
}

// failure describes it to the plan.
func (l *deliverer) failure(d *delivery, now time.Duration, err error) redelivery.Failure {
	m := d.message
	f := redelivery.Failure{
		Tier: l.tier, Delivery: m.Delivery, Class: letter.Class(err), Held: d.record.held,
		RetryAfter: d.outcome.RetryAfter,
	}
	f.Age, f.Since = ages(l.shared.date(now), m)
	f.Flooded = flooded(m)
	wait, busy := refusedFor(err)
	if f.Refused = d.attempts == 0 && refusal(err) || busy; f.Refused {
		f.Held, f.Wait = d.record.refused, wait
	} else {
		// What a guard inside the handler gave up on may be well later, whatever it told this one about repeating it at once.
		f.Permanent = d.outcome.NoRetry && !innerGuard(d.outcome.Err) || reused(err)
	}
	if b := l.shared.guard.Breaker(); b != nil {
		if b.Rejecting(now) {
			// Half-open and ramping up, it says nothing, but will let some through soon.
			f.Wait = max(f.Wait, b.RetryIn(now), redelivery.Brief)
		}
		if f.CircuitOpen = b.ClosedOff(now); f.CircuitOpen { // not while it ramps up: then a message that fails is to blame
			l.shared.trouble(now)
		}
	}
	// A guard inside the handler refused, so what is ill is what that one calls. This service is not: no trouble.
	f.CircuitOpen = f.CircuitOpen || !f.Refused && refusal(err) && errors.Is(err, abate.ErrCircuitOpen)
	return f
}

// ages are how old a message is and how long ago it failed first. A timestamp that cannot be, before 2000 or more than
// a day ahead, says nothing of the message's age: then what is known is when it failed first.
func ages(now time.Time, m *Message) (age, since time.Duration) {
	if first := m.Letter.First; letter.Credible(first, now) {
		since = max(now.Sub(first), 0)
	}
	if !letter.Credible(m.Timestamp, now) {
		return since, since
	}
	return max(now.Sub(m.Timestamp), since), since
}

// innerGuard reports whether an attempt's error is the end of a call under another guard.
func innerGuard(err error) bool {
	var e *abate.Error
	return errors.As(err, &e)
}

// repeated reports whether a record of a retry topic is the second copy of a forward. Records without an identity, as
// others write them, never are.
func (l *deliverer) repeated(m *Message) bool {
	id := m.forwardID()
	return id != "" && l.recent.note(id, m.Record.Offset)
}

// foreign warns once that a retry topic holds what another group failed at: it is that group's to deliver.
func (l *deliverer) foreign(m *Message) {
	l.shared.foreigners.Do(func() {
		l.log.Warn("retry topic is shared with another group, whose messages are passed over; "+
			"set kafka.groupInNames so that each group has retry topics of its own",
			"other_group", m.Letter.Group, "offset", m.Record.Offset)
	})
}

// behind parks a message undelivered in the next retry topic if one with its key is in a later one. over reports that.
func (l *deliverer) behind(d *delivery) (end ending, over bool) {
	next := l.tier + 1
	hops := l.way.chain.Hops
	if l.parking == nil || !d.record.keyed || next >= len(hops) || !l.parking.ahead(l.tier, d.record.key) {
		return ending{}, false
	}
	rec := l.way.forward.parked(d.message, next)
	e := withReason(d.event(redelivery.Parked), "key-ahead")
	e.To = rec.Topic
	return ending{action: send, out: &forward{rec: rec, event: e, tier: next}}, true
}

// stays keeps a message that would go to the end of the same retry topic where it is: those with its key that came
// after it must stay behind it. What the copy would have said counts on. A crash forgets that, and the message gets a
// delivery more.
func (l *deliverer) stays(d *delivery, v redelivery.Verdict, e redelivery.Event, err error) ending {
	rec := l.way.forward.hop(d.message, v, err)
	rec.Topic, rec.Partition, rec.Offset = l.at.topic, l.at.partition, d.record.rec.Offset
	rec.Timestamp = d.record.rec.Timestamp
	e.Kind = redelivery.Held
	l.observe(e)
	return ending{action: hold, delay: v.Delay, instead: l.read(rec)}
}
