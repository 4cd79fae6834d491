package abatekafka

import "github.com/twmb/franz-go/pkg/kgo"

// samePartition keeps a record in the partition with the number of its source, if the topic has that many, and goes by
// its key if not.
type samePartition struct{}

func (samePartition) ForTopic(topic string) kgo.TopicPartitioner {
	return &sameTopicPartition{kgo.StickyKeyPartitioner(nil).ForTopic(topic)}
}

type sameTopicPartition struct{ byKey kgo.TopicPartitioner }

func (p *sameTopicPartition) RequiresConsistency(*kgo.Record) bool { return true }

func (p *sameTopicPartition) Partition(r *kgo.Record, n int) int {
	if r.Partition >= 0 && int(r.Partition) < n {
		return int(r.Partition)
	}
	return p.byKey.Partition(r, n)
}
