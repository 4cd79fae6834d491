package brokertest_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/idempotency"
)

// text makes headers of names and values by turns.
func text(pairs ...string) (h []kgo.RecordHeader) {
	for i := 0; i < len(pairs); i += 2 {
		h = append(h, kgo.RecordHeader{Key: pairs[i], Value: []byte(pairs[i+1])})
	}
	return h
}

func TestDeskReadsFiveDialects(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		spring := append(text("user", "data", "kafka_original-topic", c.main, "kafka_exception-fqcn",
			"org.springframework.kafka.listener.ListenerExecutionFailedException",
			"kafka_exception-cause-fqcn", "java.net.ConnectException", "kafka_exception-message",
			"Listener failed; refused 10.0.0.1", "kafka_dlt-original-consumer-group", "billing"),
			kgo.RecordHeader{Key: "retry_topic-attempts", Value: []byte{0, 0, 0, 5}}, kgo.RecordHeader{
				Key: "retry_topic-backoff-timestamp", Value: []byte{1, 0x99, 0xc8, 0x2c, 0xc0, 0},
			},
			kgo.RecordHeader{Key: "kafka_original-partition", Value: []byte{0, 0, 0, 0}}, kgo.RecordHeader{
				Key: "kafka_original-offset", Value: binary.BigEndian.AppendUint64(nil, 3),
			})
		connect := text("user", "data", "__connect.errors.topic", c.main, "__connect.errors.partition", "0",
			"__connect.errors.offset", "4", "__connect.errors.connector.name", "sink",
			"__connect.errors.exception.class.name", "org.apache.kafka.connect.errors.DataException",
			"__connect.errors.exception.message", "bad row 7")
		streams := text("user", "data", "__streams.errors.topic", c.main, "__streams.errors.partition", "0",
			"__streams.errors.offset", "5", "__streams.errors.exception", "java.lang.NullPointerException",
			"__streams.errors.message", "null", "__streams.errors.stacktrace",
			"java.lang.NullPointerException\n\tat com.shop.Topology.map(Topology.java:9)\n")
		share := text("__dlq.errors.topic", c.main, "__dlq.errors.partition", "0", "__dlq.errors.offset", "6",
			"__dlq.errors.group", "sharers", "__dlq.errors.delivery.count", "5", "__dlq.errors.message", "rejected")
		ours := c.failed(7, 0, "*net.OpError", "refused")
		for _, h := range [][]kgo.RecordHeader{spring, connect, streams, share, ours.Headers, text("user", "data")} {
			c.produce(t, c.dead, &kgo.Record{Key: []byte("k"), Value: []byte("v"), Headers: h})
		}
		d := c.desk(t)
		want := []struct {
			dialect letter.Dialect
			class   string
			offset  int64
			fails   int
		}{
			{letter.Spring, "java.net.ConnectException", 3, 4}, {letter.Connect, "org.apache.kafka.connect.errors.DataException",
				4, -1}, {letter.Streams, "java.lang.NullPointerException", 5, -1},
			{letter.Share, "", 6, 5}, {letter.Abate, "*net.OpError", 7, 4}, {letter.None, "", -1, 0},
		}
		all := every(t, d, dlq.All())
		for i, w := range want {
			l := all[i].Letter
			if l.Dialect != w.dialect || l.Class != w.class || l.Original.Offset != w.offset ||
				w.fails >= 0 && l.Failures != w.fails || len(all[i].Problems) > 0 {
				t.Errorf("%s is read as %+v, %v", w.dialect, l, all[i].Problems)
			}
		}
		if p := replay(t, d, quick()); p.Sent != 5 || p.Skipped != 1 {
			t.Errorf("%+v", p)
		}
		for i, m := range c.everything(t, c.main) {
			for _, h := range m.Headers {
				if strings.HasPrefix(h.Key, "kafka_") || strings.HasPrefix(h.Key, "retry_topic") ||
					strings.HasPrefix(h.Key, "__") || h.Key == "abate-letter" {
					t.Errorf("message %d still has %s", i, h.Key)
				}
			}
			if i < 3 && (len(m.Headers) != 4 || m.Headers[0].Key != "user" || string(m.Headers[0].Value) != "data") {
				t.Errorf("message %d has headers %v", i, m.Headers)
			}
		}
	})
}

