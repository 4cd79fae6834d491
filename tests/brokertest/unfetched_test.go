package brokertest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

// linesOf counts the lines of a log about one topic that nobody can fetch.
type linesOf struct {
	topic      string
	all, hints atomic.Int64
}

func (l *linesOf) Write(line []byte) (int, error) {
	if text := string(line); strings.Contains(text, "topic="+l.topic+" ") && strings.Contains(text, "UNKNOWN_TOPIC_ID") {
		l.all.Add(1)
		if strings.Contains(text, "until this consumer is restarted") {
			l.hints.Add(1)
		}
	}
	return len(line), nil
}

// The client brings the error of a topic that was deleted and made anew with every fetch: that is one line that says
// what to do, and not thousands, and other topics go on.
func TestTopicThatWasMadeAnewIsToldOnceAndOthersGoOn(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		anew, other := b.topic(t, 1), b.topic(t, 1)
		lines := &linesOf{topic: anew}
		var seen seen
		runConsumer(t, &abatekafka.Consumer{
			Brokers:     []string{b.addr},
			Group:       "g-" + anew,
			Topics:      []string{anew, other},
			Replication: 1,
			Guard:       guardOf(t),
			Redelivery:  redelivery.Config{Tiers: []time.Duration{time.Second}}.Always(),
			Handler:     func(_ context.Context, m *abatekafka.Message) error { seen.note(string(m.Value)); return nil },
			Options: []kgo.Opt{kgo.FetchMaxWait(20 * time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
				kgo.MetadataMaxAge(500 * time.Millisecond), kgo.MetadataMinAge(100 * time.Millisecond)},
			Logger: slog.New(slog.NewTextHandler(lines, nil)),
		})
		b.produce(t, anew, kgo.StringRecord("first"))
		eventually(t, "the topic to be read", func() bool { return seen.count("first") == 1 })
		began := time.Now()
		b.recreate(t, anew)
		eventually(t, "the consumer to say what to do", func() bool {
			return lines.hints.Load() > 0 || lines.all.Load() > 100
		})
		for i := range 20 {
			value := fmt.Sprint("other ", i)
			b.produce(t, other, kgo.StringRecord(value))
			eventually(t, "the other topic to go on", func() bool { return seen.count(value) == 1 })
		}
		if n, most := lines.all.Load(), 2+int64(time.Since(began)/time.Minute); n > most {
			t.Errorf("%d lines about it, want %d at most", n, most)
		}
	})
}

// Exactly once: what is under way when its topic is made anew is forwarded, but its offset is not the new topic's,
// whose first messages would be passed over.
func TestOffsetOfATopicThatIsGoneIsNotCommittedForTheNewOne(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 1)
		lines, j := &linesOf{topic: topic}, &journal{}
		var seen seen
		release := make(chan struct{})
		run := func() (stop func()) {
			return runConsumer(t, &abatekafka.Consumer{
				Brokers:     []string{b.addr},
				Group:       "g-" + topic,
				Topics:      []string{topic},
				Replication: 1,
				Instance:    "member-0",
				Observer:    j,
				Guard:       guardOf(t),
				Redelivery:  redelivery.Config{Tiers: []time.Duration{time.Second}, ExactlyOnce: true}.Always(),
				Handler: func(ctx context.Context, m *abatekafka.Message) error {
					seen.note(string(m.Value))
					if string(m.Value) != "old" {
						return nil
					}
					select {
					case <-release:
					case <-ctx.Done():
					}
					return abate.Permanent(errors.New("no"))
				},
				Options: []kgo.Opt{kgo.FetchMaxWait(20 * time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
					kgo.MetadataMaxAge(500 * time.Millisecond), kgo.MetadataMinAge(100 * time.Millisecond)},
				Logger: slog.New(slog.NewTextHandler(lines, nil)),
			})
		}
		stop := run()
		b.produce(t, topic, kgo.StringRecord("old"))
		eventually(t, "the handler to have it", func() bool { return seen.count("old") == 1 })
		b.recreate(t, topic)
		b.produce(t, topic, kgo.StringRecord("new 0"), kgo.StringRecord("new 1"))
		eventually(t, "the consumer to see it", func() bool { return lines.all.Load() > 0 })
		close(release)
		eventually(t, "the old message to be a dead letter", func() bool { return j.count(redelivery.DeadLettered, "") == 1 })
		stop()
		run()
		eventually(t, "the new messages to be handled", func() bool { return seen.count("new 1") == 1 })
		if n := seen.count("new 0"); n != 1 {
			t.Errorf("the first message of the new topic was delivered %d times", n)
		}
	})
}
