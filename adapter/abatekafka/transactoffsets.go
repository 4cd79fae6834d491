package abatekafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/abate-go/abate/core"
)

// versions pins the request that puts offsets into a transaction: version 5 is only for transactions of version 2
// (KIP-890), which a cluster may have switched off although its brokers know them, and later ones name topics by their
// ids.
func (t *transactor) versions(ctx context.Context) kgo.Opt {
	v := kversion.Stable()
	v.SetMaxKeyVersion(int16(kmsg.TxnOffsetCommit), 4)
	if t.modern(ctx) {
		v.SetMaxKeyVersion(int16(kmsg.TxnOffsetCommit), 5)
	}
	return kgo.MaxVersions(v)
}

// modern reports whether the cluster has transactions of version 2.
func (t *transactor) modern(ctx context.Context) bool {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "abate", "1"
	resp, err := req.RequestWith(ctx, t.producer)
	if err != nil {
		return false
	}
	for _, f := range resp.FinalizedFeatures {
		if f.Name == "transaction.version" {
			return f.MaxVersionLevel >= 2
		}
	}
	return false
}

// topicIDs are Kafka's IDs of topics. Those that do not exist, and those that the broker says nothing of now, have
// none.
func (t *transactor) topicIDs(ctx context.Context, names []string) (map[string][16]byte, error) {
	req := kmsg.NewPtrMetadataRequest()
	for _, name := range names {
		one := kmsg.NewMetadataRequestTopic()
		one.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, one)
	}
	resp, err := req.RequestWith(ctx, t.producer)
	if err != nil {
		return nil, fmt.Errorf("ask for the IDs of topics: %w", err)
	}
	ids := map[string][16]byte{}
	for _, topic := range resp.Topics {
		if topic.Topic != nil && topic.ErrorCode == 0 {
			ids[*topic.Topic] = topic.TopicID
		}
	}
	return ids, nil
}

// leaveOut leaves out the offsets of topics that were deleted since the start. They are committed under the topic's
// name: a new topic of that name would begin behind messages that nobody has seen.
func (t *transactor) leaveOut(ctx context.Context, l load) error {
	var names []string
	for p := range l.offsets {
		if !slices.Contains(names, p.at.topic) {
			names = append(names, p.at.topic)
		}
	}
	now, err := t.topicIDs(ctx, names)
	if err != nil {
		return err
	}
	at := core.Now()
	for p := range l.offsets {
		topic := p.at.topic
		id, there := now[topic]
		since, missed := t.missing[topic]
		switch {
		case there:
			delete(t.missing, topic)
		case !missed:
			t.missing[topic], since = at, at
			fallthrough
		case at-since < transactTimeout: // a broker that has just started does not know all topics yet
			return fmt.Errorf("topic %s: %w", topic, kerr.UnknownTopicOrPartition)
		}
		if !there || id != t.ids[topic] {
			delete(l.offsets, p)
		}
	}
	return nil
}

// commitOffsets puts the offsets of the consumer's group into the producer's transaction, as the member of the group
// that it was when they were chosen.
func (t *transactor) commitOffsets(ctx context.Context, l load, member string, generation int32) error {
	if len(l.offsets) == 0 {
		return nil
	}
	id, epoch, err := t.client.ProducerID(ctx)
	if err != nil {
		return err
	}
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = t.id(), id, epoch, t.group
	added, err := add.RequestWith(ctx, t.client)
	if err == nil {
		err = kerr.ErrorForCode(added.ErrorCode)
	}
	if err != nil {
		return err
	}
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch = t.id(), t.group, id, epoch
	req.MemberID, req.Generation = member, generation
	if instance := t.clients.instance; instance != "" {
		req.InstanceID = &instance
	}
	mark := t.mark()
	byTopic := map[string][]kmsg.TxnOffsetCommitRequestTopicPartition{}
	for p, offset := range l.offsets {
		one := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		one.Partition, one.Offset, one.Metadata = p.at.partition, offset, &mark
		byTopic[p.at.topic] = append(byTopic[p.at.topic], one)
	}
	for topic, parts := range byTopic {
		one := kmsg.NewTxnOffsetCommitRequestTopic()
		one.Topic, one.Partitions = topic, parts
		req.Topics = append(req.Topics, one)
	}
	resp, err := req.RequestWith(ctx, t.client)
	if err != nil {
		return err
	}
	var all []error
	for _, topic := range resp.Topics {
		for _, p := range topic.Partitions {
			all = append(all, kerr.ErrorForCode(p.ErrorCode))
		}
	}
	return errors.Join(all...)
}

// id is the same after a restart: what this member left open is ended by its next life, at once, instead of by a
// timeout.
func (t *transactor) id() string { return t.clients.instance + "-" + t.group }

// mark names the transaction in the offsets that it commits.
func (t *transactor) mark() string { return "abate " + strconv.FormatInt(t.round, 36) }

// committed reports whether the last transaction, which is decided by now, was committed.
func (t *transactor) committed(ctx context.Context, l load) (bool, error) {
	mark := t.mark()
	for p := range l.offsets {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Group, req.RequireStable = t.group, true
		topic := kmsg.NewOffsetFetchRequestTopic()
		topic.Topic, topic.Partitions = p.at.topic, []int32{p.at.partition}
		req.Topics = append(req.Topics, topic)
		group := kmsg.NewOffsetFetchRequestGroup()
		group.Group = t.group
		groupTopic := kmsg.NewOffsetFetchRequestGroupTopic()
		groupTopic.Topic, groupTopic.Partitions = p.at.topic, []int32{p.at.partition}
		group.Topics = append(group.Topics, groupTopic)
		req.Groups = append(req.Groups, group)
		metadata, err := offsetMetadata(req.RequestWith(ctx, t.producer))
		return metadata == mark, err // all were committed together
	}
	return false, nil
}

// offsetMetadata is that of the only partition of an answer, of whatever version.
func offsetMetadata(resp *kmsg.OffsetFetchResponse, err error) (string, error) {
	if err != nil {
		return "", err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return "", err
	}
	for _, topic := range resp.Topics {
		for _, p := range topic.Partitions {
			return text(p.Metadata), kerr.ErrorForCode(p.ErrorCode)
		}
	}
	for _, group := range resp.Groups {
		if err := kerr.ErrorForCode(group.ErrorCode); err != nil {
			return "", err
		}
		for _, topic := range group.Topics {
			for _, p := range topic.Partitions {
				return text(p.Metadata), kerr.ErrorForCode(p.ErrorCode)
			}
		}
	}
	return "", errors.New("the broker did not say which offset the group has")
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
