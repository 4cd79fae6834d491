package abatekafka

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// seenTopic is what the broker says of a topic.
type seenTopic struct {
	there      bool
	err        error // it cannot be seen
	partitions int32
	copies     int16 // the replication factor
	settings   map[string]string
	unreadable error // of the settings
	operations int32 // a bit for each that is allowed
}

// notTold are the operations of a broker that does not say which are allowed.
const notTold = -1 << 31

// look asks the broker for topics and their settings. Nothing is created by asking.
func (p *preflight) look(ctx context.Context, names []string) (map[string]*seenTopic, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	for _, name := range names {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, topic)
	}
	resp, err := req.RequestWith(ctx, p.client)
	if err != nil {
		return nil, err
	}
	seen := map[string]*seenTopic{}
	var there []string
	for _, t := range resp.Topics {
		if t.Topic == nil {
			continue
		}
		topic := &seenTopic{partitions: int32(len(t.Partitions)), operations: t.AuthorizedOperations}
		for _, partition := range t.Partitions {
			topic.copies = max(topic.copies, int16(len(partition.Replicas)))
		}
		switch err := kerr.ErrorForCode(t.ErrorCode); {
		case err == nil || kerr.IsRetriable(err) && !errors.Is(err, kerr.UnknownTopicOrPartition): // no leader just now
			topic.there = true
			there = append(there, *t.Topic)
		case !errors.Is(err, kerr.UnknownTopicOrPartition):
			topic.err = err
		}
		seen[*t.Topic] = topic
	}
	return seen, p.lookInside(ctx, there, seen)
}

// lookInside asks for the settings.
func (p *preflight) lookInside(ctx context.Context, names []string, seen map[string]*seenTopic) error {
	if len(names) == 0 {
		return nil
	}
	req := kmsg.NewPtrDescribeConfigsRequest()
	for _, name := range names {
		resource := kmsg.NewDescribeConfigsRequestResource()
		resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, name
		req.Resources = append(req.Resources, resource)
	}
	resp, err := req.RequestWith(ctx, p.client)
	if err != nil {
		return err
	}
	for _, r := range resp.Resources {
		topic := seen[r.ResourceName]
		if topic == nil {
			continue
		}
		topic.unreadable = kerr.ErrorForCode(r.ErrorCode)
		topic.settings = map[string]string{}
		for _, c := range r.Configs {
			if c.Value != nil {
				topic.settings[c.Name] = *c.Value
			}
		}
	}
	return nil
}

// unborn are the topics that are being created: brokers know them already, but not their partitions.
func unborn(seen map[string]*seenTopic) (names []string) {
	for name, t := range seen {
		if t.there && t.partitions == 0 {
			names = append(names, name)
		}
	}
	return names
}

// lookAgain waits until topics that another member has created can be seen: brokers learn of them one after the other.
func (p *preflight) lookAgain(ctx context.Context, seen map[string]*seenTopic, names []string) bool {
	if len(names) == 0 {
		return true
	}
	err := p.seeAll(ctx, seen, names)
	if err != nil {
		p.problem("topics %s were created elsewhere just now and cannot be seen: %w; start again",
			strings.Join(names, ", "), err)
	}
	return err == nil
}

func (p *preflight) seeAll(ctx context.Context, seen map[string]*seenTopic, names []string) error {
	const tries, pause = 50, 100 * time.Millisecond
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for range tries {
		found, err := p.look(ctx, names)
		if err != nil {
			return err
		}
		missing := 0
		for _, name := range names {
			if t := found[name]; t == nil || t.partitions == 0 && t.err == nil {
				missing++
			} else {
				seen[name] = t
			}
		}
		if missing == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return errors.New("brokers do not know their partitions after 5 s")
}

// number reads a setting that is a number.
func (t *seenTopic) number(name string) (n int64, ok bool) {
	n, err := strconv.ParseInt(t.settings[name], 10, 64)
	return n, err == nil
}

// denied reports whether an operation is not allowed, where the broker says so.
func (t *seenTopic) denied(op kmsg.ACLOperation) bool {
	return t.operations != notTold && t.operations != 0 && t.operations&(1<<int32(op)) == 0
}
