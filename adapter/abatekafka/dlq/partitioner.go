package dlq

import "github.com/twmb/franz-go/pkg/kgo"

// partitioner puts a record into the partition that it names, if there is one, else where Kafka's own hash of its key
// says.
type partitioner struct{}

// ForTopic implements kgo.Partitioner.
func (partitioner) ForTopic(topic string) kgo.TopicPartitioner {
	return topicPartitioner{kgo.StickyKeyPartitioner(nil).ForTopic(topic)}
}

type topicPartitioner struct{ byKey kgo.TopicPartitioner }

// RequiresConsistency implements kgo.TopicPartitioner: a record waits for its partition rather than go elsewhere.
func (t topicPartitioner) RequiresConsistency(r *kgo.Record) bool {
	return r.Partition >= 0 || t.byKey.RequiresConsistency(r)
}

// Partition implements kgo.TopicPartitioner.
func (t topicPartitioner) Partition(r *kgo.Record, n int) int {
	if r.Partition >= 0 && int(r.Partition) < n {
		return int(r.Partition)
	}
	return t.byKey.Partition(r, n)
}
