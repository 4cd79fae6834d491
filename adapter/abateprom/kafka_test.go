package abateprom_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abateprom"
	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/policy/redelivery"
)

// A consumer takes the metrics as they are.
var _ redelivery.Observer = (*abateprom.Metrics)(nil)

// consume makes all series of a consumer, and of a replay.
func (f fixture) consume(service string) {
	for tier, topic := range map[int]string{redelivery.Main: "payments", 0: "payments-retry-30s"} {
		f.ObserveRedelivery(redelivery.Event{
			Kind: redelivery.Delivered, Service: service, Topic: topic, Tier: tier, Lateness: 10 * time.Millisecond,
		})
		f.ObserveRedelivery(redelivery.Event{
			Kind: redelivery.Handled, Service: service, Topic: topic, Tier: tier, Latency: time.Millisecond,
		})
	}
	f.WatchConsumer(func() redelivery.State {
		return redelivery.State{Service: service, Partitions: []redelivery.PartitionState{
			{Topic: "payments", Tier: redelivery.Main},
		}, Pace: redelivery.PaceState{Limit: 1, ETA: time.Minute}}
	})
	f.WatchReplay("payments-dlq", func() abateprom.Replay { return abateprom.Replay{ETASeconds: 1} })
}

func TestWhatAConsumerDoesIsCounted(t *testing.T) {
	m := metrics(t)
	tell := func(kind redelivery.EventKind, topic string, tier int, e redelivery.Event) {
		e.Kind, e.Service, e.Topic, e.Tier = kind, "billing", topic, tier
		m.ObserveRedelivery(e)
	}
	const main, hop = "payments", "payments-retry-30s"
	// nothing is due on a main topic
	tell(redelivery.Delivered, main, redelivery.Main, redelivery.Event{Lateness: time.Hour})
	tell(redelivery.Handled, main, redelivery.Main, redelivery.Event{Latency: 20 * time.Millisecond})
	tell(redelivery.Forwarded, main, redelivery.Main, redelivery.Event{Latency: 2 * time.Second, Reason: "retry"})
	tell(redelivery.Held, main, redelivery.Main, redelivery.Event{Reason: "refused"})
	tell(redelivery.Parked, main, redelivery.Main, redelivery.Event{})
	tell(redelivery.Duplicate, main, redelivery.Main, redelivery.Event{})
	tell(redelivery.Foreign, main, redelivery.Main, redelivery.Event{})
	tell(redelivery.Paused, main, redelivery.Main, redelivery.Event{Reason: "circuit-open"})
	tell(redelivery.Resumed, main, redelivery.Main, redelivery.Event{})
	tell(redelivery.ForwardFailed, main, redelivery.Main, redelivery.Event{})
	tell(redelivery.Stuck, main, redelivery.Main, redelivery.Event{})
	tell(redelivery.Delivered, hop, 0, redelivery.Event{Lateness: 300 * time.Millisecond})
	tell(redelivery.DeadLettered, hop, 0, redelivery.Event{Reason: "exhausted"})
	tell(redelivery.DeadLettered, hop, 0, redelivery.Event{Reason: "nobody knows"})
	tell(redelivery.Dropped, hop, 0, redelivery.Event{})
	p := m.scrape(t)
	p.want(t, map[string]float64{
		`abate_kafka_delivered_total{outcome="handled",service="billing",tier="main",topic="payments"}`:              1,
		`abate_kafka_delivered_total{outcome="forwarded",service="billing",tier="main",topic="payments"}`:            1,
		`abate_kafka_delivered_total{outcome="held",service="billing",tier="main",topic="payments"}`:                 1,
		`abate_kafka_delivered_total{outcome="dead-lettered",service="billing",tier="1",topic="payments-retry-30s"}`: 2,
		`abate_kafka_delivered_total{outcome="dropped",service="billing",tier="1",topic="payments-retry-30s"}`:       1,
		`abate_kafka_dead_letters_total{reason="exhausted",service="billing",topic="payments-retry-30s"}`:            1,
		`abate_kafka_dead_letters_total{reason="other",service="billing",topic="payments-retry-30s"}`:                1,
		`abate_kafka_dead_letters_total{reason="permanent",service="billing",topic="payments"}`:                      0,
		`abate_kafka_parked_total{service="billing",topic="payments"}`:                                               1,
		`abate_kafka_foreign_total{service="billing",topic="payments"}`:                                              1,
		`abate_kafka_duplicates_total{service="billing",topic="payments"}`:                                           1,
		`abate_kafka_pauses_total{reason="circuit-open",service="billing",topic="payments"}`:                         1,
		`abate_kafka_forward_failures_total{service="billing",topic="payments"}`:                                     1,
		`abate_kafka_stuck_handlers_total{service="billing",topic="payments"}`:                                       1,
		`abate_kafka_lateness_seconds_bucket{service="billing",topic="payments-retry-30s",le="0.25"}`:                0,
		`abate_kafka_lateness_seconds_bucket{service="billing",topic="payments-retry-30s",le="0.5"}`:                 1,
		`abate_kafka_handler_duration_seconds_count{service="billing",topic="payments"}`:                             2,
		`abate_kafka_handler_duration_seconds_bucket{service="billing",topic="payments",le="0.025"}`:                 1,
	})
	if n := len(p.of("abate_kafka_lateness_seconds_count")); n != 1 {
		t.Errorf("%d topics have a lateness, want the retry topic alone", n)
	}
}

