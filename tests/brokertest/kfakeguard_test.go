package brokertest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Older commits of kfake fail this: records of a transaction that was abandoned became visible when the same
// transactional id came back and committed. Exactly-once forwarding leans on it, so it is looked at on every broker.
func TestAbandonedTransactionStaysInvisibleWhenItsIDComesBack(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 1)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		// A transactional id that nobody knows yet: the real broker makes the topic of the transactions the first time.
		id := kgo.TransactionalID(unique(t))
		var want []string
		for round := range 3 {
			for _, end := range []string{"abandoned", "committed"} {
				c := b.client(t, id, kgo.DefaultProduceTopic(topic))
				if err := c.BeginTransaction(); err != nil {
					t.Fatal(err)
				}
				value := fmt.Sprint(end, " ", round)
				if err := c.ProduceSync(ctx, kgo.StringRecord(value)).FirstErr(); err != nil {
					t.Fatal(err)
				}
				if end == "committed" {
					// kgo 1.22.2 may have written a first record before it knows the partition itself, and then ends the transaction
					// with an abort and without an error.
					eventually(t, "the client to know its topic", func() bool {
						leader, _, err := c.PartitionLeader(topic, 0)
						return err == nil && leader >= 0
					})
					if err := c.EndTransaction(ctx, kgo.TryCommit); err != nil {
						t.Fatal(err)
					}
					want = append(want, value)
				}
				c.Close() // without a word to the broker
			}
		}
		var got []string
		for _, r := range b.everything(t, topic) {
			got = append(got, string(r.Value))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("a read-committed reader sees %q, want %q", got, want)
		}
	})
}
