package abatekafka

import (
	"time"

	"github.com/abate-go/abate/policy/redelivery"
)

// drainAgain is how often people are told how long a drain will take.
const drainAgain = time.Minute

// told is what people were told of a consumer as a whole.
type told struct {
	flood   bool
	drained time.Duration // when they were told of the drain; 0 for not in this one
}

// tell says that a flood of dead letters has begun or ended, and how long a drain will take.
func (t *told) tell(r *running, now time.Duration) {
	if f := r.flood.State(now); f.Holding != t.flood {
		t.flood = f.Holding
		t.tellFlood(r, f)
	}
	switch s := r.pace.State(now); {
	case !s.Draining:
		t.drained = 0
	case s.Behind > 0 && (t.drained == 0 || now-t.drained >= drainAgain):
		t.drained = now
		r.log.Info("backlog drains; the service gets its usual load and a bit more until it is gone, see kafka.drain", "behind", s.Behind, "limit_per_second", s.Limit,
			"eta", s.ETA.Round(time.Second))
		r.observe(redelivery.Event{Kind: redelivery.Draining, Reason: "backlog", Delay: s.ETA})
	}
}

func (t *told) tellFlood(r *running, f redelivery.FloodState) {
	if !f.Holding {
		r.log.Info("flood of dead letters has ended: messages that are given up are dead letters again", "held", f.Held)
		r.observe(redelivery.Event{Kind: redelivery.FloodEnded, Reason: "flood"})
		return
	}
	r.log.Error("too many messages would be given up, so that these wait in the last retry topic instead of becoming dead letters: look after the service or what was "+
		"deployed last; to have dead letters nevertheless, set kafka.flood.disabled", "share", f.Share, "letters", f.Letters)
	r.observe(redelivery.Event{Kind: redelivery.FloodBegan, Reason: "flood"})
}

// observe tells the observer of what is no partition's own.
func (r *running) observe(e redelivery.Event) {
	if o := r.c.Observer; o != nil {
		e.Service, e.Group, e.Topic, e.Partition, e.Tier = r.c.Guard.Name(), r.c.Group, r.c.Topics[0], -1, redelivery.Main
		o.ObserveRedelivery(e)
	}
}
