package abatekafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

// session is one consumer group's member: a client, and the partitions that it has been assigned.
type session struct {
	r      *running
	group  string
	topics map[string]source
	client *kgo.Client

	mu    sync.RWMutex
	parts map[place]*partition

	backlog atomic.Int64 // how much of one partition may wait in memory

	commits sync.Mutex          // one commit after the other, and none beside a hand-over
	poison  map[place]*poisoned // guarded by mu, as are steps and nudge
	steps   map[place]int64
	failing map[place]failing  // guarded by mu
	nudge   context.CancelFunc // ends the poll that waits
	txn     *transactor        // nil unless exactlyOnce
	parking map[place]*parked
}

// source is what a topic is: a main topic or one of the retry topics of one.
type source struct {
	tier int
	way  *route
}

// place is a partition of a topic.
type place struct {
	topic     string
	partition int32
}

func newSession(r *running, group string) *session {
	return &session{r: r, group: group, topics: map[string]source{}, parts: map[place]*partition{}, poison: map[place]*poisoned{}, steps: map[place]int64{}, failing: map[place]failing{}, parking: map[place]*parked{}}
}

func (s *session) add(topic string, tier int, way *route) { s.topics[topic] = source{tier, way} }

// connect makes the client. It joins the group on its own, but partitions bring nothing before poll runs.
func (s *session) connect(ctx context.Context) (err error) {
	if s.r.names.ExactlyOnce {
		if s.txn, err = newTransactor(ctx, s); err != nil {
			return err
		}
	}
	if s.client, err = kgo.NewClient(s.options()...); err != nil {
		return fmt.Errorf("abatekafka: the options of the client of group %s do not fit: %w", s.group, err)
	}
	return nil
}

func (s *session) options() []kgo.Opt {
	c := s.r.c
	opts := append(s.r.commonOptions(),
		kgo.ConsumerGroup(s.group), kgo.ConsumeTopics(s.names()...),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // a commit marker at the end of a partition is no lag
		kgo.OnPartitionsAssigned(s.assigned), kgo.OnPartitionsRevoked(s.revoked), kgo.OnPartitionsLost(s.lost),
	)
	if s.r.names.Order == redelivery.ParkKey {
		opts = append(opts, kgo.Balancers(kgo.RangeBalancer()))
	} else {
		opts = append(opts, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	}
	if c.Instance != "" {
		opts = append(opts, kgo.InstanceID(c.Instance))
	}
	if c.SessionTimeout > 0 {
		opts = append(opts, kgo.SessionTimeout(c.SessionTimeout), kgo.HeartbeatInterval(min(3*time.Second, c.SessionTimeout/3)))
	}
	return append(opts, c.Options...)
}

// commonOptions are those of every client.
func (r *running) commonOptions() []kgo.Opt {
	return []kgo.Opt{kgo.SeedBrokers(r.c.Brokers...), kgo.ClientID("abate"), kgo.WithLogger(clientLog{r.log})}
}

// linger is how long a forward waits for others to go with: when many messages fail, a request for each would cost the broker more than the messages.
const linger = 10 * time.Millisecond

// producerOptions are those of the client that forwards: idempotent and acknowledged by all, which are kgo's defaults, and never without an answer.
func (r *running) producerOptions() []kgo.Opt {
	opts := append(r.commonOptions(), kgo.RecordDeliveryTimeout(30*time.Second), kgo.ProducerLinger(linger), kgo.RecordPartitioner(samePartition{}))
	if r.batch > 0 {
		opts = append(opts, kgo.ProducerBatchMaxBytes(r.batch))
	}
	return append(opts, r.c.Options...)
}

func (s *session) names() []string {
	names := make([]string, 0, len(s.topics))
	for name := range s.topics {
		names = append(names, name)
	}
	return names
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
	wanted := len(s.steps) > 0
	s.mu.Unlock()
	if wanted {
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
		s.mend(at)
	}
	p.push(f.Records, f.HighWatermark)
}

func (s *session) partition(at place) *partition {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.parts[at]
}

// share divides the memory for what waits among the partitions. The lock is held.
func (s *session) share() {
	s.backlog.Store(min(maxBacklog, max(minBacklog, sharedBacklog/int64(max(len(s.parts), 1)))))
}

// everything is all partitions of the session.
func (s *session) everything() []*partition {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]*partition, 0, len(s.parts))
	for _, p := range s.parts {
		all = append(all, p)
	}
	return all
}

// close leaves the group, but does not wait for a broker that is gone.
func (s *session) close() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveLimit)
	defer cancel()
	s.client.AllowRebalance()
	_ = s.client.LeaveGroupContext(ctx) // the broker finds out by itself after the session timeout
	s.client.CloseAllowingRebalance()
	if s.txn != nil && s.txn.client != nil {
		s.txn.client.Close()
	}
}
