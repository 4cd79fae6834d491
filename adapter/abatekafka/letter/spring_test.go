package letter_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/twmb/franz-go/pkg/kgo"
)

// springRecords reads records that a real Spring Kafka wrote: tests/brokertest/spring_test.go keeps them, and checks
// that Spring still writes such.
func springRecords(t *testing.T, name string) (all []*kgo.Record) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var kept []struct {
		Topic     string
		Partition int32
		Offset    int64
		Timestamp int64
		Key       []byte
		Value     []byte
		Headers   []struct {
			Key       string
			Text, Hex *string
		}
	}
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatal(err)
	}
	for _, k := range kept {
		r := &kgo.Record{Topic: k.Topic, Partition: k.Partition, Offset: k.Offset, Timestamp: ms(k.Timestamp), Key: k.Key,
			Value: k.Value}
		for _, h := range k.Headers {
			var value []byte
			if h.Text != nil {
				value = []byte(*h.Text)
			}
			if h.Hex != nil {
				if value, err = hex.DecodeString(*h.Hex); err != nil {
					t.Fatal(err)
				}
			}
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: value})
		}
		all = append(all, r)
	}
	return all
}

func TestRecordsOfARealSpringAreRead(t *testing.T) {
	for name, want := range map[string]int{"spring-retry.json": 3, "spring-recoverer.json": 1} {
		records := springRecords(t, name)
		if len(records) != want {
			t.Fatalf("%s: %d records, want %d", name, len(records), want)
		}
		for _, r := range records {
			l, problems := letter.Read(r)
			if len(problems) > 0 || l.Dialect != letter.Spring {
				t.Errorf("%s: dialect %s, problems %v", r.Topic, l.Dialect, problems)
			}
			if main, _, _ := strings.Cut(strings.TrimSuffix(r.Topic, "-dlt"), "-retry"); l.Original !=
				(letter.Place{Topic: main}) || l.Group != "billing-"+main {
				t.Errorf("%s: original %v of group %s", r.Topic, l.Original, l.Group)
			}
			if age := r.Timestamp.Sub(l.Timestamp); age < 5*time.Second || age > time.Hour || l.TimestampType != "CreateTime" {
				t.Errorf("%s: the original was written at %v (%s), this at %v", r.Topic, l.Timestamp, l.TimestampType, r.Timestamp)
			}
			if l.Class != "java.lang.IllegalStateException" || !strings.HasSuffix(l.Message, "no stock for order-7") ||
				!strings.Contains(l.Trace, "abate.Main") {
				t.Errorf("%s: class %q, message %q, trace %q", r.Topic, l.Class, l.Message, l.Trace)
			}
			if got := names(l.Headers); string(l.Key) != "order-7" || !bytes.Equal(l.Value, []byte{0, 1, 0xfe, 0xff}) ||
				strings.Join(got, " ") != "event-id same same empty" {
				t.Errorf("%s: %q = %x with %v", r.Topic, l.Key, l.Value, got)
			} else if l.Headers[2].Value != nil || l.Headers[3].Value == nil {
				t.Errorf("%s: nil and empty values are not what they were: %v", r.Topic, l.Headers)
			}
		}
	}
}

func TestCountAndTimesOfARealSpringAreRead(t *testing.T) {
	for i, r := range springRecords(t, "spring-retry.json") {
		l, _ := letter.Read(r)
		if l.Failures != i+1 || l.Delivery != i+2 {
			t.Errorf("%s: %d failures, next delivery %d; want %d and %d", r.Topic, l.Failures, l.Delivery, i+1, i+2)
		}
		delay := []time.Duration{300 * time.Millisecond, 600 * time.Millisecond, 0}[i]
		// Spring counts from the failure; its first write takes it half a second more on a busy machine.
		if wait := l.Due.Sub(r.Timestamp); wait > delay || wait < delay-5*time.Second {
			t.Errorf("%s: due %v after it was written, want at most %v", r.Topic, wait, delay)
		}
		if l.Last.After(l.Due) || r.Timestamp.Sub(l.Last) > 5*time.Second {
			t.Errorf("%s: the last failure at %v, written at %v, due at %v", r.Topic, l.Last, r.Timestamp, l.Due)
		}
	}
}

func TestWhatARealSpringWroteWeWriteByteForByte(t *testing.T) {
	for _, r := range springRecords(t, "spring-retry.json") {
		l, _ := letter.Read(r)
		for _, dialect := range []letter.Dialect{letter.Spring, letter.Abate} {
			ours := l.AppendHeaders(nil, dialect)
			compared := 0
			for _, h := range r.Headers {
				if !strings.HasPrefix(h.Key, "retry_topic-") && !strings.HasPrefix(h.Key, "kafka_original-") &&
					h.Key != "kafka_dlt-original-consumer-group" {
					continue
				}
				compared++
				if got, want := valueOf(ours, h.Key), valueOf(r.Headers, h.Key); !bytes.Equal(got, want) {
					t.Errorf("%s, dialect %s: %s is % x, Spring's % x", r.Topic, dialect, h.Key, got, want)
				}
			}
			if compared < 9 {
				t.Errorf("%s: only %d headers are Spring's", r.Topic, compared)
			}
		}
	}
}
