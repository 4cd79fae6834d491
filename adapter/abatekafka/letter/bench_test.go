package letter_test

import (
	"testing"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/twmb/franz-go/pkg/kgo"
)

func BenchmarkRead(b *testing.B) {
	l := sample()
	r := record(&l, letter.Abate)
	b.ReportAllocs()
	for b.Loop() {
		letter.Read(r)
	}
}

func BenchmarkAppendHeaders(b *testing.B) {
	l := sample()
	h := make([]kgo.RecordHeader, 0, 40)
	b.ReportAllocs()
	for b.Loop() {
		l.AppendHeaders(h, letter.Abate)
	}
}

// A record of a main topic is only looked over.
func BenchmarkMarked(b *testing.B) {
	h := []kgo.RecordHeader{{Key: "traceparent"}, {Key: "event-id"}, {Key: "content-type"}, {Key: "kafka_correlationId"}}
	b.ReportAllocs()
	for b.Loop() {
		letter.Marked(h)
	}
}
