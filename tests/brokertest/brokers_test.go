package brokertest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate/adapter/abatekafka/embedded"
	"github.com/abate-go/abate/internal/loopback"
	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/internal/needs/kafka"
)

// patience is how long a test waits for anything. It is long because a machine may be busy: nothing waits so long
// unless it is broken.
const patience = 90 * time.Second

// broker is one that a test talks to: the embedded fake or a real Kafka. Copies are the same broker.
type broker struct {
	name string // embedded, real
	addr string
	fake *fake         // nil for a real one
	real *kafka.Broker // nil for a fake
	own  bool          // may be killed
}

// fake is an embedded broker that can be restarted.
type fake struct {
	*embedded.Broker
	config embedded.Config
}

// TestMain runs three times as many tests at once as there are processors, unless -parallel says otherwise: they wait
// most of the time.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	m.Run()
}

// eachBroker runs a test on the embedded broker, and on a real one, beside other tests. Both are shared or kept in
// memory: a test that kills its broker uses eachBrokerOfItsOwn.
func eachBroker(t *testing.T, fn func(t *testing.T, b broker)) {
	t.Helper()
	needs.Whole(t) // most of the time of these tests is waiting
	t.Parallel()
	each(t, false, nil, fn)
}

// eachBrokerOfItsOwn runs a test on brokers that it may kill and restart: what was acknowledged is still there then.
// more are lines of the real one's configuration.
func eachBrokerOfItsOwn(t *testing.T, fn func(t *testing.T, b broker), more ...string) {
	t.Helper()
	needs.Whole(t)
	t.Parallel()
	each(t, true, more, fn)
}

func each(t *testing.T, own bool, more []string, fn func(t *testing.T, b broker)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		fn(t, newFake(t, own))
	})
	t.Run("real", func(t *testing.T) {
		fn(t, newReal(t, own, more...))
	})
}

func newFake(t *testing.T, own bool) broker {
	t.Helper()
	f := &fake{}
	var err error
	if own {
		f.config.Dir = t.TempDir()
		if f.config.Port, err = loopback.Port(); err != nil { // which nobody takes while the broker is down
			t.Fatal(err)
		}
	}
	if f.Broker, err = embedded.Start(f.config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return broker{name: "embedded", addr: f.Addresses()[0], fake: f, own: own}
}

// newReal returns the real broker of this process, or one for this test only.
func newReal(t *testing.T, own bool, more ...string) broker {
	t.Helper()
	b := broker{name: "real", own: own}
	if own {
		b.real = kafka.Start(t, more...)
	} else {
		b.real = kafka.Shared(t)
	}
	b.addr = b.real.Addr()
	t.Cleanup(func() {
		if log := b.real.Log(); t.Failed() {
			t.Logf("the end of Kafka's log:\n%s", log[max(0, len(log)-4000):])
		}
	})
	return b
}

// kill ends a broker: a real one as a crash would.
func (b broker) kill(t testing.TB) {
	t.Helper()
	if !b.own {
		t.Fatal("this broker is not the test's own: use eachBrokerOfItsOwn")
	}
	if b.real != nil {
		b.real.Kill()
		return
	}
	b.fake.Close()
}

// restart starts a broker that was killed, on its port and with its data, and waits until it answers.
func (b broker) restart(t testing.TB) {
	t.Helper()
	if b.real != nil {
		if err := b.real.Restart(); err != nil {
			t.Fatal(err)
		}
		return
	}
	again, err := embedded.Start(b.fake.config)
	if err != nil {
		t.Fatal(err)
	}
	b.fake.Broker = again
}

// client returns a client that is closed at the end of the test.
func (b broker) client(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.addr), kgo.ProducerLinger(0)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// admin returns a client for topics, groups and offsets, closed at the end of the test.
func (b broker) admin(t testing.TB) *kadm.Client {
	t.Helper()
	return kadm.NewClient(b.client(t))
}

var names atomic.Int64

// unique returns a name that no other test of this run has, made from a test's name.
func unique(t testing.TB) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return '-'
	}, filepath.Base(strings.TrimSuffix(strings.TrimSuffix(t.Name(), "/embedded"), "/real")))
	return fmt.Sprintf("%.60s-%d", strings.TrimPrefix(name, "Test"), names.Add(1))
}

