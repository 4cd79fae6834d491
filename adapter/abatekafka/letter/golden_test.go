package letter_test

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/twmb/franz-go/pkg/kgo"
)

func ms(v int64) time.Time { return time.UnixMilli(v).UTC() }

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// valueOf is the last header with this name.
func valueOf(h []kgo.RecordHeader, name string) []byte {
	for i := len(h) - 1; i >= 0; i-- {
		if h[i].Key == name {
			return h[i].Value
		}
	}
	return nil
}

func names(h []kgo.RecordHeader) []string {
	var all []string
	for _, v := range h {
		all = append(all, v.Key)
	}
	return all
}

// sample is a letter with everything in it.
func sample() letter.Letter {
	return letter.Letter{
		Dialect:       letter.Abate,
		Original:      letter.Place{Topic: "payments", Partition: 3, Offset: 1042},
		Timestamp:     ms(1760000000000),
		TimestampType: "CreateTime",
		Identity:      letter.Identity{At: letter.Place{Topic: "payments", Partition: 3, Offset: 17}, Millis: 1750000000000},
		Group:         "billing",
		Failures:      2,
		Delivery:      3,
		First:         ms(1760000001000),
		Last:          ms(1760000031500),
		Due:           ms(1760000331500),
		ID:            "billing/payments/3/1042/2",
		Hops:          2,
		Class:         "*net.OpError",
		Message:       "connection refused",
		Trace:         "main.charge\n\tcharge.go:12",
		Reason:        "retry",
		History: []letter.Past{
			{Topic: "payments", At: ms(1760000001000), Class: "*net.OpError"},
			{Topic: "payments-retry-30s", At: ms(1760000031500), Class: "two words"},
		},
		Replays:      1,
		ReplayedFrom: letter.Place{Topic: "payments-dlq", Partition: 3, Offset: 7},
		Key:          []byte("k"),
		Value:        []byte("v"),
		Headers:      []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "a", Value: nil}, {Key: "", Value: []byte{}}},
	}
}

