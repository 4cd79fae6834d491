package kafka_test

import (
	"encoding/hex"
	"testing"

	"github.com/abate-go/abate/internal/needs/kafka"
)

// answers of a broker: correlation 7, throttle 0, brokers of node 1 at 127.0.0.1:9092 without a rack, cluster "abc",
// the controller and no topics.
var answers = map[string]struct {
	bytes   string
	cluster string
	brokers int
	fails   bool
}{
	"one broker": {"00000007" + "00000000" + "00000001" + "00000001" + "00093132372e302e302e31" + "00002384" + "ffff" +
		"0003616263" + "00000001" + "00000000", "abc", 1, false},
	"none yet":         {"00000007" + "00000000" + "00000000" + "0003616263" + "ffffffff" + "00000000", "abc", 0, false},
	"no cluster":       {"00000007" + "00000000" + "00000000" + "ffff", "", 0, false},
	"cut":              {"00000007" + "00000000" + "00000001" + "00000001" + "0009313237", "", 1, true},
	"of another":       {"00000008" + "00000000" + "00000000" + "0003616263", "", 0, true},
	"too many to read": {"00000007" + "00000000" + "7fffffff", "", 1<<31 - 1, true},
	"nothing":          {"", "", 0, true},
}

func TestAnswerOfABrokerIsRead(t *testing.T) {
	for name, want := range answers {
		b, err := hex.DecodeString(want.bytes)
		if err != nil {
			t.Fatal(err)
		}
		cluster, brokers, err := kafka.Metadata(b)
		if cluster != want.cluster || brokers != want.brokers || (err != nil) != want.fails {
			t.Errorf("%s: cluster %q, %d brokers, error %v; want %+v", name, cluster, brokers, err, want)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	for _, a := range answers {
		b, _ := hex.DecodeString(a.bytes)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		cluster, _, err := kafka.Metadata(answer)
		if err == nil && len(cluster)+14 > len(answer) {
			t.Errorf("read a cluster %q from %d bytes", cluster, len(answer))
		}
	})
}
