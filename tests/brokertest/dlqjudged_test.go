package brokertest_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
)

// commits has a group commit an offset of partition 0 of the main topic.
func (c chain) commits(t *testing.T, group string, offset int64) {
	t.Helper()
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: c.main, Partition: 0, At: offset, LeaderEpoch: -1})
	if err := c.admin(t).CommitAllOffsets(within(t), group, offsets); err != nil {
		t.Fatal(err)
	}
}

// failedAgain is what a consumer forwards of a message that was replayed from a place among the dead letters.
func (c chain) failedAgain(partition int32, offset int64) *kgo.Record {
	l := letter.Letter{
		Original:     letter.Place{Topic: c.main, Partition: 0, Offset: 0},
		Group:        c.group(),
		Failures:     1,
		Class:        "error",
		Reason:       "retry",
		Replays:      1,
		ReplayedFrom: letter.Place{Topic: c.dead, Partition: 0, Offset: offset},
	}
	return &kgo.Record{Partition: partition, Value: []byte("again"), Headers: l.AppendHeaders(nil, letter.Abate)}
}

// whenSettling calls fn once, when a replay waits for its letters.
func whenSettling(fn func()) func(dlq.Progress) {
	var once sync.Once
	return func(p dlq.Progress) {
		if p.Phase == dlq.Settling {
			once.Do(fn)
		}
	}
}

// A topic that is deleted and made anew begins with offset 0 again: commits of the new one say nothing of what was sent
// to the old one.
func TestLettersThatWentToATopicThatWasMadeAnewAreNotCalledHandled(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		c.seed(t, 4, 1)
		d := c.desk(t)
		makeAnew := func() {
			b.recreate(t, c.main)
			c.produce(t, c.main, kgo.StringRecord("1"), kgo.StringRecord("2"), kgo.StringRecord("3"))
			c.commits(t, c.group(), 3)
		}
		p := replay(t, d, dlq.Replay{
			Filter: dlq.All(), Rate: 10_000, Settle: patience, Patience: patience, Progress: whenSettling(makeAnew),
		})
		if p.Phase != dlq.Stopped || p.Sent != 1 || p.Gone != 1 || p.Handled != 0 || p.Waiting != 0 ||
			!strings.Contains(p.Why, "1 were sent to a topic that was deleted") {
			t.Fatalf("while it waited: %+v", p)
		}
		d.Close()
		// What is gone stops no replay a second time, and is never called handled.
		left := replay(t, c.desk(t),
			dlq.Replay{Resume: p.ID, Rate: 10_000, Settle: time.Millisecond, Progress: whenSettling(func() {
				c.commits(t, c.group(), 6)
			})})
		if left.Sent != 4 || left.Gone != 1 || left.Handled+left.Waiting != 3 || left.Phase == dlq.Done && left.Why == "" {
			t.Errorf("resumed: %+v", left)
		}
	})
}

// Consumers that start while a replay runs give their retry topics the partitions that the main topic has got since.
func TestFailuresInAPartitionThatWasAddedMeanwhileAreSeen(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		c.seed(t, 1, 1)
		retry := c.main + "-retry-1m"
		b.create(t, retry, 1)
		raise := func() {
			if _, err := b.admin(t).CreatePartitions(within(t), 1, retry); err != nil {
				t.Error(err)
			}
			eventually(t, "the partition to be there", func() bool {
				ends, err := b.admin(t).ListEndOffsets(within(t), retry)
				return err == nil && ends.Error() == nil && len(ends[retry]) == 2
			})
			c.produce(t, retry, c.failedAgain(1, 0))
			c.commits(t, c.group(), 1)
		}
		p := replay(t, c.desk(t), dlq.Replay{
			Filter: dlq.All(), Settle: patience, Patience: patience, MaxFailures: 1, Progress: whenSettling(raise),
		})
		if p.Phase != dlq.Done || p.Sent != 1 || p.Back != 1 || p.Handled != 0 {
			t.Errorf("%+v", p)
		}
	})
}

// The clock of the consumer that forwards may be slow: where a replay that is resumed begins to look is not a matter of
// timestamps.
func TestResumedReplaySeesFailuresWhateverTheClocksOfConsumersSay(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		c.seed(t, 1, 1)
		retry := c.main + "-retry-1m"
		b.create(t, retry, 1)
		before := c.failedAgain(0, 0) // of another letter that stood there: it is not looked at
		before.Timestamp = time.Now().Add(-2 * time.Hour)
		c.produce(t, retry, before)
		d := c.desk(t)
		p := replay(t, d, dlq.Replay{Filter: dlq.All(), Settle: time.Millisecond})
		if p.Phase != dlq.Pending || p.Waiting != 1 {
			t.Fatalf("%+v", p)
		}
		again := c.failedAgain(0, 0)
		again.Timestamp = time.Now().Add(-time.Hour)
		c.produce(t, retry, again)
		c.commits(t, c.group(), 1)
		p = replay(t, d, dlq.Replay{Resume: p.ID, Settle: patience, Patience: patience, MaxFailures: 1})
		if p.Phase != dlq.Done || p.Sent != 1 || p.Back != 1 || p.Handled != 0 {
			t.Errorf("%+v", p)
		}
	})
}

