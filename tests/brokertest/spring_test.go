package brokertest_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/internal/needs/spring"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

var update = flag.Bool("update", false, "write what Spring wrote into ../letter/testdata")

// shared is a chain of retry topics that Spring and we read: the same delays for both.
type shared struct {
	broker
	chain abatekafka.Chain
	ours  redelivery.Config
	// theirs is the Spring application's side.
	theirs spring.Config
}

// shareChain makes the topics of a chain. With one partition, the member of a group that has it keeps it when another
// comes.
func shareChain(t *testing.T, partitions, attempts int, delay time.Duration) shared {
	t.Helper()
	s := shared{broker: newReal(t, false)}
	topic := s.topic(t, partitions)
	s.ours = redelivery.Config{Delay: delay, Multiplier: 2, Attempts: attempts, Naming: redelivery.NamingSpring}
	s.theirs = spring.Config{Broker: s.addr, Topic: topic, Group: "billing-" + topic, Attempts: attempts, Delay: delay,
		Multiplier: 2, MaxDelay: time.Hour}
	s.chain = abatekafka.NewChain(topic, s.theirs.Group, s.ours)
	for _, hop := range s.chain.Hops {
		s.create(t, hop.Topic, partitions, "retention.ms=-1", "max.message.bytes=1200000")
	}
	s.create(t, s.chain.DeadLetters, partitions, "retention.ms=-1", "max.message.bytes=1200000")
	return s
}

// original is a message with everything that must survive.
func original() *kgo.Record {
	return &kgo.Record{
		Key: []byte("order-7"), Value: []byte{0, 1, 0xfe, 0xff}, Timestamp: time.UnixMilli(time.Now().UnixMilli() - 5000),
		Headers: []kgo.RecordHeader{{Key: "event-id", Value: []byte{7, 0}}, {Key: "same", Value: []byte("a")},
			{Key: "same", Value: nil}, {Key: "empty", Value: []byte{}}},
	}
}

// header is the last value of a header that Spring read.
func header(e spring.Event, key string) []byte {
	for _, h := range slices.Backward(e.Headers) {
		if h.Key == key {
			return h.Value
		}
	}
	return nil
}

// read is a record as Spring read it, for our reader.
func read(e spring.Event) (letter.Letter, []error) {
	r := &kgo.Record{Topic: e.Topic, Partition: e.Partition, Offset: e.Offset, Timestamp: time.UnixMilli(e.Timestamp),
		Key: e.Key, Value: e.Value}
	for _, h := range e.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return letter.Read(r)
}

func TestSpringGivesAChainTheNamesThatWeGiveIt(t *testing.T) {
	if testing.Short() {
		return // Spring takes seconds
	}
	t.Parallel()
	b := newReal(t, false)
	for _, c := range []struct {
		config redelivery.Config
		want   string
	}{
		{redelivery.Config{Delay: 30 * time.Second, Multiplier: 10, MaxDelay: 30 * time.Minute, Attempts: 4},
			"orders orders-dlt orders-retry-1800000 orders-retry-30000 orders-retry-300000"},
		{redelivery.Config{Delay: time.Second, Multiplier: 1, MaxDelay: time.Second, Attempts: 3},
			"orders orders-dlt orders-retry"},
		{redelivery.Config{Delay: time.Second, Multiplier: 2, MaxDelay: 2 * time.Second, Attempts: 5},
			"orders orders-dlt orders-retry-1000 orders-retry-2000"},
		{redelivery.Config{Delay: time.Second, Multiplier: 2, MaxDelay: time.Minute, Attempts: 2},
			"orders orders-dlt orders-retry"},
	} {
		c.config.Naming = redelivery.NamingSpring
		theirs := spring.ChainOf(
			t, spring.Config{Broker: b.addr, Topic: "orders", Group: "billing", Attempts: c.config.Attempts,
				Delay: c.config.Delay, Multiplier: c.config.Multiplier, MaxDelay: c.config.MaxDelay})
		if got := strings.Join(slices.Sorted(maps.Keys(theirs)), " "); got != c.want {
			t.Errorf("%+v: Spring's topics are %s, want %s", c.config, got, c.want)
		}
		chain := abatekafka.NewChain("orders", "billing", c.config)
		ours := map[string]string{chain.Topic: chain.Group}
		for _, hop := range chain.Hops {
			ours[hop.Topic] = hop.Group
		}
		ours[chain.DeadLetters] = theirs[chain.DeadLetters] // we have no consumer of dead letters
		if !maps.Equal(ours, theirs) {
			t.Errorf("%+v: our topics and groups are %v, Spring's %v", c.config, ours, theirs)
		}
	}
}

