package abatekafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// How a batch is found to be poison, and when one that stopped its partition is looked at again: a replica may have a good copy.
const (
	poisonAfter = 3
	poisonAgain = 30 * time.Second
)

// poisoned is what a session knows of a partition whose next batch cannot be decoded.
type poisoned struct {
	err   string
	times int
}

// fetchFailed is told of fetches that brought an error. Those that the client can mend by itself do not come here.
func (s *session) fetchFailed(at place, p *partition, f kgo.FetchTopicPartition) {
	if !undecodable(f.Err) || p == nil {
		s.notFetched(at, f.Err)
		return
	}
	s.mu.Lock()
	bad := s.poison[at]
	if bad == nil || bad.err != f.Err.Error() {
		bad = &poisoned{err: f.Err.Error()}
		s.poison[at] = bad
	}
	bad.times++
	found := bad.times == poisonAfter
	s.mu.Unlock()
	if !found {
		return
	}
	from := p.position(f.LogStartOffset)
	p.hushed(true)
	if s.r.view().c.PoisonBatch == redelivery.PoisonDeadLetter {
		go p.stepOver(from, f.Err)
		return
	}
	p.poisonStop(from, f.Err)
}

// undecodable tells whether an error is about the bytes of a batch. The client has no types for those: what it is not, is known.
func undecodable(err error) bool {
	var (
		broker  *kerr.Error
		loss    *kgo.ErrDataLoss
		group   *kgo.ErrGroupSession
		eof     *kgo.ErrFirstReadEOF
		network net.Error
	)
	return !errors.As(err, &broker) && !errors.As(err, &loss) && !errors.As(err, &group) && !errors.As(err, &eof) && !errors.As(err, &network) &&
		!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, kgo.ErrClientClosed)
}

// mend forgets what was wrong with a partition that can be read again.
func (s *session) mend(at place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.poison, at)
	delete(s.failing, at)
}

// position is the next offset that is fetched. start is that of the log.
func (p *partition) position(start int64) int64 {
	p.mu.Lock()
	next := p.fetched
	p.mu.Unlock()
	if next > 0 {
		return next
	}
	if at, ok := p.s.client.CommittedOffsets()[p.at.topic][p.at.partition]; ok && at.Offset >= 0 {
		return at.Offset
	}
	return max(start, 0)
}

// hushed has the client fetch a poisoned partition no more, or again.
func (p *partition) hushed(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return
	}
	if p.stops[poisonBatch] = 0; on {
		p.stops[poisonBatch] = redelivery.Forever // for those who ask why nothing comes: what has been fetched before goes on
		p.s.client.PauseFetchPartitions(p.at.single())
		p.wake()
		return
	}
	if !p.unfetched {
		p.s.client.ResumeFetchPartitions(p.at.single())
	}
}

// poisonStop leaves the partition where it is, and tells people.
func (p *partition) poisonStop(from int64, err error) {
	p.log.Error("the next batch cannot be decoded and the partition stops there, as the policy says. To go on behind it: set kafka.poisonBatch to dead-letter, or stop the group and move its offset with "+
		"kafka-consumer-groups --reset-offsets; the messages in the batch are lost to it then", "offset", from, "looked_at_again_in", poisonAgain, "error", err)
	p.observe(redelivery.Event{Kind: redelivery.Paused, Reason: poisonBatch.String(), Offset: from, Err: err})
	p.s.poisonLater(p)
}

// poisonLater looks again after a while.
func (s *session) poisonLater(p *partition) {
	time.AfterFunc(poisonAgain, func() {
		s.mend(p.at)
		p.hushed(false)
	})
}

// stepOver writes where the batch is into the dead-letter topic, and goes on behind it when that is acknowledged.
func (p *partition) stepOver(from int64, cause error) {
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	to, err := p.batchEnd(ctx, from)
	if err == nil {
		rec := p.way.forward.poison(p.at.topic, p.at.partition, from, to, cause)
		if rec == nil {
			err = errors.New("the policy has no dead-letter topic")
		} else {
			err = p.s.r.producer.ProduceSync(ctx, rec).FirstErr()
		}
	}
	if err != nil {
		p.poisonStop(from, fmt.Errorf("%w; and it was not stepped over: %w", cause, err))
		return
	}
	p.log.Error("batch cannot be decoded: its place is in the dead-letter topic, and the partition goes on behind it", "from", from, "to", to-1,
		"dead_letters", p.way.chain.DeadLetters, "error", cause)
	p.observe(redelivery.Event{Kind: redelivery.DeadLettered, To: p.way.chain.DeadLetters, Reason: poisonBatch.String(), Class: poisonBatch.String(), Offset: from, Err: cause})
	p.s.mu.Lock()
	p.s.steps[p.at] = to
	nudge := p.s.nudge
	p.s.mu.Unlock()
	if nudge != nil {
		nudge()
	}
}

// step moves the client behind batches that were dead-lettered. It is called by the poll loop, when no rebalance can be under way.
func (s *session) step() {
	s.mu.Lock()
	steps := s.steps
	s.steps = map[place]int64{}
	s.mu.Unlock()
	for at, to := range steps {
		p := s.partition(at)
		if p == nil {
			continue
		}
		s.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{at.topic: {at.partition: {Epoch: -1, Offset: to}}})
		s.mend(at)
		p.push([]*kgo.Record{{Offset: to - 1}}, to) // nothing to deliver, but to be committed behind
		p.hushed(false)
	}
}

// nothing tells whether a record has nothing for a handler: a marker of a transaction, or the end of a batch that was stepped over.
func nothing(rec *kgo.Record) bool { return rec.Attrs.IsControl() || rec.Topic == "" }

// batchEnd is the offset behind the batch at from, out of the batch's own head, which is not compressed.
func (p *partition) batchEnd(ctx context.Context, from int64) (int64, error) {
	topics, err := kadm.NewClient(p.s.client).ListTopics(ctx, p.at.topic)
	if err == nil {
		err = topics.Error()
	}
	if err != nil {
		return 0, err
	}
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = 1000, 1, 1<<20
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = p.at.topic, topics[p.at.topic].ID
	part := kmsg.NewFetchRequestTopicPartition()
	part.Partition, part.FetchOffset, part.PartitionMaxBytes = p.at.partition, from, 1<<20
	topic.Partitions = append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	resp, err := p.s.client.Broker(int(topics[p.at.topic].Partitions[p.at.partition].Leader)).Request(ctx, req)
	if err != nil {
		return 0, err
	}
	answer := resp.(*kmsg.FetchResponse)
	if len(answer.Topics) == 0 || len(answer.Topics[0].Partitions) == 0 {
		return 0, errors.New("the broker has nothing at that offset")
	}
	only := answer.Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(only.ErrorCode); err != nil {
		return 0, err
	}
	return lastOfBatch(only.RecordBatches, from)
}

// lastOfBatch reads the head of a batch: its first offset is in bytes 0 to 7, the format's version in byte 16, how many offsets it spans in bytes 23 to 26.
func lastOfBatch(batch []byte, from int64) (int64, error) {
	if len(batch) < 27 || batch[16] != 2 {
		return 0, errors.New("the head of the batch cannot be read either")
	}
	first, span := int64(binary.BigEndian.Uint64(batch)), int64(int32(binary.BigEndian.Uint32(batch[23:])))
	if first < 0 || first > from || span < 0 || span > 1<<24 || first > math.MaxInt64-1-span || first+span < from {
		return 0, fmt.Errorf("the head of the batch says that it holds offsets %d to %d, which cannot be", first, first+span)
	}
	return first + span + 1, nil
}
