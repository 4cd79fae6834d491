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
		headers := []kgo.RecordHeader{{Key: "user", Value: []byte("data")}, {Key: "abate-replays", Value: []byte("2")},
			{Key: "abate-replayed-from", Value: []byte("pay-dlq/0/7")},
			{Key: test.prefix + "topic", Value: []byte("pay")}, {Key: test.class, Value: []byte("Again")}}
		l, problems := letter.Read(&kgo.Record{Topic: "pay-dlq", Headers: headers})
		if l.Dialect != test.dialect || l.Original.Topic != "pay" || l.Class != "Again" || l.Replays != 2 ||
			l.ReplayedFrom.Offset != 7 || len(l.Headers) != 1 || len(problems) > 0 {
			t.Errorf("%s: %+v %v", test.dialect, l, problems)
		}
	}
}

// Headers that a program copied from a replayed message onto messages of another topic say nothing about those: two
// dead letters of them are two.
func TestHeadersOfAReplayElsewhereSayNothing(t *testing.T) {
	for _, test := range []struct {
		what, topic, replayedTo string
		replays                 int
		identity                letter.Identity
	}{
		{"to its own topic", "pay", "", 2, letter.Identity{
			At: letter.Place{Topic: "pay", Partition: 0, Offset: 7}, Millis: 5,
		}},
		{"to this topic", "bookings", "bookings", 2, letter.Identity{
			At: letter.Place{Topic: "pay", Partition: 0, Offset: 7}, Millis: 5,
		}},
		{"to another topic", "bookings", "", 0, letter.Identity{
			At: letter.Place{Topic: "bookings", Partition: 1, Offset: 9}, Millis: -1,
		}},
		{"to a third topic", "bookings", "refunds", 0, letter.Identity{
			At: letter.Place{Topic: "bookings", Partition: 1, Offset: 9}, Millis: -1,
		}},
	} {
		headers := []kgo.RecordHeader{{Key: "abate-replays", Value: []byte("2")},
			{Key: "abate-identity", Value: []byte("pay/0/7@5")}, {Key: "abate-replayed-from", Value: []byte("pay-dlq/0/7")},
			{Key: "abate-replayed-to", Value: []byte(test.replayedTo)},
			{Key: "__streams.errors.topic", Value: []byte(test.topic)}, {Key: "__streams.errors.partition", Value: []byte("1")},
			{Key: "__streams.errors.offset", Value: []byte("9")}}
		l, _ := letter.Read(&kgo.Record{Topic: test.topic + "-dlq", Headers: headers})
		if l.Identity != test.identity || l.Replays != test.replays || len(l.Headers) != 0 {
			t.Errorf("%s: %+v", test.what, l)
		}
	}
}
