package letter_test

import (
	"bytes"
	"encoding/binary"
	"math/rand"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/twmb/franz-go/pkg/kgo"
)

// known are the names that readers look at, and some that only look like them.
var known = []string{
	"abate-letter", "abate-id", "abate-failures", "abate-due", "abate-first-failure", "abate-last-failure", "abate-reason",
	"abate-history", "abate-replays",
	"abate-replayed-from", "abate-pointer", "abate-identity", "abate-imported", "retry_topic-attempts",
	"retry_topic-backoff-timestamp", "retry_topic-original-timestamp",
	"kafka_dlt-original-consumer-group", "kafka_original-topic", "kafka_original-partition", "kafka_original-offset",
	"kafka_original-timestamp",
	"kafka_original-timestamp-type", "kafka_exception-fqcn", "kafka_exception-cause-fqcn", "kafka_exception-message",
	"kafka_exception-stacktrace",
	"kafka_key-exception-fqcn", "kafka_dlt-original-topic", "kafka_dlt-original-offset", "kafka_dlt-exception-message",
	"springDeserializerExceptionKey",
	"__connect.errors.topic", "__connect.errors.offset", "__streams.errors.exception", "__dlq.errors.delivery.count",
	"kafka_correlationId", "tenant", "",
}

// headers makes headers out of bytes: the index of a name, a length, the value.
func headers(b []byte) (h []kgo.RecordHeader) {
	for len(b) >= 2 && len(h) < 64 {
		n := min(int(b[1]%40), len(b)-2)
		h = append(h, kgo.RecordHeader{Key: known[int(b[0])%len(known)], Value: b[2 : 2+n]})
		b = b[2+n:]
	}
	return h
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("\x00\x010\x0d\x04\x00\x00\x00\x05\x0e\x06\x01\x99\xc8\x2c\xc0\x00\x11\x01t"), []byte("k"), []byte("v"))
	f.Add([]byte("\x24\x01x\x00\x011\x02\x012\x0d\x04\x00\x00\x00\x03"), []byte(nil), []byte(nil))
	f.Fuzz(func(t *testing.T, b, key, value []byte) {
		r := &kgo.Record{Topic: "t", Key: key, Value: value, Headers: headers(b)}
		before := append([]kgo.RecordHeader(nil), r.Headers...)
		l, problems := letter.Read(r)
		sameHeaders(t, r.Headers, before) // a record is shared
		if !bytes.Equal(l.Key, key) || !bytes.Equal(l.Value, value) || l.Delivery != l.Failures+1 || l.Failures < 0 ||
			l.Replays < 0 {
			t.Errorf("%+v", l)
		}
		for _, p := range problems {
			if !strings.HasPrefix(p.Error(), "t/0/0, header ") {
				t.Errorf("problem does not say where: %v", p)
			}
		}
		kept := 0
		for _, h := range l.Headers {
			if strings.HasPrefix(h.Key, "springDeserializerException") {
				t.Errorf("%s was kept", h.Key)
			}
		}
		for _, h := range r.Headers {
			if h.Key == "tenant" || h.Key == "" || h.Key == "kafka_correlationId" {
				kept++
			}
		}
		for _, h := range l.Headers {
			if h.Key == "tenant" || h.Key == "" || h.Key == "kafka_correlationId" {
				kept--
			}
		}
		if kept != 0 {
			t.Errorf("%d headers of the message's own were lost", kept)
		}
		// Whatever was read can be written, and is the same when it is read again.
		l.Dialect = letter.Abate
		l.Key, l.Value = key, value
		again, problems := letter.Read(record(&l, letter.Abate))
		if len(problems) > 0 {
			t.Errorf("written headers have problems: %v", problems)
		}
		sameHeaders(t, again.Headers, l.Headers)
		if again.Failures != l.Failures || again.Replays != l.Replays || again.Original != l.Original && l.Original.Known() ||
			!again.Due.Equal(l.Due.Truncate(time.Millisecond)) {
			t.Errorf("read %+v\nthen %+v", l, again)
		}
		for shrunk := record(&l, letter.Abate); letter.Shrink(shrunk); { // ends
			if smaller, _ := letter.Read(shrunk); smaller.Failures != l.Failures || smaller.Original != again.Original ||
				smaller.Identity != again.Identity {
				t.Errorf("shrinking lost something: %+v", smaller)
			}
		}
	})
}

// FuzzRoundTrip writes letters at random and reads them.
func FuzzRoundTrip(f *testing.F) {
	for seed := range int64(20) {
		f.Add(seed, []byte("\x24\x01x\x25\x00\x13\x01y"))
	}
	f.Fuzz(func(t *testing.T, seed int64, b []byte) {
		l := anyLetter(rand.New(rand.NewSource(seed)))
		for _, h := range headers(b) {
			if !strings.HasPrefix(h.Key, "springDeserializerException") && h.Key != "abate-letter" {
				l.Headers = append(l.Headers, h)
			}
		}
		got, problems := letter.Read(record(&l, letter.Abate))
		if same(t, got, l); problems != nil {
			t.Error(problems)
		}
	})
}

// anyLetter is one that can be written without loss: whole milliseconds, texts within their bounds.
func anyLetter(r *rand.Rand) letter.Letter {
	some := func(s ...string) string { return s[r.Intn(len(s))] }
	when := func() time.Time {
		if r.Intn(4) == 0 {
			return time.Time{}
		}
		return ms(r.Int63n(1 << 47))
	}
	l := letter.Letter{
		Dialect: letter.Abate,
		Original: letter.Place{
			Topic: some("a", "payments.x_y-z", strings.Repeat("n", 249)), Partition: r.Int31(), Offset: r.Int63(),
		},
		Timestamp:     when(),
		TimestampType: some("", "CreateTime", "NoTimestampType"),
		Group:         some("", "billing", "a/b c"),
		Failures:      r.Intn(100000),
		First:         when(),
		Last:          when(),
		Due:           when(),
		Class:         some("", "x", "*a.B"),
		Message:       some("", "ä\nb", strings.Repeat("m", letter.MaxMessage)),
		Trace:         some("", "t\n"),
		Reason:        some("", "retry", "exhausted"),
		Replays:       r.Intn(3),
		Pointer:       r.Intn(2) == 0,
	}
	if r.Intn(3) > 0 {
		l.Hops = 1 + r.Intn(1000)
		l.ID = "g/" + l.Original.String() + "/" + strconv.Itoa(l.Hops)
	}
	l.Delivery = l.Failures + 1
	for range r.Intn(4) {
		l.History = append(l.History, letter.Past{
			Topic: some("", "t"), At: ms(r.Int63n(1 << 47)), Class: some("", "c", "two words"),
		})
	}
	l.Identity = letter.Identity{
		At: letter.Place{Topic: some("a", "first"), Partition: r.Int31(), Offset: r.Int63()}, Millis: r.Int63() - 1<<62,
	}
	if l.Replays > 0 {
		l.ReplayedFrom = letter.Place{Topic: "d", Partition: 1, Offset: int64(r.Int31())}
	}
	l.Key, l.Value = binary.BigEndian.AppendUint64(nil, r.Uint64()), nil
	return l
}
