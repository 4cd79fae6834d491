package abateadmin

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/shed"
)

// Causes of a gate: how requests ended, then why it said no: what the shedder decides in its own order, and what others
// do.
const (
	shedCauses  = 4
	gateLimited = shedCauses + len(shed.Reasons)
	gateLate    = gateLimited + 1
	gateOther   = gateLimited + 2
	gateCauses  = gateLimited + 3
)

func gateCause(which int) string {
	switch {
	case which < shedCauses:
		return abate.Class(which).String()
	case which < gateLimited:
		return shed.Reasons[which-shedCauses].String()
	case which == gateLimited:
		return "rate limited"
	case which == gateLate:
		return "deadline"
	}
	return "other"
}

// gateRecord counts the events of the gates with one name.
type gateRecord struct {
	history
	running atomic.Int64
}

// ObserveGate counts one event.
func (r *gateRecord) ObserveGate(e inbound.GateEvent) {
	switch e.Kind {
	case inbound.RequestAdmitted:
		r.running.Add(1)
		r.arrived(&e)
	case inbound.RequestRefused:
		if e.Shadow || errors.Is(e.Reason, context.Canceled) {
			return
		}
		r.arrived(&e)
		lap, s := r.at(e.At)
		s.refused.add(lap, first)
		which := refusedBy(&e)
		r.cause(e.At, which)
		if !r.heard(e.At, which) {
			r.notes.add(e.At, "first request refused: "+gateCause(which))
		}
	case inbound.RequestDone:
		r.done(&e)
	}
}

// arrived counts a request, and whether it is somebody's second attempt.
func (r *gateRecord) arrived(e *inbound.GateEvent) {
	lap, s := r.at(e.At)
	if e.Attempt > 1 {
		s.sent.add(lap, second)
	} else {
		s.sent.add(lap, first)
	}
}

func (r *gateRecord) done(e *inbound.GateEvent) {
	r.running.Add(-1)
	lap, s := r.at(e.At)
	if e.Class != abate.Success {
		r.cause(e.At, int(e.Class&3))
	}
	switch e.Class {
	case abate.Failure, abate.Overload:
		s.ended.add(lap, second)
		s.answered.add(lap, first+second)
	case abate.Ignored: // such as a caller who left: it says nothing about how long a request takes
		return
	default:
		s.ended.add(lap, first)
		s.answered.add(lap, first)
	}
	s.spent.sum(lap, uint64(max(e.Latency, 0)/time.Microsecond))
}

func refusedBy(e *inbound.GateEvent) int {
	switch {
	case e.Shed != shed.None:
		for i, reason := range shed.Reasons {
			if reason == e.Shed {
				return shedCauses + i
			}
		}
	case e.Reason == abate.ErrRateLimited:
		return gateLimited
	case e.Reason == abate.ErrDeadline:
		return gateLate
	}
	return gateOther
}

// tellGate makes the story of a gate.
func (r *Row) tellGate(p past) {
	r.Story = Story{Cause: r.gateCause(&p), Effect: r.effect(p.tally, "requests", "was", "were"), Next: r.gateNext(&p)}
}

func (r *Row) gateCause(p *past) string {
	if p.tally.Refused == 0 {
		if p.tally.Fail > 0 {
			return fmt.Sprintf("The service failed %d of %s.", p.tally.Fail, count(p.tally.Answers, "request",
				"requests"))
		}
		return ""
	}
	switch p.refusal {
	case shed.CPU.String():
		return fmt.Sprintf("The processor is at %.0f %%.", 100*p.load)
	case "rate limited":
		return "A caller sends more than its rate limit."
	case "deadline", shed.Expired.String():
		return "Requests come whose callers no longer wait for the answer."
	case shed.LaterAttempt.String():
		return fmt.Sprintf("Callers send again what has failed: %.2f requests for each first one.", r.Amplification)
	}
	if r.Limit > 0 {
		return fmt.Sprintf("More comes than the service can do: %d of %d places are taken, and %s.", p.taken, r.Limit,
			count(r.Queued, "request waits", "requests wait"))
	}
	return fmt.Sprintf("Requests are refused, most often for this: %s.", p.refusal)
}

func (r *Row) gateNext(p *past) string {
	switch {
	case p.tally.Refused == 0 && r.Queued == 0:
		return ""
	case p.refusal == shed.CPU.String():
		return "Fewer are refused as its load falls."
	case r.Queued > 0:
		return "The next place that is free goes to a request that waits."
	}
	return "Whoever was refused is told when to come back."
}
