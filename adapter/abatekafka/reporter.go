package abatekafka

import (
	"log/slog"

	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

// place is a partition of a topic.
type place struct {
	topic     string
	partition int32
}

// noPartition stands for a consumer as a whole.
const noPartition = -1

func (at place) single() map[string][]int32 { return map[string][]int32{at.topic: {at.partition}} }

// offset is an offset of the partition, as the client takes it.
func (at place) offset(offset int64) map[string]map[int32]kgo.EpochOffset {
	return map[string]map[int32]kgo.EpochOffset{at.topic: {at.partition: {Epoch: -1, Offset: offset}}}
}

// reporter reports what happens to the messages of one partition, or to a consumer as a whole.
type reporter struct {
	observer       redelivery.Observer // nil for none
	log            *slog.Logger
	service, group string
	at             place
	tier           int
}

func (r *reporter) partition(at place, tier int) *reporter {
	return &reporter{
		observer: r.observer, log: r.log.With("topic", at.topic, "partition", at.partition),
		service: r.service, group: r.group, at: at, tier: tier,
	}
}

// observe calls the observer, who must not be called while a lock is held.
func (r *reporter) observe(e redelivery.Event) {
	if r.observer != nil {
		e.Service, e.Group = r.service, r.group
		e.Topic, e.Partition, e.Tier = r.at.topic, r.at.partition, r.tier
		r.observer.ObserveRedelivery(e)
	}
}

func withReason(e redelivery.Event, why string) redelivery.Event {
	e.Reason = why
	return e
}
