package abatekafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/redelivery"
)

// poisonAgain is when a batch that stopped its partition is looked at again: a replica may have a good copy.
const poisonAgain = 30 * time.Second

// fetchFailed takes a fetch that brought an error. Those that the client can repair by itself do not come here.
func (s *session) fetchFailed(at place, p *partition, f kgo.FetchTopicPartition) {
	if !undecodable(f.Err) || p == nil {
		s.notFetched(at, f.Err)
		return
	}
	if !s.troubles.poisonFound(at, f.Err) {
		return
	}
	from := s.position(p, f.LogStartOffset)
	p.hush(true)
	if s.handling.view().c.PoisonBatch == redelivery.PoisonDeadLetter {
		go s.stepOver(p, from, f.Err)
		return
	}
	s.poisonStop(p, from, f.Err)
}

// notFetched reports that a partition cannot be fetched. The client brings the error with every fetch.
func (s *session) notFetched(at place, err error) {
	switch {
	case !s.troubles.news(at, err, core.Now()):
	case errors.Is(err, kerr.UnknownTopicID):
		s.log.Error("topic was deleted, and perhaps made anew: nothing of it is delivered until this consumer is restarted",
			"topic", at.topic, "partition", at.partition, "error", err)
	default:
		s.log.Warn("fetch failed; the client goes on trying", "topic", at.topic, "partition", at.partition, "error", err)
	}
}

// position is the next offset of a partition that is fetched. start is that of the log.
func (s *session) position(p *partition, start int64) int64 {
	if next := p.fetched(); next > 0 {
		return next
	}
	if at, ok := s.client.CommittedOffsets()[p.at.topic][p.at.partition]; ok && at.Offset >= 0 {
		return at.Offset
	}
	return max(start, 0)
}

// poisonStop leaves the partition where it is, reports it, and looks again after a while.
func (s *session) poisonStop(p *partition, from int64, err error) {
	p.log.Error("the next batch cannot be decoded and the partition stops there, as the policy says. "+
		"To go on behind it: set kafka.poisonBatch to dead-letter, or stop the group and move its offset with "+
		"kafka-consumer-groups --reset-offsets; the messages in the batch are lost to it then",
		"offset", from, "looked_at_again_in", poisonAgain, "error", err)
	p.observe(redelivery.Event{Kind: redelivery.Paused, Reason: poisonBatch, Offset: from, Err: err})
	time.AfterFunc(poisonAgain, func() {
		s.troubles.over(p.at)
		p.hush(false)
	})
}

// stepOver writes where the batch is into the dead-letter topic, and goes on behind it when that is acknowledged.
func (s *session) stepOver(p *partition, from int64, cause error) {
	ctx, cancel := context.WithTimeout(p.deliverer.ctx, time.Minute)
	defer cancel()
	way := p.deliverer.way
	to, err := s.batchEnd(ctx, p.at, from)
	if err == nil {
		rec := way.forward.poison(p.at.topic, p.at.partition, from, to, cause)
		if rec == nil {
			err = errors.New("the policy has no dead-letter topic")
		} else {
			err = s.producer.ProduceSync(ctx, rec).FirstErr()
		}
	}
	if err != nil {
		s.poisonStop(p, from, fmt.Errorf("%w; and it was not stepped over: %w", cause, err))
		return
	}
	p.log.Error("batch cannot be decoded: its place is in the dead-letter topic, and the partition goes on behind it",
		"from", from, "to", to-1, "dead_letters", way.chain.DeadLetters, "error", cause)
	p.observe(redelivery.Event{
		Kind: redelivery.DeadLettered, To: way.chain.DeadLetters, Reason: poisonBatch, Class: poisonBatch,
		Offset: from, Err: cause,
	})
	s.troubles.stepOver(p.at, to)
	s.mu.RLock()
	nudge := s.nudge
	s.mu.RUnlock()
	if nudge != nil {
		nudge()
	}
}

// step moves the client behind batches that were dead-lettered. It is called by the poll loop, when no rebalance can be
// under way.
func (s *session) step() {
	for at, to := range s.troubles.takeSteps() {
		p := s.partition(at)
		if p == nil {
			continue
		}
		s.client.SetOffsets(at.offset(to))
		s.troubles.over(at)
		p.push([]*kgo.Record{{Offset: to - 1}}, to) // nothing to deliver, but to be committed behind
		p.hush(false)
	}
}

// batchEnd is the offset behind the batch at from, out of the batch's own head, which is not compressed.
func (s *session) batchEnd(ctx context.Context, at place, from int64) (int64, error) {
	topics, err := kadm.NewClient(s.client).ListTopics(ctx, at.topic)
	if err == nil {
		err = topics.Error()
	}
	if err != nil {
		return 0, err
	}
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = 1000, 1, 1<<20
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = at.topic, topics[at.topic].ID
	part := kmsg.NewFetchRequestTopicPartition()
	part.Partition, part.FetchOffset, part.PartitionMaxBytes = at.partition, from, 1<<20
	topic.Partitions = append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	resp, err := s.client.Broker(int(topics[at.topic].Partitions[at.partition].Leader)).Request(ctx, req)
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

// lastOfBatch reads the head of a batch: its first offset is in bytes 0 to 7, the format's version in byte 16, how many
// offsets it spans in bytes 23 to 26.
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
