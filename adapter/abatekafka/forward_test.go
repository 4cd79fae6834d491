package abatekafka_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

// chainOf30s5m is a consumer's, with a clock that only the test moves.
type chainOf30s5m struct {
	abatekafka.Forwarder
	now time.Time
}

func newForwarder() *chainOf30s5m {
	f := &chainOf30s5m{now: time.UnixMilli(1760000000000).UTC()}
	c := redelivery.Config{Tiers: []time.Duration{30 * time.Second, 5 * time.Minute}, MaxTrace: 40}
	f.Forwarder = abatekafka.NewForwarder(abatekafka.NewChain("payments", "billing", c), c, func() time.Time {
		return f.now
	})
	return f
}

func original() *kgo.Record {
	return &kgo.Record{
		Topic: "payments", Partition: 3, Offset: 1042, Timestamp: time.UnixMilli(1759999990000).UTC(), Key: []byte("k"),
		Value: []byte("v"),
		Headers: []kgo.RecordHeader{
			{Key: "a", Value: []byte("1")}, {Key: "a"}, {Key: "kafka_original-topic", Value: []byte("mine")},
		},
	}
}

func read(t *testing.T, rec *kgo.Record, tier int) *abatekafka.Message {
	t.Helper()
	m, problems := abatekafka.NewMessage(rec, tier)
	if problems != nil {
		t.Fatal(problems)
	}
	return m
}

// stored is the record as a consumer gets it.
func stored(rec *kgo.Record, offset int64, at time.Time) *kgo.Record {
	copied := *rec
	copied.Offset, copied.Timestamp = offset, at
	return &copied
}

func header(rec *kgo.Record, name string) string {
	for _, h := range rec.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

func TestMessageKeepsItselfThroughTheChain(t *testing.T) {
	f := newForwarder()
	source := original()
	m := read(t, source, redelivery.Main)
	if m.Delivery != 1 || !reflect.DeepEqual(m.Letter, letter.Letter{}) {
		t.Fatalf("first delivery: %+v", m)
	}
	cause := fmt.Errorf("charge: %w", errors.New("refused"))
	for tier := range 2 {
		delay := []time.Duration{30 * time.Second, 5 * time.Minute}[tier]
		f.now = f.now.Add(time.Minute)
		rec := f.Hop(m, redelivery.Verdict{Action: redelivery.Forward, Tier: tier, Delay: delay, Reason: "retry"}, cause)
		if want := []string{"payments-retry-30s", "payments-retry-5m"}[tier]; rec.Topic != want || rec.Partition != 3 {
			t.Errorf("forwarded to %s/%d, want %s/3", rec.Topic, rec.Partition, want)
		}
		if !rec.Timestamp.IsZero() {
			t.Errorf("timestamp %v: retention must count from when it is sent", rec.Timestamp)
		}
		m = read(t, stored(rec, 7, f.now), tier)
		if m.ID() != read(t, source, redelivery.Main).ID() || m.Delivery != tier+2 || !m.Timestamp.Equal(source.Timestamp) ||
			!m.Letter.Due.Equal(f.now.Add(delay)) {
			t.Errorf("tier %d: %s, delivery %d, timestamp %v, due %v", tier, m.ID(), m.Delivery, m.Timestamp, m.Letter.Due)
		}
		if !reflect.DeepEqual(m.Headers, source.Headers) || string(m.Key) != "k" || string(m.Value) != "v" {
			t.Errorf("tier %d: %q=%q, headers %q", tier, m.Key, m.Value, m.Headers)
		}
	}
	f.now = f.now.Add(time.Minute)
	rec, l := f.Dead(m, redelivery.Verdict{Action: redelivery.DeadLetter, Reason: "exhausted"}, cause)
	if rec.Topic != "payments-dlq" || rec.Partition != 3 || header(rec, "abate-due") != "" {
		t.Errorf("dead letter: %s/%d due %q", rec.Topic, rec.Partition, header(rec, "abate-due"))
	}
	start := time.UnixMilli(1760000000000).UTC()
	want := letter.Letter{
		Dialect: letter.Abate, Original: letter.Place{Topic: "payments", Partition: 3, Offset: 1042},
		Timestamp: source.Timestamp, TimestampType: "CreateTime", Group: "billing",
		Identity: letter.IdentityOf(source),
		Failures: 3, Delivery: 4, First: start.Add(time.Minute), Last: start.Add(3 * time.Minute),
		ID: "billing/payments/3/1042/3", Hops: 3,
		Class: "error", Message: "charge: refused", Reason: "exhausted",
		History: []letter.Past{{Topic: "payments", At: start.Add(time.Minute), Class: "error"},
			{Topic: "payments-retry-30s", At: start.Add(2 * time.Minute), Class: "error"},
			{Topic: "payments-retry-5m", At: start.Add(3 * time.Minute), Class: "error"}},
		Key: []byte("k"), Value: []byte("v"), Headers: source.Headers,
	}
	if !reflect.DeepEqual(l, want) {
		t.Errorf("told: %+v\nwant: %+v", l, want)
	}
	if got, problems := letter.Read(rec); problems != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read: %+v, %v\nwant: %+v", got, problems, want)
	}
}