func TestSpringRetriesWhatWeFailedAt(t *testing.T) {
	if testing.Short() {
		return
	}
	t.Parallel()
	s := shareChain(t, 1, 3, 1500*time.Millisecond)
	s.theirs.Fail = map[string]int{"order-7": 2}
	s.theirs.Only = []string{s.chain.Hops[0].Topic, s.chain.Hops[1].Topic, s.chain.DeadLetters}
	app := spring.Start(t, s.theirs)
	sent := original()
	failed := time.Now().Truncate(time.Millisecond) // or later
	s.produce(t, s.chain.Topic, sent)
	var events journal
	stop := runConsumer(t, &abatekafka.Consumer{
		Brokers:    []string{s.addr},
		Group:      s.chain.Group,
		Topics:     []string{s.chain.Topic},
		Guard:      guardOf(t),
		Redelivery: s.ours.Always(),
		Observer:   &events,
		Handler:    func(context.Context, *abatekafka.Message) error { return errors.New("no such order") },
	})
	eventually(t, "our forward", func() bool { return events.count(redelivery.Forwarded, "retry") == 1 })
	stop() // what is due from now on is Spring's alone
	for i, hop := range s.chain.Hops {
		e := app.Next(t)
		if e.Event != "delivery" || e.Topic != hop.Topic ||
			string(header(e, "retry_topic-attempts")) != string([]byte{0, 0, 0, byte(i + 2)}) {
			t.Fatalf("delivery %d: %s of %s with attempt %x", i+2, e.Event, e.Topic, header(e, "retry_topic-attempts"))
		}
		if string(e.Key) != string(sent.Key) || string(e.Value) != string(sent.Value) || !begins(e, sent.Headers) {
			t.Errorf("delivery %d: %q = %x with %v", i+2, e.Key, e.Value, e.Headers)
		}
		l, problems := read(e)
		if len(problems) > 0 || l.Original != (letter.Place{Topic: s.chain.Topic}) || l.Delivery != i+2 ||
			l.Group != s.chain.Group {
			t.Errorf("delivery %d: %+v (%v)", i+2, l, problems)
		}
		if early := l.Due.UnixMilli() - e.At; early > 0 {
			t.Errorf("delivery %d came %d ms before it was due", i+2, early)
		}
		if wait := l.Due.Sub(time.UnixMilli(e.Timestamp)); l.Due.Before(failed.Add(hop.Delay)) || wait > 2*hop.Delay {
			t.Errorf("delivery %d was due %v after it was forwarded and %v after the one before, want about %v", i+2, wait,
				l.Due.Sub(failed), hop.Delay)
		}
		failed = time.UnixMilli(e.At)
	}
	if dead := s.everything(t, s.chain.DeadLetters); len(dead) != 0 {
		t.Errorf("%d dead letters of a message that succeeded", len(dead))
	}
}

// begins reports whether a record's headers begin with these.
func begins(e spring.Event, want []kgo.RecordHeader) bool {
	if len(e.Headers) < len(want) {
		return false
	}
	for i, h := range want {
		if got := e.Headers[i]; got.Key != h.Key || string(got.Value) != string(h.Value) ||
			(got.Value == nil) != (h.Value == nil) {
			return false
		}
	}
	return true
}

