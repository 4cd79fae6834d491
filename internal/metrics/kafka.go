package metrics

import (
	"strconv"

	"github.com/abate-go/abate/internal/series"
	"github.com/abate-go/abate/policy/redelivery"
)

// kafka are the metrics of consumers with retry topics, and of the replays of dead letters.
type kafka struct {
	delivered, dead, failures, parked, duplicates, foreign, stuck, pauses *series.Counters
	lateness, duration                                                    *series.Histograms

	topics  handles[kafkaKey, kafkaTopic]
	watched kafkaWatched
}

// kafkaKey is one topic that a service reads. tier is redelivery.Main or the index of a retry topic.
type kafkaKey struct {
	service, topic string
	tier           int
}

// outcomes are how a delivery ends, by kind of event.
var outcomes = [...]struct {
	kind redelivery.EventKind
	name string
}{
	{redelivery.Handled, "handled"},
	{redelivery.Forwarded, "forwarded"},
	{redelivery.DeadLettered, "dead-lettered"},
	{redelivery.Dropped, "dropped"},
	{redelivery.Held, "held"},
}

// deadReasons are why a message became a dead letter, pauseReasons why nothing of a partition is delivered. The last of
// each is for what the list does not know.
var (
	deadReasons  = [...]string{"exhausted", "permanent", "never-retry", "timeout", "poison-batch", other}
	pauseReasons = [...]string{"circuit-open", "forward-failed", "window-full", "pace", "rebalance", "poison-batch", other}
)

// kafkaTopic counts one topic of one service.
type kafkaTopic struct {
	outcomes [len(outcomes)]*series.Counter
	dead     [len(deadReasons)]*series.Counter
	pauses   [len(pauseReasons)]*series.Counter
	lateness *series.Histogram // nil for a main topic: nothing is due there

	duration                                     *series.Histogram
	failures, parked, duplicates, foreign, stuck *series.Counter
}

func newKafka() *kafka {
	k := &kafka{
		delivered: counter("abate_kafka_delivered_total",
			"Messages given to the handler, by how that ended. forwarded: it failed and waits in a retry topic. "+
				"dead-lettered: see abate_kafka_dead_letters_total. held: the service was ill and the message waits where it is; "+
				"no action, fix the service. dropped: forgotten, as dltStrategy says.",
			"topic", "tier", "outcome"),
		dead: counter("abate_kafka_dead_letters_total",
			"Messages put into the dead-letter topic, by the topic they were read from. Somebody has to look at each: 'abate "+
				"dlq ls' groups them. permanent and never-retry: the message or its producer is wrong. exhausted and timeout: "+
				"the failure lasted longer than the retry topics do; fix it, then 'abate dlq replay'. poison-batch: a batch "+
				"that nobody can decode.", "topic", "reason"),
		lateness: histogram("abate_kafka_lateness_seconds",
			"How much later than due messages of a retry topic were delivered. If it grows, consumers are too few or too slow "+
				"for the backlog (abate_kafka_lag), the drain after an outage goes slowly on purpose (abate_kafka_draining), or "+
				"partitions are paused (abate_kafka_paused_partitions).",
			[]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}, "topic"),
		duration: histogram("abate_kafka_handler_duration_seconds",
			"How long the handler took for a message, retries in the process included. If it grows, look at what the handler "+
				"calls; near handlerTimeout, messages fail for that alone.",
			[]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}, "topic"),
		failures: counter("abate_kafka_forward_failures_total",
			"Times that a retry topic or dead-letter topic did not take a message. Nothing is lost: the partition stands "+
				"still and tries again. The log says why: the brokers are away, the topic is gone, or the consumer may not write "+
				"to it.", "topic"),
		parked: counter("abate_kafka_parked_total",
			"Messages put into a retry topic undelivered, because another with their key is being retried there. It is the "+
				"order park-key at work; no action.", "topic"),
		duplicates: counter("abate_kafka_duplicates_total",
			"Messages that were not delivered because they had been handled before. A few after each restart are normal; if "+
				"it grows all the time, a producer or a replay sends twice.", "topic"),
		foreign: counter("abate_kafka_foreign_total",
			"Messages in a retry topic that were passed over, because another group failed at them and delivers them. If no "+
				"such group runs any more, nobody does: set groupInNames.", "topic"),
		stuck: counter("abate_kafka_stuck_handlers_total",
			"Times that a handler was seen running longer than handlerTimeout although its context had ended; one that hangs "+
				"is seen again and again. It holds its place: find the call that ignores its context, and restart the consumer.",
			"topic"),
		pauses: counter("abate_kafka_pauses_total",
			"Times that the delivery of a partition was stopped, by why. Many short ones of window-full mean that one slow "+
				"message holds the others: raise window, or look at the handler.",
			"topic", "reason"),
	}
	k.topics.max, k.topics.resolve = maxEndpoints, k.resolve
	k.topics.full = func(key kafkaKey) kafkaKey { return kafkaKey{other, other, min(key.tier, 0)} }
	return k
}