// A retry topic may have fewer partitions than the main topic had.
func TestForwardGoesToThePartitionItWasReadFrom(t *testing.T) {
	f := newForwarder()
	rec := stored(f.Hop(read(t, original(), redelivery.Main), redelivery.Verdict{Tier: 0}, errors.New("x")), 7, f.now)
	rec.Partition = 1
	m := read(t, rec, 0)
	dead, l := f.Dead(m, redelivery.Verdict{}, errors.New("x"))
	if next := f.Hop(m, redelivery.Verdict{Tier: 1}, errors.New("x")); next.Partition != 1 || dead.Partition != 1 ||
		l.Original.Partition != 3 {
		t.Errorf("partitions %d and %d, original %d; want 1, 1, 3", next.Partition, dead.Partition, l.Original.Partition)
	}
}

// Two failures of one delivery, when a record is held and delivered again, must not share memory.
func TestHistoriesDoNotShareMemory(t *testing.T) {
	f := newForwarder()
	m := read(t, original(), redelivery.Main)
	m.Letter.History = append(make([]letter.Past, 0, 8), letter.Past{Topic: "a"})
	_, one := f.Dead(m, redelivery.Verdict{}, errors.New("x"))
	_, two := f.Dead(m, redelivery.Verdict{}, traceable{})
	if one.History[1].Class != "error" || two.History[1].Class != "panic" {
		t.Errorf("%v, %v", one.History, two.History)
	}
}

func TestNilKeyAndValueSurviveTheChain(t *testing.T) {
	f := newForwarder()
	source := original()
	source.Key, source.Value, source.Headers = nil, nil, nil
	rec := f.Hop(read(t, source, redelivery.Main), redelivery.Verdict{Tier: 0}, errors.New("x"))
	m := read(t, stored(rec, 7, f.now), 0)
	if rec.Key != nil || rec.Value != nil || m.Key != nil || m.Value != nil || len(m.Headers) != 0 {
		t.Errorf("%#v, %#v, %q", m.Key, m.Value, m.Headers)
	}
}

func TestExcusedDeliveryDoesNotCountButHasAnIdentityOfItsOwn(t *testing.T) {
	f := newForwarder()
	m := read(t, original(), redelivery.Main)
	seen := map[string]bool{}
	for range 5 { // in the last retry topic, as long as the circuit is open
		rec := f.Hop(m, redelivery.Verdict{Tier: 1, Delay: 5 * time.Minute, Excused: true, Reason: "excused"},
			errors.New("x"))
		m = read(t, stored(rec, 7, f.now), 1)
		if m.Delivery != 1 || m.Letter.Failures != 0 || m.Letter.Reason != "excused" {
			t.Errorf("delivery %d, %d failures, %s", m.Delivery, m.Letter.Failures, m.Letter.Reason)
		}
		if seen[m.Letter.ID] {
			t.Errorf("identity %s again: the record would be taken for a repeat and lost", m.Letter.ID)
		}
		seen[m.Letter.ID] = true
	}
}

