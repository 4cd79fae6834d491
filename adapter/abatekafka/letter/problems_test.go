package letter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestWrongHeadersAreToldAndCountAsAbsent(t *testing.T) {
	for _, c := range []struct {
		header, value string
		problem       string
	}{
		{"retry_topic-attempts", "", "not a number of attempts"},
		{"retry_topic-attempts", "\x00\x00\x03", "not a number of attempts"},
		{"retry_topic-attempts", "\x00\x00\x00\x00", "not a number of attempts"},
		{"retry_topic-attempts", "\x00\x00\x80\x00", "not a number of attempts"},
		{"retry_topic-attempts", "\xff\xff\xff\xff", "not a number of attempts"},
		{"retry_topic-backoff-timestamp", "", "not a time"},
		{"retry_topic-backoff-timestamp", "123456789", "not a time"},
		{"retry_topic-backoff-timestamp", "\x80", "not a time"},
		{"retry_topic-original-timestamp", "\x7f\xff\xff\xff\xff\xff\xff\xff", "not a time"},
		{"kafka_original-topic", "no such/topic", "no topic's name"},
		{"kafka_original-partition", "1", "not a partition"},
		{"kafka_original-partition", "\xff\xff\xff\xff", "not a partition"},
		{"kafka_original-offset", "\x00\x00\x00\x01", "not an offset"},
		{"kafka_original-offset", "\xff\xff\xff\xff\xff\xff\xff\xff", "not an offset"},
		{"kafka_original-timestamp", "\x01\x99\xc8\x2c\xc0\x00", "not a time"},
		{"abate-letter", "x", "not a number of headers"},
		{"abate-failures", "-1", "not a number from 0"},
		{"abate-failures", "99999999999", "not a number from 0"},
		{"abate-replays", "many", "not a number from 0"},
		{"abate-due", "tomorrow", "not a time like"},
		{"abate-first-failure", "0001-01-01T00:00:00Z", "not a time like"},
		{"abate-last-failure", "", "not a time like"},
		{"abate-history", "nonsense", "1 of its lines"},
		{"abate-replayed-from", "payments", "write topic/partition/offset"},
		{"abate-pointer", "payments/x/1", "write topic/partition/offset"},
		{"__streams.errors.partition", "one", "not a number from 0"},
		{"__connect.errors.offset", "-1", "not an offset"},
		{"__dlq.errors.delivery.count", "1e3", "not a number from 0"},
		{"__dlq.errors.topic", "a b", "no topic's name"},
	} {
		t.Run(fmt.Sprintf("%s=%x", c.header, c.value), func(t *testing.T) {
			r := &kgo.Record{Topic: "payments-dlq", Partition: 3, Offset: 9, Value: []byte("v"), Headers: []kgo.RecordHeader{
				{Key: c.header, Value: []byte(c.value)},
			}}
			l, problems := letter.Read(r)
			if len(problems) != 1 || !strings.Contains(problems[0].Error(), c.problem) ||
				!strings.HasPrefix(problems[0].Error(), "payments-dlq/3/9, header "+c.header+": ") {
				t.Errorf("problems: %v, want one with place, header and %q", problems, c.problem)
			}
			if l.Failures != 0 || l.Delivery != 1 || string(l.Value) != "v" || !l.Due.IsZero() || l.Original.Known() ||
				l.Replays != 0 {
				t.Errorf("%+v", l)
			}
		})
	}
}

func TestAttemptsAreReadInEveryFormThatSpringTakes(t *testing.T) {
	for value, want := range map[string]int{"\x05": 5, "\xff": 255, "\x00\x00\x00\x05": 5, "\x00\x00\x7f\xff": 32767} {
		l, problems := letter.Read(&kgo.Record{
			Headers: []kgo.RecordHeader{
				{Key: "retry_topic-attempts", Value: []byte("junk")}, {Key: "retry_topic-attempts", Value: []byte(value)},
			},
		})
		if l.Delivery != want || problems != nil {
			t.Errorf("% x: delivery %d, want %d; %v", value, l.Delivery, want, problems)
		}
	}
}

