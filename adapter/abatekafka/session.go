package abatekafka

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// session is one consumer group's member: a client, and the partitions that it has been assigned.
type session struct {
	*reporter
	name     string // of the group, which is not the consumer's own for a retry topic
	clients  *clients
	handling *handling
	producer *kgo.Client
	topics   map[string]source
	client   *kgo.Client

	mu    sync.RWMutex
	parts map[place]*partition
	nudge context.CancelFunc // ends the poll that waits

	backlog  atomic.Int64 // how much of one partition may wait in memory
	commits  sync.Mutex   // one commit after the other, and none beside a hand-over
	troubles troubles
	parkings *parkings
	txn      *transactor // nil unless exactlyOnce
}

// source is what a topic is: a main topic or one of the retry topics of one.
type source struct {
	tier int
	way  *route
}

func newSession(r *reporter, c *clients, h *handling, producer *kgo.Client, group string) *session {
	return &session{
		reporter: r, name: group, clients: c, handling: h, producer: producer,
		topics: map[string]source{}, parts: map[place]*partition{},
		troubles: troubles{poison: map[place]*poisoned{}, steps: map[place]int64{}, failing: map[place]failing{}},
		parkings: &parkings{
			clients: c, producer: producer, group: group, log: r.log, ctx: h.ctx, parked: map[place]*parked{},
		},
	}
}

func (s *session) add(topic string, tier int, way *route) { s.topics[topic] = source{tier, way} }

func (s *session) names() []string { return slices.Collect(maps.Keys(s.topics)) }

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

// produce sends a record, in a transaction if the policy says so. It does not wait.
func (s *session) produce(o *outgoing) {
	if s.txn != nil {
		s.txn.enqueue(o)
		return
	}
	s.producer.Produce(s.handling.ctx, o.rec, func(_ *kgo.Record, err error) { o.p.sent(o, err) })
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

func (s *session) partition(at place) *partition {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.parts[at]
}

// maxBacklog and minBacklog bound what waits in memory behind a full window, in bytes of one partition; sharedBacklog
// is for all of a group's.
const (
	maxBacklog    = 16 << 20
	minBacklog    = 1 << 20
	sharedBacklog = 256 << 20
)

// share divides the memory for what waits among the partitions. The lock is held.
func (s *session) share() {
	s.backlog.Store(min(maxBacklog, max(minBacklog, sharedBacklog/int64(max(len(s.parts), 1)))))
}

// everything is all partitions of the session.
func (s *session) everything() []*partition {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Values(s.parts))
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