func TestReplayWaitsWhileTheCircuitIsOpen(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		c.seed(t, 10, 1)
		policy := abate.Policy{CircuitBreaker: breaker.Config{FailureThreshold: 3, Mode: breaker.ForcedOpen}}
		g, err := abate.New("bank", policy)
		if err != nil {
			t.Fatal(err)
		}
		r := quick()
		r.Guard = g
		waiting := make(chan struct{}, 1)
		r.Progress = func(p dlq.Progress) {
			if p.Phase == dlq.CircuitOpen && strings.Contains(p.Why, "bank") {
				select {
				case waiting <- struct{}{}:
				default:
				}
			}
		}
		ended := make(chan dlq.Progress, 1)
		d := c.desk(t)
		go func() { p, _ := d.Replay(within(t), r); ended <- p }()
		<-waiting
		if n := len(c.everything(t, c.main)); n != 0 {
			t.Errorf("%d were sent into an open circuit", n)
		}
		policy.CircuitBreaker.Mode = ""
		if err := g.Update(policy); err != nil {
			t.Fatal(err)
		}
		if p := <-ended; !over(p) || p.Sent != 10 || p.Waiting != 10 {
			t.Errorf("%+v", p)
		}
	})
}

func TestReplayOfWhatStillFailsStopsAndOfWhatIsFixedSucceeds(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := chain{broker: b, main: b.topic(t, 1)}
		c.dead = c.main + "-dlq"
		var fixed atomic.Bool
		var mu sync.Mutex
		handled := map[string]int{}
		var dead atomic.Int32
		consumer := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: c.main, Topics: []string{c.main}, Guard: guardOf(t),
			Redelivery: shortTiers().Always(),
			Handler: func(_ context.Context, m *abatekafka.Message) error {
				if !fixed.Load() {
					return errors.New("no such account")
				}
				mu.Lock()
				defer mu.Unlock()
				handled[string(m.Value)]++
				return nil
			},
			OnDeadLetter: func(context.Context, letter.Letter) { dead.Add(1) },
		}
		runConsumer(t, consumer)
		b.produce(t, c.main, spread(20, 1)...)
		eventually(t, "20 dead letters", func() bool { return dead.Load() == 20 })
		d := c.desk(t)
		r := quick()
		r.Settle, r.MaxReplays = time.Hour, 2 // it ends when the letter is back
		for round := range 2 {
			p := replay(t, d, r)
			// the second has one letter: nothing to stop
			if want := []dlq.Phase{dlq.Stopped, dlq.Done}[round]; p.Phase != want || !strings.Contains(p.Why, "failed again") ||
				p.Sent != 1 || p.Back != 1 {
				t.Fatalf("%+v", p)
			}
			eventually(t, "the letter to be back", func() bool { return dead.Load() == int32(21+round) })
			r.Filter.Where = fmt.Sprintf("replays == %d", round+1)
		}
		r.Settle = time.Millisecond
		if p := replay(t, d, r); p.Sent != 0 || p.Skipped != 1 || p.Skips["replayed too often already"] != 1 {
			t.Errorf("a letter that was replayed twice, with 2 at most: %+v", p)
		}
		fixed.Store(true)
		r = quick()
		if p := replay(t, d, r); !over(p) || p.Sent != 20 || p.Back != 0 || p.Handled+p.Waiting != 20 {
			t.Errorf("%+v", p)
		}
		eventually(t, "all to be handled", func() bool { mu.Lock(); defer mu.Unlock(); return len(handled) == 20 })
		mu.Lock()
		defer mu.Unlock()
		for value, n := range handled {
			if n != 1 {
				t.Errorf("%s was handled %d times", value, n)
			}
		}
	})
}

func TestLetterThatIsSentTwiceIsHandledOnce(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := chain{broker: b, main: b.topic(t, 1)}
		c.dead = c.main + "-dlq"
		b.create(t, c.dead, 1, "retention.ms=2592000000", "max.message.bytes=2000000")
		c.seed(t, 3, 1)
		store := idempotency.NewMemory(1<<20, core.Now)
		var got seen
		runConsumer(t, &abatekafka.Consumer{
			Brokers:    []string{b.addr},
			Group:      c.main,
			Topics:     []string{c.main},
			Guard:      guardOf(t),
			Redelivery: shortTiers().Always(),
			Once:       abatekafka.Once(store),
			Handler:    func(_ context.Context, m *abatekafka.Message) error { got.note(string(m.Value)); return nil },
		})
		d := c.desk(t)
		// A crash between sending and noting leaves the letter waiting; so does this.
		for range 2 {
			if p := replay(t, d, quick()); p.Sent != 3 {
				t.Errorf("%+v", p)
			}
			f := dlq.All()
			f.State = dlq.Replayed
			if n, err := d.Restore(within(t), f); n != 3 || err != nil {
				t.Fatal(n, err)
			}
		}
		b.produce(t, c.main, &kgo.Record{Value: []byte("last")})
		eventually(t, "the last message", func() bool { return got.count("last") == 1 })
		if n := c.records(t, c.main); n != 7 || got.distinct() != 4 || len(got.list()) != 4 {
			t.Errorf("%d records, handled %v", n, got.list())
		}
	})
}

