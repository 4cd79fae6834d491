package brokertest_test

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// producePoison writes a batch of n records into partition 0 that says it is compressed and is not. Only the fake takes
// such a batch.
func (b broker) producePoison(t *testing.T, topic string, n int32) {
	t.Helper()
	batch := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1,
		Magic:                2,
		Attributes:           1,
		LastOffsetDelta:      n - 1,
		ProducerID:           -1,
		ProducerEpoch:        -1,
		FirstSequence:        -1,
		NumRecords:           n,
		Records:              []byte("this is no gzip"),
	}
	raw := batch.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	client := b.client(t)
	topics, err := kadm.NewClient(client).ListTopics(context.Background(), topic)
	if err != nil {
		t.Fatal(err)
	}
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 5000
	one := kmsg.NewProduceRequestTopic()
	one.Topic, one.TopicID = topic, topics[topic].ID
	part := kmsg.NewProduceRequestTopicPartition()
	part.Records = raw
	one.Partitions = append(one.Partitions, part)
	req.Topics = append(req.Topics, one)
	resp, err := client.Broker(int(topics[topic].Partitions[0].Leader)).Request(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := kerr.ErrorForCode(resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode); err != nil {
		t.Fatal(err)
	}
}

func TestBatchThatCannotBeDecodedIsSteppedOverIfThePolicySaysSo(t *testing.T) {
	b := newFake(t, false)
	topic := b.topic(t, 1)
	b.produce(t, topic, spread(5, 1)...)
	b.producePoison(t, topic, 3)
	policy := shortTiers()
	policy.PoisonBatch = redelivery.PoisonDeadLetter
	var got seen
	var events journal
	c := &abatekafka.Consumer{
		Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t),
		Redelivery: policy.Always(), Observer: &events,
		Handler: func(_ context.Context, m *abatekafka.Message) error { got.note(string(m.Value)); return nil },
	}
	runConsumer(t, c)
	dead, problems := letter.Read(b.consume(t, topic+"-dlq", 1)[0])
	if len(problems) > 0 || dead.Reason != "poison-batch" || dead.Original != (letter.Place{Topic: topic, Offset: 5}) {
		t.Errorf("the letter says %+v, %v", dead, problems)
	}
	caughtUp(t, b, topic, topic) // also behind the batch, with nothing after it
	b.produce(t, topic, &kgo.Record{Value: []byte("after")})
	eventually(t, "what comes behind it", func() bool { return got.count("after") == 1 })
	if n := len(got.list()); n != 6 {
		t.Errorf("%d deliveries, want 6", n)
	}
	if n := events.count(redelivery.DeadLettered, "poison-batch"); n != 1 {
		t.Errorf("%d events", n)
	}
}

func TestBatchThatCannotBeDecodedStopsItsPartitionOnly(t *testing.T) {
	b := newFake(t, false)
	topic := b.topic(t, 2)
	b.produce(t, topic, spread(10, 2)...)
	b.producePoison(t, topic, 3)
	b.produce(t, topic, spread(10, 2)...)
	var got seen
	var events journal
	c := &abatekafka.Consumer{
		Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t),
		Redelivery: shortTiers().Always(), Observer: &events,
		Handler: func(_ context.Context, m *abatekafka.Message) error { got.note(m.ID()); return nil },
	}
	stop := runConsumer(t, c)
	eventually(t, "somebody to be told", func() bool { return events.count(redelivery.Paused, "poison-batch") >= 1 })
	eventually(t, "everything else", func() bool { return got.distinct() == 15 })
	eventually(t, "the state to say so", func() bool { return c.State().Partitions[0].Paused == "poison-batch" })
	stop()
	offsets, err := b.admin(t).FetchOffsets(context.Background(), topic)
	if err != nil {
		t.Fatal(err)
	}
	if o, _ := offsets.Lookup(topic, 0); o.At != 5 {
		t.Errorf("offset %d is committed, want 5", o.At)
	}
}
