package kafkadrill

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// writer writes the same messages to the topics of all acts, at random moments, on schedule whatever becomes of them.
type writer struct {
	client *kgo.Client
	acts   []*act
	rate   float64
	random *rand.Rand
	failed chan error    // the first
	late   time.Duration // the most that it was behind its schedule; to be read when it has ended
}

// write goes on for so long.
func (w *writer) write(ctx context.Context, began time.Time, length time.Duration) {
	due := time.Duration(0)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := 0; ; n++ {
		due += time.Duration(w.random.ExpFloat64() / w.rate * float64(time.Second))
		if due >= length {
			return
		}
		timer.Reset(time.Until(began.Add(due)))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		w.late = max(w.late, time.Since(began)-due)
		for _, a := range w.acts {
			w.one(ctx, a, n)
		}
	}
}

// one writes a message to the topic of an act.
func (w *writer) one(ctx context.Context, a *act, n int) {
	key := fmt.Sprintf("order-%d", n)
	w.client.Produce(ctx, &kgo.Record{Topic: a.topic, Key: []byte(key), Value: []byte(`{"order":"` + key + `"}`)}, func(r *kgo.Record, err error) {
		if err == nil {
			a.recorder.wrote(identity(r.Topic, r.Partition, r.Offset))
			return
		}
		select {
		case w.failed <- fmt.Errorf("topic %s did not take a message: %w", a.topic, err):
		default:
		}
	})
}

// identity is what abatekafka.Message.ID says of the same message.
func identity(topic string, partition int32, offset int64) string {
	return fmt.Sprintf("%s/%d/%d", topic, partition, offset)
}