// A consumer that dies after the forward and before the commit writes the same forward again.
func TestSameForwardHasTheSameIdentity(t *testing.T) {
	f := newForwarder()
	v := redelivery.Verdict{Tier: 0, Reason: "retry"}
	first := f.Hop(read(t, original(), redelivery.Main), v, errors.New("x"))
	f.now = f.now.Add(time.Hour)
	second := f.Hop(read(t, original(), redelivery.Main), v, errors.New("y"))
	if a, b := header(first, "abate-id"), header(second, "abate-id"); a != b || a != "billing/payments/3/1042/1" {
		t.Errorf("identities %q and %q", a, b)
	}
}

func TestIdentitiesDifferAlsoWhereSpringForwardsInBetween(t *testing.T) {
	f := newForwarder()
	seen := map[string]bool{}
	m := read(t, original(), redelivery.Main)
	for attempts := uint32(3); attempts < 12; attempts += 2 {
		rec := f.Hop(m, redelivery.Verdict{Tier: 1, Delay: 5 * time.Minute}, errors.New("x"))
		m = read(t, stored(rec, 7, f.now), 1)
		if seen[m.Letter.ID] {
			t.Errorf("identity %s again", m.Letter.ID)
		}
		seen[m.Letter.ID] = true
		rec.Headers = append(rec.Headers, kgo.RecordHeader{
			Key: "retry_topic-attempts", Value: binary.BigEndian.AppendUint32(nil, attempts),
		})
		m = read(t, stored(rec, 8, f.now), 1)
		if m.Delivery != int(attempts) || seen[m.Letter.ID] {
			t.Errorf("after Spring: delivery %d, want %d; identity %s", m.Delivery, attempts, m.Letter.ID)
		}
		seen[m.Letter.ID] = true
	}
}

func TestParkedMessageHasNothingCountedAgainstIt(t *testing.T) {
	f := newForwarder()
	rec := f.Parked(read(t, original(), redelivery.Main), 0)
	m := read(t, stored(rec, 7, f.now), 0)
	if rec.Topic != "payments-retry-30s" || m.Delivery != 1 || m.Letter.Failures != 0 || m.Letter.Reason != "parked" ||
		len(m.Letter.History) != 0 || !m.Letter.First.IsZero() {
		t.Errorf("%s, %+v", rec.Topic, m.Letter)
	}
	if !m.Letter.Due.Equal(f.now.Add(30 * time.Second)) {
		t.Errorf("due %v", m.Letter.Due)
	}
	if again := f.Parked(m, 1); header(again, "abate-id") == header(rec, "abate-id") {
		t.Error("parked again with the same identity")
	}
}

type traceable struct{}

func (traceable) Error() string { return "x" }
func (traceable) Class() string { return "panic" }
func (traceable) Trace() string { return strings.Repeat("frame\n", 100) }

func TestTraceIsBoundedByThePolicy(t *testing.T) {
	f := newForwarder()
	_, l := f.Dead(read(t, original(), redelivery.Main), redelivery.Verdict{Reason: "permanent"},
		fmt.Errorf("y: %w", traceable{}))
	if l.Class != "panic" || len(l.Trace) > 40 || !strings.HasPrefix(l.Trace, "frame\n") {
		t.Errorf("class %q, trace %q", l.Class, l.Trace)
	}
}