func TestConsumersOfATopicAreShownTogether(t *testing.T) {
	m := metrics(t)
	state := func(lag int64, age time.Duration, paused string, since time.Duration) func() redelivery.State {
		return func() redelivery.State {
			return redelivery.State{Service: "billing", OldestHandler: age, Parked: 2,
				Pace: redelivery.PaceState{
					Draining: paused == "pace", Normal: 100, Limit: float64(lag), ETA: time.Duration(lag) * time.Second,
				},
				Flood: redelivery.FloodState{Holding: paused == "pace", Share: float64(lag) / 1000, Held: lag},
				Partitions: []redelivery.PartitionState{
					{Topic: "payments", Tier: redelivery.Main, Lag: lag, HeadAge: age, Paused: paused, Since: since},
				}}
		}
	}
	forget := m.WatchConsumer(state(7, time.Second, "", 0))
	m.WatchConsumer(state(5, time.Minute, "pace", 400*time.Second))
	m.scrape(t).want(t, map[string]float64{
		`abate_kafka_lag{service="billing",topic="payments"}`:                                     12,
		`abate_kafka_partitions{service="billing",topic="payments"}`:                              2,
		`abate_kafka_head_age_seconds{service="billing",topic="payments"}`:                        60,
		`abate_kafka_paused_partitions{reason="pace",service="billing",topic="payments"}`:         1,
		`abate_kafka_paused_partitions{reason="circuit-open",service="billing",topic="payments"}`: 0,
		`abate_kafka_paused_seconds{service="billing",topic="payments"}`:                          400,
		`abate_kafka_oldest_handler_seconds{service="billing"}`:                                   60,
		`abate_kafka_parked_keys{service="billing"}`:                                              4,
		`abate_kafka_draining{service="billing"}`:                                                 1,
		`abate_kafka_normal_rate{service="billing"}`:                                              100,
		`abate_kafka_drain_limit{service="billing"}`:                                              7,
		`abate_kafka_drain_eta_seconds{service="billing"}`:                                        7,
		`abate_kafka_flood_holding{service="billing"}`:                                            1,
		`abate_kafka_flood_share{service="billing"}`:                                              0.007,
		`abate_kafka_flood_held_total{service="billing"}`:                                         12,
		`abate_kafka_dead_letters_total{reason="exhausted",service="billing",topic="payments"}`:   0, // before the first
	})
	forget()
	forget()
	m.scrape(t).want(t, map[string]float64{`abate_kafka_lag{service="billing",topic="payments"}`: 5})
}

func TestALostTopicIsShownWithoutPartitions(t *testing.T) {
	m := metrics(t)
	has := []redelivery.PartitionState{{Topic: "payments", Tier: redelivery.Main, Lag: 3}}
	m.WatchConsumer(func() redelivery.State { return redelivery.State{Service: "billing", Partitions: has} })
	m.scrape(t).want(t, map[string]float64{`abate_kafka_partitions{service="billing",topic="payments"}`: 1})
	has = nil
	m.scrape(t).want(t, map[string]float64{
		`abate_kafka_partitions{service="billing",topic="payments"}`: 0,
		`abate_kafka_lag{service="billing",topic="payments"}`:        0,
	})
}

