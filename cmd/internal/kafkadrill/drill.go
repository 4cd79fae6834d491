package kafkadrill

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/embedded"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	startLimit = 30 * time.Second // for topics and groups
	lastWait   = 3 * time.Second  // for what is left when nothing is written any more
	pingLimit  = 5 * time.Second  // for a broker to answer at all
	lookEvery  = 100 * time.Millisecond
	deadline   = 10 * time.Second // for one request of the drill's own to the brokers
)

// Run plays all acts at once and returns what came of them. When ctx is done it stops early: the result says so. It fails if c has problems, if
// there is no port or no broker, or if a topic does not take messages.
func Run(ctx context.Context, c Config) (*Result, error) {
	if problems := c.Problems(); len(problems) > 0 {
		return nil, errors.New(strings.Join(problems, "\n"))
	}
	d := &drill{c: c, name: "orders"}
	if err := d.connect(); err != nil {
		return nil, err
	}
	defer d.close()
	if err := d.prepare(ctx); err != nil {
		if ctx.Err() != nil {
			return &Result{Setup: c.setup(), Interrupted: true}, nil
		}
		return nil, err
	}
	began := time.Now()
	for _, a := range d.acts {
		a.recorder.start(began)
	}
	late, err := d.play(ctx, began)
	r := d.result(ctx.Err() != nil)
	r.LateSeconds = late.Seconds()
	return r, err
}

// drill is one that is being played.
type drill struct {
	c       Config
	name    string // what all topics begin with
	brokers []string
	broker  *embedded.Broker // nil on somebody's own
	client  *kgo.Client
	acts    []*act
}

// connect finds a broker, or starts one.
func (d *drill) connect() (err error) {
	d.brokers = d.c.Brokers
	if len(d.brokers) == 0 {
		if d.broker, err = embedded.Start(embedded.Config{}); err != nil {
			return err
		}
		d.brokers = d.broker.Addresses()
	} else {
		d.name = fmt.Sprintf("abate-drill-%x", time.Now().UnixNano())
	}
	if d.client, err = kgo.NewClient(kgo.SeedBrokers(d.brokers...), kgo.ProducerLinger(0), kgo.MetadataMinAge(lookEvery)); err != nil {
		d.close()
		return fmt.Errorf("brokers %s: %w", strings.Join(d.brokers, ", "), err)
	}
	return nil
}

// prepare makes topics, services and consumers, and waits until all partitions are theirs.
func (d *drill) prepare(ctx context.Context) error {
	ctx, done := context.WithTimeout(ctx, startLimit)
	defer done()
	if err := d.ping(ctx); err != nil {
		return err
	}
	admin := kadm.NewClient(d.client)
	acts := []string{Unguarded, Guarded}
	for _, name := range acts {
		topic := d.name + "-" + name
		if _, err := admin.CreateTopic(ctx, int32(d.c.Partitions), -1, nil, topic); err != nil {
			return fmt.Errorf("topic %s cannot be made on %s: %w", topic, strings.Join(d.brokers, ", "), err)
		}
	}
	for _, name := range acts {
		topic := d.name + "-" + name
		if err := d.visible(ctx, admin, topic); err != nil {
			return err
		}
		a, err := newAct(d.c, name, topic, d.brokers)
		if err != nil {
			return err
		}
		d.acts = append(d.acts, a)
		a.run(context.WithoutCancel(ctx))
	}
	for _, a := range d.acts {
		if err := a.ready(ctx, d.c.Partitions); err != nil {
			return err
		}
	}
	return nil
}

// ping asks whether there is a broker, so that a wrong address is told soon.
func (d *drill) ping(ctx context.Context) error {
	ctx, done := context.WithTimeout(ctx, pingLimit)
	defer done()
	if err := d.client.Ping(ctx); err != nil {
		return fmt.Errorf("no broker answers at %s: %w; check the addresses, or leave them out to play on a fake broker", strings.Join(d.brokers, ", "), err)
	}
	return nil
}

// visible waits until the brokers tell of a topic that was made: those of a cluster learn of it one after the other.
func (d *drill) visible(ctx context.Context, admin *kadm.Client, topic string) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		topics, err := admin.ListTopics(ctx, topic)
		if err == nil && len(topics[topic].Partitions) == d.c.Partitions && topics[topic].Err == nil {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("topic %s was made, and no broker knows of it: %w", topic, ctx.Err())
		}
	}
}

// play lets time pass: messages are written, the services fail and work again. It tells how far it fell behind.
func (d *drill) play(ctx context.Context, began time.Time) (late time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := d.c.Before + d.c.Outage + d.c.After
	for at, fails := range map[time.Duration]bool{d.c.Before: true, d.c.Before + d.c.Outage: false} {
		timer := time.AfterFunc(time.Until(began.Add(at)), func() {
			for _, a := range d.acts {
				a.inventory.failing.Store(fails)
			}
		})
		defer timer.Stop()
	}
	w := &writer{client: d.client, acts: d.acts, rate: d.c.Rate, random: rand.New(rand.NewPCG(d.c.Seed, 0)), failed: make(chan error, 1)}
	written := make(chan struct{})
	go func() { defer close(written); w.write(ctx, began, all) }()
	defer func() { cancel(); <-written; late = w.late }()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-second.C:
			d.progress(time.Since(began))
			if time.Since(began) > all && (d.acts[len(d.acts)-1].recorder.left() <= 0 || time.Since(began) > all+lastWait) {
				return 0, nil
			}
		case err := <-w.failed:
			if errors.Is(err, context.Canceled) {
				return 0, nil
			}
			return 0, err
		case <-ctx.Done():
			return 0, nil
		}
	}
}

// progress tells how it goes.
func (d *drill) progress(elapsed time.Duration) {
	if d.c.Progress == nil {
		return
	}
	p := Progress{Elapsed: elapsed, Outage: elapsed >= d.c.Before && elapsed < d.c.Before+d.c.Outage}
	for _, a := range d.acts {
		b := a.recorder.lastSecond()
		p.Acts = append(p.Acts, ActProgress{Name: a.name, Attempts: b.attempts, Handled: b.handled, Dead: b.dead, Left: a.recorder.left()})
	}
	d.c.Progress(p)
}

// close ends everything, and takes the topics away that were made on somebody's own brokers.
func (d *drill) close() {
	for _, a := range d.acts {
		if a.stop != nil {
			a.stop() // all at once, then one by one
		}
	}
	for _, a := range d.acts {
		_ = a.close()
	}
	if d.client != nil && d.broker == nil {
		d.tidyUp()
	}
	if d.client != nil {
		d.client.Close()
	}
	if d.broker != nil {
		d.broker.Close()
	}
}

// tidyUp deletes the topics and groups that begin with the drill's own name. What cannot be deleted stays: the drill is over.
func (d *drill) tidyUp() {
	client, err := kgo.NewClient(kgo.SeedBrokers(d.brokers...)) // a new one, which has no old list of topics
	if err != nil {
		return
	}
	defer client.Close()
	ctx, done := context.WithTimeout(context.Background(), deadline)
	defer done()
	admin := kadm.NewClient(client)
	mine := func(names []string) []string {
		return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, d.name+"-") })
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
