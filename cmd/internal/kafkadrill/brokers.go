package kafkadrill

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate/adapter/abatekafka/embedded"
)

const (
	pingLimit = 5 * time.Second  // for a broker to answer at all
	deadline  = 10 * time.Second // for one request of the drill's own to the brokers
)

// brokers are those that both acts run on.
type brokers struct {
	addresses []string
	prefix    string           // what the names of all topics begin with
	fake      *embedded.Broker // nil on somebody's own
	client    *kgo.Client
}

// connect finds the brokers, or starts a fake one. The result has to be closed unless it is nil, error or not.
func connect(ctx context.Context, addresses []string) (b *brokers, err error) {
	b = &brokers{addresses: addresses, prefix: "orders"}
	if len(addresses) == 0 {
		if b.fake, err = embedded.Start(embedded.Config{}); err != nil {
			return nil, err
		}
		b.addresses = b.fake.Addresses()
	} else {
		b.prefix = fmt.Sprintf("abate-drill-%x", time.Now().UnixNano())
	}
	if b.client, err = kgo.NewClient(kgo.SeedBrokers(b.addresses...), kgo.ProducerLinger(0),
		kgo.MetadataMinAge(lookEvery)); err != nil {
		return b, fmt.Errorf("brokers %s: %w", b, err)
	}
	ctx, done := context.WithTimeout(ctx, pingLimit) // so that a wrong address is reported soon
	defer done()
	if err := b.client.Ping(ctx); err != nil {
		return b, fmt.Errorf("no broker answers at %s: %w; check the addresses, or leave them out to run on a fake broker",
			b, err)
	}
	return b, nil
}

func (b *brokers) String() string { return strings.Join(b.addresses, ", ") }

// makeTopic makes a topic, and waits until the brokers know of it: those of a cluster learn of it one after the other.
func (b *brokers) makeTopic(ctx context.Context, topic string, partitions int) error {
	admin := kadm.NewClient(b.client)
	if _, err := admin.CreateTopic(ctx, int32(partitions), -1, nil, topic); err != nil {
		return fmt.Errorf("topic %s cannot be made on %s: %w", topic, b, err)
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		topics, err := admin.ListTopics(ctx, topic)
		if err == nil && len(topics[topic].Partitions) == partitions && topics[topic].Err == nil {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("topic %s was made, and no broker knows of it: %w", topic, ctx.Err())
		}
	}
}

// write begins to write the n-th message to a topic; done is told what became of it.
func (b *brokers) write(ctx context.Context, topic string, n int, done func(*kgo.Record, error)) {
	key := fmt.Sprintf("order-%d", n)
	b.client.Produce(ctx, &kgo.Record{Topic: topic, Key: []byte(key), Value: []byte(`{"order":"` + key + `"}`)}, done)
}

// close ends the client and the fake broker, and takes the topics away that were made on somebody's own.
func (b *brokers) close() {
	if b.client != nil {
		if b.fake == nil {
			b.tidyUp()
		}
		b.client.Close()
	}
	if b.fake != nil {
		b.fake.Close()
	}
}

// tidyUp deletes the topics and groups that begin with the drill's own name. What cannot be deleted stays: the drill is
// over.
func (b *brokers) tidyUp() {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addresses...)) // a new one, which has no old list of topics
	if err != nil {
		return
	}
	defer client.Close()
	ctx, done := context.WithTimeout(context.Background(), deadline)
	defer done()
	admin := kadm.NewClient(client)
	mine := func(names []string) []string {
		return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, b.prefix+"-") })
	}
	if topics, err := admin.ListTopics(ctx); err == nil {
		if names := mine(topics.Names()); len(names) > 0 {
			_, _ = admin.DeleteTopics(ctx, names...)
		}
	}
	if groups, err := admin.ListGroups(ctx); err == nil {
		if names := mine(groups.Groups()); len(names) > 0 {
			_, _ = admin.DeleteGroups(ctx, names...)
		}
	}
}