func TestPoisonLetterSaysWhereTheRecordsAre(t *testing.T) {
	f := newForwarder()
	rec := f.Poison("payments", 3, 100, 120, errors.New("crc mismatch"))
	l, problems := letter.Read(rec)
	if problems != nil || rec.Topic != "payments-dlq" || rec.Partition != 3 || rec.Key != nil || rec.Value != nil {
		t.Errorf("%v, %v", rec, problems)
	}
	if l.Original != (letter.Place{Topic: "payments", Partition: 3, Offset: 100}) || !l.Pointer ||
		l.Class != "poison-batch" ||
		l.Message != "offsets 100 to 119 of payments/3 cannot be decoded and were left out: crc mismatch" {
		t.Errorf("%+v", l)
	}
}

func TestPolicyWithoutDeadLettersHasNone(t *testing.T) {
	c := redelivery.Config{Tiers: []time.Duration{time.Second}, DLTStrategy: redelivery.DropLast}
	f := abatekafka.NewForwarder(abatekafka.NewChain("payments", "billing", c), c, time.Now)
	m := read(t, original(), redelivery.Main)
	if rec, l := f.Dead(m, redelivery.Verdict{}, errors.New("x")); rec != nil || l.Failures != 1 {
		t.Errorf("%v, %+v", rec, l)
	}
	if rec := f.Poison("payments", 0, 1, 2, errors.New("x")); rec != nil {
		t.Error(rec)
	}
}

func TestReplayedMessageIsNewButRemembersItsReplays(t *testing.T) {
	f := newForwarder()
	source := original()
	source.Headers = append(source.Headers, kgo.RecordHeader{Key: "abate-replays", Value: []byte("2")}, kgo.RecordHeader{
		Key: "abate-replayed-from", Value: []byte("payments-dlq/3/9"),
	})
	m := read(t, source, redelivery.Main)
	if m.Delivery != 1 || m.Letter.Replays != 2 || !reflect.DeepEqual(m.Headers, original().Headers) {
		t.Errorf("%+v", m)
	}
	_, l := f.Dead(m, redelivery.Verdict{Reason: "exhausted"}, errors.New("x"))
	if l.Replays != 2 || l.ReplayedFrom != (letter.Place{Topic: "payments-dlq", Partition: 3, Offset: 9}) {
		t.Errorf("%+v", l)
	}
}

func TestRecordCopiedByHandOutOfARetryTopicIsTheSameMessageDeliveredAnew(t *testing.T) {
	f := newForwarder()
	rec := f.Hop(read(t, original(), redelivery.Main), redelivery.Verdict{Tier: 0}, errors.New("x"))
	rec.Topic, rec.Partition = "payments", 5
	m := read(t, stored(rec, 2000, f.now), redelivery.Main)
	want := letter.Letter{Identity: letter.IdentityOf(original())}
	if m.ID() != read(t, original(), redelivery.Main).ID() || m.Delivery != 1 || m.Offset != 2000 ||
		!reflect.DeepEqual(m.Headers, original().Headers) || !reflect.DeepEqual(m.Letter, want) {
		t.Errorf("%s, %+v", m.ID(), m)
	}
}

func TestForeignRecordInARetryTopicIsDelivered(t *testing.T) {
	f := newForwarder()
	rec := &kgo.Record{Topic: "payments-retry-30s", Partition: 1, Offset: 5, Timestamp: f.now, Value: []byte("v"),
		Headers: []kgo.RecordHeader{{Key: "retry_topic-attempts", Value: []byte("junk")}}}
	m, problems := abatekafka.NewMessage(rec, 0)
	if len(problems) != 1 || m.Identity().String() != "payments-retry-30s/1/5@1760000000000" || m.Delivery != 1 ||
		!m.Timestamp.Equal(f.now) || !m.Letter.Due.IsZero() {
		t.Errorf("%+v, %v", m, problems)
	}
	if hop := f.Hop(m, redelivery.Verdict{Tier: 1}, errors.New("x")); header(hop, "kafka_original-topic") !=
		"payments-retry-30s" {
		t.Errorf("it comes from %q", header(hop, "kafka_original-topic"))
	}
}

