package metrics

import (
	"sync"
	"time"

	"github.com/abate-go/abate/internal/series"
	"github.com/abate-go/abate/policy/redelivery"
)

// kafkaWatched are the consumers and replays that are read when somebody scrapes.
type kafkaWatched struct {
	mu        sync.Mutex
	next      int
	consumers map[int]func() redelivery.State
	replays   map[string]func() Replay // by dead-letter topic
}

// WatchConsumer shows the state of a consumer at every scrape: lag, the age of what waits, paused partitions, the
// drain. read is the State method of an abatekafka.Consumer; it is called on the goroutine of the scrape and must be
// quick. What consumers of one service say about one topic is put together: lags are added, of ages the longest is
// shown. forget ends it; it may be called more than once.
//
//	defer metrics.WatchConsumer(consumer.State)()
func (m *Metrics) WatchConsumer(read func() redelivery.State) (forget func()) {
	w := &m.kafka.watched
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.consumers == nil {
		w.consumers = make(map[int]func() redelivery.State)
	}
	id := w.next
	w.next++
	w.consumers[id] = read
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.consumers, id)
	}
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
	w := &m.kafka.watched
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.replays == nil {
		w.replays = make(map[string]func() Replay)
	}
	w.replays[label(topic)] = read
}

var (
	lagDesc = topicGauge("abate_kafka_lag",
		"Messages of a topic that are not finished, in the partitions of this process. Growing on a main topic: consumers "+
			"are too few, or the handler too slow. On a retry topic most of them only wait until they are due: see "+
			"abate_kafka_head_age_seconds.")
	headAgeDesc = topicGauge("abate_kafka_head_age_seconds",
		"How long the oldest unfinished message has been due. If it grows, a partition stands still: see "+
			"abate_kafka_paused_partitions for why, abate_kafka_oldest_handler_seconds for a handler that hangs. The log "+
			"names partition and offset.")
	pausedDesc = topicGauge("abate_kafka_paused_partitions",
		"Partitions of which nothing is delivered now, by why. circuit-open: fix the service. forward-failed: a retry or "+
			"dead-letter topic takes nothing, look at the brokers and at what the consumer "+
			"may do. poison-batch: a batch cannot be decoded, see poisonBatch. window-full: the oldest message takes long. "+
			"pace: the drain after an outage; no action.", "reason")
	pausedSecondsDesc = topicGauge("abate_kafka_paused_seconds",
		"How long the partition that has been paused longest has been. Above 300, look at abate_kafka_paused_partitions: "+
			"what it waits for does not fix itself.")
	partitionsDesc = topicGauge("abate_kafka_partitions", "Partitions of a topic that this process has. At 0 in all "+
		"processes nobody reads it: start one, or see in its log why it is not in the group.")
	oldestHandlerDesc = gauge("abate_kafka_oldest_handler_seconds",
		"How long the handler that runs longest has been running. Above handlerTimeout it ignores its context and holds "+
			"its partition: restart the consumer, then fix the handler.")
	parkedKeysDesc = gauge("abate_kafka_parked_keys",
		"Keys whose messages wait behind one that is being retried. It is the order park-key at work; no action.")
	drainingDesc = gauge("abate_kafka_draining",
		"1 while what an outage left behind is worked off, at abate_kafka_drain_limit. It ends by itself; if it is too "+
			"slow for the backlog, raise drain.factor while the service can take it.")
	drainLimitDesc = gauge("abate_kafka_drain_limit",
		"Attempts per second that the drain allows now, live messages included. Not shown without a limit.")
	drainETADesc = gauge("abate_kafka_drain_eta_seconds",
		"How long the drain will take from now, about. Not shown outside a drain, and while nobody knows: then as much "+
			"comes as goes, raise drain.factor while the service can take it.")
	floodHoldingDesc = gauge("abate_kafka_flood_holding",
		"1 while so many messages would be given up (abate_kafka_flood_share) that they wait in the last retry topic "+
			"instead of becoming dead letters. Fix the service, or what was deployed last: they are delivered again by "+
			"themselves.")
	floodShareDesc = gauge("abate_kafka_flood_share", "Share of the messages that ended in the last minute "+
		"(kafka.flood.window) by being given up, or would have: of the worst end of it.")
	floodHeldDesc = gauge("abate_kafka_flood_held_total", "Times that a message was held in the last retry topic "+
		"because of a flood of dead letters, since the consumer started.")
	normalRateDesc = gauge("abate_kafka_normal_rate", "Deliveries per second before the last trouble: what the drain "+
		"goes by. 0 until it is known, and then only drain.maxRate bounds a drain.")
	replayingDesc = series.NewDesc("abate_dlq_replay_running",
		"1 while dead letters of this topic are replayed. 'abate dlq cancel' stops it.", "topic")
	replayBatchDesc = series.NewDesc("abate_dlq_replay_batch",
		"Size of the batch under way. It grows while messages do not come back.", "topic")
	replayETADesc = series.NewDesc("abate_dlq_replay_eta_seconds",
		"How long the consumers will take for the dead letters that were sent and wait, about. Not shown when nobody "+
			"knows: then nobody may read them.", "topic")
	replayDesc = series.NewDesc("abate_dlq_replay_messages",
		"Dead letters of the last replay by what became of them. back failed again: if they are many, what made them fail "+
			"is not fixed; the replay stops by itself. waiting: nobody has got to them, see abate_dlq_replay_eta_seconds.",
		"topic", "result")
)

func topicGauge(name, help string, labels ...string) *series.Desc {
	return series.NewDesc(name, help, withService(append([]string{"topic"}, labels...))...)
}

