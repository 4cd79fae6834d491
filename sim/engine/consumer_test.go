package engine_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/scenario"
)

// consuming is a world with one consumer group, whose messages are written evenly.
func consuming(policy, topic, service, faults string) string {
	return "warmUp: 0s\nduration: 20s\nclients: {orders: {rate: 100, arrivals: even, instances: 2, topic: {" + topic +
		"}, calls: [stock]}}\n" +
		"services: {stock: {" + service + "}}\nfaults: [" + faults + "]\nvariants: {only: {policy: {defaults: {" +
		policy + "}}}}\n"
}

const (
	refusing = "{outage: stock, at: 5s, for: 4s, mode: refuse}"
	tiers    = "kafka: {tiers: [1s, 2s, 4s], concurrency: 4}"
	reckless = plain + ", kafka: {tiers: [1s, 2s, 4s], concurrency: 4, drain: {disabled: true}, flood: {disabled: true}}"
)

func topicOf(t *testing.T, r *engine.Record) *engine.TopicRecord {
	t.Helper()
	if r.Fleets[0].Topic == nil {
		t.Fatal("the fleet does not consume")
	}
	return r.Fleets[0].Topic
}

func TestHealthyMessagesAreDeliveredOnce(t *testing.T) {
	for _, policy := range []string{plain, reckless, tiers} {
		r := run(t, consuming(policy, "partitions: 4", "workers: 10, serviceTime: 10ms", ""))
		equal(t, "deliveries", value(t, r, "deliveries(orders) < 9"), 1)
		equal(t, "handled", r.Fleets[0].Ends[engine.Answered], total(r.Fleets[0].Offered))
		equal(t, "dead letters", value(t, r, "deadLetters < 9"), 0)
	}
}

// While the service is away, consumers that retry in place stand still, and lose nothing.
func TestBlockingConsumersTryInPlaceAndKeepTheOrder(t *testing.T) {
	r := run(t, consuming(plain, "partitions: 4, pause: 500ms", "workers: 10, serviceTime: 10ms", refusing))
	equal(t, "handled", r.Fleets[0].Ends[engine.Answered], total(r.Fleets[0].Offered))
	// Four partitions, one try every 500 ms in each.
	within(t, "tries in the outage", float64(between(r, topicOf(t, r).Deliveries, 5*time.Second, 9*time.Second)), 28, 36)
	within(t, "most that waited", value(t, r, "lag(orders) < 9"), 390, 460)
	// A message that came as the outage began is done just after its end, before all that came after it.
	within(t, "drained", value(t, r, "drained(orders) < 9s"), 0.5, 3)
	if late := value(t, r, "lateness(p99, orders) < 9s"); !math.IsNaN(late) {
		t.Errorf("lateness without retry topics is %v", late)
	}
}

// Retry topics without a guard: every message of the outage that finds no delivery left after it is a dead letter.
func TestRetryTopicsAloneBurnTheirTiersInAnOutage(t *testing.T) {
	long := "{outage: stock, at: 5s, for: 9s, mode: refuse}"
	r := run(t, consuming(reckless, "partitions: 4", "workers: 10, serviceTime: 10ms", long))
	// 1 + 2 + 4 s after its first failure a message is given up: those written from 5 s to 7 s.
	within(t, "dead letters", value(t, r, "deadLetters(orders) < 9"), 195, 205)
	within(t, "dead letters in the outage", value(t, r, "deadLetters(orders, during) < 9"), 195, 205)
	equal(t, "failed", total(r.Fleets[0].Failed), int64(value(t, r, "deadLetters(orders) < 9")))
	within(t, "busiest second afterwards", value(t, r, "load(stock, after) < 9"), 1.9, 4.5)
}

// With the circuit open the consumers wait, nothing is given up, and the backlog comes at a bounded rate.
func TestGuardedConsumersWaitAndDrainGently(t *testing.T) {
	text := strings.Replace(consuming(tiers, "partitions: 4", "workers: 10, serviceTime: 10ms",
		"{outage: stock, at: 20s, for: 9s, mode: refuse}"), "duration: 20s", "duration: 3m", 1)
	r := run(t, text)
	equal(t, "dead letters", value(t, r, "deadLetters(orders) < 9"), 0)
	equal(t, "handled", r.Fleets[0].Ends[engine.Answered], total(r.Fleets[0].Offered))
	within(t, "busiest second afterwards", value(t, r, "load(stock, after) < 9"), 1.1, 1.25)
	within(t, "drained", value(t, r, "drained(orders) < 9s"), 20, 110)
	// Until the circuit opens a few messages have to fail, then probes are sent.
	within(t, "attempts in the outage", float64(between(r, r.Services[0].Arrived, 20*time.Second, 29*time.Second)), 20,
		150)
	within(t, "attempts in its second half", float64(between(r, r.Services[0].Arrived, 24*time.Second, 29*time.Second)), 1,
		40)
}

