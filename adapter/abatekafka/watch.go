package abatekafka

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/redelivery"
)

// watch looks once a second for handlers that do not return, and reports to the pace how much is overdue.
func (r *running) watch(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var last reported
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			now := core.Now()
			behind := int64(0)
			for _, s := range r.sessions {
				for _, p := range s.everything() {
					behind += p.behind(now)
					p.reportStuck(now)
				}
			}
			r.handling.pace.Behind(now, behind)
			last.update(r, now)
		}
	}
}

// state reads everything. It takes each partition's lock for a moment.
func (r *running) state(now time.Duration) redelivery.State {
	s := redelivery.State{
		Service: r.service, Group: r.group, Pace: r.handling.pace.State(now), Flood: r.handling.flood.State(now),
	}
	for _, ses := range r.sessions {
		for _, p := range ses.everything() {
			st, oldest := p.state(now)
			s.Partitions = append(s.Partitions, st)
			s.OldestHandler = max(s.OldestHandler, oldest)
		}
		s.Parked += ses.parkings.len()
	}
	slices.SortFunc(s.Partitions, func(a, b redelivery.PartitionState) int {
		return cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return s
}

// drainAgain is how often it is reported how long a drain will take.
const drainAgain = time.Minute

// reported is what was reported of a consumer as a whole.
type reported struct {
	flood   bool
	drained time.Duration // when the drain was reported; 0 for not in this one
}

// update reports that a flood of dead letters has begun or ended, and how long a drain will take.
func (t *reported) update(r *running, now time.Duration) {
	if f := r.handling.flood.State(now); f.Holding != t.flood {
		t.flood = f.Holding
		t.reportFlood(r, f)
	}
	switch s := r.handling.pace.State(now); {
	case !s.Draining:
		t.drained = 0
	case s.Behind > 0 && (t.drained == 0 || now-t.drained >= drainAgain):
		t.drained = now
		r.log.Info("backlog drains; the service gets its usual load and a bit more until it is gone, see kafka.drain",
			"behind", s.Behind, "limit_per_second", s.Limit, "eta", s.ETA.Round(time.Second))
		r.observe(redelivery.Event{Kind: redelivery.Draining, Reason: "backlog", Delay: s.ETA})
	}
}

func (t *reported) reportFlood(r *running, f redelivery.FloodState) {
	if !f.Holding {
		r.log.Info("flood of dead letters has ended: messages that are given up are dead letters again", "held", f.Held)
		r.observe(redelivery.Event{Kind: redelivery.FloodEnded, Reason: "flood"})
		return
	}
	r.log.Error("too many messages would be given up, so that these wait in the last retry topic instead of becoming "+
		"dead letters: look after the service or what was deployed last; "+
		"to have dead letters nevertheless, set kafka.flood.disabled",
		"share", f.Share, "letters", f.Letters)
	r.observe(redelivery.Event{Kind: redelivery.FloodBegan, Reason: "flood"})
}