func TestWeRetryWhatSpringFailedAtAndSpringReadsOurDeadLetter(t *testing.T) {
	if testing.Short() {
		return
	}
	t.Parallel()
	s := shareChain(t, 1, 3, time.Second)
	s.theirs.Fail = map[string]int{"order-7": 1}
	s.theirs.Only = []string{s.chain.Topic, s.chain.DeadLetters}
	app := spring.Start(t, s.theirs)
	sent := original()
	s.produce(t, s.chain.Topic, sent)
	if e := app.Next(t); e.Event != "delivery" || e.Topic != s.chain.Topic {
		t.Fatalf("Spring began with %+v", e)
	}
	s.consume(t, s.chain.Hops[0].Topic, 1) // now it is ours
	var mu sync.Mutex
	var got []abatekafka.Message
	var events journal
	stop := runConsumer(t, &abatekafka.Consumer{
		Brokers: []string{s.addr}, Group: s.chain.Group, Topics: []string{s.chain.Topic}, Guard: guardOf(t),
		Redelivery: s.ours.Always(),
		Observer:   &events,
		Handler: func(_ context.Context, m *abatekafka.Message) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, *m)
			return fmt.Errorf("still no order: %w", os.ErrNotExist)
		},
	})
	eventually(t, "our dead letter", func() bool { return events.count(redelivery.DeadLettered, "exhausted") == 1 })
	stop()
	if len(got) != 2 {
		t.Fatalf("%d deliveries, want 2", len(got))
	}
	for i, m := range got {
		if m.Delivery != i+2 || m.Topic != s.chain.Topic || m.Partition != 0 || m.Offset != 0 ||
			!m.Timestamp.Equal(sent.Timestamp) {
			t.Errorf("delivery %d is number %d of %s at %v, want of %v", i+2, m.Delivery, m.ID(), m.Timestamp, sent.Timestamp)
		}
		if string(m.Key) != string(sent.Key) || string(m.Value) != string(sent.Value) ||
			fmt.Sprint(m.Headers) != fmt.Sprint(sent.Headers) {
			t.Errorf("delivery %d: %q = %x with %v, want %v", i+2, m.Key, m.Value, m.Headers, sent.Headers)
		}
	}
	if first := got[0].Letter; first.Dialect != letter.Spring || first.Class != "java.lang.IllegalStateException" ||
		first.Group != s.chain.Group {
		t.Errorf("Spring's letter is %+v", first)
	}
	for _, e := range events.of(redelivery.Delivered) {
		if e.Lateness < 0 {
			t.Errorf("delivery %d came %v before it was due", e.Delivery, -e.Lateness)
		}
	}
	dead := app.Next(t)
	l, problems := read(dead)
	if dead.Event != "dead" || len(problems) > 0 || l.Failures != 3 ||
		l.Original != (letter.Place{Topic: s.chain.Topic}) || !l.Timestamp.Equal(sent.Timestamp) {
		t.Errorf("Spring got %s %+v (%v)", dead.Event, l, problems)
	}
	if string(dead.Key) != string(sent.Key) || string(dead.Value) != string(sent.Value) || !begins(dead, sent.Headers) {
		t.Errorf("the dead letter is %q = %x with %v", dead.Key, dead.Value, dead.Headers)
	}
	if !strings.Contains(string(header(dead, "kafka_exception-message")), "still no order") {
		t.Errorf("the dead letter's message is %q", header(dead, "kafka_exception-message"))
	}
}

