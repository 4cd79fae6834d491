package abatekafka

import (
	"errors"
	"fmt"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
)

// state is the partition's, and how long its oldest handler has been running.
func (p *partition) state(now time.Duration) (st redelivery.PartitionState, oldest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	st = redelivery.PartitionState{
		Topic: p.at.topic, Partition: p.at.partition, Tier: p.tier, Lane: p.window.lane.State(),
		HeadAge: p.window.headAge(now), Paused: p.stopped(now), Committed: max(p.committed, p.before, 0),
	}
	if st.Paused != "" && p.pauses.reported != "" {
		st.Since = now - p.pauses.since
	}
	st.Lag = max(p.window.end-st.Committed, 0)
	for _, w := range p.workers {
		if w.began > 0 {
			oldest = max(oldest, now-w.began)
		}
	}
	return st, oldest
}

// measured takes what the broker says of the log and the group: offsets, or -1 for what is not known.
func (p *partition) measured(end, before int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.window.end = max(p.window.end, end)
	if before >= 0 && p.committed < 0 {
		p.before = before
	}
}

// behind is how many records of the partition are overdue.
func (p *partition) behind(now time.Duration) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	unfetched := int64(0)
	if p.intake.full {
		unfetched = max(p.window.end-p.window.fetched, 0)
	}
	return p.window.behind(now, p.tier == redelivery.Main, unfetched)
}

// stuckAgain is how often a handler that does not return is reported.
const stuckAgain = time.Minute

var errStuck = errors.New("it ignores its context")

// reportStuck reports handlers that have run longer than their time and do not heed their context. Their message is
// neither skipped nor given to another: only the end of the process helps, and a person decides that.
func (p *partition) reportStuck(now time.Duration) {
	limit := p.deliverer.shared.view().c.HandlerTimeout
	type stuck struct {
		offset int64
		since  time.Duration
	}
	var all []stuck
	p.mu.Lock()
	for _, w := range p.workers {
		if w.began > 0 && now-w.began > limit && (w.reported == 0 || now-w.reported >= stuckAgain) {
			w.reported = now
			all = append(all, stuck{w.offset, now - w.began})
		}
	}
	p.mu.Unlock()
	for _, h := range all {
		since := h.since.Round(time.Millisecond)
		p.log.Error("handler does not return although its context has ended: nothing is skipped, "+
			"but its place is taken until it returns; look at the process's goroutines",
			"offset", h.offset, "running_for", since, "handler_timeout", limit)
		p.observe(redelivery.Event{Kind: redelivery.Stuck, Offset: h.offset, Latency: h.since, Reason: "handler-timeout",
			Err: fmt.Errorf("the handler has run for %v, its limit is %v: %w", since, limit, errStuck)})
	}
}
