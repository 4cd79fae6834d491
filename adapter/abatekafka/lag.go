package abatekafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// lagEvery is how often the ends of the logs are looked up: what a partition that is not fetched cannot know from its fetches.
const lagEvery = 5 * time.Second

// lagLoop keeps up with how far the logs go, for whoever looks at the state, until ctx is done.
func (s *session) lagLoop(ctx context.Context) {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			s.measure(ctx)
			timer.Reset(lagEvery)
		}
	}
}

// measure asks the broker once. An answer that does not come leaves what was known.
func (s *session) measure(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lagEvery)
	defer cancel()
	ends, err := kadm.NewClient(s.client).ListEndOffsets(ctx, s.names()...)
	if err != nil {
		return
	}
	committed := s.client.CommittedOffsets()
	for _, p := range s.everything() {
		end, ok := ends.Lookup(p.at.topic, p.at.partition)
		before, known := committed[p.at.topic][p.at.partition]
		p.mu.Lock()
		if ok && end.Err == nil {
			p.end = max(p.end, end.Offset)
		}
		if known && p.committed < 0 {
			p.before = before.Offset
		}
		p.mu.Unlock()
	}
}

// lag is how many records of the log are not committed, and the offset that is. The lock is held.
func (p *partition) lag() (records, committed int64) {
	committed = max(p.committed, p.before, 0)
	return max(p.end-committed, 0), committed
}
