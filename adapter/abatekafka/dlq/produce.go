package dlq

import (
	"context"
	"fmt"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/twmb/franz-go/pkg/kgo"
)

// weight is about what a record takes on the wire.
func weight(r *kgo.Record) int {
	n := len(r.Key) + len(r.Value) + 64
	for i := range r.Headers {
		n += len(r.Headers[i].Key) + len(r.Headers[i].Value) + 10
	}
	return n
}

func placeOf(r *kgo.Record) string {
	return letter.Place{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}.String()
}

// alone sends one record that may be larger than usual batches: what the topic takes decides.
func (d *Desk) alone(ctx context.Context, r *kgo.Record) kgo.ProduceResult {
	client, err := kgo.NewClient(d.config.options(
		kgo.RecordPartitioner(partitioner{}), kgo.RecordDeliveryTimeout(30*time.Second), kgo.ProducerLinger(0),
		kgo.ProducerBatchMaxBytes(1<<30), kgo.BrokerMaxWriteBytes(1<<30),
	)...)
	if err != nil {
		return kgo.ProduceResult{Record: r, Err: fmt.Errorf("connect: %w", err)}
	}
	defer client.Close()
	return client.ProduceSync(ctx, r)[0]
}
