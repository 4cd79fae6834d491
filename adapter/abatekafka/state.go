package abatekafka

import (
	"cmp"
	"slices"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
)

// state reads everything. It takes each partition's lock for a moment.
func (r *running) state(now time.Duration) redelivery.State {
	s := redelivery.State{Service: r.c.Guard.Name(), Group: r.c.Group, Pace: r.pace.State(now), Flood: r.flood.State(now)}
	for _, ses := range r.sessions {
		for _, p := range ses.everything() {
			st, oldest := p.state(now)
			s.Partitions = append(s.Partitions, st)
			s.OldestHandler = max(s.OldestHandler, oldest)
		}
		s.Parked += ses.parkedKeys()
	}
	slices.SortFunc(s.Partitions, func(a, b redelivery.PartitionState) int {
		return cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return s
}

// state is the partition's, and how long its oldest handler has been running.
func (p *partition) state(now time.Duration) (st redelivery.PartitionState, oldest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	st = redelivery.PartitionState{
		Topic: p.at.topic, Partition: p.at.partition, Tier: p.tier, Lane: p.lane.State(),
		HeadAge: p.headAge(now), Paused: p.stopped(now),
	}
	if st.Paused != "" && p.paused != "" {
		st.Since = now - p.since
	}
	st.Lag, st.Committed = p.lag()
	for _, w := range p.workers {
		if w.began > 0 {
			oldest = max(oldest, now-w.began)
		}
	}
	return st, oldest
}