func TestTimesAreReadInOneToEightBytes(t *testing.T) {
	for value, want := range map[string]int64{
		"\x00": 0, "\x7f": 127, "\x00\x80": 128, "\x01\x99\xc8\x2c\xc0\x00": 1760000000000,
		"\x00\x00\x01\x99\xc8\x2c\xc0\x00": 1760000000000,
	} {
		l, problems := letter.Read(&kgo.Record{
			Headers: []kgo.RecordHeader{{Key: "retry_topic-backoff-timestamp", Value: []byte(value)}},
		})
		if !l.Due.Equal(ms(want)) || problems != nil {
			t.Errorf("% x: due %v, want %v; %v", value, l.Due, ms(want), problems)
		}
	}
}

func TestRecordWithoutSuchHeadersIsAFirstDelivery(t *testing.T) {
	r := &kgo.Record{Topic: "t", Key: []byte("k"), Headers: []kgo.RecordHeader{
		{Key: "abate-tenant"}, {Key: "kafka_replyTopic"}, {Key: "retry_topic-other"},
	}}
	l, problems := letter.Read(r)
	if l.Dialect != letter.None || l.Delivery != 1 || l.Failures != 0 || len(l.Headers) != 3 || problems != nil {
		t.Errorf("%+v, %v", l, problems)
	}
	if l.Original != (letter.Place{Partition: -1, Offset: -1}) {
		t.Errorf("original %v", l.Original)
	}
}

// In Spring's retry topics the due time is ahead, and the last failure was when the record was written.
func TestLastFailureInSpringsRetryTopicIsNotAhead(t *testing.T) {
	l, _ := letter.Read(&kgo.Record{Timestamp: ms(1760000000000 - 30_000), Headers: []kgo.RecordHeader{
		{Key: "retry_topic-backoff-timestamp", Value: []byte{0x01, 0x99, 0xc8, 0x2c, 0xc0, 0x00}}}})
	if !l.Due.Equal(ms(1760000000000)) || !l.Last.Equal(ms(1760000000000-30_000)) {
		t.Errorf("due %v, last %v", l.Due, l.Last)
	}
}

func TestDueIsBelievedUpToADay(t *testing.T) {
	now, tier := ms(1760000000000), 5*time.Minute
	for _, c := range []struct{ ahead, want time.Duration }{
		{0, 0}, {-time.Hour, 0}, {time.Second, time.Second}, {5 * time.Minute, 5 * time.Minute},
		{24*time.Hour + tier, 24*time.Hour + tier}, {24*time.Hour + tier + time.Millisecond, 0}, {9999 * time.Hour, 0},
	} {
		l := letter.Letter{Due: now.Add(c.ahead)}
		if got := l.Wait(now, tier); got != c.want {
			t.Errorf("%v ahead: wait %v, want %v", c.ahead, got, c.want)
		}
	}
	if got := (&letter.Letter{}).Wait(now, tier); got != 0 {
		t.Errorf("no due time: wait %v", got)
	}
}

func TestPlaceIsReadAsWritten(t *testing.T) {
	p := letter.Place{Topic: "a.b_c-D", Partition: 2147483647, Offset: 1<<63 - 1}
	if got, err := letter.ParsePlace(p.String()); err != nil || got != p {
		t.Errorf("%v, %v", got, err)
	}
	for _, s := range []string{"", "a", "a/1", "a/1/", "/1/2", "a/-1/2", "a/1/-2", "a/b/1/2", "a b/1/2", "../1/2",
		strings.Repeat("a", 250) + "/1/2", "a/2147483648/1"} {
		if got, err := letter.ParsePlace(s); err == nil {
			t.Errorf("%q was read as %v", s, got)
		}
	}
}

func TestEveryHeaderThatMustNotGoOnIsFound(t *testing.T) {
	for _, name := range []string{"abate-letter", "abate-id", "abate-failures", "abate-due", "abate-first-failure",
		"abate-last-failure", "abate-reason", "abate-history",
		"abate-replays", "abate-replayed-from", "abate-pointer", "springDeserializerExceptionKey",
		"springDeserializerExceptionValue"} {
		if h := []kgo.RecordHeader{{Key: ""}, {Key: "s"}, {Key: "abate-x"}, {Key: name}}; !letter.Marked(h) ||
			letter.Marked(h[:3]) {
			t.Errorf("%s was not found, or something else was", name)
		}
	}
	if letter.Marked([]kgo.RecordHeader{
		{Key: "kafka_original-topic"}, {Key: "retry_topic-attempts"}, {Key: "abate-tenant"},
	}) {
		t.Error("a header that may be the message's own was found")
	}
}
