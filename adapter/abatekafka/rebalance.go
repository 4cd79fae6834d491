package abatekafka

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// assigned makes the lanes of partitions that are ours now. The client begins at their committed offsets.
func (s *session) assigned(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for topic, numbers := range parts {
		for _, number := range numbers {
			at := place{topic, number}
			if s.parts[at] == nil && s.topics[topic].way != nil {
				p := newPartition(s, at)
				s.parts[at] = p
				s.park(p)
			}
		}
	}
	s.share()
}

// revoked hands partitions over: what is under way may finish for a moment, then its context ends; what is finished is committed. A partition that the
// client does not fetch stays so in the client's memory until it is told otherwise, so it is, else it would be silent if it came back.
func (s *session) revoked(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
	s.release(s.forget(parts), handOver, true)
}

// lost drops partitions that somebody else has already: nothing of them is committed, and what comes late is ignored.
func (s *session) lost(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
	if len(parts) > 0 {
		s.r.log.Warn("partitions were lost, not handed over: the group went on without this member, and what it had not committed is delivered again elsewhere", "of_group", s.group, "partitions", parts)
	}
	s.release(s.forget(parts), 0, false)
}

// forget takes partitions out of the session.
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
			delete(s.poison, at)
			delete(s.steps, at)
			delete(s.failing, at)
		}
	}
	s.unpark()
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

// close starts nothing more. The channel is closed when nothing is under way.
func (p *partition) close() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closing = true
	quiet := make(chan struct{})
	if p.quiet = quiet; len(p.workers) == 0 || p.gone { // gone: dropped before, as when a group is left after the drain; its workers have ended
		p.settle()
	}
	p.waiting.Broadcast()
	return quiet
}

// cutOff is how long handlers have to notice that their context has ended.
const cutOff = 200 * time.Millisecond

// await waits for what is under way, and ends the handlers' context when the time is up.
func (p *partition) await(quiet <-chan struct{}, grace time.Duration) {
	if waitFor(quiet, grace) {
		return
	}
	p.cut()
	if grace > 0 && !waitFor(quiet, cutOff) {
		p.mu.Lock()
		flying, outgoing := p.flying, p.outgoing
		p.mu.Unlock()
		p.log.Warn("partition is given up with deliveries under way: they will be made again, here or elsewhere", "handlers", flying, "forwards", outgoing)
	}
}

func waitFor(quiet <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-quiet:
		return true
	case <-timer.C:
		return false
	}
}

// drop makes the partition nobody's. What comes late is ignored.
func (p *partition) drop() {
	p.cut()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closing, p.gone = true, true
	if p.alarm != nil {
		p.alarm.Stop()
	}
	if p.unfetched || p.stops[poisonBatch] > 0 {
		p.unfetched = false
		p.s.client.ResumeFetchPartitions(p.at.single())
	}
	p.waiting.Broadcast()
}
