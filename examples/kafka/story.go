package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/policy/redelivery"
)

// story prints what a consumer does with four messages.
type story struct {
	client *kgo.Client
	topic  string
	began  time.Time

	mu     sync.Mutex
	names  map[string]string // of the records: whose message they carry
	open   int               // messages whose end has not come
	finish func()            // called when there are none
}

// orders are the messages.
var orders = []string{
	`{"order":"order-1","euros":10}`, `{"order":"order-2","euros":20}`, `{"order":"order-3","euros":30}`, `order-4;40`,
}

// begin makes a topic and writes the messages.
func begin(ctx context.Context, brokers []string) *story {
	s := &story{topic: fmt.Sprint("payments-", time.Now().Format("150405")), began: time.Now(), names: map[string]string{},
		open: len(orders)}
	var err error
	s.client, err = kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic(s.topic))
	check(err)
	_, err = kadm.NewClient(s.client).CreateTopic(ctx, 1, -1, nil, s.topic)
	check(err)
	fmt.Printf("\nTopic %s gets four messages.\n\n", s.topic)
	for i, order := range orders {
		key := fmt.Sprint("order-", i+1)
		check(s.client.ProduceSync(ctx, &kgo.Record{Key: []byte(key), Value: []byte(order), Headers: []kgo.RecordHeader{
			{Key: "customer", Value: []byte("4711")},
		}}).FirstErr())
	}
	return s
}

// atTheEnd calls finish when every message is handled or a dead letter.
func (s *story) atTheEnd(finish func()) { s.finish = finish }

// prints returns a handler that prints what it is given.
func (s *story) prints(handler abatekafka.Handler) abatekafka.Handler {
	return func(ctx context.Context, m *abatekafka.Message) error {
		s.mu.Lock()
		s.names[fmt.Sprint(m.Record.Topic, "/", m.Record.Offset)] = string(m.Key)
		late := ""
		if due := m.Letter.Due; !due.IsZero() {
			late = fmt.Sprintf(", %v after it was due", time.Since(due).Round(time.Millisecond))
		}
		s.say(string(m.Key), m.Delivery, "from %s%s", m.Record.Topic, late)
		s.mu.Unlock()
		return handler(ctx, m)
	}
}

func (s *story) say(name string, delivery int, format string, more ...any) {
	fmt.Printf("%5.1fs  %-8s delivery %d  %s\n", time.Since(s.began).Seconds(), name, delivery,
		fmt.Sprintf(format, more...))
}

// ObserveRedelivery prints everything that the consumer does.
func (s *story) ObserveRedelivery(e redelivery.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := s.names[fmt.Sprint(e.Topic, "/", e.Offset)]
	switch e.Kind {
	case redelivery.Handled:
		s.say(name, e.Delivery, "handled")
		s.one()
	case redelivery.Forwarded:
		s.say(name, e.Delivery, "failed (%s): to %s, due in %v", e.Class, e.To, e.Delay.Round(time.Millisecond))
	case redelivery.DeadLettered:
		s.say(name, e.Delivery, "failed (%s): to %s, because it is %s", e.Class, e.To, e.Reason)
		s.one()
	}
}

// one is the end of one message.
func (s *story) one() {
	if s.open--; s.open == 0 {
		s.finish()
	}
}

// deadLetter is where an alert would be sent from.
func (s *story) deadLetter(_ context.Context, l letter.Letter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Printf("        alert: %s is a dead letter, failures: %d: %s\n", l.Original, l.Failures, l.Message)
}

// lookAtTheDeadLetters reads them as any program can, and says how people do.
func (s *story) lookAtTheDeadLetters(ctx context.Context, brokers string) {
	topic := s.topic + "-dlq"
	s.client.AddConsumeTopics(topic)
	fmt.Printf("\nIn %s, with everything that the message came with:\n", topic)
	for n := 0; n < 2 && ctx.Err() == nil; {
		s.client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			n++
			fmt.Printf("\n  key %s, value %s\n", r.Key, r.Value)
			for _, h := range r.Headers {
				fmt.Printf("    %-34s %s\n", h.Key, readable(h.Value))
			}
		})
	}
	fmt.Printf("\nPeople look at them so, while the broker is there (--stay keeps it):\n  go run ./cmd/abate dlq ls "+
		"--brokers %s --topic %s\n", brokers, topic)
}

// readable is text as it is, on one line and not too long, and anything else in hexadecimal.
func readable(value []byte) string {
	if !utf8.Valid(value) || strings.ContainsRune(string(value), 0) {
		return "0x" + hex.EncodeToString(value)
	}
	text, _, _ := strings.Cut(string(value), "\n")
	if len(text) > 100 {
		text = text[:100] + "..."
	}
	return text
}
