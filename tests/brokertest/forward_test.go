package brokertest_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// narrow makes a topic refuse large records.
func (b broker) narrow(t *testing.T, topics ...string) {
	t.Helper()
	small := "3000"
	if _, err := b.admin(t).AlterTopicConfigs(within(t), []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &small},
	}, topics...); err != nil {
		t.Fatal(err)
	}
}

// large is a message that a narrow topic does not take. Its bytes do not compress.
func large() *kgo.Record {
	value := make([]byte, 50_000)
	x := uint32(1)
	for i := range value {
		x = x*1664525 + 1013904223
		value[i] = byte(x >> 24)
	}
	return &kgo.Record{Key: []byte("k"), Value: value, Headers: []kgo.RecordHeader{
		{Key: "h", Value: []byte{1}}, {Key: "h"},
	}}
}

// A record that a retry topic does not take goes there as a pointer, and is delivered whole.
func TestRecordTooLargeForItsTopicsIsNeverLost(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		main := b.topic(t, 1)
		var whole, torn, hello seen
		sent := large()
		c := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: main, Topics: []string{main}, Guard: guardOf(t),
			Redelivery: shortTiers().Always(),
			Handler: func(_ context.Context, m *abatekafka.Message) error {
				if string(m.Value) == "hello" {
					hello.note("hello")
					return nil
				}
				if bytes.Equal(m.Value, sent.Value) && string(m.Key) == "k" && len(m.Headers) == 2 {
					whole.note(m.Record.Topic)
				} else {
					torn.note(m.Record.Topic)
				}
				return errors.New("no such account")
			},
		}
		runConsumer(t, c)
		b.produce(t, main, &kgo.Record{Value: []byte("hello")})
		eventually(t, "the consumer to run", func() bool { return hello.count("hello") == 1 })
		b.narrow(t, main+"-retry-200ms", main+"-retry-400ms", main+"-dlq")
		b.produce(t, main, sent)
		dead := b.consume(t, main+"-dlq", 1)[0]
		l, problems := letter.Read(dead)
		if problems != nil || !l.Pointer || l.Value != nil || l.Failures != 3 || l.Original.Topic != main ||
			l.Message != "no such account" {
			t.Errorf("%+v, %v", l, problems)
		}
		for _, topic := range []string{main, main + "-retry-200ms", main + "-retry-400ms"} {
			if whole.count(topic) != 1 || torn.count(topic) != 0 {
				t.Errorf("%s: delivered %d times whole and %d times not", topic, whole.count(topic), torn.count(topic))
			}
		}
		if r, err := letter.Fetch(within(t), l.Original, kgo.SeedBrokers(b.addr)); err != nil ||
			!bytes.Equal(r.Value, sent.Value) {
			t.Errorf("the value cannot be fetched: %v", err)
		}
	})
}

func TestPointerIsWholeAgainOnceItsTopicTakesIt(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		main := b.topic(t, 1)
		tiers := redelivery.Config{Tiers: []time.Duration{200 * time.Millisecond}}
		fit(t, b, &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: main, Topics: []string{main}, Guard: guardOf(t),
			Redelivery: tiers.Always(),
		})
		sent := large()
		b.produce(t, main, sent)
		l := letter.Letter{Original: letter.Place{Topic: main, Partition: 0, Offset: 1}, Group: main, Failures: 1,
			Pointer: true, ID: main + "/" + main + "/0/1/1"}
		b.produce(t, main+"-retry-200ms", &kgo.Record{Headers: l.AppendHeaders(nil, letter.Abate)})
		runConsumer(t, &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: main, Topics: []string{main}, Guard: guardOf(t),
			Redelivery: tiers.Always(),
			Handler: func(_ context.Context, m *abatekafka.Message) error {
				if m.Record.Topic == main {
					return nil
				}
				return errors.New("no such account")
			},
		})
		dead, problems := letter.Read(b.consume(t, main+"-dlq", 1)[0])
		if problems != nil || dead.Pointer || !bytes.Equal(dead.Value, sent.Value) || string(dead.Key) != "k" ||
			len(dead.Headers) != 2 || dead.Failures != 2 {
			t.Errorf("a pointer: %v, %d bytes, headers %q, %d failures, %v", dead.Pointer, len(dead.Value), dead.Headers,
				dead.Failures, problems)
		}
	})
}

