package abatekafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/redelivery"
)

// Stuck handlers are told at once, and again from time to time.
const stuckAgain = time.Minute

// late is from when on a record counts as a backlog: at any moment there are some that have just come.
const late = time.Second

// watch looks once a second for handlers that do not return, and tells the pace how much is overdue.
func (r *running) watch(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var told told
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			now := abate.Now()
			behind := int64(0)
			for _, s := range r.sessions {
				for _, p := range s.everything() {
					behind += p.behindBy(now)
					p.watch(now)
				}
			}
			r.pace.Behind(now, behind)
			told.tell(r, now)
		}
	}
}

// behindBy is how many records of the partition are overdue.
func (p *partition) behindBy(now time.Duration) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.headAge(now) <= late {
		return 0
	}
	behind := int64(max(p.due(now)-p.lane.State().InFlight, 0))
	if p.tier != redelivery.Main && p.ring.at(p.pushed-1).ready > now {
		return behind // what comes after it in a retry topic is due later still
	}
	behind += int64(p.backlog.records)
	if p.unfetched {
		behind += max(p.end-p.fetched, 0)
	}
	return behind
}

// due is how many records of the lane could be delivered by now, or are being. What waits for the end of a flood of dead letters could not. The lock is held.
func (p *partition) due(now time.Duration) (n int) {
	for seq := p.lane.First(); seq < p.pushed; seq++ {
		if s := p.ring.at(seq); !s.done && s.out == nil && !s.flooded && s.ready <= now {
			n++
		}
	}
	return n
}

// headAge is how long the oldest unfinished record has been due. The lock is held.
func (p *partition) headAge(now time.Duration) time.Duration {
	if p.lane.State().Unfinished == 0 {
		return 0
	}
	return max(now-p.ring.at(p.lane.First()).ready, 0)
}

// watch tells of handlers that have run longer than their time and do not heed their context. Their message is neither skipped nor given to another:
// only the end of the process helps, and a person decides that.
func (p *partition) watch(now time.Duration) {
	limit := p.s.r.view().c.HandlerTimeout
	type stuck struct {
		offset int64
		since  time.Duration
	}
	var all []stuck
	p.mu.Lock()
	for _, w := range p.workers {
		if w.began > 0 && now-w.began > limit && (w.told == 0 || now-w.told >= stuckAgain) {
			w.told = now
			all = append(all, stuck{w.offset, now - w.began})
		}
	}
	p.mu.Unlock()
	for _, h := range all {
		p.log.Error("handler does not return although its context has ended: nothing is skipped, but its place is taken until it returns; look at the process's goroutines",
			"offset", h.offset, "running_for", h.since.Round(time.Millisecond), "handler_timeout", limit)
		p.observe(redelivery.Event{Kind: redelivery.Stuck, Offset: h.offset, Latency: h.since, Reason: "handler-timeout",
			Err: fmt.Errorf("the handler has run for %v, its limit is %v: %w", h.since.Round(time.Millisecond), limit, errStuck)})
	}
}

var errStuck = errors.New("it ignores its context")
