package abatekafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// lagEvery is how often the ends of the logs are looked up: what a partition that is not fetched cannot know from its
// fetches.
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
		end, before := int64(-1), int64(-1)
		if log, ok := ends.Lookup(p.at.topic, p.at.partition); ok && log.Err == nil {
			end = log.Offset
		}
		if of, ok := committed[p.at.topic][p.at.partition]; ok {
			before = of.Offset
		}
		p.measured(end, before)
	}
}