func TestSpringAndWeShareTheGroupsOfOneChain(t *testing.T) {
	if testing.Short() {
		return
	}
	t.Parallel()
	const partitions, messages, attempts = 4, 24, 3
	s := shareChain(t, partitions, attempts, 500*time.Millisecond)
	s.theirs.Fail = map[string]int{"*": attempts - 1}
	app := spring.Start(t, s.theirs)
	var mu sync.Mutex
	ours := make(map[string]int) // "key attempt" → deliveries
	consumer := &abatekafka.Consumer{
		Brokers: []string{s.addr}, Group: s.chain.Group, Topics: []string{s.chain.Topic}, Guard: guardOf(t),
		Redelivery: s.ours.Always(),
		Handler: func(_ context.Context, m *abatekafka.Message) error {
			mu.Lock()
			defer mu.Unlock()
			ours[fmt.Sprint(string(m.Key), " ", m.Delivery)]++
			if m.Delivery < attempts {
				return errors.New("no such order")
			}
			return nil
		},
	}
	runConsumer(t, consumer)
	topicsOfOurs := func() map[string]bool {
		topics := make(map[string]bool)
		for _, p := range consumer.State().Partitions {
			topics[p.Topic] = true
		}
		return topics
	}
	eventually(t, "our share of each topic", func() bool { return len(topicsOfOurs()) == attempts })
	s.produce(t, s.chain.Topic, spread(messages, partitions)...)
	theirs := make(map[string]int)
	all := func() (n int) {
		mu.Lock()
		defer mu.Unlock()
		for i := range messages {
			for attempt := range attempts {
				if key := fmt.Sprintf("m-%d %d", i, attempt+1); ours[key]+theirs[key] > 0 {
					n++
				}
			}
		}
		return n
	}
	eventually(t, "all deliveries", func() bool {
		for {
			select {
			case e, ok := <-app.Events():
				if !ok || e.Event != "delivery" {
					t.Fatalf("Spring said %+v", e)
				}
				l, _ := read(e)
				theirs[fmt.Sprint(string(e.Key), " ", l.Delivery)]++
				continue
			default:
			}
			return all() == messages*attempts
		}
	})
	mu.Lock()
	defer mu.Unlock()
	t.Logf("%d deliveries here, %d in Spring", len(ours), len(theirs))
	if len(ours) < messages/2 || len(theirs) < messages/2 {
		t.Errorf("%d of the deliveries were ours, %d Spring's: the groups were not shared", len(ours), len(theirs))
	}
	if dead := s.everything(t, s.chain.DeadLetters); len(dead) != 0 {
		t.Errorf("%d dead letters of messages that succeeded in the last delivery", len(dead))
	}
}

func TestSpringsOwnDeadLetterIsRead(t *testing.T) {
	if testing.Short() {
		return
	}
	t.Parallel()
	s := shareChain(t, 1, 3, 300*time.Millisecond)
	s.theirs.Fail = map[string]int{"order-7": 99}
	app := spring.Start(t, s.theirs)
	sent := original()
	s.produce(t, s.chain.Topic, sent)
	var at []int64 // the deliveries
	for e := app.Next(t); e.Event != "dead"; e = app.Next(t) {
		at = append(at, e.At)
	}
	var all []*kgo.Record
	for _, topic := range []string{s.chain.Hops[0].Topic, s.chain.Hops[1].Topic, s.chain.DeadLetters} {
		all = append(all, s.consume(t, topic, 1)[0])
	}
	if len(at) != 3 {
		t.Fatalf("%d deliveries, want 3", len(at))
	}
	for i, r := range all {
		l, problems := letter.Read(r)
		if len(problems) > 0 || l.Dialect != letter.Spring || l.Failures != i+1 || l.Delivery != i+2 {
			t.Errorf("%s: %s with %d failures, next delivery %d (%v)", r.Topic, l.Dialect, l.Failures, l.Delivery, problems)
		}
		springLetter(t, l, sent, s.chain)
		if failed := l.Last.UnixMilli(); failed < at[i] || i < 2 && failed > at[i+1] {
			t.Errorf("%s: the last failure was at %d, the delivery at %d", r.Topic, failed, at[i])
		}
	}
	golden(t, "spring-retry.json", all)
}

// springLetter checks what is the same in all letters about a message that Spring failed at.
func springLetter(t *testing.T, l letter.Letter, sent *kgo.Record, chain abatekafka.Chain) {
	t.Helper()
	if l.Original != (letter.Place{Topic: chain.Topic}) || !l.Timestamp.Equal(sent.Timestamp) ||
		l.TimestampType != "CreateTime" || l.Group != chain.Group {
		t.Errorf("original %v at %v (%s) of group %s, want %s at %v", l.Original, l.Timestamp, l.TimestampType, l.Group,
			chain.Topic, sent.Timestamp)
	}
	if l.Class != "java.lang.IllegalStateException" || !strings.Contains(l.Message, "no stock for order-7") ||
		!strings.Contains(l.Trace, "abate.Main") {
		t.Errorf("error %q, %q, trace %q", l.Class, l.Message, l.Trace)
	}
	if string(l.Key) != string(sent.Key) || string(l.Value) != string(sent.Value) ||
		fmt.Sprint(l.Headers) != fmt.Sprint(sent.Headers) {
		t.Errorf("%q = %x with %v, want %v", l.Key, l.Value, l.Headers, sent.Headers)
	}
}