func TestEditSendsAChangedCopyOnce(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 2)
		c.seed(t, 4, 2)
		at := letter.Place{Topic: c.dead, Partition: 1, Offset: 0}
		if _, err := c.desk(t).Edit(within(t), at, dlq.Change{Value: []byte("x")}); err == nil ||
			!strings.Contains(err.Error(), "editing is off") {
			t.Error(err)
		}
		d := c.desk(t, func(c *dlq.Config) { c.AllowEdit = true })
		to, err := d.Edit(within(t), at, dlq.Change{Value: []byte(`{"fixed":true}`)})
		if err != nil || to != (letter.Place{Topic: c.main, Partition: 1, Offset: 0}) {
			t.Fatal(to, err)
		}
		m := c.everything(t, c.main)[0]
		last := m.Headers[len(m.Headers)-1]
		if string(m.Value) != `{"fixed":true}` || string(m.Key) != "cust-1" || last.Key != "abate-edited-from" ||
			string(last.Value) != at.String() || len(m.Headers) != 5 {
			t.Errorf("%s %s %v", m.Key, m.Value, m.Headers)
		}
		if e, err := d.Get(within(t), 1, 0); err != nil || e.State != dlq.Replayed {
			t.Errorf("%v %+v", err, e)
		}
		if _, err := d.Edit(within(t), at, dlq.Change{Value: []byte("x")}); err == nil ||
			!strings.Contains(err.Error(), "is replayed already, by ann@bastion") {
			t.Error(err)
		}
		if p := replay(t, d, quick()); p.Sent != 3 {
			t.Errorf("the letter and its copy: %+v", p)
		}
	})
}

func TestImportIsAllOrNothing(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 2)
		c.seed(t, 50, 2)
		small := b.topic(t, 2, "max.message.bytes=3000")
		var lines bytes.Buffer
		d := c.desk(t)
		if n, err := d.Export(within(t), dlq.All(), &lines); n != 50 || err != nil {
			t.Fatal(n, err)
		}
		var large bytes.Buffer
		large.Write(lines.Bytes())
		fmt.Fprintf(&large, `{"at":"x-dlq/0/0","key":null,"value":{"text":"%s"},"headers":[]}`+"\n",
			strings.Repeat("x", 5000))
		other, err := dlq.Open(within(t), dlq.Config{Brokers: []string{b.addr}, Topic: small})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(other.Close)
		if n, err := other.Import(within(t), bytes.NewReader(large.Bytes()), false); n != 0 || err == nil ||
			!strings.Contains(err.Error(), "nothing was imported") {
			t.Errorf("%d, %v", n, err)
		}
		if n := len(c.everything(t, small)); n != 0 {
			t.Errorf("%d letters of an import that failed", n)
		}
		if n, err := other.Import(within(t), bytes.NewReader(lines.Bytes()), false); n != 50 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		from, to := c.everything(t, c.dead), c.everything(t, small)
		if len(to) != 50 {
			t.Fatalf("%d letters", len(to))
		}
		byPlace := map[string]*kgo.Record{}
		for _, r := range from {
			byPlace[fmt.Sprint(r.Partition, string(r.Value))] = r
		}
		for _, r := range to {
			was := byPlace[fmt.Sprint(r.Partition, string(r.Value))]
			if was == nil || !bytes.Equal(was.Key, r.Key) ||
				fmt.Sprint(was.Headers) != fmt.Sprint(r.Headers[:len(r.Headers)-1]) ||
				r.Headers[len(r.Headers)-1].Key != "abate-imported" {
				t.Errorf("%v", r)
			}
		}
		if list := every(t, other, dlq.All()); len(list) != 50 {
			t.Errorf("%d letters wait", len(list))
		}
	})
}

func TestDeskForgetsWhatRetentionHasTaken(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := chain{broker: b, main: b.topic(t, 1)}
		c.dead = c.main + "-dlq"
		b.create(t, c.dead, 1, "retention.ms=86400000")
		c.seed(t, 30, 1)
		d := c.desk(t)
		e, err := d.Get(within(t), 0, 3)
		if err != nil || d.Retention() != 24*time.Hour || e.Purge.Sub(e.Written) != 24*time.Hour {
			t.Errorf("%v, kept for %v, %+v", err, d.Retention(), e)
		}
		if n, err := d.Delete(within(t), dlq.All()); n != 30 || err != nil {
			t.Fatal(n, err)
		}
		offsets := kadm.Offsets{}
		offsets.Add(kadm.Offset{Topic: c.dead, Partition: 0, At: 20})
		if _, err := b.admin(t).DeleteRecords(within(t), offsets); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Get(within(t), 0, 3); err == nil || !strings.Contains(err.Error(), "retention has taken it") {
			t.Error(err)
		}
		if n, err := d.Restore(within(t), dlq.All()); err != nil || n != 10 {
			t.Errorf("%d letters restored, %v", n, err)
		}
		if list := every(t, d, dlq.All()); len(list) != 10 || list[0].At.Offset != 20 {
			t.Errorf("%d letters", len(list))
		}
	})
}

