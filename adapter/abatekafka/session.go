package abatekafka

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

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

// produce sends a record, in a transaction if the policy says so. It does not wait.
func (s *session) produce(o *outgoing) {
	if s.txn != nil {
		s.txn.enqueue(o)
		return
	}
	s.producer.Produce(s.handling.ctx, o.rec, func(_ *kgo.Record, err error) { o.p.sent(o, err) })
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

func (s *session) everything() []*partition {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Values(s.parts))
}