func TestSpringHeadersAreTheBytesThatSpringReads(t *testing.T) {
	l := sample()
	h := l.AppendHeaders(nil, letter.Abate)
	for name, want := range map[string]string{
		"retry_topic-attempts":              "00000003",
		"retry_topic-backoff-timestamp":     "0199c831ceec",
		"retry_topic-original-timestamp":    "0199c82cc000", // 1760000000000
		"kafka_original-topic":              hex.EncodeToString([]byte("payments")),
		"kafka_original-partition":          "00000003",
		"kafka_original-offset":             "0000000000000412",
		"kafka_original-timestamp":          "00000199c82cc000",
		"kafka_original-timestamp-type":     hex.EncodeToString([]byte("CreateTime")),
		"kafka_dlt-original-consumer-group": hex.EncodeToString([]byte("billing")),
		"kafka_exception-fqcn":              hex.EncodeToString([]byte("*net.OpError")),
		"kafka_exception-cause-fqcn":        hex.EncodeToString([]byte("*net.OpError")),
		"kafka_exception-message":           hex.EncodeToString([]byte("connection refused")),
		"kafka_exception-stacktrace":        hex.EncodeToString([]byte("main.charge\n\tcharge.go:12")),
	} {
		if got := hex.EncodeToString(valueOf(h, name)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for i, v := range h {
		if i >= len(l.Headers) && len(v.Value) == 0 {
			t.Errorf("%s is empty: some releases of Spring throw at that", v.Key)
		}
		if strings.HasPrefix(v.Key, "springDeserializerException") {
			t.Errorf("%s was written", v.Key)
		}
	}
}

func TestOwnHeadersAreTextsAndComeAfterTheOriginals(t *testing.T) {
	l := sample()
	l.Pointer = true
	h := l.AppendHeaders(nil, letter.Abate)
	want := []kgo.RecordHeader{
		{Key: "a", Value: []byte("1")}, {Key: "a"}, {Key: "", Value: []byte{}},
		{Key: "abate-letter", Value: []byte("3")},
		{Key: "abate-id", Value: []byte("billing/payments/3/1042/2")},
		{Key: "abate-failures", Value: []byte("2")},
		{Key: "abate-due", Value: []byte("2025-10-09T08:58:51.500Z")},
		{Key: "abate-first-failure", Value: []byte("2025-10-09T08:53:21.000Z")},
		{Key: "abate-last-failure", Value: []byte("2025-10-09T08:53:51.500Z")},
		{Key: "abate-reason", Value: []byte("retry")},
		{Key: "abate-history",
			Value: []byte("2025-10-09T08:53:21.000Z payments *net.OpError\n2025-10-09T08:53:51.500Z payments-retry-30s two " +
				"words")},
		{Key: "abate-replays", Value: []byte("1")},
		{Key: "abate-replayed-from", Value: []byte("payments-dlq/3/7")},
		{Key: "abate-identity", Value: []byte("payments/3/17@1750000000000")},
		{Key: "abate-pointer", Value: []byte("payments/3/1042")},
	}
	for i, w := range want {
		if got := h[i]; got.Key != w.Key || string(got.Value) != string(w.Value) || (got.Value == nil) != (w.Value == nil) {
			t.Errorf("header %d: %s=%q, want %s=%q", i, got.Key, got.Value, w.Key, w.Value)
		}
	}
	if h[len(want)].Key != "retry_topic-attempts" {
		t.Errorf("after Abate's headers comes %s", h[len(want)].Key)
	}
}

func TestNoHeaderIsWrittenEmpty(t *testing.T) {
	for _, l := range []letter.Letter{{}, {Original: letter.Place{Topic: "t", Partition: -1, Offset: -1}},
		{History: []letter.Past{{}}, Timestamp: ms(-1), Due: ms(0)}} {
		for _, h := range l.AppendHeaders(nil, letter.Abate) {
			if len(h.Value) == 0 {
				t.Errorf("%+v: %s is empty", l, h.Key)
			}
		}
	}
}

func TestTimesAreWrittenAsBigIntegers(t *testing.T) {
	for at, want := range map[int64]string{
		0: "00", 1: "01", 127: "7f", 128: "0080", 255: "00ff", 32768: "008000", 1760000000000: "0199c82cc000",
	} {
		l := letter.Letter{Due: ms(at)}
		if got := hex.EncodeToString(valueOf(l.AppendHeaders(nil, letter.Spring), "retry_topic-backoff-timestamp")); got !=
			want {
			t.Errorf("%d: %s, want %s", at, got, want)
		}
	}
}

func TestSpringDialectHasNoHeadersOfOurs(t *testing.T) {
	l := sample()
	for _, name := range names(l.AppendHeaders(nil, letter.Spring)) {
		if strings.HasPrefix(name, "abate-") {
			t.Errorf("%s was written", name)
		}
	}
}

// The bytes are those of dead letters that a Spring application wrote.
func TestSpringDeadLetterTellsFailuresAndLastTime(t *testing.T) {
	rec := &kgo.Record{Topic: "orders-dlt", Timestamp: ms(0x01A012AB41BF + 40), Headers: []kgo.RecordHeader{
		{Key: "tenant", Value: []byte("x")},
		{Key: "kafka_original-topic", Value: []byte("orders")},
		{Key: "kafka_original-partition", Value: unhex(t, "00000001")},
		{Key: "kafka_original-offset", Value: unhex(t, "000000000000002a")},
		{Key: "kafka_original-timestamp", Value: unhex(t, "000001A009712548")},
		{Key: "kafka_original-timestamp-type", Value: []byte("CreateTime")},
		{Key: "kafka_dlt-original-consumer-group", Value: []byte("svc")},
		{Key: "retry_topic-attempts", Value: unhex(t, "00000002")},
		{Key: "retry_topic-backoff-timestamp", Value: unhex(t, "01A009712549")},
		{Key: "retry_topic-original-timestamp", Value: unhex(t, "01A009712548")},
		{Key: "kafka_original-topic", Value: []byte("orders-retry-30000")}, // a later hop that appends: the first counts
		{Key: "retry_topic-attempts", Value: unhex(t, "00000005")},
		{Key: "retry_topic-backoff-timestamp", Value: unhex(t, "01A012AB41BF")},
		{Key: "kafka_exception-fqcn", Value: []byte("org.springframework.kafka.listener.ListenerExecutionFailedException")},
		{Key: "kafka_exception-cause-fqcn", Value: []byte("java.net.ConnectException")},
		{Key: "kafka_exception-message", Value: []byte("Listener failed; Connection refused")},
		{Key: "kafka_exception-stacktrace", Value: []byte("at Main.java")},
		{Key: "springDeserializerExceptionValue", Value: []byte{0xac, 0xed}},
	}}
	l, problems := letter.Read(rec)
	if problems != nil {
		t.Error(problems)
	}
	if l.Dialect != letter.Spring || l.Failures != 4 || l.Delivery != 5 || !l.Last.Equal(ms(0x01A012AB41BF)) ||
		!l.Timestamp.Equal(ms(0x01A009712548)) {
		t.Errorf("dialect %q, %d failures, delivery %d, last %v, timestamp %v", l.Dialect, l.Failures, l.Delivery, l.Last,
			l.Timestamp)
	}
	if (l.Original != letter.Place{Topic: "orders", Partition: 1, Offset: 42}) || l.Group != "svc" ||
		l.TimestampType != "CreateTime" {
		t.Errorf("original %v, group %q, type %q", l.Original, l.Group, l.TimestampType)
	}
	if l.Class != "java.net.ConnectException" || l.Message != "Listener failed; Connection refused" ||
		l.Trace != "at Main.java" {
		t.Errorf("class %q, message %q, trace %q", l.Class, l.Message, l.Trace)
	}
	if got := names(l.Headers); !slices.Equal(got, []string{"tenant"}) {
		t.Errorf("original headers: %q", got)
	}
}

func TestSpringOutsideRetryTopicsIsRead(t *testing.T) {
	l, problems := letter.Read(&kgo.Record{Headers: []kgo.RecordHeader{
		{Key: "kafka_dlt-original-topic", Value: []byte("orders")},
		{Key: "kafka_dlt-original-partition", Value: unhex(t, "00000001")},
		{Key: "kafka_dlt-original-offset", Value: unhex(t, "000000000000002a")},
		{Key: "kafka_dlt-original-timestamp", Value: unhex(t, "000001A009712548")},
		{Key: "kafka_dlt-original-timestamp-type", Value: []byte("LogAppendTime")},
		{Key: "kafka_dlt-original-consumer-group", Value: []byte("svc")},
		{Key: "kafka_dlt-exception-fqcn", Value: []byte("a.B")},
		{Key: "kafka_dlt-exception-cause-fqcn", Value: []byte("c.D")},
		{Key: "kafka_dlt-exception-message", Value: []byte("m")},
		{Key: "kafka_dlt-exception-stacktrace", Value: []byte("t")},
		{Key: "kafka_correlationId", Value: []byte("7")}, // of the message
	}})
	if problems != nil || l.Dialect != letter.Spring ||
		l.Original != (letter.Place{Topic: "orders", Partition: 1, Offset: 42}) ||
		!l.Timestamp.Equal(ms(0x01A009712548)) || l.TimestampType != "LogAppendTime" || l.Group != "svc" ||
		l.Class != "c.D" || l.Message != "m" || l.Trace != "t" {
		t.Errorf("%+v, %v", l, problems)
	}
	if got := names(l.Headers); !slices.Equal(got, []string{"kafka_correlationId"}) {
		t.Errorf("original headers: %q", got)
	}
}

func TestTextDialectsAreRead(t *testing.T) {
	at := letter.Place{Topic: "orders", Partition: 1, Offset: 42}
	for _, c := range []struct {
		name   string
		prefix string
		fields map[string]string
		want   letter.Letter
	}{
		{"connect", "__connect.errors.", map[string]string{"connector.name": "sink", "task.id": "0",
			"stage": "VALUE_CONVERTER", "class.name": "x.JsonConverter",
			"exception.class.name": "a.B", "exception.message": "m", "exception.stacktrace": "t"},
			letter.Letter{Dialect: letter.Connect, Original: at, Timestamp: ms(1000), Group: "connect-sink", Class: "a.B",
				Message: "m", Trace: "t", Reason: "VALUE_CONVERTER", Delivery: 1}},
		{"streams", "__streams.errors.", map[string]string{"exception": "a.B", "message": "m", "stacktrace": "t"},
			letter.Letter{Dialect: letter.Streams, Original: at, Class: "a.B", Message: "m", Trace: "t", Delivery: 1}},
		{"share", "__dlq.errors.", map[string]string{"group": "g", "delivery.count": "5", "message": "m"},
			letter.Letter{Dialect: letter.Share, Original: at, Group: "g", Message: "m", Failures: 5, Delivery: 6,
				Pointer: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := &kgo.Record{Timestamp: ms(1000), Headers: []kgo.RecordHeader{{Key: "own", Value: []byte("1")},
				{Key: c.prefix + "topic", Value: []byte("orders")}, {Key: c.prefix + "partition", Value: []byte("1")},
				{Key: c.prefix + "offset", Value: []byte("42")}}}
			for name, v := range c.fields {
				rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: c.prefix + name, Value: []byte(v)})
			}
			got, problems := letter.Read(rec)
			c.want.Headers = rec.Headers[:1]
			c.want.Identity = letter.Identity{At: at, Millis: -1}
			if !c.want.Timestamp.IsZero() {
				c.want.Identity.Millis = 1000
			}
			if same(t, got, c.want); problems != nil {
				t.Error(problems)
			}
		})
	}
}