// A group that reads is waited for, though another one that is to read letters of the same batch has no members.
func TestGroupThatReadsIsWaitedForThoughAnotherHasNoMembers(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		others := c.failed(2, 0, "error", "of shipping")
		for i, h := range others.Headers {
			if h.Key == "kafka_dlt-original-consumer-group" {
				others.Headers[i].Value = []byte("shipping")
			}
		}
		c.produce(t, c.dead, c.failed(0, 0, "error", "of billing"), c.failed(1, 0, "error", "of billing"), others)
		c.commits(t, "shipping", 0)
		goOn := make(chan struct{})
		handled := 0
		c.consuming(t, func(ctx context.Context, m *abatekafka.Message) error {
			if handled++; handled > 1 {
				select {
				case <-goOn:
				case <-ctx.Done():
				}
			}
			return nil
		})
		looks := 0
		p := replay(t, c.desk(t), dlq.Replay{Filter: dlq.All(), Rate: 10_000, Settle: time.Millisecond, Patience: patience,
			Progress: func(p dlq.Progress) {
				if p.Phase == dlq.Settling && p.Sent == 3 {
					if looks++; looks == 20 {
						close(goOn)
					}
				}
			}})
		if p.Sent != 3 || p.Handled != 2 || p.Waiting != 1 || p.Phase != dlq.Pending ||
			!strings.Contains(p.Why, "group shipping") {
			t.Errorf("%+v", p)
		}
	})
}

// A policy may call its retry topics what it likes: where a letter failed before, it may fail again.
func TestFailuresInRetryTopicsOfAnyNameAreSeen(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		later := c.main + "-later-1m" // kafka.retrySuffix: -later
		b.create(t, later, 1)
		dead, _ := letter.Read(c.failed(0, 0, "error", "x"))
		for _, topic := range []string{c.main, later} {
			dead.History = append(dead.History, letter.Past{Topic: topic, At: time.Now(), Class: "error"})
		}
		c.produce(t, c.dead, &kgo.Record{Key: dead.Key, Value: dead.Value, Headers: dead.AppendHeaders(nil, letter.Abate)})
		p := replay(t, c.desk(t), dlq.Replay{Filter: dlq.All(), Settle: patience, Patience: patience, MaxFailures: 1,
			Progress: whenSettling(func() {
				c.produce(t, later, c.failedAgain(0, 0))
				c.commits(t, c.group(), 1)
			})})
		if p.Phase != dlq.Done || p.Sent != 1 || p.Back != 1 || p.Handled != 0 {
			t.Errorf("%+v", p)
		}
	})
}

// Another producer has left a transaction open in the retry topic, and what failed again stands behind it: it is
// committed, and cannot be read yet.
func TestFailuresBehindAnOpenTransactionAreNotCalledHandled(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		c.seed(t, 1, 1)
		retry := c.main + "-retry-1m"
		b.create(t, retry, 1)
		other := b.client(t, kgo.TransactionalID("other-"+c.main), kgo.DefaultProduceTopic(retry))
		if err := other.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := other.ProduceSync(within(t), kgo.StringRecord("open")).FirstErr(); err != nil {
			t.Fatal(err)
		}
		d := c.desk(t)
		p := replay(t, d, dlq.Replay{Filter: dlq.All(), Settle: patience, Patience: time.Second, MaxFailures: 1,
			Progress: whenSettling(func() {
				c.produce(t, retry, c.failedAgain(0, 0))
				c.commits(t, c.group(), 1)
			})})
		if p.Phase != dlq.Pending || p.Sent != 1 || p.Handled != 0 || p.Back != 0 || p.Waiting != 1 ||
			!strings.Contains(p.Why, retry+"/0 is not readable to its end") {
			t.Errorf("while it is open: %+v", p)
		}
		if err := other.EndTransaction(within(t), kgo.TryAbort); err != nil {
			t.Fatal(err)
		}
		p = replay(t, d, dlq.Replay{Resume: p.ID, Settle: patience, Patience: patience, MaxFailures: 1})
		if p.Phase != dlq.Done || p.Sent != 1 || p.Back != 1 || p.Handled != 0 || p.Waiting != 0 {
			t.Errorf("afterwards: %+v", p)
		}
	})
}
