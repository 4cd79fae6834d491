package brokertest_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestBrokerKeepsWhatItAcknowledgedWhenItIsKilled(t *testing.T) {
	eachBrokerOfItsOwn(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 2)
		for i := range 10 {
			b.produce(t, topic, &kgo.Record{Partition: int32(i % 2), Key: fmt.Append(nil, i), Value: []byte("before"),
				Headers: []kgo.RecordHeader{{Key: "empty", Value: []byte{}}, {Key: "nil"}, {Key: "nil", Value: []byte("again")}}})
		}
		b.kill(t)
		b.restart(t)
		b.produce(t, topic, &kgo.Record{Value: []byte("after")})
		seen := make(map[string]bool)
		for _, r := range b.everything(t, topic) {
			seen[string(r.Key)+string(r.Value)] = true
			if string(r.Value) == "before" && (len(r.Headers) != 3 || r.Headers[0].Value == nil || r.Headers[1].Value != nil) {
				t.Errorf("headers of %s: %v", r.Key, r.Headers)
			}
		}
		if len(seen) != 11 || !seen["after"] || !seen["9before"] {
			t.Errorf("read %v, want ten from before and one from after", seen)
		}
	})
}
