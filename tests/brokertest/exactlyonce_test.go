package brokertest_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// exactly is a policy that forwards in transactions.
func exactly() redelivery.Config {
	c := shortTiers()
	c.ExactlyOnce, c.Concurrency = true, 4
	return c
}

// failsInMain fails messages of the main topic whose value has an odd last digit, and handles all others.
func failsInMain(got *seen) abatekafka.Handler {
	return func(_ context.Context, m *abatekafka.Message) error {
		got.note(string(m.Value))
		if m.Delivery == 1 && strings.ContainsAny(string(m.Value[len(m.Value)-1:]), "13579") {
			return errors.New("not now")
		}
		return nil
	}
}

// copies counts the records of a topic by their values, as a read-committed reader.
func copies(t *testing.T, b broker, topic string) map[string]int {
	t.Helper()
	n := map[string]int{}
	for _, rec := range b.everything(t, topic) {
		n[string(rec.Value)]++
	}
	return n
}

// caughtUp waits until groups have committed everything that their topics hold.
func caughtUp(t *testing.T, b broker, group string, topics ...string) {
	t.Helper()
	admin := b.admin(t)
	eventually(t, "group "+group+" to have committed everything of "+strings.Join(topics, ", "), func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		ends, err := admin.ListEndOffsets(ctx, topics...)
		offsets, err2 := admin.FetchOffsets(ctx, group)
		if err != nil || err2 != nil {
			return false
		}
		for topic, parts := range ends {
			for partition, end := range parts {
				if o, ok := offsets.Lookup(topic, partition); end.Offset > 0 && (!ok || o.At < end.Offset) {
					return false
				}
			}
		}
		return true
	})
}

func TestForwardAndOffsetAreCommittedTogether(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 2)
		b.produce(t, topic, spread(400, 2)...)
		var got seen
		c := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t),
			Redelivery: exactly().Always(),
			Instance:   topic + "-0", Handler: failsInMain(&got),
		}
		runConsumer(t, c)
		eventually(t, "all deliveries", func() bool { return len(got.list()) >= 600 })
		caughtUp(t, b, topic, topic)
		caughtUp(t, b, topic+"-retry-200ms", topic+"-retry-200ms")
		again := copies(t, b, topic+"-retry-200ms")
		if len(again) != 200 {
			t.Errorf("%d messages were forwarded, want 200", len(again))
		}
		for value, n := range again {
			if n != 1 {
				t.Errorf("%s was forwarded %d times", value, n)
			}
		}
		if n := len(got.list()); n != 600 {
			t.Errorf("%d deliveries, want 600", n)
		}
	})
}

// TestTransactionIsMadeOnceWhicheverAnswerIsLost lets the broker do each request of a transaction, and loses the
// answer.
func TestTransactionIsMadeOnceWhicheverAnswerIsLost(t *testing.T) {
	for _, key := range []kmsg.Key{kmsg.Produce, kmsg.AddOffsetsToTxn, kmsg.TxnOffsetCommit, kmsg.EndTxn} {
		t.Run(kmsg.NameForKey(int16(key)), func(t *testing.T) {
			eachBroker(t, func(t *testing.T, b broker) {
				topic := b.topic(t, 1)
				b.produce(t, topic, spread(40, 1)...)
				var got seen
				cut := &cutter{key: int16(key)}
				cut.left.Store(1)
				c := &abatekafka.Consumer{
					Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t),
					Redelivery: exactly().Always(),
					Instance:   topic + "-0", Handler: failsInMain(&got),
					Options: []kgo.Opt{kgo.Dialer(cut.dial)},
				}
				runConsumer(t, c)
				caughtUp(t, b, topic, topic)
				caughtUp(t, b, topic+"-retry-200ms", topic+"-retry-200ms")
				again := copies(t, b, topic+"-retry-200ms")
				if len(again) != 20 {
					t.Errorf("%d messages were forwarded, want 20", len(again))
				}
				for value, n := range again {
					if n != 1 {
						t.Errorf("%s was forwarded %d times", value, n)
					}
				}
				if cut.lost.Load() == 0 {
					t.Error("no answer was lost: the test shows nothing")
				}
			})
		})
	}
}

// cutter loses the answers to some requests of a kind, by cutting the connection when one has been written.
type cutter struct {
	key  int16
	left atomic.Int64
	lost atomic.Int64
}

func (k *cutter) dial(ctx context.Context, network, host string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, host)
	if err != nil {
		return nil, err
	}
	return &cutConn{Conn: conn, cutter: k}, nil
}

type cutConn struct {
	net.Conn
	cutter *cutter
	dead   atomic.Bool
}

// Write looks at the key of the request, which stands behind its length.
func (c *cutConn) Write(b []byte) (int, error) {
	if len(b) > 6 && int16(binary.BigEndian.Uint16(b[4:])) == c.cutter.key && c.cutter.left.Add(-1) >= 0 {
		c.cutter.lost.Add(1)
		c.dead.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.dead.Load() {
		return 0, errors.New("the connection was cut")
	}
	return n, err
}
