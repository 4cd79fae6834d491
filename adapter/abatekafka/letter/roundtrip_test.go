package letter_test

import (
	"reflect"
	"strconv"
	"testing"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/twmb/franz-go/pkg/kgo"
)

// same compares two letters field by field; headers by their content.
func same(t *testing.T, got, want letter.Letter) {
	t.Helper()
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		name := g.Type().Field(i).Name
		if name == "Headers" {
			sameHeaders(t, got.Headers, want.Headers)
			continue
		}
		if !reflect.DeepEqual(g.Field(i).Interface(), w.Field(i).Interface()) {
			t.Errorf("%s: %v, want %v", name, g.Field(i).Interface(), w.Field(i).Interface())
		}
	}
}

func sameHeaders(t *testing.T, got, want []kgo.RecordHeader) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("headers: %q, want %q", got, want)
		return
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("header %d: %q, want %q", i, got[i], want[i])
		}
	}
}

func record(l *letter.Letter, d letter.Dialect) *kgo.Record {
	return &kgo.Record{Topic: "payments-dlq", Key: l.Key, Value: l.Value, Headers: l.AppendHeaders(nil, d)}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	l := sample()
	got, problems := letter.Read(record(&l, letter.Abate))
	if same(t, got, l); problems != nil {
		t.Error(problems)
	}
}

// Whatever the message brought with it, it has again after each of ten forwards: order, duplicates, nil, names that
// collide with ours.
func TestOriginalHeadersSurviveForwards(t *testing.T) {
	originals := []kgo.RecordHeader{
		{Key: "x", Value: nil}, {Key: "x", Value: []byte{}}, {Key: "", Value: []byte("no name")},
		{Key: "x", Value: []byte{0xff, 0}},
		{Key: "kafka_original-topic", Value: []byte("not what it seems")}, {Key: "retry_topic-attempts", Value: []byte{1, 2}},
		{Key: "abate-failures", Value: []byte("99")}, {Key: "__connect.errors.topic", Value: []byte("t")},
		{Key: "kafka_dlt-exception-fqcn", Value: []byte("c")},
		{Key: "kafka_correlationId", Value: []byte{7}}, {Key: "abate-tenant", Value: []byte("t")},
	}
	l := sample()
	l.Headers = originals
	for range 10 {
		l.Failures, l.Delivery = l.Failures+1, l.Delivery+1
		got, problems := letter.Read(record(&l, letter.Abate))
		if same(t, got, l); problems != nil {
			t.Fatal(problems)
		}
		l = got
	}
	sameHeaders(t, l.Headers, originals)
}

func TestNilAndEmptyKeyAndValueSurvive(t *testing.T) {
	for _, b := range [][]byte{nil, {}, {0}} {
		l := sample()
		l.Key, l.Value = b, b
		got, _ := letter.Read(record(&l, letter.Abate))
		if same(t, got, l); (got.Key == nil) != (b == nil) || (got.Value == nil) != (b == nil) {
			t.Errorf("key %#v, value %#v, want %#v", got.Key, got.Value, b)
		}
	}
}

// after is what Spring makes of a record that it forwards: it appends its own headers and replaces those of the error.
func after(r *kgo.Record, attempts byte, due []byte) *kgo.Record {
	to := &kgo.Record{Topic: "payments-retry-300000", Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		if h.Key != "kafka_exception-cause-fqcn" && h.Key != "kafka_exception-message" {
			to.Headers = append(to.Headers, h)
		}
	}
	to.Headers = append(to.Headers,
		kgo.RecordHeader{Key: "retry_topic-attempts", Value: []byte{0, 0, 0, attempts}},
		kgo.RecordHeader{Key: "retry_topic-backoff-timestamp", Value: due},
		kgo.RecordHeader{Key: "kafka_exception-cause-fqcn", Value: []byte("java.io.IOException")},
		kgo.RecordHeader{Key: "kafka_exception-message", Value: []byte("broken pipe")})
	return to
}

func TestWhatSpringSaysCountsOnceItHasForwarded(t *testing.T) {
	l := sample() // 2 failures
	due := []byte{0x01, 0x99, 0xc8, 0x40, 0, 0}
	got, problems := letter.Read(after(record(&l, letter.Abate), 4, due))
	want := l
	want.Failures, want.Delivery = 3, 4
	want.Due, want.Last = ms(0x0199c8400000), ms(0x0199c8400000)
	want.Class, want.Message, want.Reason = "java.io.IOException", "broken pipe", ""
	want.ID = "billing/payments/3/1042/attempt-4"
	if same(t, got, want); problems != nil {
		t.Error(problems)
	}
}

func TestSpringsWordOnAnOlderForwardDoesNotCount(t *testing.T) {
	l := sample()
	l.Failures, l.Delivery = 40000, 40001 // beyond what Spring counts: both say the most that it believes
	got, problems := letter.Read(record(&l, letter.Abate))
	if same(t, got, l); problems != nil {
		t.Error(problems)
	}
}

// A header of the message's own may be called like the one that says where those end, and be right about it.
func TestOwnHeaderThatLooksLikeTheEndOfTheOthersIsKept(t *testing.T) {
	for _, h := range [][]kgo.RecordHeader{
		{{Key: "a"}, {Key: "abate-letter", Value: []byte("1")}, {Key: "kafka_original-topic", Value: []byte("mine")}},
		{{Key: "springDeserializerExceptionKey"}, {Key: "a"}, {Key: "abate-letter", Value: []byte("1")}, {Key: "b"},
			{Key: "abate-letter", Value: []byte("4")}},
	} {
		l, _ := letter.ReadMain(&kgo.Record{Topic: "payments", Headers: h})
		l.Headers = append(l.Headers, kgo.RecordHeader{Key: "abate-letter", Value: []byte(strconv.Itoa(len(l.Headers)))},
			kgo.RecordHeader{Key: "last"})
		for range 3 {
			again, problems := letter.Read(record(&l, letter.Abate))
			if problems != nil {
				t.Error(problems)
			}
			sameHeaders(t, again.Headers, l.Headers)
			l = again
		}
	}
}

func TestHeadersAddedLaterAreKept(t *testing.T) {
	l := sample()
	r := record(&l, letter.Abate)
	r.Headers = append(r.Headers, kgo.RecordHeader{Key: "traceparent", Value: []byte("00-1")}, kgo.RecordHeader{
		Key: "springDeserializerExceptionKey", Value: []byte{0xac},
	})
	got, _ := letter.Read(r)
	l.Headers = append(l.Headers, kgo.RecordHeader{Key: "traceparent", Value: []byte("00-1")})
	same(t, got, l)
}

func TestHeadersTakenAwayAreTold(t *testing.T) {
	l := sample()
	r := record(&l, letter.Abate)
	r.Headers = r.Headers[1:]
	got, problems := letter.Read(r)
	l.Headers = l.Headers[1:]
	if same(t, got, l); len(problems) != 1 {
		t.Errorf("problems: %v", problems)
	}
}