func TestPointerToAValueThatIsGoneIsADeadLetter(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		main := b.topic(t, 1)
		tiers := redelivery.Config{Tiers: []time.Duration{200 * time.Millisecond}}
		fit(t, b, &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: main, Topics: []string{main}, Guard: guardOf(t),
			Redelivery: tiers.Always(),
		})
		b.produce(t, main, large(), &kgo.Record{Value: []byte("newest")})
		l := letter.Letter{Original: letter.Place{Topic: main, Partition: 0, Offset: 1}, Group: main, Failures: 1,
			Pointer: true, ID: main + "/" + main + "/0/1/1"}
		b.produce(t, main+"-retry-200ms", &kgo.Record{Headers: l.AppendHeaders(nil, letter.Abate)})
		ends := kadm.Offsets{}
		ends.AddOffset(main, 0, 2, -1)
		if _, err := b.admin(t).DeleteRecords(within(t), ends); err != nil {
			t.Fatal(err)
		}
		var got seen
		runConsumer(t, &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: main, Topics: []string{main}, Guard: guardOf(t),
			Redelivery: tiers.Always(),
			Handler:    func(_ context.Context, m *abatekafka.Message) error { got.note(m.Record.Topic); return nil },
		})
		dead, problems := letter.Read(b.consume(t, main+"-dlq", 1)[0])
		if problems != nil || dead.Class != "value-gone" || dead.Reason != "permanent" || !dead.Pointer ||
			dead.Original != l.Original {
			t.Errorf("%+v, %v", dead, problems)
		}
		if n := got.count(main + "-retry-200ms"); n != 0 {
			t.Errorf("delivered %d times without its value", n)
		}
	})
}

// Offsets begin with 0 again when a topic is deleted and made anew: what a pointer points to is another record then.
func TestPointerIntoATopicThatWasMadeAnewBringsNobodyElsesValue(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		main := b.topic(t, 1)
		tiers := redelivery.Config{Tiers: []time.Duration{200 * time.Millisecond}}
		fit(t, b, &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: main, Topics: []string{main}, Guard: guardOf(t),
			Redelivery: tiers.Always(),
		})
		other := large()
		other.Key = []byte("somebody else")
		b.produce(t, main, other)
		for _, l := range []letter.Letter{
			{ID: "1", Key: []byte("k")},
			{ID: "2", Timestamp: time.UnixMilli(1760000000000)},
		} {
			l.Original, l.Group, l.Failures, l.Pointer = letter.Place{Topic: main, Partition: 0, Offset: 1}, main, 1, true
			b.produce(t, main+"-retry-200ms", &kgo.Record{Key: l.Key, Headers: l.AppendHeaders(nil, letter.Abate)})
		}
		var got seen
		runConsumer(t, &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: main, Topics: []string{main}, Guard: guardOf(t),
			Redelivery: tiers.Always(),
			Handler:    func(_ context.Context, m *abatekafka.Message) error { got.note(m.Record.Topic); return nil },
		})
		for _, rec := range b.consume(t, main+"-dlq", 2) {
			if dead, problems := letter.Read(rec); problems != nil || dead.Class != "value-gone" || !dead.Pointer {
				t.Errorf("%+v, %v", dead, problems)
			}
		}
		if n := got.count(main + "-retry-200ms"); n != 0 {
			t.Errorf("delivered %d times with the value of another", n)
		}
	})
}

func TestFetchSaysWhatIsGone(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		main := b.topic(t, 1)
		b.produce(t, main, spread(3, 1)...)
		ends := kadm.Offsets{}
		ends.AddOffset(main, 0, 1, -1)
		if _, err := b.admin(t).DeleteRecords(within(t), ends); err != nil {
			t.Fatal(err)
		}
		for offset, there := range map[int64]bool{0: false, 1: true, 2: true} {
			r, err := letter.Fetch(within(t), letter.Place{Topic: main, Partition: 0, Offset: offset}, kgo.SeedBrokers(b.addr))
			if there && (err != nil || r.Offset != offset) || !there && !errors.Is(err, letter.ErrGone) {
				t.Errorf("offset %d: %v, %v", offset, r, err)
			}
		}
		if _, err := letter.Fetch(within(t), letter.Place{Topic: main + "-none", Partition: 0, Offset: 1},
			kgo.SeedBrokers(b.addr)); !errors.Is(err, letter.ErrGone) {
			t.Errorf("a topic that is not there: %v", err)
		}
	})
}

// Messages as large as the main topic takes are forwarded whole: the client's own limit follows the topics'.
func TestLargestMessageIsForwardedWhole(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		main := b.topic(t, 1)
		value := bytes.Repeat(large().Value, 21)[:1_040_000] // kgo's own limit is 1,000,012, the topic's 1,048,588
		client := b.client(t, kgo.DefaultProduceTopic(main), kgo.ProducerBatchMaxBytes(1_048_588),
			kgo.ProducerBatchCompression(kgo.NoCompression()))
		runConsumer(t, &abatekafka.Consumer{
			Brokers:    []string{b.addr},
			Group:      main,
			Topics:     []string{main},
			Guard:      guardOf(t),
			Redelivery: redelivery.Config{Tiers: []time.Duration{100 * time.Millisecond}}.Always(),
			Handler:    func(context.Context, *abatekafka.Message) error { return errors.New("no such account") },
		})
		if err := client.ProduceSync(within(t), &kgo.Record{Value: value}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the dead-letter topic", func() bool {
			topics, err := b.admin(t).ListTopics(within(t))
			return err == nil && topics.Has(main+"-dlq")
		})
		if l, _ := letter.Read(b.consume(t, main+"-dlq", 1)[0]); l.Pointer || !bytes.Equal(l.Value, value) {
			t.Errorf("a pointer: %v, %d bytes", l.Pointer, len(l.Value))
		}
	})
}