// all lists what counts while things happen, for the registry.
func (k *kafka) all() []series.Collector {
	return []series.Collector{
		k.delivered, k.dead, k.lateness, k.duration, k.failures, k.parked, k.duplicates, k.foreign, k.stuck, k.pauses,
	}
}

// resolve makes the counters of a topic. All its series are there from then on, at zero.
func (k *kafka) resolve(key kafkaKey) *kafkaTopic {
	service, topic := label(key.service), label(key.topic)
	t := &kafkaTopic{
		duration:   k.duration.With(service, topic),
		failures:   k.failures.With(service, topic),
		parked:     k.parked.With(service, topic),
		duplicates: k.duplicates.With(service, topic),
		foreign:    k.foreign.With(service, topic),
		stuck:      k.stuck.With(service, topic),
	}
	if key.tier > redelivery.Main {
		t.lateness = k.lateness.With(service, topic)
	}
	for i := range outcomes {
		t.outcomes[i] = k.delivered.With(service, topic, tierLabel(key.tier), outcomes[i].name)
	}
	for i, reason := range deadReasons {
		t.dead[i] = k.dead.With(service, topic, reason)
	}
	for i, reason := range pauseReasons {
		t.pauses[i] = k.pauses.With(service, topic, reason)
	}
	return t
}

// tierLabel counts the retry topics from 1: the second delivery comes from 1.
func tierLabel(tier int) string {
	if tier <= redelivery.Main {
		return "main"
	}
	return strconv.Itoa(tier + 1)
}

// ObserveRedelivery counts one event of a consumer: Metrics is the Observer of an abatekafka.Consumer. The first 1,000
// topics have labels of their own, later ones share the service and topic "other".
func (m *Metrics) ObserveRedelivery(e redelivery.Event) {
	t := m.kafka.topics.of(kafkaKey{e.Service, e.Topic, max(e.Tier, redelivery.Main)})
	switch e.Kind {
	case redelivery.Delivered:
		if t.lateness != nil {
			t.lateness.Observe(max(e.Lateness, 0).Seconds())
		}
	case redelivery.Parked:
		t.parked.Inc()
	case redelivery.Duplicate:
		t.duplicates.Inc()
	case redelivery.Foreign:
		t.foreign.Inc()
	case redelivery.Paused:
		t.pauses[indexOf(pauseReasons[:], e.Reason)].Inc()
	case redelivery.ForwardFailed:
		t.failures.Inc()
	case redelivery.Stuck:
		t.stuck.Inc()
	case redelivery.FloodBegan, redelivery.FloodEnded, redelivery.Draining: // the state has them
	case redelivery.DeadLettered:
		t.dead[indexOf(deadReasons[:], e.Reason)].Inc()
		t.ended(&e)
	default:
		t.ended(&e)
	}
}

// ended counts the end of a delivery. Of what was never delivered, such as a batch that cannot be decoded, only the
// outcome counts.
func (t *kafkaTopic) ended(e *redelivery.Event) {
	for i := range outcomes {
		if outcomes[i].kind == e.Kind {
			t.outcomes[i].Inc()
			if e.Latency > 0 || e.Kind == redelivery.Handled {
				t.duration.Observe(e.Latency.Seconds())
			}
			return
		}
	}
}

// indexOf finds a name in a list whose last is for all that are not there.
func indexOf(list []string, name string) int {
	for i := range list {
		if list[i] == name {
			return i
		}
	}
	return len(list) - 1
}