func TestRetryTopicsDeliverOnTime(t *testing.T) {
	r := run(t, consuming(reckless, "partitions: 4", "workers: 10, serviceTime: 10ms, errorRate: 10%", ""))
	within(t, "lateness", value(t, r, "lateness(p99, orders) < 9s"), 0, 0.001)
	within(t, "deliveries", value(t, r, "deliveries(orders) < 9"), 1.06, 1.16)
}

// A message that nobody can handle stops its partition where it is tried in place, and nobody else's where there are
// retry topics.
func TestPoison(t *testing.T) {
	topic := "partitions: 4, poison: 1%"
	blocking := run(t, consuming(plain, topic, "workers: 10, serviceTime: 10ms", ""))
	if handled := blocking.Fleets[0].Ends[engine.Answered]; handled > 1200 {
		t.Errorf("%d of 2,000 messages were handled behind messages that nobody can handle", handled)
	}
	later := run(t, consuming(tiers, topic, "workers: 10, serviceTime: 10ms", ""))
	within(t, "handled", float64(later.Fleets[0].Ends[engine.Answered]), 1960, 1995)
	equal(t, "answered or given up", later.Fleets[0].Ends[engine.Answered]+later.Fleets[0].Ends[engine.ServerError],
		total(later.Fleets[0].Offered))
}

// With park-key a message whose key is being retried waits behind it, undelivered.
func TestParkedMessagesAreNotDelivered(t *testing.T) {
	text := func(order string) string {
		return consuming(plain+", kafka: {tiers: [1s, 2s], order: "+order+"}", "partitions: 4, keys: 4",
			"workers: 10, serviceTime: 5ms", "{outage: stock, at: 5s, for: 500ms, mode: refuse}")
	}
	tried := func(r *engine.Record) int64 {
		return between(r, topicOf(t, r).Deliveries, 5*time.Second, 5500*time.Millisecond)
	}
	free, parked := run(t, text("key")), run(t, text("park-key"))
	within(t, "deliveries in the outage by key", float64(tried(free)), 40, 60)
	within(t, "deliveries in the outage, parked", float64(tried(parked)), 1, 8)
	equal(t, "handled by key", free.Fleets[0].Ends[engine.Answered], 2000)
	equal(t, "handled, parked", parked.Fleets[0].Ends[engine.Answered], 2000)
}

// What is not done when the run ends is neither handled nor a dead letter, and the drain never ended.
func TestWhatIsLeftIsUnanswered(t *testing.T) {
	text := consuming(plain, "partitions: 4", "workers: 1, serviceTime: 20ms", refusing) + "model: {drain: 0s}\n"
	r := run(t, text)
	if left := r.Fleets[0].Ends[engine.Unanswered]; left < 500 {
		t.Errorf("%d messages are left of a service that does half of them", left)
	}
	if d := value(t, r, "drained(orders) < 9s"); !math.IsInf(d, 1) {
		t.Errorf("drained after %v", d)
	}
}

func TestMeasuresOfSeveralConsumersAddUp(t *testing.T) {
	text := strings.Replace(consuming(reckless, "partitions: 4", "workers: 10, serviceTime: 10ms",
		"{outage: stock, at: 5s, for: 9s, mode: refuse}"),
		"clients: {", "clients: {more: {rate: 50, arrivals: even, topic: {partitions: 2}, calls: [stock]}, people: {rate: "+
			"10, calls: [stock]}, ", 1)
	r := run(t, text)
	for _, measure := range []string{"deadLetters", "deadLetters(during)"} {
		one, other := strings.Replace(measure, "(", "(orders, ", 1), strings.Replace(measure, "(", "(more, ", 1)
		if measure == "deadLetters" {
			one, other = "deadLetters(orders)", "deadLetters(more)"
		}
		sum := value(t, r, one+" < 9") + value(t, r, other+" < 9")
		equal(t, measure, value(t, r, measure+" < 9"), sum)
		if sum < 250 {
			t.Errorf("%s is only %v", measure, sum)
		}
	}
	if v := value(t, r, "lag(people) < 9"); !math.IsNaN(v) {
		t.Errorf("people, who consume nothing, have a lag of %v", v)
	}
}