// topic creates a topic with a name of its own. config are settings such as "retention.ms=1000".
func (b broker) topic(t testing.TB, partitions int, config ...string) string {
	t.Helper()
	name := unique(t)
	b.create(t, name, partitions, config...)
	return name
}

// create creates a topic with a given name, and waits until it can be written and read.
func (b broker) create(t testing.TB, name string, partitions int, config ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	settings := make(map[string]*string)
	for _, c := range config {
		key, value, _ := strings.Cut(c, "=")
		settings[key] = &value
	}
	admin := b.admin(t)
	if _, err := admin.CreateTopic(ctx, int32(partitions), 1, settings, name); err != nil {
		t.Fatalf("topic %s: %v", name, err)
	}
	eventually(t, "topic "+name+" to have leaders", func() bool {
		ends, err := admin.ListEndOffsets(ctx, name)
		return err == nil && ends.Error() == nil && len(ends[name]) == partitions
	})
}

// recreate deletes a topic and creates it anew with one partition. It waits until the broker names the new topic: a
// producer that begins before then writes to the old one, and fails.
func (b broker) recreate(t *testing.T, name string) {
	t.Helper()
	admin := b.admin(t)
	if _, err := admin.DeleteTopics(within(t), name); err != nil {
		t.Fatalf("topic %s: %v", name, err)
	}
	var id kadm.TopicID
	eventually(t, "topic "+name+" to be made anew", func() bool {
		resp, err := admin.CreateTopic(within(t), 1, 1, nil, name)
		id = resp.ID
		return err == nil && resp.Err == nil
	})
	eventually(t, "the broker to name the new topic", func() bool {
		topics, err := admin.ListTopics(within(t), name)
		if err != nil || topics[name].ID != id {
			return false
		}
		ends, err := admin.ListEndOffsets(within(t), name)
		return err == nil && ends.Error() == nil && len(ends[name]) == 1
	})
}

// produce writes records and waits until all are acknowledged. Their topic may be empty: then it is the given one.
// Partitions are those of the records.
func (b broker) produce(t testing.TB, topic string, records ...*kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := b.client(t, kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer c.Close()
	if err := c.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatalf("produce to %s: %v", topic, err)
	}
}

// consume reads n records of a topic from its beginning, as a read-committed reader without a group, and returns them
// in the order in which they came: in order within a partition.
func (b broker) consume(t testing.TB, topic string, n int) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := b.client(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(100*time.Millisecond))
	defer c.Close()
	var all []*kgo.Record
	for len(all) < n {
		fetches := c.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d records of %s within %v", len(all), n, topic, patience)
		}
		if err := fetches.Err(); err != nil && !kerr.IsRetriable(err) {
			t.Fatalf("read %s: %v", topic, err)
		}
		all = append(all, fetches.Records()...)
	}
	return all
}

// everything reads all records that a topic holds now.
func (b broker) everything(t testing.TB, topic string) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	admin := b.admin(t)
	starts, err := admin.ListStartOffsets(ctx, topic)
	ends, err2 := admin.ListCommittedOffsets(ctx, topic)
	if err := errors.Join(err, err2, starts.Error(), ends.Error()); err != nil {
		t.Fatalf("start and end of %s: %v", topic, err)
	}
	left := make(map[int32]int64) // partition → end
	ends.Each(func(o kadm.ListedOffset) {
		if start, _ := starts.Lookup(topic, o.Partition); o.Offset > start.Offset {
			left[o.Partition] = o.Offset
		}
	})
	c := b.client(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond))
	defer c.Close()
	var all []*kgo.Record
	for len(left) > 0 {
		fetches := c.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%s: %d records read within %v, and %v not reached", topic, len(all), patience, left)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				all = append(all, r)
			}
			if end, ok := left[r.Partition]; ok && r.Offset+1 >= end {
				delete(left, r.Partition)
			}
		})
	}
	return all
}

// eventually asks until the answer is yes.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	over := time.NewTimer(patience)
	defer over.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-over.C:
			t.Fatalf("waited %v in vain for: %s", patience, what)
		}
	}
}
