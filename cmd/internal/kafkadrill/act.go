package kafkadrill

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
)

// act is one consumer with a service and topics of its own.
type act struct {
	name, topic string
	policy      abate.Policy
	inventory   *inventory
	recorder    *recorder
	consumer    *abatekafka.Consumer
	client      *http.Client
	stop        context.CancelFunc
	ended       chan error // what Run of the consumer returned
}

// newAct starts the service of an act, and makes its consumer.
func newAct(c Config, name, topic string, brokers []string) (*act, error) {
	a := &act{name: name, topic: topic, recorder: newRecorder(), ended: make(chan error, 1)}
	var err error
	if a.policy, err = policyOf(name); err != nil {
		return nil, err
	}
	guard, err := abate.New(service, a.policy)
	if err != nil {
		return nil, err
	}
	if a.inventory, err = newInventory(c, a.recorder.attempt); err != nil {
		return nil, err
	}
	const many = 1000
	a.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: many, IdleConnTimeout: 30 * time.Second, DisableCompression: true}}
	a.consumer = &abatekafka.Consumer{
		Brokers: brokers, Group: topic, Topics: []string{topic}, Guard: guard, Handler: a.handle,
		Observer: a.recorder, OnDeadLetter: a.deadLetter, Logger: slog.New(slog.DiscardHandler),
	}
	return a, nil
}

// run starts the consumer.
func (a *act) run(ctx context.Context) {
	ctx, a.stop = context.WithCancel(ctx)
	go func() { a.ended <- a.consumer.Run(ctx) }()
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
func (a *act) ready(ctx context.Context, partitions int) error {
	want := partitions * (1 + len(delays(&a.policy)))
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		if len(a.consumer.State().Partitions) >= want {
			return nil
		}
		select {
		case <-look.C:
		case err := <-a.ended:
			a.ended <- nil // for close
			if err == nil {
				err = ctx.Err()
			}
			return fmt.Errorf("the consumer of the %s act ended: %w", a.name, err)
		case <-ctx.Done():
			return fmt.Errorf("the consumer of the %s act has %d of %d partitions: %w", a.name, len(a.consumer.State().Partitions), want, ctx.Err())
		}
	}
}

// close ends the consumer, once it has finished what is in flight, and then the service.
func (a *act) close() error {
	var err error
	if a.stop != nil {
		a.stop()
		err = <-a.ended
	}
	a.client.CloseIdleConnections()
	a.inventory.close()
	return err
}