func TestFirstFailureThatSpringDidNotTellIsTheLastThatIsKnown(t *testing.T) {
	f := newForwarder()
	failed := f.now.Add(-30 * time.Second)
	rec := &kgo.Record{Topic: "payments-retry-30s", Timestamp: failed, Headers: []kgo.RecordHeader{
		{Key: "retry_topic-attempts", Value: []byte{2}},
		{Key: "retry_topic-backoff-timestamp", Value: []byte{0x01, 0x99, 0xc8, 0x2c, 0xc0, 0x00}}}}
	_, l := f.Dead(read(t, rec, 0), redelivery.Verdict{Reason: "permanent"}, errors.New("x"))
	if !l.First.Equal(failed) || !l.Last.Equal(f.now) || l.Failures != 2 {
		t.Errorf("first %v, last %v, %d failures", l.First, l.Last, l.Failures)
	}
}

// When it failed first bounds how long a message is held while there is a flood, so what a clock that was not set has
// written there is not carried on.
func TestFirstFailureThatCannotBeBoundsNothing(t *testing.T) {
	for _, wrong := range []string{"1970-01-01T00:00:12.000Z", "2199-01-01T00:00:00.000Z"} {
		f := newForwarder()
		hop := f.Hop(read(t, original(), redelivery.Main), redelivery.Verdict{Tier: 0, Reason: "flood"}, errors.New("x"))
		for i, h := range hop.Headers {
			if h.Key == "abate-first-failure" {
				hop.Headers[i].Value = []byte(wrong)
			}
		}
		f.now = f.now.Add(time.Hour)
		again := f.Hop(read(t, stored(hop, 5, f.now), 0), redelivery.Verdict{Tier: 0, Reason: "flood"}, errors.New("x"))
		f.now = f.now.Add(time.Hour)
		// since the last failure that is known
		if _, since := abatekafka.Ages(f.now, read(t, stored(again, 6, f.now), 0)); since != 2*time.Hour {
			t.Errorf("%s: it failed first %v ago", wrong, since)
		}
	}
}

func TestMainMessageWithoutMarksCostsOneAllocation(t *testing.T) {
	rec := original()
	if n := testing.AllocsPerRun(100, func() { abatekafka.NewMessage(rec, redelivery.Main) }); n > 1 {
		t.Errorf("%v allocations, want 1: the message", n)
	}
}

// Offsets begin with 0 again when a topic is deleted and made anew: what stands there then is another message, not a
// repeat.
func TestMessageOfATopicThatWasMadeAnewIsNoRepeat(t *testing.T) {
	f := newForwarder()
	v := redelivery.Verdict{Action: redelivery.Forward, Delay: 30 * time.Second, Reason: "retry"}
	forwarded := func(source *kgo.Record) string {
		return abatekafka.ForwardID(
			read(t, stored(f.Hop(read(t, source, redelivery.Main), v, errors.New("no")), 1, f.now), 0))
	}
	first, anew := original(), original()
	anew.Timestamp = anew.Timestamp.Add(time.Millisecond)
	if forwarded(first) == forwarded(anew) {
		t.Errorf("both are %q: the second would be passed over", forwarded(first))
	}
	if again := forwarded(original()); again != forwarded(first) {
		t.Errorf("a repeat is %q, the first was %q", again, forwarded(first))
	}
	once := &abatekafka.Deduper{}
	key := func(m *abatekafka.Message) string { key, _, _, _ := once.EventOf(m); return key }
	main := key(read(t, first, redelivery.Main))
	if main == key(read(t, anew, redelivery.Main)) {
		t.Errorf("Once takes both for %q: the second would not be delivered", main)
	}
	if hop := key(read(t, stored(f.Hop(read(t, first, redelivery.Main), v, errors.New("no")), 1, f.now), 0)); hop != main {
		t.Errorf("Once calls it %q in the main topic and %q in a retry topic", main, hop)
	}
}

