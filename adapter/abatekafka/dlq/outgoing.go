package dlq

import (
	"context"
	"fmt"
	"strconv"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The headers that a replayed message has besides its own. Package letter reads the first four.
const (
	headReplays      = "abate-replays"
	headReplayedFrom = "abate-replayed-from"
	// only where the topic is another one than the identity's: it is believed nowhere else
	headReplayedTo = "abate-replayed-to"
	headIdentity   = "abate-identity"
	headEditedFrom = "abate-edited-from"
	headImported   = "abate-imported" // of a dead letter that an import wrote
)

// Reasons to leave a letter out, as Progress.Skips counts them.
const (
	skipOften   = "replayed too often already"
	skipNowhere = "it does not say where it came from: give a topic to replay to"
	skipNoTopic = "its topic does not exist any more"
	skipGone    = "its value was too large for the letter, and is gone from its topic"
	skipSelf    = "it says that it came from the dead-letter topic or its audit: give a topic to replay to"
	skipChanged = "deleted or restored by somebody while the replay waited"
)

// outgoing makes the message that a letter is replayed as: key, value and headers byte for byte, to the original
// partition, or by the key's hash if it goes elsewhere. Its timestamp is the time of sending: with its own, retention
// might take it at once.
func outgoing(e *Entry, to string) *kgo.Record {
	l := &e.Letter
	r := &kgo.Record{Topic: to, Partition: -1, Key: l.Key, Value: l.Value}
	if to == l.Original.Topic {
		r.Partition = l.Original.Partition
	}
	r.Headers = append(append(make([]kgo.RecordHeader, 0, len(l.Headers)+4), l.Headers...),
		kgo.RecordHeader{Key: headReplays, Value: []byte(strconv.Itoa(l.Replays + 1))})
	return r
}

// named writes who the message is, and where it comes from.
func named(r *kgo.Record, e *Entry) *kgo.Record {
	id := e.identity()
	r.Headers = append(r.Headers, kgo.RecordHeader{Key: headIdentity, Value: []byte(id.String())},
		kgo.RecordHeader{Key: headReplayedFrom, Value: []byte(e.At.String())})
	if id.At.Topic != r.Topic {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: headReplayedTo, Value: []byte(r.Topic)})
	}
	return r
}

// identity is the message's; of a letter that does not say where it came from, that of the letter.
func (e *Entry) identity() letter.Identity {
	if id := e.Letter.Identity; id.Known() {
		return id
	}
	return letter.IdentityOf(e.Record)
}

// prepare makes what is to be sent of a letter, or says why it is left out.
func (x *replaying) prepare(ctx context.Context, e *Entry) (r *kgo.Record, skip string, err error) {
	to := x.r.To
	if to == "" {
		to = e.Letter.Original.Topic
	}
	switch to {
	case "":
		return nil, skipNowhere, nil
	// whoever writes a letter may claim so, and would write to the audit by our hands
	case x.d.config.Topic, x.d.config.Audit:
		return nil, skipSelf, nil
	}
	there, err := x.exists(ctx, to)
	switch {
	case err != nil:
		return nil, "", err
	case !there:
		return nil, skipNoTopic, nil
	case e.Letter.Replays >= x.r.MaxReplays:
		return nil, skipOften, nil
	case e.Letter.Pointer:
		if err := x.d.follow(ctx, e); err != nil {
			return nil, skipGone, context.Cause(ctx)
		}
	}
	return named(outgoing(e, to), e), "", nil
}

// exists reports whether a topic does, asking once for each.
func (x *replaying) exists(ctx context.Context, topic string) (bool, error) {
	if t, known := x.targets[topic]; known {
		return t.there, nil
	}
	topics, err := x.d.admin.ListTopics(ctx, topic)
	if err != nil {
		return false, fmt.Errorf("dlq: look for topic %s: %w", topic, err)
	}
	there := topics.Has(topic) && topics[topic].Err == nil
	x.targets[topic] = target{there, topicID(topics[topic])}
	return there, nil
}

// target is a topic that letters go to.
type target struct {
	there bool
	id    string
}

// topicID is Kafka's ID of a topic; empty if the broker does not tell.
func topicID(t kadm.TopicDetail) string {
	if t.Err != nil || t.ID == (kadm.TopicID{}) {
		return ""
	}
	return t.ID.String()
}

// follow fills in what a letter only points to.
func (d *Desk) follow(ctx context.Context, e *Entry) error {
	at := e.Letter.Original
	gone := fmt.Errorf("dlq: %s: its value was too large for the letter, and %s is gone", e.At, at)
	if !at.Known() {
		return gone
	}
	bounds, err := d.bounds(ctx, at.Topic)
	if err != nil {
		return err
	}
	if b, ok := bounds[at.Partition]; !ok || at.Offset < b.from || at.Offset >= b.to {
		return gone
	}
	found := false
	err = d.scan(ctx, at.Topic, []span{{at.Partition, at.Offset, at.Offset + 1}}, func(r *kgo.Record) bool {
		if found = r.Offset == at.Offset && e.Letter.Is(r); found {
			original, _ := letter.ReadMain(r)
			e.Letter.Key, e.Letter.Value, e.Letter.Headers = original.Key, original.Value, original.Headers
		}
		return false
	})
	if err == nil && !found {
		err = gone
	}
	return err
}