func TestAReplayIsShown(t *testing.T) {
	m := metrics(t)
	m.WatchReplay("payments-dlq", func() abateprom.Replay { return abateprom.Replay{Chosen: 99} })
	m.WatchReplay("payments-dlq", func() abateprom.Replay {
		return abateprom.Replay{Running: true, Chosen: 100, Sent: 38, Failed: 1, Skipped: 2, Back: 3, Batch: 20, Handled: 25,
			Waiting: 10, ETASeconds: 90}
	})
	m.scrape(t).want(t, map[string]float64{
		`abate_dlq_replay_running{topic="payments-dlq"}`:                   1,
		`abate_dlq_replay_batch{topic="payments-dlq"}`:                     20,
		`abate_dlq_replay_messages{result="chosen",topic="payments-dlq"}`:  100,
		`abate_dlq_replay_messages{result="sent",topic="payments-dlq"}`:    38,
		`abate_dlq_replay_messages{result="failed",topic="payments-dlq"}`:  1,
		`abate_dlq_replay_messages{result="skipped",topic="payments-dlq"}`: 2,
		`abate_dlq_replay_messages{result="back",topic="payments-dlq"}`:    3,
		`abate_dlq_replay_messages{result="handled",topic="payments-dlq"}`: 25,
		`abate_dlq_replay_messages{result="waiting",topic="payments-dlq"}`: 10,
		`abate_dlq_replay_eta_seconds{topic="payments-dlq"}`:               90,
	})
}

func TestTopicsHaveABound(t *testing.T) {
	m := metrics(t)
	for i := range 1500 {
		m.ObserveRedelivery(redelivery.Event{
			Kind: redelivery.Parked, Service: "s", Topic: fmt.Sprint("t", i, "\xff"), Tier: redelivery.Main,
		})
	}
	p := m.scrape(t)
	if n := len(p.of("abate_kafka_parked_total")); n != 1001 {
		t.Errorf("%d series, want 1001", n)
	}
	p.want(t, map[string]float64{`abate_kafka_parked_total{service="other",topic="other"}`: 500,
		`abate_kafka_parked_total{service="s",topic="t7` + "\uFFFD" + `"}`: 1})
}

func TestCountingRedeliveriesAllocatesNothing(t *testing.T) {
	m := metrics(t)
	for kind := redelivery.Delivered; kind <= redelivery.Stuck; kind++ {
		e := redelivery.Event{Kind: kind, Service: "billing", Topic: "payments-retry-30s", Tier: 0, Reason: "exhausted",
			Latency: time.Millisecond, Lateness: time.Millisecond}
		if n := testing.AllocsPerRun(100, func() { m.ObserveRedelivery(e) }); n != 0 {
			t.Errorf("kind %d: %v allocations", kind, n)
		}
	}
}

func TestManyPartitionsCountTogether(t *testing.T) {
	const workers, rounds = 8, 200
	m := metrics(t)
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for i := range rounds {
				m.ObserveRedelivery(redelivery.Event{
					Kind: redelivery.Handled, Service: "s", Topic: fmt.Sprint("t", i%7), Tier: worker%2 - 1,
				})
			}
		})
	}
	m.consume("s")
	m.scrape(t)
	all.Wait()
	sum := 0.0
	for name, v := range m.scrape(t).of("abate_kafka_delivered_total") {
		if strings.Contains(name, `topic="t`) {
			sum += v
		}
	}
	if sum != workers*rounds {
		t.Errorf("%v messages, want %d", sum, workers*rounds)
	}
}

func BenchmarkObserveRedelivery(b *testing.B) {
	m := metrics(b)
	e := redelivery.Event{
		Kind: redelivery.Handled, Service: "billing", Topic: "payments", Tier: redelivery.Main, Latency: time.Millisecond,
	}
	b.ReportAllocs()
	for b.Loop() {
		m.ObserveRedelivery(e)
	}
}

// TestTheAlertsInThePackageCommentAreRules: promtool takes each as a rule, and each is about metrics that there are.
func TestTheAlertsInThePackageCommentAreRules(t *testing.T) {
	promtool := needs.Program(t, "promtool", "prometheus")
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(doc), "Those to alert on first:\n//\n")
	list, _, _ = strings.Cut(list, "//\n")
	known := regexp.MustCompile(`\b(?:abate|http_client|circuit_breaker|rate_limit|shed)_[a-z_]+`)
	list = strings.ReplaceAll(list, "\n//\t  ", " ") // an expression may go on in a second line
	rules, n := "groups:\n- name: abate\n  rules:\n", 0
	for line := range strings.Lines(list) {
		expr := strings.TrimSpace(strings.TrimPrefix(line, "//"))
		rules += fmt.Sprintf("  - alert: alert%d\n    expr: %s\n",
			n, strings.ReplaceAll(fmt.Sprintf("%q", expr), `\\"`, `\"`))
		n++
		for _, name := range known.FindAllString(expr, -1) {
			if !slices.Contains(names, strings.TrimSuffix(name, "_bucket")) {
				t.Errorf("%s: there is no metric %s", expr, name)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(rules), 0o644); err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), promtool, "check", "rules", file).CombinedOutput()
	if err != nil || n < 10 || !bytes.Contains(said, fmt.Appendf(nil, "%d rules found", n)) {
		t.Errorf("%d alerts: %v\n%s", n, err, said)
	}
}