// Every consumer keeps its books: what was written is handled, given up or left, whatever happens. See books_test.go.
func TestConsumersLoseNothing(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	for i, fault := range []string{refusing, "{outage: stock, at: 5s, for: 4s}",
		"{errors: stock, at: 5s, for: 4s, rate: 60%}", "{slowdown: stock, at: 5s, for: 4s, factor: 40}",
		"{restart: stock, at: 5s, for: 1s}", "{surge: orders, at: 5s, for: 4s, factor: 3}",
		"{operator: orders, action: stop-retries, at: 5s, for: 4s}, " + refusing} {
		for _, policy := range []string{plain, reckless, tiers, "attemptTimeout: 300ms, " + tiers,
			"bulkhead: {maxConcurrentCalls: 2}, " + tiers,
			tiers[:len(tiers)-1] + ", dltStrategy: retry-last}", tiers[:len(tiers)-1] + ", dltStrategy: drop, timeout: 3s}",
			tiers[:len(tiers)-1] + ", order: park-key, window: 3}"} {
			t.Run(fmt.Sprint(i, " ", policy), func(t *testing.T) {
				s := read(t, consuming(policy, "partitions: 4, keys: 50, poison: 0.5%", "workers: 3, serviceTime: 20ms", fault))
				for seed := range uint64(3) {
					r := playVariant(t, s, 0, seed)
					bounded(t, s, r)
				}
			})
		}
	}
}

// bounded checks that a run is no larger than the estimate of its size.
func bounded(t *testing.T, s *scenario.Scenario, r *engine.Record) {
	t.Helper()
	if e := s.Estimate(&s.Variants[0]); r.Events > e.Events || r.Attempts > e.Attempts {
		t.Errorf("%d events and %d attempts are more than the estimate, %+v", r.Events, r.Attempts, e)
	}
}

// A run of consumers is the same on an engine that was used before, and on a new one.
func TestConsumersAreTheSameWithTheSameSeed(t *testing.T) {
	for _, policy := range []string{plain, reckless, tiers, tiers[:len(tiers)-1] + ", order: park-key}"} {
		s := read(
			t, consuming(policy, "partitions: 4, keys: 50, poison: 0.5%", "workers: 3, serviceTime: exponential 20ms", refusing))
		e, err := engine.New(s, &s.Variants[0])
		if err != nil {
			t.Fatal(err)
		}
		fresh := hash(t, playVariant(t, s, 0, 7))
		for range 2 {
			r, err := e.Run(7, true, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Detail = nil
			equal(t, policy, hash(t, r), fresh)
		}
		if hash(t, playVariant(t, s, 0, 8)) == fresh {
			t.Errorf("%s: another seed gives the same run", policy)
		}
	}
}

// What is due is known without a look at each message.
func TestDueMessagesAreCountedAsTheyAre(t *testing.T) {
	for _, policy := range []string{reckless, tiers, tiers[:len(tiers)-1] + ", order: park-key}"} {
		s := read(
			t, consuming(policy, "partitions: 4, keys: 50, poison: 0.5%", "workers: 3, serviceTime: exponential 20ms", refusing))
		e, err := engine.New(s, &s.Variants[0])
		if err != nil {
			t.Fatal(err)
		}
		off, most, err := e.DueOff(7)
		if err != nil {
			t.Fatal(err)
		}
		if off > 0 || most < 20 {
			t.Errorf("%s: off by %d, with at most %d due in a partition; want none, of 20 and more", policy, off, most)
		}
	}
}

// A circuit that looks often whether the service is back does so with messages, and none of them pays for it.
func TestProbesOfAnOpenCircuitCountAgainstNoMessage(t *testing.T) {
	eager := tiers + ", circuitBreaker: {waitDurationInOpenState: 100ms, maxWaitDurationInOpenState: 100ms}"
	text := strings.Replace(consuming(eager, "partitions: 4", "workers: 10, serviceTime: 10ms",
		"{outage: stock, at: 20s, for: 30s, mode: refuse}"), "duration: 20s", "duration: 5m", 1)
	r := run(t, text)
	if probes := between(r, r.Services[0].Arrived, 25*time.Second, 50*time.Second); probes < 150 {
		t.Errorf("%d attempts while the circuit was open are too few to show anything", probes)
	}
	equal(t, "dead letters", value(t, r, "deadLetters(orders) < 9"), 0)
	equal(t, "handled", r.Fleets[0].Ends[engine.Answered], total(r.Fleets[0].Offered))
}
