package abatekafka_test

import (
	"encoding/binary"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

// replayed is a record of the main topic as a replay writes it, of the message with this identity.
func replayed(offset int64, identity, value string) *kgo.Record {
	rec := original()
	rec.Offset, rec.Value, rec.Timestamp = offset, []byte(value), rec.Timestamp.Add(time.Hour)
	rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: "abate-replays", Value: []byte("1")},
		kgo.RecordHeader{Key: "abate-identity", Value: []byte(identity)}, kgo.RecordHeader{
			Key: "abate-replayed-from", Value: []byte("payments-dlq/3/5"),
		})
	return rec
}

func TestReplayedMessageKeepsItsIDThroughItsSecondChain(t *testing.T) {
	f := newForwarder()
	first := read(t, original(), redelivery.Main)
	again := read(t, replayed(2000, first.Identity().String(), "v"), redelivery.Main)
	if again.ID() != first.ID() || again.Offset != 2000 {
		t.Errorf("%s at offset %d, want %s", again.ID(), again.Offset, first.ID())
	}
	hop := f.Hop(again, redelivery.Verdict{Tier: 0}, errors.New("x"))
	if header(hop, "kafka_original-offset") != string(binary.BigEndian.AppendUint64(nil, 2000)) {
		t.Errorf("Spring is told another original than the record that it can read")
	}
	if m := read(t, stored(hop, 9, f.now), 0); m.ID() != first.ID() {
		t.Errorf("in its retry topic it is %s", m.ID())
	}
}

func TestOnceCollapsesAReplayOfWhatWasHandledAndRunsAReplayOfWhatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		first := read(t, original(), redelivery.Main)
		if _, err := d.runs(t, first, errors.New("fails")); err == nil {
			t.Fatal("it did not fail")
		}
		for i, want := range []int{1, 0, 0} { // the replay after the fix, and two repeats of it
			m := read(t, replayed(2000+int64(i), first.Identity().String(), "v"), redelivery.Main)
			if n, err := d.runs(t, m, nil); n != want || err != nil {
				t.Errorf("replay %d ran %d times: %v", i, n, err)
			}
		}
	})
}

// Whoever may write to the topic may claim to be any message: but only one with the same key and value is taken for it.
func TestForgedIdentitySuppressesNoOtherMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		victim := read(t, original(), redelivery.Main)
		forged := read(t, replayed(900, victim.Identity().String(), "another effect"), redelivery.Main)
		if n, err := d.runs(t, forged, nil); n != 1 || err != nil {
			t.Fatalf("%d %v", n, err)
		}
		if n, err := d.runs(t, victim, nil); n != 1 || err != nil {
			t.Errorf("the message itself ran %d times: %v", n, err)
		}
	})
}

// A program that reads a replayed message and writes others, as a stream processor does, copies its headers along:
// those are messages of their own, also when they are alike, and none of them was replayed.
func TestMessagesMadeFromAReplayedOneAreNotTakenForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		source := read(t, original(), redelivery.Main)
		for i := range 3 {
			made := replayed(int64(i), source.Identity().String(), "+1")
			made.Topic = "bookings"
			m := read(t, made, redelivery.Main)
			if n, err := d.runs(t, m, nil); n != 1 || err != nil {
				t.Errorf("message %d made of it ran %d times: %v", i, n, err)
			}
			if m.Letter.Replays != 0 || m.Letter.ReplayedFrom.Known() || len(m.Headers) != len(original().Headers) {
				t.Errorf("message %d: %+v", i, m)
			}
		}
		// Replayed into another topic than its own, it says so, and is itself.
		elsewhere := replayed(7, source.Identity().String(), "v")
		elsewhere.Topic, elsewhere.Headers = "bookings",
			append(elsewhere.Headers, kgo.RecordHeader{Key: "abate-replayed-to", Value: []byte("bookings")})
		if m := read(t, elsewhere, redelivery.Main); m.ID() != source.ID() || m.Letter.Replays != 1 {
			t.Errorf("replayed elsewhere: %s, want %s", m.ID(), source.ID())
		}
	})
}

func TestTopicMadeAnewHasNewMessagesAtTheSamePlaces(t *testing.T) {
	first, later := original(), original()
	later.Timestamp = later.Timestamp.Add(time.Second)
	if a, b := read(t, first, redelivery.Main), read(t, later, redelivery.Main); a.ID() == b.ID() {
		t.Errorf("both are %s", a.ID())
	}
}

func TestMessageThatSpringForwardedIsKnownByItsOriginalHeaders(t *testing.T) {
	for _, ms := range []int64{1759999990000, 0, -1, 1 << 60} { // whatever stands in the log
		rec := original()
		rec.Timestamp, rec.Headers = time.UnixMilli(ms), nil
		spring := &kgo.Record{Topic: "payments-retry-30000", Partition: 3, Offset: 4,
			Timestamp: time.UnixMilli(1760000000000), Key: rec.Key, Value: rec.Value, Headers: []kgo.RecordHeader{
				{Key: "kafka_original-topic", Value: []byte("payments")},
				{Key: "kafka_original-partition", Value: binary.BigEndian.AppendUint32(nil, 3)},
				{Key: "kafka_original-offset", Value: binary.BigEndian.AppendUint64(nil, 1042)},
				{Key: "kafka_original-timestamp", Value: binary.BigEndian.AppendUint64(nil, uint64(ms))},
				{Key: "retry_topic-attempts", Value: []byte{2}}}}
		m, _ := abatekafka.NewMessage(spring, 0)
		if want := read(t, rec, redelivery.Main); m.ID() != want.ID() {
			t.Errorf("timestamp %d: %s, at first %s", ms, m.ID(), want.ID())
		}
		f := newForwarder()
		if hop, _ := abatekafka.NewMessage(stored(f.Hop(m, redelivery.Verdict{Tier: 1}, errors.New("x")), 1, f.now),
			1); hop.ID() != m.ID() {
			t.Errorf("timestamp %d: after a forward of ours %s", ms, hop.ID())
		}
	}
}

func TestTimestampThatCannotBeSaysNothingOfTheAgeOfAMessage(t *testing.T) {
	now := time.UnixMilli(1760000000000)
	for _, tt := range []struct {
		about      string
		ms         int64
		failed     time.Duration // before now; 0 for never
		age, since time.Duration
	}{
		{"a usual one", 1760000000000 - 60_000, 0, time.Minute, 0},
		{"none", -1, time.Hour, time.Hour, time.Hour},
		{"0", 0, 0, 0, 0},
		{"0, and it has failed", 0, time.Minute, time.Minute, time.Minute},
		{"seconds for milliseconds", 1760000000, time.Minute, time.Minute, time.Minute},
		{"microseconds for milliseconds", 1760000000000000, time.Minute, time.Minute, time.Minute},
		{"a clock that is an hour ahead", 1760000000000 + 3_600_000, time.Minute, time.Minute, time.Minute},
	} {
		m := &abatekafka.Message{Timestamp: time.UnixMilli(tt.ms)}
		if tt.failed > 0 {
			m.Letter.First = now.Add(-tt.failed)
		}
		if age, since := abatekafka.Ages(now, m); age != tt.age || since != tt.since {
			t.Errorf("%s (%s): age %v, failed first %v ago, want %v, %v", tt.about, strconv.FormatInt(tt.ms, 10), age, since,
				tt.age, tt.since)
		}
	}
}
