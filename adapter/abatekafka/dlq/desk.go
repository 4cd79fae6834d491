package dlq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Desk is one dead-letter topic, opened. It is safe for concurrent use.
type Desk struct {
	config     Config
	client     *kgo.Client // produces and asks; reading has clients of its own
	admin      *kadm.Client
	retention  time.Duration
	maxMessage int64
	ledger     *ledger
	audit      *audit
}

// Open connects, checks that the topic is there and reads the audit. It gives up after 20 s without a broker, or with
// ctx.
func Open(ctx context.Context, c Config) (*Desk, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(c.options(
		kgo.RecordPartitioner(partitioner{}), kgo.RecordDeliveryTimeout(30*time.Second), kgo.ProducerLinger(0),
		kgo.MetadataMinAge(50*time.Millisecond),
	)...)
	if err != nil {
		return nil, fmt.Errorf("dlq: connect to %s: %w", strings.Join(c.Brokers, ", "), err)
	}
	d := &Desk{config: c, client: client, admin: kadm.NewClient(client), ledger: newLedger(c.Topic)}
	d.audit = &audit{desk: d}
	limited, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := d.look(limited); err != nil {
		d.Close()
		return nil, err
	}
	if err := d.audit.sync(ctx); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// look checks the topic and learns its retention.
func (d *Desk) look(ctx context.Context) error {
	topics, err := d.admin.ListTopics(ctx, d.config.Topic)
	if err != nil {
		return fmt.Errorf("dlq: connect to %s: %w: are these addresses right, and do TLS and SASL fit?",
			strings.Join(d.config.Brokers, ", "), err)
	}
	switch t := topics[d.config.Topic]; {
	case errors.Is(t.Err, kerr.UnknownTopicOrPartition) || !topics.Has(d.config.Topic):
		return fmt.Errorf("dlq: there is no topic %s on %s: a consumer creates it when it starts; for the topics there are, "+
			"look at \"abate dlq ls\" without --topic",
			d.config.Topic, strings.Join(d.config.Brokers, ", "))
	case t.Err != nil:
		return fmt.Errorf("dlq: topic %s: %w", d.config.Topic, t.Err)
	}
	d.identify(topics)
	configs, err := d.admin.DescribeTopicConfigs(ctx, d.config.Topic)
	if err != nil {
		return nil // the countdown is not shown; nothing else needs it
	}
	for _, c := range configs {
		if ms := setting(c.Configs, "retention.ms"); ms > 0 && ms < int64(time.Duration(1<<63-1)/time.Millisecond) {
			d.retention = time.Duration(ms) * time.Millisecond
		}
		d.maxMessage = setting(c.Configs, "max.message.bytes")
	}
	return nil
}

func (d *Desk) identify(topics kadm.TopicDetails) {
	if id := topicID(topics[d.config.Topic]); id != "" {
		d.ledger.called(id)
	}
}

// setting is a number in a topic's configuration, 0 if it is not there.
func setting(configs []kadm.Config, key string) int64 {
	n, _ := strconv.ParseInt(textSetting(configs, key), 10, 64)
	return n
}

func textSetting(configs []kadm.Config, key string) string {
	for _, c := range configs {
		if c.Key == key {
			return c.MaybeValue()
		}
	}
	return ""
}

// Close ends it. Calls that are under way fail.
func (d *Desk) Close() {
	d.audit.close()
	d.client.Close()
}

// Topic is the dead-letter topic.
func (d *Desk) Topic() string { return d.config.Topic }

// Audit is the audit topic. It exists once somebody has acted.
func (d *Desk) Audit() string { return d.config.Audit }

// By is who acts, as the audit will say.
func (d *Desk) By() string { return d.config.By }

// Retention is how long the topic keeps dead letters. 0: for ever, or the broker does not tell.
func (d *Desk) Retention() time.Duration { return d.retention }

func (d *Desk) entry(r *kgo.Record) *Entry {
	e := &Entry{At: letter.Place{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}, Written: r.Timestamp,
		Record: r}
	e.Letter, e.Problems = letter.Read(r)
	e.Group = groupID(&e.Letter)
	e.twin = twinOf(&e.Letter)
	e.dated(d.retention, time.Now())
	d.ledger.tell(e)
	return e
}

// unknownTopic reports errors that only say that a topic does not exist.
func unknownTopic(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID)
}

// TopicInfo is a topic and how many records it has, transactions' own included.
type TopicInfo struct {
	Name    string `json:"name"`
	Records int64  `json:"records"`
}

// isDead reports by its name that a topic is for dead letters.
func isDead(name string) bool {
	return slices.ContainsFunc([]string{"-dlq", "-dlt", ".DLT"}, func(s string) bool { return strings.HasSuffix(name, s) })
}

// Topics lists the topics that look like dead-letter topics: their names end with -dlq, -dlt or .DLT. c needs only
// Brokers and Options.
func Topics(ctx context.Context, c Config) ([]TopicInfo, error) {
	client, err := kgo.NewClient(c.options()...)
	if err != nil {
		return nil, fmt.Errorf("dlq: connect to %s: %w", strings.Join(c.Brokers, ", "), err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	d := &Desk{config: c, client: client, admin: kadm.NewClient(client)}
	topics, err := d.admin.ListTopics(ctx)
	if err != nil {
		return nil, fmt.Errorf("dlq: connect to %s: %w: are these addresses right, and do TLS and SASL fit?",
			strings.Join(c.Brokers, ", "), err)
	}
	var found []TopicInfo
	for _, name := range topics.Names() {
		if !isDead(name) {
			continue
		}
		spans, err := d.bounds(ctx, name)
		if err != nil {
			return nil, err
		}
		info := TopicInfo{Name: name}
		for _, s := range spans {
			info.Records += max(s.to-s.from, 0)
		}
		found = append(found, info)
	}
	return found, nil
}
