package letter_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
)

// A message that was replayed may fail again in a chain that is not Abate's.
func TestReplayedMessageIsReadInTheDialectInWhichItFailsAgain(t *testing.T) {
	for _, test := range []struct {
		dialect letter.Dialect
		prefix  string
		class   string
	}{
		{letter.Connect, "__connect.errors.", "__connect.errors.exception.class.name"},
		{letter.Streams, "__streams.errors.", "__streams.errors.exception"},
		{letter.Spring, "kafka_dlt-original-", "kafka_dlt-exception-fqcn"},
	} {
		headers := []kgo.RecordHeader{{Key: "user", Value: []byte("data")}, {Key: "abate-replays", Value: []byte("2")}, {Key: "abate-replayed-from", Value: []byte("pay-dlq/0/7")},
			{Key: test.prefix + "topic", Value: []byte("pay")}, {Key: test.class, Value: []byte("Again")}}
		l, problems := letter.Read(&kgo.Record{Topic: "pay-dlq", Headers: headers})
		if l.Dialect != test.dialect || l.Original.Topic != "pay" || l.Class != "Again" || l.Replays != 2 || l.ReplayedFrom.Offset != 7 || len(l.Headers) != 1 || len(problems) > 0 {
			t.Errorf("%s: %+v %v", test.dialect, l, problems)
		}
	}
}
