package abatekafka

import (
	"errors"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// checkChain looks at the topics of one chain that were there before.
func (p *preflight) checkChain(chain Chain, seen map[string]*seenTopic) {
	main := seen[chain.Topic]
	if !p.visible(chain.Topic, main) {
		return
	}
	if main == nil || !main.there {
		p.problem("topic %s is not there, and its producers should say how many partitions it needs. Run: %s", chain.Topic,
			p.command("kafka-topics.sh", "--create --topic %s --partitions 12", chain.Topic))
		return
	}
	p.allowed(chain.Topic, main, kmsg.ACLOperationRead, "Read")
	for _, hop := range chain.Hops {
		if t := seen[hop.Topic]; p.visible(hop.Topic, t) && t != nil && t.there {
			p.checkPartitions(hop.Topic, t, chain.Topic, main)
			p.checkSettings(hop.Topic, t, chain.Topic, main)
			p.checkRetention(hop.Topic, t, hop.Delay+p.cfg.Outage, "its delay and kafka.outage")
			p.allowed(hop.Topic, t, kmsg.ACLOperationRead, "Read")
			p.allowed(hop.Topic, t, kmsg.ACLOperationWrite, "Write")
		}
	}
	if t := seen[chain.DeadLetters]; chain.DeadLetters != "" && p.visible(chain.DeadLetters, t) && t != nil && t.there {
		if t.partitions < main.partitions {
			p.note("dead-letter topic %s has fewer partitions (%d) than %s (%d): letters of the others go by their key",
				chain.DeadLetters, t.partitions, chain.Topic, main.partitions)
		}
		p.checkSettings(chain.DeadLetters, t, chain.Topic, main)
		p.checkRetention(chain.DeadLetters, t, p.cfg.DLTRetention, "kafka.dltRetention")
		p.allowed(chain.DeadLetters, t, kmsg.ACLOperationWrite, "Write")
	}
}

// visible reports whether the broker shows a topic.
func (p *preflight) visible(name string, t *seenTopic) bool {
	switch {
	case t == nil || t.err == nil:
		return true
	case errors.Is(t.err, kerr.TopicAuthorizationFailed):
		p.problem("topic %s: this consumer may not even see it. Run: %s", name, p.command("kafka-acls.sh",
			"--add --allow-principal User:... --operation Describe --operation Read --operation Write --topic %s", name))
	default:
		p.problem("topic %s: %w; see the broker's log", name, t.err)
	}
	return false
}

func (p *preflight) allowed(name string, t *seenTopic, op kmsg.ACLOperation, called string) {
	if t.denied(op) {
		p.problem("topic %s: this consumer may not %s it. Run: %s", name, strings.ToLower(called),
			p.command("kafka-acls.sh", "--add --allow-principal User:... --operation %s --topic %s", called, name))
	}
}

// checkPartitions wants a retry topic to have a partition for each of the main topic's, so that a message keeps its
// number and messages with one key stay together.
func (p *preflight) checkPartitions(name string, t *seenTopic, mainName string, main *seenTopic) {
	if t.partitions < main.partitions {
		p.problem("topic %s has fewer partitions (%d) than %s (%d): a message would change its partition on the way. Run: %s",
			name, t.partitions, mainName, main.partitions,
			p.command("kafka-topics.sh", "--alter --topic %s --partitions %d", name, main.partitions))
	}
}

func (p *preflight) checkSettings(name string, t *seenTopic, mainName string, main *seenTopic) {
	if t.copies < main.copies {
		p.note("topic %s has replication factor %d and %s has %d: what is being retried is less safe than what is not. "+
			"kafka-reassign-partitions.sh changes it", name, t.copies, mainName, main.copies)
	}
	if t.unreadable != nil {
		p.note("topic %s: its settings cannot be read, so nobody has checked its retention, cleanup.policy and "+
			"max.message.bytes: %v. To allow it: %s", name, t.unreadable,
			p.command("kafka-acls.sh", "--add --allow-principal User:... --operation DescribeConfigs --topic %s", name))
		return
	}
	if policy := t.settings["cleanup.policy"]; strings.Contains(policy, "compact") {
		p.problem("topic %s has cleanup.policy=%s: compaction deletes messages that have the key of a later one. Run: %s",
			name, policy, p.set(name, "cleanup.policy", "delete"))
	}
	if limit, ok := t.number("retention.bytes"); ok && limit >= 0 {
		p.note("topic %s has retention.bytes=%d: many failures at once may be deleted before they are delivered. "+
			"To lift it: %s", name, limit, p.set(name, "retention.bytes", "-1"))
	}
	batch, ok := t.number("max.message.bytes")
	if !ok {
		return
	}
	p.writable(int32(min(batch, 1<<31-1)))
	switch large, known := main.number("max.message.bytes"); {
	case !known:
	case batch < large:
		p.problem("topic %s has max.message.bytes=%d and %s has %d: what is larger could be forwarded only as a "+
			"pointer to it. Run: %s", name, batch, mainName, large,
			p.set(name, "max.message.bytes", min(large+headroom, 1<<31-1)))
	case batch < min(large+headroom, 1<<31-1):
		p.note("topic %s has max.message.bytes=%d, the same as %s or nearly: the largest messages lose their trace, "+
			"or their value for a pointer to it, because the headers need room. To fix it: %s",
			name, batch, mainName, p.set(name, "max.message.bytes", min(large+headroom, 1<<31-1)))
	}
}

func (p *preflight) checkRetention(name string, t *seenTopic, least time.Duration, which string) {
	if ms, ok := t.number("retention.ms"); ok && ms >= 0 && ms < millis(least) {
		p.problem("topic %s has retention.ms=%d, which is %v, but messages must be kept for %v: %s. Run: %s",
			name, ms, time.Duration(ms)*time.Millisecond, least, which,
			p.set(name, "retention.ms", millis(least)))
	}
}

func (p *preflight) set(topic, setting string, value any) string {
	return p.command("kafka-configs.sh", "--alter --entity-type topics --entity-name %s --add-config %s=%v",
		topic, setting, value)
}
