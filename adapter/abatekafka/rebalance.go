package abatekafka

import (
	"context"
	"sync"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

// assigned makes the lanes of partitions that are ours now. The client begins at their committed offsets.
func (s *session) assigned(_ context.Context, client *kgo.Client, parts map[string][]int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for topic, numbers := range parts {
		src := s.topics[topic]
		if src.way == nil {
			continue
		}
		for _, number := range numbers {
			if at := (place{topic, number}); s.parts[at] == nil {
				s.parts[at] = s.begin(client, at, src)
			}
		}
	}
	s.share()
}

// begin makes the lane of a partition, under the policy in force.
func (s *session) begin(client *kgo.Client, at place, src source) *partition {
	c := s.handling.view().c
	l := &deliverer{reporter: s.reporter.partition(at, src.tier), shared: s.handling, order: c.Order, way: src.way}
	if c.Order == redelivery.ParkKey {
		l.parking = s.parkings.of(src.way.chain, at.partition)
	}
	return newPartition(l, c, intake{client: client, at: at, limit: &s.backlog}, s.produce)
}

// handOver is how long handlers and forwards of a revoked partition get before they are cut off.
const handOver = 5 * time.Second

// revoked hands partitions over: what is under way may finish for a moment, then its context ends; what is finished is
// committed.
func (s *session) revoked(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
	s.release(s.forget(parts), handOver, true)
}

// lost drops partitions that somebody else has already: nothing of them is committed, and what comes late is ignored.
func (s *session) lost(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
	if len(parts) > 0 {
		s.log.Warn("partitions were lost, not handed over: the group went on without this member, "+
			"and what it had not committed is delivered again elsewhere", "of_group", s.name, "partitions", parts)
	}
	s.release(s.forget(parts), 0, false)
}

func (s *session) forget(parts map[string][]int32) (old []*partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for topic, numbers := range parts {
		for _, number := range numbers {
			at := place{topic, number}
			if p := s.parts[at]; p != nil {
				old = append(old, p)
				delete(s.parts, at)
			}
			s.troubles.forget(at)
		}
	}
	used := map[*parked]bool{}
	for _, p := range s.parts {
		used[p.deliverer.parking] = true
	}
	s.parkings.keep(used)
	s.share()
	return old
}

// release ends partitions: starts nothing more, waits for what is under way, commits if asked to, and drops the rest.
func (s *session) release(parts []*partition, grace time.Duration, commit bool) {
	var all sync.WaitGroup
	for _, p := range parts {
		quiet := p.close()
		all.Go(func() { p.await(quiet, grace) })
	}
	if s.txn != nil && commit {
		s.txn.flushSoon()
	}
	all.Wait()
	if commit {
		s.commit(parts)
	}
	for _, p := range parts {
		p.drop()
	}
}
