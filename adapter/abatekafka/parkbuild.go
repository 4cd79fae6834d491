package abatekafka

import (
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// park gives a partition the keys that are parked in its number, and keeps it stopped until those are known. The session's lock is held.
func (s *session) park(p *partition) {
	if p.c.Order != redelivery.ParkKey {
		return
	}
	at := place{p.way.chain.Topic, p.at.partition}
	k := s.parking[at]
	if k == nil {
		k = &parked{keys: redelivery.NewParking(len(p.way.chain.Hops))}
		s.parking[at] = k
		go s.build(at, k, p.way.chain)
	}
	p.parking = k
	k.mu.Lock()
	built := k.built
	k.mu.Unlock()
	if !built {
		p.mu.Lock()
		p.stop(rebuilding, redelivery.Forever)
		p.mu.Unlock()
	}
}

// build reads what stands in the retry topics, again and again until it succeeds, and then lets the partitions go on.
func (s *session) build(at place, k *parked, chain Chain) {
	for delay := firstForwardDelay; ; delay = min(2*delay, lastForwardDelay) {
		if !s.parks(at, k) {
			return
		}
		ctx, cancel := context.WithTimeout(s.r.handlers, time.Minute)
		keys, err := s.standing(ctx, at.partition, chain)
		cancel()
		if err == nil {
			s.built(at, k, keys)
			return
		}
		s.r.log.Warn("the keys that stand in the retry topics cannot be read, and until they are nothing of this partition number is delivered", "topic", at.topic,
			"partition", at.partition, "again_in", delay, "error", err)
		if waitFor(s.r.handlers.Done(), delay) {
			return
		}
	}
}

// parks tells whether the keys are still this session's to know.
func (s *session) parks(at place, k *parked) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.parking[at] == k
}

// standingKey is one message in a retry topic.
type standingKey struct {
	tier int
	key  uint64
}

// built lets the partitions of a number go on.
func (s *session) built(at place, k *parked, keys []standingKey) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	k.mu.Lock()
	for _, one := range keys {
		k.keys.Enter(one.tier, one.key)
	}
	k.built = true
	k.mu.Unlock()
	for _, p := range s.parts {
		if p.parking == k {
			p.mu.Lock()
			p.stop(rebuilding, 0)
			p.wake()
			p.mu.Unlock()
		}
	}
}

// unpark forgets the keys of numbers of which nothing is assigned any more. The session's lock is held.
func (s *session) unpark() {
	maps.DeleteFunc(s.parking, func(at place, k *parked) bool {
		return !slices.ContainsFunc(slices.Collect(maps.Values(s.parts)), func(p *partition) bool { return p.parking == k })
	})
}

// askLimit is how long the broker gets to say what is there to be read.
const askLimit = 5 * time.Second

// standing reads the keys of everything that the retry topics hold and the group has not committed.
func (s *session) standing(ctx context.Context, number int32, chain Chain) (keys []standingKey, err error) {
	var topics []string
	for _, hop := range chain.Hops {
		topics = append(topics, hop.Topic)
	}
	ask, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	admin := kadm.NewClient(s.r.producer)
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
func (s *session) readKeys(ctx context.Context, at place, from, end int64, tier int, keys []standingKey) ([]standingKey, error) {
	opts := append(s.r.commonOptions(), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{at.topic: {at.partition: kgo.NewOffset().At(from)}}))
	client, err := kgo.NewClient(append(opts, s.r.c.Options...)...)
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