func TestMessageWithoutATimestampIsNotGivenThatOfARetryTopic(t *testing.T) {
	f := newForwarder()
	v := redelivery.Verdict{Action: redelivery.Forward, Delay: 30 * time.Second, Reason: "retry"}
	// none, and microseconds taken for milliseconds
	for _, at := range []time.Time{time.UnixMilli(-1), time.UnixMilli(1760000000000000)} {
		source := original()
		source.Timestamp = at
		m := read(t, source, redelivery.Main)
		key, _, _, _ := (&abatekafka.Deduper{}).EventOf(m)
		for offset := range int64(3) {
			m = read(t, stored(f.Hop(m, v, errors.New("no")), offset, f.now), 0)
			if again, _, _, _ := (&abatekafka.Deduper{}).EventOf(m); !m.Letter.Timestamp.IsZero() || again != key {
				t.Errorf("forward %d: timestamp %v, Once calls it %q, and %q at first", offset+1, m.Letter.Timestamp, again, key)
			}
		}
	}
}

func TestPointerToNowhereIsNotDeliveredEmpty(t *testing.T) {
	for name, headers := range map[string][]kgo.RecordHeader{
		"that says so": {
			{Key: "abate-letter", Value: []byte("0")}, {Key: "abate-pointer", Value: []byte("unknown")},
		},
		"that cannot be read": {
			{Key: "abate-letter", Value: []byte("0")}, {Key: "abate-pointer", Value: []byte("payments")},
		},
		"that somebody has made himself": {{Key: "abate-pointer"}},
	} {
		m, _ := abatekafka.NewMessage(&kgo.Record{Topic: "payments-retry-30s", Partition: 1, Offset: 7, Headers: headers}, 0)
		client, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:1"))
		if err != nil {
			t.Fatal(err)
		}
		if err := abatekafka.Restore(t.Context(), client, m); !m.Letter.Pointer || !errors.Is(err, letter.ErrGone) {
			t.Errorf("a pointer %s: %v, %v", name, m.Letter.Pointer, err)
		}
		client.Close()
	}
}

// Somebody may well put what a connector gave up on into a retry topic. It is not left to the connector, which reads
// none.
func TestDeadLetterOfAConnectorInARetryTopicIsOurs(t *testing.T) {
	m := read(t, &kgo.Record{Topic: "payments-retry-30s", Value: []byte("v"), Headers: []kgo.RecordHeader{
		{Key: "__connect.errors.topic", Value: []byte("payments")}, {Key: "__connect.errors.partition", Value: []byte("3")},
		{Key: "__connect.errors.offset", Value: []byte("1042")},
		{Key: "__connect.errors.connector.name", Value: []byte("s3")},
	}}, 0)
	if m.Letter.Dialect != letter.Connect || m.Letter.Group != "" || m.Identity().String() != "payments/3/1042@-1" {
		t.Errorf("%+v", m.Letter)
	}
}

// A replay that was killed may have sent a dead letter twice: that is one message, whatever the time of sending, also
// if the replay did not write who it is, as earlier ones did not.
func TestDeadLetterThatWasReplayedTwiceIsOneMessageToOnce(t *testing.T) {
	key := func(offset int64, value string) (string, bool) {
		rec := original()
		rec.Offset, rec.Value, rec.Timestamp = offset, []byte(value), rec.Timestamp.Add(time.Duration(offset)*time.Second)
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: "abate-replays", Value: []byte("1")}, kgo.RecordHeader{
			Key: "abate-replayed-from", Value: []byte("payments-dlq/3/5"),
		})
		key, _, compared, _ := (&abatekafka.Deduper{}).EventOf(read(t, rec, redelivery.Main))
		return key, compared
	}
	first, _ := key(2000, "v")
	if second, _ := key(2001, "v"); !strings.HasPrefix(first, "record payments-dlq/3/5@-1~") || second != first {
		t.Errorf("Once takes them for %q and %q", first, second)
	}
	if forged, _ := key(2002, "w"); forged == first {
		t.Errorf("one with another value is taken for it")
	}
}