func TestDeadLetterOfSpringsPlainRecovererIsRead(t *testing.T) {
	if testing.Short() {
		return
	}
	t.Parallel()
	s := shareChain(t, 1, 2, time.Second)
	s.theirs.Attempts = 0 // no retry topics
	s.theirs.Fail = map[string]int{"order-7": 99}
	spring.Start(t, s.theirs)
	sent := original()
	s.produce(t, s.chain.Topic, sent)
	dead := s.consume(t, s.chain.DeadLetters, 1)
	l, problems := letter.Read(dead[0])
	if len(problems) > 0 || l.Dialect != letter.Spring {
		t.Errorf("%s (%v)", l.Dialect, problems)
	}
	springLetter(t, l, sent, s.chain)
	golden(t, "spring-recoverer.json", dead)
}

// golden keeps records of a real Spring for the tests of package letter, which need no Java: with -update. Without, it
// checks that Spring still writes headers of those names and sizes, but for texts and the sizes of stack traces.
func golden(t *testing.T, name string, records []*kgo.Record) {
	t.Helper()
	path := filepath.Join("..", "..", "adapter", "abatekafka", "letter", "testdata", name)
	var kept []letterRecord
	for _, r := range records {
		k := letterRecord{r.Topic, r.Partition, r.Offset, r.Timestamp.UnixMilli(), r.Key, r.Value, nil}
		for _, h := range r.Headers {
			k.Headers = append(k.Headers, keep(h))
		}
		kept = append(kept, k)
	}
	if *update {
		text, err := json.MarshalIndent(kept, "", "\t")
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o755)
		}
		if err == nil {
			err = os.WriteFile(path, append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	var want []letterRecord
	if err == nil {
		err = json.Unmarshal(text, &want)
	}
	if err != nil || len(want) != len(kept) {
		t.Fatalf("%s: %d records, want %d (%v); write it with -update", path, len(want), len(kept), err)
	}
	for i := range want {
		if got, want := shape(kept[i]), shape(want[i]); got != want {
			t.Errorf("%s: Spring's headers are\n%s\nand were\n%s", path, got, want)
		}
	}
}

// letterRecord is a record as it is kept.
type letterRecord struct {
	Topic     string         `json:"topic"`
	Partition int32          `json:"partition"`
	Offset    int64          `json:"offset"`
	Timestamp int64          `json:"timestamp"` // ms since 1970
	Key       []byte         `json:"key"`
	Value     []byte         `json:"value"`
	Headers   []letterHeader `json:"headers"`
}

// letterHeader has a value as text if it is one, else in hexadecimal digits; neither if it is nil.
type letterHeader struct {
	Key  string  `json:"key"`
	Text *string `json:"text,omitempty"`
	Hex  *string `json:"hex,omitempty"`
}

func keep(h kgo.RecordHeader) letterHeader {
	k := letterHeader{Key: h.Key}
	binary := func(r rune) bool { return r == utf8.RuneError || r < ' ' && r != '\n' && r != '\t' }
	switch value := string(h.Value); {
	case h.Value == nil:
	case value == "" || strings.ContainsFunc(value, binary):
		value = hex.EncodeToString(h.Value)
		k.Hex = &value
	default:
		k.Text = &value
	}
	return k
}

// shape is what stays the same when Spring writes such a record again.
func shape(r letterRecord) string {
	var all strings.Builder
	for _, h := range r.Headers {
		value := "nil"
		switch {
		case h.Hex != nil && strings.HasSuffix(h.Key, "timestamp"):
			value = fmt.Sprint(len(*h.Hex)/2, " bytes")
		case h.Hex != nil:
			value = *h.Hex
		case h.Text != nil && (strings.HasSuffix(h.Key, "fqcn") || strings.HasSuffix(h.Key, "type")):
			value = *h.Text
		case h.Text != nil:
			value = "text"
		}
		fmt.Fprintf(&all, "%s = %s\n", h.Key, value)
	}
	return all.String()
}
