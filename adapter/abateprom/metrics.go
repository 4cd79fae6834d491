package abateprom

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/metrics"
	"github.com/abate-go/abate/policy/redelivery"
)

// Metrics counts what guards and gates and the requests around them do, for one Prometheus registry. It is safe for
// concurrent use. Make one per registry with New, and share it.
type Metrics metrics.Metrics

// New makes the metrics and registers them with reg. It fails when they, or others of the same names, are registered
// there already; then nothing has been registered.
func New(reg prometheus.Registerer) (*Metrics, error) {
	if reg == nil {
		return nil, errors.New("abateprom: there is no registry: pass prometheus.DefaultRegisterer or one of your own")
	}
	m := metrics.New()
	if err := reg.Register(newBridge(m)); err != nil {
		return nil, fmt.Errorf("abateprom: %w (make one Metrics for a registry and share it)", err)
	}
	return (*Metrics)(m), nil
}

// of is the metrics that have the methods.
func of(m *Metrics) *metrics.Metrics { return (*metrics.Metrics)(m) }

// Adjust makes the policy of a service report to the metrics what its guard does: m.Adjust is an argument for
// policyfile.Load, or is called on a policy before abate.New. An observer that is already set is called too, after the
// metrics. Policies of the same service get observers that are equal, so that a reload which changes nothing is seen as
// one; adjusting a policy twice counts once. Each service has its own label, so names must not come from strangers
// without a bound; those that reach policyfile have one.
func (m *Metrics) Adjust(service string, p *abate.Policy) { of(m).Adjust(service, p) }

// Add shows the state of these guards at every scrape: breaker, override, and the other policies that are on. Adding
// a guard twice is fine; of two guards with the same name the one added last is shown. A guard that is added is never
// forgotten.
func (m *Metrics) Add(guards ...*abate.Guard) { of(m).Add(guards...) }

// AdjustProtection makes the protection of a service report to the metrics what its gate does: it is Adjust for gates,
// and fits the Protection of policyfile.Hooks.
func (m *Metrics) AdjustProtection(name string, p *inbound.Protection) {
	of(m).AdjustProtection(name, p)
}

// AddGate shows the state of these gates at every scrape: concurrency, queue, retries among the arriving requests and
// buckets. It is Add for gates.
func (m *Metrics) AddGate(gates ...*inbound.Gate) { of(m).AddGate(gates...) }

// ShowPlainNames sets whether the metrics that once had names without the prefix abate_ are shown under those too, such
// as http_client_requests_total beside abate_http_client_requests_total. They are unless somebody switches them off:
// it makes the page smaller, and no alert or dashboard may use them then.
func (m *Metrics) ShowPlainNames(show bool) { of(m).ShowPlainNames(show) }

// ObserveRedis counts one command to Redis. op names its kind, one of a few.
func (m *Metrics) ObserveRedis(op string, took time.Duration, err error) {
	of(m).ObserveRedis(op, took, err)
}

// RedisFallback counts a decision that was made without Redis. what names what was decided, one of a few.
func (m *Metrics) RedisFallback(what string) { of(m).RedisFallback(what) }

// ObserveRedelivery counts one event of a consumer: Metrics is the Observer of an abatekafka.Consumer. The first 1,000
// topics have labels of their own, later ones share the service and topic "other".
func (m *Metrics) ObserveRedelivery(e redelivery.Event) { of(m).ObserveRedelivery(e) }

// WatchConsumer shows the state of a consumer at every scrape: lag, the age of what waits, paused partitions, the
// drain. read is the State method of an abatekafka.Consumer; it is called on the goroutine of the scrape and must be
// quick. What consumers of one service say about one topic is put together: lags are added, of ages the longest is
// shown. forget ends it; it may be called more than once.
//
//	defer metrics.WatchConsumer(consumer.State)()
func (m *Metrics) WatchConsumer(read func() redelivery.State) (forget func()) {
	return of(m).WatchConsumer(read)
}

// Replay is a replay of dead letters at one moment, as dlq.Progress has it. Numbers are of messages, since the replay
// began.
type Replay struct {
	Running bool
	// Chosen were to be replayed, Sent were; Failed could not be sent, Skipped were left out, Back failed again. Batch
	// is the size of the batch under way.
	Chosen, Sent, Failed, Skipped, Back, Batch int
	// Handled are those of Sent that their consumers have finished, Waiting those that they have not got to. ETASeconds
	// is how long that takes, 0 if nobody knows.
	Handled, Waiting int
	ETASeconds       float64
}

// WatchReplay shows the replay of a dead-letter topic at every scrape. There is one at a time for each topic: watching
// a topic again replaces what was watched.
func (m *Metrics) WatchReplay(topic string, read func() Replay) {
	of(m).WatchReplay(topic, func() metrics.Replay { return metrics.Replay(read()) })
}
