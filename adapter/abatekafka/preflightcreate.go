package abatekafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What Kafka takes as the largest batch if nobody says anything, and how much larger a retry topic's is: that is what
// the headers need.
const (
	usualBatch = 1048588
	headroom   = 64 << 10
)

// planned is a topic that is to be created.
type planned struct {
	name       string
	partitions int32
	copies     int16 // the replication factor; -1 for the broker's default
	batch      int32
	settings   [][2]string
}

// plan is how a topic of a chain should be: as many partitions and copies as the main topic has, records kept for so
// long, and not compacted, which would take those with equal keys.
func (p *preflight) plan(name string, keep time.Duration, main *seenTopic) planned {
	batch := int64(usualBatch)
	if n, ok := main.number("max.message.bytes"); ok {
		batch = n
	}
	batch = min(batch+headroom, 1<<31-1)
	t := planned{name, main.partitions, cmp.Or(p.replication, main.copies, -1), int32(batch), [][2]string{
		{"cleanup.policy", "delete"},
		{"retention.ms", strconv.FormatInt(millis(keep), 10)},
		{"retention.bytes", "-1"},
		{"max.message.bytes", strconv.FormatInt(batch, 10)},
	}}
	if n, ok := main.number("min.insync.replicas"); ok && n > 1 && n <= int64(t.copies) {
		t.settings = append(t.settings, [2]string{"min.insync.replicas", strconv.FormatInt(n, 10)})
	}
	return t
}

// command creates it by hand.
func (t planned) command(p *preflight) string {
	settings := make([]string, len(t.settings))
	for i, s := range t.settings {
		settings[i] = "--config " + s[0] + "=" + s[1]
	}
	replication := ""
	if t.copies > 0 {
		replication = fmt.Sprintf(" --replication-factor %d", t.copies)
	}
	return p.command("kafka-topics.sh", "--create --topic %s --partitions %d%s %s",
		t.name, t.partitions, replication, strings.Join(settings, " "))
}

// missing are the topics of the chains that are not there and whose main topic is.
func (p *preflight) missing(seen map[string]*seenTopic) []planned {
	var all []planned
	absent := func(name string) bool { return seen[name] == nil || !seen[name].there && seen[name].err == nil }
	for _, chain := range p.chains {
		main := seen[chain.Topic]
		if main == nil || !main.there {
			continue
		}
		for _, hop := range chain.Hops {
			if absent(hop.Topic) {
				all = append(all, p.plan(hop.Topic, hop.Delay+p.cfg.Outage, main))
			}
		}
		if chain.DeadLetters != "" && absent(chain.DeadLetters) {
			all = append(all, p.plan(chain.DeadLetters, p.cfg.DLTRetention, main))
		}
	}
	return all
}

// createMissing creates what is not there, or if it may not says how to. again are those that another member has
// created at the same moment.
func (p *preflight) createMissing(ctx context.Context, seen map[string]*seenTopic) (again []string) {
	missing := p.missing(seen)
	if p.check {
		for _, t := range missing {
			p.problem("topic %s is missing, and Check allows to create none. Run: %s", t.name, t.command(p))
		}
		return nil
	}
	if len(missing) == 0 {
		return nil
	}
	resp, err := p.creation(missing).RequestWith(ctx, p.client)
	if err != nil {
		p.problem("topics cannot be created: %w; start again, or run %s", err, missing[0].command(p))
		return nil
	}
	byName := map[string]planned{}
	for _, t := range missing {
		byName[t.name] = t
	}
	for _, r := range resp.Topics {
		t := byName[r.Topic]
		switch err := kerr.ErrorForCode(r.ErrorCode); {
		case err == nil:
			p.writable(t.batch)
		case errors.Is(err, kerr.TopicAlreadyExists):
			again = append(again, t.name)
		default:
			p.problem("%w", p.notCreated(t, err, r.ErrorMessage))
		}
	}
	return again
}

func (p *preflight) creation(missing []planned) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 15000
	for _, t := range missing {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = t.name, t.partitions, t.copies
		for _, s := range t.settings {
			setting := kmsg.NewCreateTopicsRequestTopicConfig()
			setting.Name, setting.Value = s[0], kmsg.StringPtr(s[1])
			topic.Configs = append(topic.Configs, setting)
		}
		req.Topics = append(req.Topics, topic)
	}
	return req
}

func (p *preflight) notCreated(t planned, err error, detail *string) error {
	if detail != nil && *detail != "" {
		err = fmt.Errorf("%w (%s)", err, *detail)
	}
	fix := "run: " + t.command(p)
	switch {
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		fix = "have somebody who may " + fix + "\nor allow it to this consumer: " +
			p.command("kafka-acls.sh", "--add --allow-principal User:... --operation Create --topic %s", t.name)
	case errors.Is(err, kerr.InvalidConfig), errors.Is(err, kerr.PolicyViolation):
		fix = "this cluster does not allow one of these settings: change it or leave it out, and " + fix
	case errors.Is(err, kerr.InvalidReplicationFactor):
		fix = "set Replication to a number of brokers that there is"
	}
	return fmt.Errorf("topic %s is missing and cannot be created: %w; %s", t.name, err, fix)
}

// largestBatch is what the client writes at most, and brokers read: socket.request.max.bytes. leastBatch is the least
// that the client can be set to.
const (
	largestBatch = 100 << 20
	leastBatch   = 512
)

// writable notes the size of records that a topic takes, as far as the client can be set to it.
func (p *preflight) writable(batch int32) {
	batch = min(max(batch, leastBatch), largestBatch)
	if p.smallest == 0 || batch < p.smallest {
		p.smallest = batch
	}
}
