package abatekafka

import (
	"cmp"
	"strconv"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
)

// Chain is what belongs to one main topic: its retry topics, its dead-letter topic, and the groups that read them.
type Chain struct {
	Topic, Group string
	Hops         []HopTopic
	DeadLetters  string // empty if the policy has none
}

// HopTopic is one retry topic.
type HopTopic struct {
	Topic, Group string
	Delay        time.Duration
}

// NewChain names the topics and groups of a main topic: payments-retry-30s, payments-dlq. With the naming spring they
// are those that Spring's @RetryableTopic generates (one topic for equal delays, its default): payments-retry-30000 and
// payments-dlt, and payments-retry if there is only one retry topic. A policy that is off has no chain but the main
// topic. Each retry topic's group is the group with the topic's suffix.
func NewChain(topic, group string, c redelivery.Config) Chain {
	chain := Chain{Topic: topic, Group: group}
	if !c.Enabled() {
		return chain
	}
	c = c.WithDefaults()
	base := topic
	if c.GroupInNames {
		base += "-" + group
	}
	hops := redelivery.NewPlan(c).Hops()
	for _, hop := range hops {
		suffix := c.RetrySuffix
		switch {
		case c.Naming != redelivery.NamingSpring:
			suffix += "-" + short(hop.Delay)
		case len(hops) > 1:
			suffix += "-" + strconv.FormatInt(hop.Delay.Milliseconds(), 10)
		}
		chain.Hops = append(chain.Hops, HopTopic{Topic: base + suffix, Group: group + suffix, Delay: hop.Delay})
	}
	if c.DLTStrategy != redelivery.DropLast {
		chain.DeadLetters = base + c.DLTSuffix
	}
	return chain
}

// short writes a delay as people do: 30s, 5m, 1h30m, 100ms. Whole milliseconds.
func short(d time.Duration) string {
	if d%time.Second != 0 {
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	}
	text := ""
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if n := d / unit.of; n > 0 {
			text += strconv.FormatInt(int64(n), 10) + unit.name
			d -= n * unit.of
		}
	}
	return cmp.Or(text, "0s")
}
