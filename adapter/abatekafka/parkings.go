package abatekafka

import (
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// parkings are the parked keys of a session, by partition of the main topic. It reads what stands in the retry topics.
type parkings struct {
	clients  *clients
	producer *kgo.Client // asks
	group    string
	log      *slog.Logger
	ctx      context.Context // ends the reading

	mu     sync.Mutex
	parked map[place]*parked
}

// of returns the keys of a partition number of a main topic. Those that nobody has asked for yet are being read then.
func (s *parkings) of(chain Chain, number int32) *parked {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := place{chain.Topic, number}
	k := s.parked[at]
	if k == nil {
		k = &parked{keys: redelivery.NewParking(len(chain.Hops))}
		s.parked[at] = k
		go s.build(at, k, chain)
	}
	return k
}

// keep forgets the keys that are not among these.
func (s *parkings) keep(used map[*parked]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.parked, func(_ place, k *parked) bool { return !used[k] })
}

// len is how many keys wait in the retry topics.
func (s *parkings) len() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.parked {
		n += k.len()
	}
	return n
}

// has reports whether the keys are still to be known.
func (s *parkings) has(at place, k *parked) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parked[at] == k
}

// build reads what stands in the retry topics, again and again until it succeeds.
func (s *parkings) build(at place, k *parked, chain Chain) {
	for delay := firstForwardDelay; s.has(at, k); delay = min(2*delay, lastForwardDelay) {
		ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
		keys, err := s.standing(ctx, at.partition, chain)
		cancel()
		if err == nil {
			k.build(keys)
			return
		}
		s.log.Warn("the keys that stand in the retry topics cannot be read, "+
			"and until they are nothing of this partition number is delivered",
			"topic", at.topic, "partition", at.partition, "again_in", delay, "error", err)
		if waitFor(s.ctx.Done(), delay) {
			return
		}
	}
}

// askLimit is how long the broker gets to say what is there to be read.
const askLimit = 5 * time.Second

// standing reads the keys of everything that the retry topics hold and the group has not committed.
func (s *parkings) standing(ctx context.Context, number int32, chain Chain) (keys []standingKey, err error) {
	var topics []string
	for _, hop := range chain.Hops {
		topics = append(topics, hop.Topic)
	}
	ask, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	admin := kadm.NewClient(s.producer)
	committed, err := admin.FetchOffsets(ask, s.group)
	if err != nil {
		return nil, fmt.Errorf("offsets of group %s: %w", s.group, err)
	}
	starts, err := admin.ListStartOffsets(ask, topics...)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("beginning of the retry topics: %w", err)
	}
	ends, err := admin.ListCommittedOffsets(ask, topics...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("end of the retry topics: %w", err)
	}
	for tier, topic := range topics {
		start, _ := starts.Lookup(topic, number)
		end, ok := ends.Lookup(topic, number)
		from := start.Offset
		if o, ok := committed.Lookup(topic, number); ok {
			from = max(from, o.At)
		}
		if !ok || from >= end.Offset {
			continue
		}
		if keys, err = s.readKeys(ctx, place{topic, number}, from, end.Offset, tier, keys); err != nil {
			return nil, fmt.Errorf("%s/%d: %w", topic, number, err)
		}
	}
	return keys, nil
}

// readKeys appends the keys of one partition's records.
func (s *parkings) readKeys(
	ctx context.Context, at place, from, end int64, tier int, keys []standingKey,
) ([]standingKey, error) {
	start := map[string]map[int32]kgo.Offset{at.topic: {at.partition: kgo.NewOffset().At(from)}}
	client, err := s.clients.connect([]kgo.Opt{
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.ConsumePartitions(start),
	})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for from < end {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			if from = rec.Offset + 1; !nothing(rec) && rec.Key != nil && rec.Offset < end {
				keys = append(keys, standingKey{tier, maphash.Bytes(keySeed, rec.Key)})
			}
		})
	}
	return keys, nil
}