// together lets the importers go on when all of them have read the lines for the first time.
type together struct {
	*bytes.Reader
	all *sync.WaitGroup
}

func (r together) Seek(offset int64, whence int) (int64, error) {
	r.all.Done()
	r.all.Wait()
	return r.Reader.Seek(offset, whence)
}

func TestLinesThatTwoImportAtTheSameTimeAreImportedOnce(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 2)
		c.seed(t, 20, 2)
		var lines bytes.Buffer
		if _, err := c.desk(t).Export(within(t), dlq.All(), &lines); err != nil {
			t.Fatal(err)
		}
		const importers = 3
		var all, ended sync.WaitGroup
		all.Add(importers)
		results := make([]string, importers)
		for i := range importers {
			d := c.desk(t)
			ended.Go(func() {
				n, err := d.Import(within(t), together{bytes.NewReader(lines.Bytes()), &all}, false)
				results[i] = fmt.Sprint(n, " ", err)
			})
		}
		ended.Wait()
		if n := len(c.everything(t, c.dead)); n != 40 {
			t.Errorf("%d letters in the topic, not the 20 that were there and 20 imported: %q", n, results)
		}
	})
}

// A compacted topic takes no message without a key, and the broker refuses all of a batch for one such record. The
// letters beside it go.
func TestReplayIntoACompactedTopicLeavesOutOnlyWhatItDoesNotTake(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		compacted := b.topic(t, 1, "cleanup.policy=compact")
		keyless := c.failed(3, 0, "error", "x")
		keyless.Key = nil
		c.produce(t, c.dead, c.failed(0, 0, "error", "x"), c.failed(1, 0, "error", "x"), c.failed(2, 0, "error", "x"),
			keyless, c.failed(4, 0, "error", "x"), c.failed(5, 0, "error", "x"))
		r := quick()
		r.To = compacted
		told := ""
		r.Report = func(e *dlq.Entry, to, skip string) {
			if to == "" {
				told += e.At.String() + " " + skip
			}
		}
		d := c.desk(t)
		p := replay(t, d, r)
		if b.real == nil { // it takes everything
			return
		}
		if p.Sent != 5 || p.Failed != 1 || !over(p) || !strings.HasPrefix(told, c.dead+"/0/3 not taken by "+compacted) {
			t.Errorf("%+v, told %q", p, told)
		}
		if n := len(c.everything(t, compacted)); n != 5 {
			t.Errorf("%d messages are in the topic", n)
		}
		if left := every(t, d, dlq.All()); len(left) != 1 || left[0].At.Offset != 3 {
			t.Errorf("%d letters wait", len(left))
		}
	})
}

// A line of an export may be fixed and imported: it is replayed as it is then, also where the letter had only said
// where its value is.
func TestLineThatWasGivenAValueIsReplayedWithIt(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		c.produce(t, c.main, &kgo.Record{Key: []byte("k"), Value: []byte("too large and wrong")})
		is := letter.IdentityOf(c.everything(t, c.main)[0])
		l := letter.Letter{Original: is.At, Identity: is, Group: c.group(), Failures: 4, Class: "error", Reason: "exhausted",
			Pointer: true}
		c.produce(t, c.dead, &kgo.Record{Key: []byte("k"), Headers: l.AppendHeaders(nil, letter.Abate)})
		d := c.desk(t)
		var lines bytes.Buffer
		if _, err := d.Export(within(t), dlq.All(), &lines); err != nil {
			t.Fatal(err)
		}
		fixed := bytes.Replace(lines.Bytes(), []byte(`"value":null`), []byte(`"value":{"text":"fixed"}`), 1)
		if n, err := d.Import(within(t), bytes.NewReader(fixed), false); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		r := quick()
		r.Filter = dlq.At(0, 1)
		r.Filter.State = dlq.Waiting
		if p := replay(t, d, r); p.Sent != 1 {
			t.Fatalf("%+v", p)
		}
		came := c.everything(t, c.main)
		m, _ := letter.ReadMain(came[len(came)-1])
		if len(came) != 2 || string(m.Value) != "fixed" || m.Identity != is {
			t.Errorf("it came as %q, %s, want %s", m.Value, m.Identity, is)
		}
	})
}
