// Package kafkacheck finds what is wrong with what a consumer of Kafka messages does with those that fail.
package kafkacheck

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/internal/check"
	"github.com/abate-go/abate/policy/redelivery"
)

// maxHops bounds the retry topics of one topic: each is a topic with partitions, a consumer group and a connection.
const maxHops = 20

// validator adds to the mistakes in the section of somebody else's configuration.
type validator struct{ *check.Errors }

// Validate adds everything that is wrong with the section: what the tags of its fields limit, and rules between them.
func Validate(to *check.Errors, c redelivery.Config) {
	v := validator{to}
	v.Walk("kafka.", reflect.ValueOf(c))
	v.tiers(c)
	if c.Delay > 0 {
		v.Below("kafka.delay", c.Delay, "maxDelay", c.MaxDelay, "lower it or raise maxDelay")
		if n := len(c.Hops()); len(c.Tiers) == 0 && n > maxHops {
			v.Add("kafka.attempts", fmt.Sprintf("%d make %d retry topics", c.WithDefaults().Attempts, n),
				fmt.Sprintf("at most %d: lower it, or raise the multiplier so that maxDelay is reached earlier", maxHops))
		}
	}
	if c.Enabled() {
		v.Below("kafka.flood.maxHold", c.Flood.MaxHold, "outage", c.WithDefaults().Outage,
			"lower it or raise outage: the broker would delete what is held")
	}
	v.classes("kafka.retryErrors", c.RetryErrors)
	v.classes("kafka.neverRetryErrors", c.NeverRetryErrors)
	v.suffix("kafka.retrySuffix", c.RetrySuffix, `"-retry"`)
	v.suffix("kafka.dltSuffix", c.DLTSuffix, `"-dlq"`)
	if full := c.WithDefaults(); full.DLTSuffix != "" && full.DLTSuffix == full.RetrySuffix {
		v.Add("kafka.dltSuffix", strconv.Quote(full.DLTSuffix)+" is the retrySuffix, too",
			`a retry topic could be called like the dead-letter topic: choose another, for example "-dlq"`)
	}
}

// tiers checks that there is one way to say the delays, and that they ascend.
func (v validator) tiers(c redelivery.Config) {
	if len(c.Tiers) == 0 {
		return
	}
	for _, other := range []struct {
		key string
		set bool
	}{{"delay", c.Delay != 0}, {"multiplier", c.Multiplier != 0}, {"maxDelay", c.MaxDelay != 0}, {"attempts",
		c.Attempts != 0}} {
		if other.set {
			v.Add("kafka."+other.key, "stands beside tiers, which say all delays", "remove it, or the tiers where they are set")
		}
	}
	if n := len(c.Tiers); n > maxHops {
		v.Add("kafka.tiers", fmt.Sprintf("%d retry topics are too many", n), fmt.Sprintf("allowed: at most %d", maxHops))
	}
	for i, d := range c.Tiers {
		if d%time.Millisecond != 0 {
			v.Add(fmt.Sprintf("kafka.tiers[%d]", i), fmt.Sprintf("%v is not in whole milliseconds", d),
				fmt.Sprintf("write %v", d.Round(time.Millisecond)))
		}
		if i > 0 && d <= c.Tiers[i-1] {
			v.Add(fmt.Sprintf("kafka.tiers[%d]", i), fmt.Sprintf("%v does not come after %v", d, c.Tiers[i-1]),
				"let them ascend, for example [30s, 5m, 30m]; "+
					"for several deliveries with one delay write delay, multiplier: 1 and attempts")
		}
	}
}

// classes checks patterns for classes of errors.
func (v validator) classes(path string, patterns []string) {
	for i, p := range patterns {
		if strings.TrimSpace(p) != p || p == "" {
			v.Add(fmt.Sprintf("%s[%d]", path, i), strconv.Quote(p)+" is no class of errors",
				`without spaces around, * stands for anything, for example "*json.SyntaxError"`)
		}
	}
}

