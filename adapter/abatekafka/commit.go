package abatekafka

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// commitInterval is how often offsets are committed: what a crash repeats at most, besides what is unfinished.
const commitInterval = time.Second

// commitLimit is how long one commit may take. One that fails is made again with the next.
const commitLimit = 10 * time.Second

const commitFailed = "commit failed and will be made again; what it covers would be delivered again after a crash"

// commitLoop commits each second until ctx is done.
func (s *session) commitLoop(ctx context.Context) {
	tick := time.NewTicker(commitInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.commit(s.everything())
		}
	}
}

// commit commits what these partitions have finished. A partition's offset never goes back, and one that is gone is not
// committed.
func (s *session) commit(parts []*partition) {
	s.commits.Lock()
	defer s.commits.Unlock()
	offsets := map[string]map[int32]kgo.EpochOffset{}
	byPlace := map[place]*partition{}
	for _, p := range parts {
		if offset, ok := p.committable(); ok {
			if offsets[p.at.topic] == nil {
				offsets[p.at.topic] = map[int32]kgo.EpochOffset{}
			}
			offsets[p.at.topic][p.at.partition] = kgo.EpochOffset{Epoch: -1, Offset: offset}
			byPlace[p.at] = p
		}
	}
	if len(offsets) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitLimit)
	defer cancel()
	s.client.CommitOffsetsSync(ctx, offsets, func(
		_ *kgo.Client, req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error,
	) {
		if err != nil {
			s.log.Warn(commitFailed, "error", err)
			return
		}
		names := map[[16]byte]string{} // later versions answer with the ids of topics
		for _, topic := range req.Topics {
			names[topic.TopicID] = topic.Topic
		}
		for _, topic := range resp.Topics {
			if topic.Topic == "" {
				topic.Topic = names[topic.TopicID]
			}
			for _, partition := range topic.Partitions {
				at := place{topic.Topic, partition.Partition}
				s.committedOne(byPlace[at], offsets[at.topic][at.partition].Offset, kerr.ErrorForCode(partition.ErrorCode))
			}
		}
	})
}

func (s *session) committedOne(p *partition, offset int64, err error) {
	switch {
	case p == nil:
	case errors.Is(err, kerr.UnknownTopicID): // the offset is of a topic that is gone: it is not that of the new one
		s.notFetched(p.at, err)
	case err != nil:
		p.log.Warn(commitFailed, "offset", offset, "error", err)
	default:
		p.noteCommitted(offset)
	}
}
