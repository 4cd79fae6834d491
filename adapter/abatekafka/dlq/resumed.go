package dlq

import (
	"context"
	"errors"
	"time"
)

// again collects where a replay that is resumed has sent letters, to judge them too.
func (x *replaying) again(ctx context.Context) error {
	err := x.d.Actions(ctx, func(a *Action) bool {
		if a.Kind != Sent || a.ID != x.p.ID {
			return ctx.Err() == nil
		}
		from, err := ParsePlace(x.d.config.Topic, a.Place)
		to, err2 := parseLanded(a.To)
		at := spot{from.Partition, from.Offset}
		if err == nil && err2 == nil && x.d.ledger.sent(x.p.ID, at) {
			to.group, to.id = a.Reader, a.ToTopicID
			x.out.sent(at, to)
		}
		return ctx.Err() == nil
	})
	if err == nil {
		err = x.vanished(ctx)
	}
	x.gone = len(x.out.gone) // what is known to be gone stops no replay a second time
	return err
}

// after only looks after what was sent before.
func (x *replaying) after(ctx context.Context) error {
	if len(x.out.open) == 0 {
		return nil
	}
	x.startBatch()
	_ = x.watch.ask(func(r *ramp) { r.sent = len(x.out.open) })
	if err := x.settle(ctx, true); !errors.Is(err, errStopped) {
		return err
	}
	return nil
}

// offsets is what the watcher begins at: the present ends, or for a replay that is resumed where it began the first
// time. Of one that has not said that, of an earlier version, the timestamps in the topics have to tell: those are by
// the clocks of the consumers.
func (x *replaying) offsets(ctx context.Context, topics []string) (map[string]map[int32]int64, error) {
	if x.r.Resume == "" {
		return nil, nil
	}
	if from := x.d.ledger.watched(x.p.ID); from != nil {
		return from, nil
	}
	const skew = time.Minute
	listed, err := x.d.admin.ListOffsetsAfterMilli(ctx, x.p.Started.Add(-skew).UnixMilli(), topics...)
	from := map[string]map[int32]int64{}
	for topic, partitions := range listed {
		from[topic] = map[int32]int64{}
		for partition, o := range partitions {
			from[topic][partition] = max(o.Offset, 0) // from the beginning where the broker does not say
		}
	}
	return from, err
}
