package abatekafka

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// connect makes the client. It joins the group on its own, but partitions bring nothing before poll runs.
func (s *session) connect(ctx context.Context) (err error) {
	if s.handling.names.ExactlyOnce {
		s.txn = &transactor{
			clients: s.clients, producer: s.producer, log: s.log, group: s.name, commits: &s.commits, ctx: s.handling.ctx,
			member: func() (string, int32) { return s.client.GroupMetadata() },
		}
		if err = s.txn.begin(ctx, s.names()); err != nil {
			return err
		}
	}
	s.client, err = s.clients.join(s.name, s.names(), s.handling.names.Order,
		kgo.OnPartitionsAssigned(s.assigned), kgo.OnPartitionsRevoked(s.revoked), kgo.OnPartitionsLost(s.lost))
	return err
}

// poll hands what the client fetches to the partitions, until ctx is done.
func (s *session) poll(ctx context.Context) {
	for ctx.Err() == nil {
		fetches := s.fetch(ctx)
		if fetches.IsClientClosed() {
			return
		}
		fetches.EachPartition(func(f kgo.FetchTopicPartition) { s.take(ctx, f) })
		s.step()
		s.client.AllowRebalance()
		if failed(fetches) {
			waitFor(ctx.Done(), fetchAgain)
		}
	}
}

// fetch waits for records, or to be nudged.
func (s *session) fetch(ctx context.Context) kgo.Fetches {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.nudge = cancel
	s.mu.Unlock()
	if s.troubles.stepping() {
		cancel()
	}
	return s.client.PollFetches(ctx)
}

// take is one partition's share of a fetch.
func (s *session) take(ctx context.Context, f kgo.FetchTopicPartition) {
	at := place{f.Topic, f.Partition}
	p := s.partition(at)
	if f.Err != nil && ctx.Err() == nil && !errors.Is(f.Err, context.Canceled) {
		s.fetchFailed(at, p, f)
	}
	if p == nil || len(f.Records) == 0 {
		return
	}
	if f.Err == nil {
		s.troubles.over(at)
	}
	p.push(f.Records, f.HighWatermark)
}

// leaveLimit is for leaving the group of a broker that may be gone.
const leaveLimit = 5 * time.Second

// close leaves the group, but does not wait for a broker that is gone.
func (s *session) close() {
	if s.client != nil {
		ctx, cancel := context.WithTimeout(context.Background(), leaveLimit)
		defer cancel()
		s.client.AllowRebalance()
		_ = s.client.LeaveGroupContext(ctx) // the broker finds out by itself after the session timeout
		s.client.CloseAllowingRebalance()
	}
	if s.txn != nil {
		s.txn.close()
	}
}