// suffix checks what ends the name of a topic, if it is given.
func (v validator) suffix(path, s, example string) {
	legal := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
	}
	if len(s) > 100 || strings.ContainsFunc(s, func(r rune) bool { return !legal(r) }) {
		v.Add(path, strconv.Quote(s)+" cannot stand in the name of a topic",
			"allowed: at most 100 letters, digits, dots, underscores and hyphens, for example "+example)
	}
}

// Ineffective adds the settings that do nothing.
func Ineffective(to *check.Errors, c redelivery.Config) {
	if c.Disabled {
		return
	}
	v := validator{to}
	if !c.Enabled() {
		v.idleWithoutTiers(c)
		return
	}
	if c.DLTStrategy == redelivery.DropLast && c.PoisonBatch != redelivery.PoisonDeadLetter {
		const fix = "remove it, or choose dltStrategy: dead-letter"
		// a policy that is written out has these
		usual := redelivery.Config{Delay: c.Delay, Tiers: c.Tiers, Naming: c.Naming}.WithDefaults()
		v.Idle("kafka.dltSuffix", c.DLTSuffix != "" && c.DLTSuffix != usual.DLTSuffix, fix)
		v.Idle("kafka.dltRetention", c.DLTRetention != 0 && c.DLTRetention != usual.DLTRetention, fix)
	}
	if full := c.WithDefaults(); full.Window < full.Concurrency {
		v.Add("kafka.concurrency", fmt.Sprintf("%d is never reached with a window of %d", full.Concurrency, full.Window),
			"raise the window, or lower it")
	}
	v.neverMade(c)
}

// neverMade reports a timeout that is over before the last delivery is made, however quick the handler is.
func (v validator) neverMade(c redelivery.Config) {
	delays := c.Delays()
	var made time.Duration // how old a message is at least in delivery i+1
	over := 0              // the delivery that is the last, because it fails after the timeout
	for i, d := range delays {
		if over == 0 && c.Timeout > 0 && made > c.Timeout {
			over = i + 1
		}
		if i < len(delays)-1 {
			made += d
		}
	}
	if over > 0 {
		v.Add("kafka.timeout", fmt.Sprintf("%v is over in delivery %d of %d", c.Timeout, over, len(delays)+1),
			fmt.Sprintf("no other would follow: raise it to %v or more, or ask for fewer deliveries", made))
	}
}

// idleWithoutTiers reports what does nothing because there is no retry topic.
func (v validator) idleWithoutTiers(c redelivery.Config) {
	const fix = "set tiers, for example [30s, 5m, 30m]"
	const orDelay = "set delay, for example 30s"
	d := c.Drain
	for _, f := range []struct {
		key string
		set bool
		fix string
	}{
		{"multiplier", c.Multiplier != 0, orDelay}, {"maxDelay", c.MaxDelay != 0, orDelay}, {"attempts", c.Attempts != 0,
			orDelay},
		{"timeout", c.Timeout != 0, fix}, {"dltStrategy", c.DLTStrategy != "", fix},
		{"retryErrors", len(c.RetryErrors) > 0, fix}, {"neverRetryErrors", len(c.NeverRetryErrors) > 0, fix},
		{"naming", c.Naming != "", fix}, {"retrySuffix", c.RetrySuffix != "", fix}, {"dltSuffix", c.DLTSuffix != "",
			fix}, {"groupInNames", c.GroupInNames, fix},
		{"concurrency", c.Concurrency != 0, fix}, {"window", c.Window != 0, fix}, {"order", c.Order != "",
			fix}, {"handlerTimeout", c.HandlerTimeout != 0, fix},
		{"exactlyOnce", c.ExactlyOnce, fix}, {"poisonBatch", c.PoisonBatch != "", fix},
		{"outage", c.Outage != 0, fix}, {"dltRetention", c.DLTRetention != 0, fix}, {"maxTrace", c.MaxTrace != 0, fix},
		{"drain.factor", d.Factor != 0, fix}, {"drain.rampUp", d.RampUp != 0, fix}, {"drain.maxRate", d.MaxRate != 0, fix},
	} {
		v.Idle("kafka."+f.key, f.set, f.fix)
	}
}
