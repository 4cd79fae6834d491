package abatekafka

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

// clients makes the Kafka clients of a consumer.
type clients struct {
	brokers        []string
	more           []kgo.Opt // of the user
	instance       string
	sessionTimeout time.Duration
	log            *slog.Logger
	batch          int32 // the largest record that all topics take which are forwarded to; 0 if nobody knows
}

// connect makes a client with these options, those of the user, which win over them, and those that win over the
// user's.
func (c *clients) connect(opts []kgo.Opt, over ...kgo.Opt) (*kgo.Client, error) {
	all := []kgo.Opt{kgo.SeedBrokers(c.brokers...), kgo.ClientID("abate"), kgo.WithLogger(clientLog{c.log})}
	client, err := kgo.NewClient(slices.Concat(all, opts, c.more, over)...)
	if err != nil {
		return nil, fmt.Errorf("abatekafka: the options of the client do not fit: %w", err)
	}
	return client, nil
}

// linger is how long a forward waits for others to go with: when many messages fail, a request for each would cost the
// broker more than the messages.
const linger = 10 * time.Millisecond

// produce makes a client that forwards: idempotent and acknowledged by all, which are kgo's defaults, and never without
// an answer.
func (c *clients) produce(over ...kgo.Opt) (*kgo.Client, error) {
	opts := []kgo.Opt{kgo.RecordDeliveryTimeout(30 * time.Second), kgo.ProducerLinger(linger),
		kgo.RecordPartitioner(samePartition{})}
	if c.batch > 0 {
		opts = append(opts, kgo.ProducerBatchMaxBytes(c.batch))
	}
	return c.connect(opts, over...)
}

// join makes a member of a group. It joins on its own, but brings nothing before it is polled.
func (c *clients) join(group string, topics []string, order redelivery.Order, opts ...kgo.Opt) (*kgo.Client, error) {
	opts = append(opts,
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topics...),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // a commit marker at the end of a partition is no lag
	)
	if order == redelivery.ParkKey {
		opts = append(opts, kgo.Balancers(kgo.RangeBalancer()))
	} else {
		opts = append(opts, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	}
	if c.instance != "" {
		opts = append(opts, kgo.InstanceID(c.instance))
	}
	if c.sessionTimeout > 0 {
		opts = append(opts, kgo.SessionTimeout(c.sessionTimeout),
			kgo.HeartbeatInterval(min(3*time.Second, c.sessionTimeout/3)))
	}
	client, err := c.connect(opts)
	if err != nil {
		return nil, fmt.Errorf("%w (group %s)", err, group)
	}
	return client, nil
}
