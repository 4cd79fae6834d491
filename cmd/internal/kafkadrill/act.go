package kafkadrill

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/internal/drill"
	"github.com/abate-go/abate/policyfile"
)

// act is one consumer with a service and topics of its own.
type act struct {
	config      Config
	brokers     *brokers
	name, topic string
	policy      policyfile.Policy
	guard       *abate.Guard
	inventory   *inventory
	recorder    *recorder
	consumer    *abatekafka.Consumer
	client      *http.Client
	stop        context.CancelFunc
	ended       chan error // what Run of the consumer returned
	since       func() time.Duration
	late        time.Duration // the most that the load was behind its schedule
	result      *ActResult    // nil until it is drained
}

func newAct(c Config, b *brokers, name string) *act {
	return &act{config: c, brokers: b, name: name, topic: b.prefix + "-" + name, ended: make(chan error, 1)}
}

// SetUp starts the service, makes the topic and waits until the consumer owns all partitions.
func (a *act) SetUp(ctx context.Context, since func() time.Duration) error {
	ctx, done := context.WithTimeout(ctx, startLimit)
	defer done()
	if err := a.brokers.makeTopic(ctx, a.topic, a.config.Partitions); err != nil {
		return err
	}
	a.since, a.recorder = since, newRecorder(since)
	var err error
	if a.policy, err = policyOf(a.name); err != nil {
		return err
	}
	if a.guard, err = abate.New(service, a.policy.Policy); err != nil {
		return err
	}
	if a.inventory, err = newInventory(a.config, a.recorder.attempt); err != nil {
		return err
	}
	const many = 1000
	a.client = &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: many, IdleConnTimeout: 30 * time.Second, DisableCompression: true,
	}}
	a.consumer = &abatekafka.Consumer{
		Brokers: a.brokers.addresses, Group: a.topic, Topics: []string{a.topic}, Guard: a.guard, Handler: a.handle,
		Redelivery: a.policy.Kafka.Always(),
		Observer:   a.recorder, OnDeadLetter: a.deadLetter, Logger: slog.New(slog.DiscardHandler),
	}
	// it goes on when the drill is interrupted, until TearDown
	consuming, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.stop = stop
	go func() { a.ended <- a.consumer.Run(consuming) }()
	return a.ready(ctx)
}

// Events are the outage of the service.
func (a *act) Events() []drill.Event {
	outage := func(fails bool) func() error {
		return func() error { a.inventory.failing.Store(fails); return nil }
	}
	begin := a.config.Before
	return []drill.Event{{At: begin, Do: outage(true)}, {At: begin + a.config.Outage, Do: outage(false)}}
}

// Load writes messages to the topic, in all acts the same at the same moments.
func (a *act) Load(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	random, due := rand.New(rand.NewPCG(a.config.Seed, 0)), time.Duration(0)
	next := func() time.Duration {
		due += time.Duration(random.ExpFloat64() / a.config.Rate * float64(time.Second))
		return due
	}
	drill.Send(ctx, a.since, next, a.config.length(), func(n int, due time.Duration) {
		a.late = max(a.late, a.since()-due)
		a.brokers.write(ctx, a.topic, n, func(r *kgo.Record, err error) {
			if err != nil {
				fail(fmt.Errorf("topic %s did not take a message: %w", a.topic, err))
				return
			}
			a.recorder.wrote(identity(r.Topic, r.Partition, r.Offset))
		})
	})
	_ = a.brokers.client.Flush(ctx) // ctx is done, or all messages are written
	return context.Cause(ctx)
}

// Drain waits until every message is handled or a dead letter.
func (a *act) Drain(ctx context.Context) {
	for a.recorder.left() > 0 && drill.Sleep(lookEvery, ctx.Done()) {
	}
	a.result = a.recorder.result(a.config, a.name)
	a.result.late = a.late.Seconds()
}

// TearDown ends the consumer, once it has finished what is in flight, and then the service.
func (a *act) TearDown() {
	if a.stop != nil {
		a.stop()
		<-a.ended
	}
	if a.client != nil {
		a.client.CloseIdleConnections()
	}
	if a.inventory != nil {
		a.inventory.close()
	}
}

// handle is the handler: a message is handled when the service has said so.
func (a *act) handle(ctx context.Context, m *abatekafka.Message) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.inventory.url, nil)
	if err != nil {
		return err
	}
	answer, err := a.client.Do(request)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s answered %s", service, answer.Status)
	}
	first := m.Identity().At
	a.recorder.ok(identity(first.Topic, first.Partition, first.Offset))
	return nil
}

func (a *act) deadLetter(_ context.Context, l letter.Letter) {
	a.recorder.buried(identity(l.Original.Topic, l.Original.Partition, l.Original.Offset))
}

// ready waits until the consumer owns every partition of its topics.
func (a *act) ready(ctx context.Context) error {
	want := a.config.Partitions * (1 + len(delays(&a.policy)))
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		has := len(a.consumer.State().Partitions)
		if has >= want {
			return nil
		}
		select {
		case <-look.C:
		case err := <-a.ended:
			a.ended <- nil // for TearDown
			return fmt.Errorf("the consumer of the %s act ended: %w", a.name, cmp.Or(err, ctx.Err()))
		case <-ctx.Done():
			return fmt.Errorf("the consumer of the %s act has %d of %d partitions: %w", a.name, has, want, ctx.Err())
		}
	}
}

// identity is what abatekafka.Message.ID says of the same message.
func identity(topic string, partition int32, offset int64) string {
	return fmt.Sprintf("%s/%d/%d", topic, partition, offset)
}
