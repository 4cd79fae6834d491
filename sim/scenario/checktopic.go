package scenario

import (
	"fmt"
	"slices"

	"github.com/abate-go/abate/policy/redelivery"
)

// topic reports what is wrong with a fleet that consumes.
func (c *checker) topic(f *Fleet, path string) {
	has := func(key string) bool { return c.Has(path + "." + key) }
	if !has("topic") {
		return
	}
	t := &f.Topic
	const unread = "has no effect on a fleet that consumes"
	c.obey(path, []rule{
		{t.Partitions == 0, "topic", "needs partitions", "for example topic: {partitions: 10}", []string{"topic.partitions"}},
		{has("users"), "users", "users wait for answers, and a topic has none",
			"write rate, curve or once: the messages that are written to the topic", nil},
		{has("patience"), "patience", unread, "expect latency(p99, " + f.Name + "), or set kafka.timeout in the policy", nil},
		{has("parallel"), "parallel", unread, remove, nil},
		{c.s.Model.ServiceTimeDrawn == DrawnWithRequest, "topic", "messages have no random numbers of their own",
			"remove model.serviceTimeDrawn: request", nil},
		{t.Partitions > 0 && f.Instances > t.Partitions, "instances",
			fmt.Sprintf("%d instances share %d partitions, so that some have none", f.Instances, t.Partitions),
			"lower it, or raise topic.partitions", []string{"topic.partitions"}},
		{len(f.Calls) > 1, "calls", "a consumer has one guard, that of the service it calls",
			"name one service here; it may call the others", nil},
	})
	if len(f.Calls) != 1 {
		return
	}
	call, at := &f.Calls[0], "calls[0]."
	const whole = "a message is handled by one call"
	c.obey(path, []rule{
		{call.Times > 1, at + "times", whole, remove, nil},
		{call.Share > 0 && call.Share < 1, at + "share", whole, remove, nil},
		{len(call.Else) > 0, at + "else", whole + ", which decides whether it failed",
			"call a service that has the fallback", nil},
		{call.Optional, at + "optional", whole + ", which decides whether it failed", remove, nil},
	})
	keeps := func(v Variant) bool {
		order := v.PolicyOf(f.Name, call.To).Kafka.Order
		return order == redelivery.ByKey || order == redelivery.ParkKey
	}
	c.obey(path, []rule{
		{t.Keys == 0 && slices.ContainsFunc(c.s.Variants, keeps), "topic",
			"a variant keeps the order of each key, and there are no keys", "for example keys: 1000", []string{"topic.keys"}},
	})
}

// aboutConsumers are the measures of fleets that consume.
var aboutConsumers = []string{"deadLetters", "deliveries", "lag", "lateness", "drained"}