func kafkaDescs() []*series.Desc {
	return []*series.Desc{lagDesc, headAgeDesc, pausedDesc, pausedSecondsDesc, partitionsDesc, oldestHandlerDesc,
		parkedKeysDesc, drainingDesc, drainLimitDesc, drainETADesc, normalRateDesc, floodHoldingDesc, floodShareDesc,
		floodHeldDesc,
		replayingDesc, replayBatchDesc, replayETADesc, replayDesc}
}

// topicSum is what the consumers of a service say about one topic.
type topicSum struct {
	lag                int64
	partitions         int
	headAge, pausedFor time.Duration
	paused             [len(pauseReasons)]int
}

// serviceSum is what they say about themselves.
type serviceSum struct {
	oldest time.Duration
	parked int
	pace   redelivery.PaceState
	flood  redelivery.FloodState
}

// collect reads the consumers and replays.
func (k *kafka) collect(send func(series.Sample)) {
	consumers, replays := k.watched.all()
	topics, services := make(map[[2]string]*topicSum), make(map[string]*serviceSum)
	for _, read := range consumers {
		s := read()
		sum := sumOf(services, label(s.Service))
		sum.add(&s)
		for i := range s.Partitions {
			p := &s.Partitions[i]
			// so that alerts on its first dead letter have a zero before it
			k.topics.of(kafkaKey{s.Service, p.Topic, max(p.Tier, redelivery.Main)})
			sumOf(topics, [2]string{label(s.Service), label(p.Topic)}).add(p)
		}
	}
	for _, key := range k.topics.keys() { // one that this process had and lost stays, with no partitions
		if services[label(key.service)] != nil {
			sumOf(topics, [2]string{label(key.service), label(key.topic)})
		}
	}
	for name, sum := range topics {
		sum.send(send, name[0], name[1])
	}
	for service, sum := range services {
		sum.send(send, service)
	}
	for topic, read := range replays {
		sendReplay(send, topic, read())
	}
}

// all copies what is watched: nothing is read under the lock.
func (w *kafkaWatched) all() (consumers []func() redelivery.State, replays map[string]func() Replay) {
	w.mu.Lock()
	defer w.mu.Unlock()
	replays = make(map[string]func() Replay, len(w.replays))
	for _, read := range w.consumers {
		consumers = append(consumers, read)
	}
	for topic, read := range w.replays {
		replays[topic] = read
	}
	return consumers, replays
}

func sumOf[K comparable, T any](sums map[K]*T, name K) *T {
	if sums[name] == nil {
		sums[name] = new(T)
	}
	return sums[name]
}

func (sum *topicSum) add(p *redelivery.PartitionState) {
	sum.lag += max(p.Lag, 0)
	sum.partitions++
	sum.headAge = max(sum.headAge, p.HeadAge)
	if p.Paused != "" {
		sum.paused[indexOf(pauseReasons[:], p.Paused)]++
		sum.pausedFor = max(sum.pausedFor, p.Since)
	}
}

func (sum *topicSum) send(send func(series.Sample), service, topic string) {
	show := func(desc *series.Desc, v float64, labels ...string) {
		send(series.Gauge(desc, v, append([]string{service, topic}, labels...)...))
	}
	show(lagDesc, float64(sum.lag))
	show(partitionsDesc, float64(sum.partitions))
	show(headAgeDesc, sum.headAge.Seconds())
	show(pausedSecondsDesc, sum.pausedFor.Seconds())
	for i, reason := range pauseReasons {
		show(pausedDesc, float64(sum.paused[i]), reason)
	}
}

// add takes a consumer in. A pace may be shared by several, so that the most of what they say is shown.
func (sum *serviceSum) add(s *redelivery.State) {
	sum.oldest = max(sum.oldest, s.OldestHandler)
	sum.parked += s.Parked
	sum.pace.Draining = sum.pace.Draining || s.Pace.Draining
	sum.pace.Normal = max(sum.pace.Normal, s.Pace.Normal)
	sum.pace.Limit = max(sum.pace.Limit, s.Pace.Limit)
	sum.pace.ETA = max(sum.pace.ETA, s.Pace.ETA)
	sum.flood.Holding = sum.flood.Holding || s.Flood.Holding
	sum.flood.Share = max(sum.flood.Share, s.Flood.Share)
	sum.flood.Held += s.Flood.Held
}

func (sum *serviceSum) send(send func(series.Sample), service string) {
	send(value(oldestHandlerDesc, service, sum.oldest.Seconds()))
	send(value(parkedKeysDesc, service, float64(sum.parked)))
	send(value(drainingDesc, service, oneIf(sum.pace.Draining)))
	send(value(normalRateDesc, service, sum.pace.Normal))
	send(value(floodHoldingDesc, service, oneIf(sum.flood.Holding)))
	send(value(floodShareDesc, service, sum.flood.Share))
	send(series.Count(floodHeldDesc, float64(sum.flood.Held), service))
	if sum.pace.ETA > 0 {
		send(value(drainETADesc, service, sum.pace.ETA.Seconds()))
	}
	if sum.pace.Limit > 0 {
		send(value(drainLimitDesc, service, sum.pace.Limit))
	}
}

func sendReplay(send func(series.Sample), topic string, r Replay) {
	show := func(desc *series.Desc, v float64, labels ...string) {
		send(series.Gauge(desc, v, append([]string{topic}, labels...)...))
	}
	show(replayingDesc, oneIf(r.Running))
	show(replayBatchDesc, float64(r.Batch))
	if r.ETASeconds > 0 {
		show(replayETADesc, r.ETASeconds)
	}
	for _, result := range [...]struct {
		name string
		n    int
	}{{"chosen", r.Chosen}, {"sent", r.Sent}, {"failed", r.Failed}, {"skipped", r.Skipped}, {"back", r.Back},
		{"handled", r.Handled}, {"waiting", r.Waiting}} {
		show(replayDesc, float64(result.n), result.name)
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
