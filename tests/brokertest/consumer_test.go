package brokertest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

// journal is an observer that remembers, and wakes who waits for something to be in it.
type journal struct {
	mu     sync.Mutex
	events []redelivery.Event
}

func (j *journal) ObserveRedelivery(e redelivery.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, e)
}

// count is how many events of a kind there have been; reason may be empty for any.
func (j *journal) count(kind redelivery.EventKind, reason string) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.events {
		if e.Kind == kind && (reason == "" || e.Reason == reason) {
			n++
		}
	}
	return n
}

// of returns the events of a kind.
func (j *journal) of(kind redelivery.EventKind) (all []redelivery.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.events {
		if e.Kind == kind {
			all = append(all, e)
		}
	}
	return all
}

// seen counts what a handler gets.
type seen struct {
	mu    sync.Mutex
	times map[string]int
	order []string
}

func (s *seen) note(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.times == nil {
		s.times = map[string]int{}
	}
	s.times[what]++
	s.order = append(s.order, what)
	return s.times[what]
}

func (s *seen) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.times[what]
}

func (s *seen) distinct() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.times)
}

func (s *seen) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.order...)
}

// shortTiers are retry topics that a test can wait for.
func shortTiers() redelivery.Config {
	// tests give up what they like
	return redelivery.Config{
		Tiers: []time.Duration{200 * time.Millisecond, 400 * time.Millisecond}, Flood: redelivery.Flood{Disabled: true},
	}
}

// guardOf makes a guard that lets everything pass, unless change adds something.
func guardOf(t testing.TB, change ...func(*abate.Policy)) *abate.Guard {
	t.Helper()
	var p abate.Policy
	for _, f := range change {
		f(&p)
	}
	g, err := abate.New("payment-service", p)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// runConsumer runs a consumer until the test ends or stop is called. stop waits for Run to return.
func runConsumer(t testing.TB, c *abatekafka.Consumer) (stop func()) {
	t.Helper()
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		if err := c.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case <-over:
		case <-time.After(patience):
			t.Errorf("Run did not return within %v", patience)
		}
	})
	t.Cleanup(stop)
	return stop
}

// testLog writes to the test's log.
type testLog struct{ t testing.TB }

func (l testLog) Write(b []byte) (int, error) {
	l.t.Logf("%s", b)
	return len(b), nil
}

// spread are n records with keys and values "m-0", "m-1", ..., spread over the partitions.
func spread(n, partitions int) (all []*kgo.Record) {
	for i := range n {
		name := fmt.Sprintf("m-%d", i)
		all = append(all, &kgo.Record{Key: []byte(name), Value: []byte(name), Partition: int32(i % partitions)})
	}
	return all
}

func TestHealthyMessagesAreHandledOnceAndCommitted(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 3)
		b.produce(t, topic, spread(3000, 3)...)
		var got seen
		c := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t),
			Redelivery: shortTiers().Always(),
			Handler:    func(_ context.Context, m *abatekafka.Message) error { got.note(string(m.Value)); return nil },
		}
		stop := runConsumer(t, c)
		eventually(t, "all messages", func() bool { return got.distinct() == 3000 })
		stop()
		runConsumer(t, c)
		b.produce(t, topic, &kgo.Record{Value: []byte("last")})
		eventually(t, "the last message", func() bool { return got.count("last") == 1 })
		if n := len(got.list()); n != 3001 {
			t.Errorf("%d deliveries of 3001 messages: what was committed was delivered again", n)
		}
	})
}

func TestFailingMessageGoesThroughTheTiersIntoTheDeadLetterTopic(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 2)
		bad := &kgo.Record{
			Key: []byte{0, 1, 255}, Value: []byte{9, 8, 7, 0}, Partition: 1,
			Headers: []kgo.RecordHeader{{Key: "h", Value: []byte{1}}, {Key: "h", Value: nil}, {Key: "x", Value: []byte{}}},
		}
		b.produce(t, topic, bad)
		b.produce(t, topic, spread(50, 2)...)
		var got seen
		var events journal
		c := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t),
			Redelivery: shortTiers().Always(), Observer: &events,
			Handler: func(_ context.Context, m *abatekafka.Message) error {
				got.note(string(m.Value))
				if string(m.Value) == string(bad.Value) {
					return errors.New("no such account")
				}
				return nil
			},
		}
		runConsumer(t, c)
		dead := b.consume(t, topic+"-dlq", 1)[0]
		if string(dead.Key) != string(bad.Key) || string(dead.Value) != string(bad.Value) || dead.Partition != 1 {
			t.Errorf("the dead letter is %q = %q in partition %d", dead.Key, dead.Value, dead.Partition)
		}
		for i, h := range bad.Headers {
			if got := dead.Headers[i]; got.Key != h.Key || string(got.Value) != string(h.Value) ||
				(got.Value == nil) != (h.Value == nil) {
				t.Errorf("header %d is %q = %v, want %q = %v", i, got.Key, got.Value, h.Key, h.Value)
			}
		}
		eventually(t, "the event", func() bool { return events.count(redelivery.DeadLettered, "exhausted") == 1 })
		if n := got.count(string(bad.Value)); n != 3 {
			t.Errorf("%d deliveries, want 3", n)
		}
		if n := events.count(redelivery.Forwarded, "retry"); n != 2 {
			t.Errorf("%d forwards, want 2", n)
		}
		eventually(t, "the others", func() bool { return got.distinct() == 51 })
	})
}

func TestPermanentFailureGoesStraightToTheDeadLetterTopic(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 1)
		b.produce(t, topic, spread(3, 1)...)
		var got seen
		told := make(chan letter.Letter, 10)
		c := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t),
			Redelivery: shortTiers().Always(),
			Handler: func(_ context.Context, m *abatekafka.Message) error {
				got.note(string(m.Value))
				switch string(m.Value) {
				case "m-0":
					return abate.Permanent(errors.New("cannot be parsed"))
				case "m-1":
					return abate.Ignore(errors.New("seen and not wanted"))
				}
				return nil
			},
			OnDeadLetter: func(_ context.Context, l letter.Letter) { told <- l },
		}
		runConsumer(t, c)
		select {
		case l := <-told:
			if l.Reason != "permanent" || l.Message != "cannot be parsed" || l.Original.Topic != topic ||
				l.Original.Offset != 0 || l.Failures != 1 {
				t.Errorf("the letter says %+v", l)
			}
		case <-time.After(patience):
			t.Fatal("nobody was told of the dead letter")
		}
		caughtUp(t, b, topic, topic)
		if n := len(got.list()); n != 3 {
			t.Errorf("%d deliveries, want 3", n)
		}
		if n := len(b.everything(t, topic+"-dlq")); n != 1 {
			t.Errorf("%d dead letters, want 1", n)
		}
	})
}

func TestMessageThatIsRetriedBlocksNoOther(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 1)
		b.produce(t, topic, spread(500, 1)...)
		var handled seen
		c := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: topic, Topics: []string{topic},
			Guard:      guardOf(t),
			Redelivery: redelivery.Config{Tiers: []time.Duration{time.Hour}}.Always(), // longer than any test
			Handler: func(_ context.Context, m *abatekafka.Message) error {
				if m.Offset%10 == 3 {
					return errors.New("not now")
				}
				handled.note(string(m.Value))
				return nil
			},
		}
		runConsumer(t, c)
		eventually(t, "the others", func() bool { return handled.distinct() == 450 })
		caughtUp(t, b, topic, topic)
		if n := len(b.everything(t, topic+"-retry-1h")); n != 50 {
			t.Errorf("%d messages wait in the retry topic, want 50", n)
		}
		eventually(t, "the state to tell of those that wait", func() bool {
			for _, p := range c.State().Partitions {
				if p.Tier == 0 {
					return p.Lane.Unfinished == 50 && p.Lane.InFlight == 0 && p.Paused == ""
				}
			}
			return false
		})
	})
}

func TestRetryComesWhenItIsDueAndNotBefore(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 1)
		b.produce(t, topic, spread(20, 1)...)
		var events journal
		var again seen
		c := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Observer: &events,
			Guard:      guardOf(t),
			Redelivery: redelivery.Config{Tiers: []time.Duration{time.Second}}.Always(),
			Handler: func(_ context.Context, m *abatekafka.Message) error {
				if m.Delivery == 1 {
					return errors.New("not now")
				}
				if early := time.Until(m.Letter.Due); early > 0 {
					t.Errorf("%s was delivered %v too early", m.ID(), early)
				}
				again.note(m.ID())
				return nil
			},
		}
		runConsumer(t, c)
		eventually(t, "the retries", func() bool { return again.distinct() == 20 })
		for _, e := range events.of(redelivery.Delivered) {
			if e.Tier == 0 && (e.Lateness < 0 || e.Lateness > patience) {
				t.Errorf("lateness %v", e.Lateness)
			}
		}
	})
}

func TestOpenCircuitPausesInsteadOfUsingUpTiers(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	eachBroker(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 2)
		b.produce(t, topic, spread(300, 2)...)
		var events journal
		var ill atomic.Bool
		ill.Store(true)
		var handled, tries seen
		c := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Observer: &events,
			Guard: guardOf(t, func(p *abate.Policy) {
				p.CircuitBreaker = breaker.Config{FailureThreshold: 5, WaitDurationInOpenState: 300 * time.Millisecond,
					WaitDurationMultiplier: 1, RampUp: time.Second}
			}),
			Redelivery: shortTiers().Always(),
			Handler: func(_ context.Context, m *abatekafka.Message) error {
				tries.note(m.ID())
				if ill.Load() {
					return errors.New("connection refused")
				}
				handled.note(m.ID())
				return nil
			},
		}
		runConsumer(t, c)
		eventually(t, "both partitions to pause", func() bool { return events.count(redelivery.Paused, "circuit-open") >= 2 })
		eventually(t, "some probes", func() bool { return len(tries.list()) >= 8 })
		if n := len(tries.list()); n > 30 {
			t.Errorf("%d attempts at a service whose circuit is open", n)
		}
		ill.Store(false)
		eventually(t, "all messages", func() bool { return handled.distinct() == 300 })
		if n := len(b.everything(t, topic+"-dlq")); n != 0 {
			t.Errorf("%d dead letters of an outage, want none", n)
		}
		if n := events.count(redelivery.Resumed, "circuit-open"); n == 0 {
			t.Error("nobody was told that the partitions go on")
		}
	})
}

func TestPanicIsAFailureWithItsStack(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 1)
		b.produce(t, topic, spread(3, 1)...)
		var handled seen
		told := make(chan letter.Letter, 10)
		c := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t),
			Redelivery: shortTiers().Always(),
			Handler: func(_ context.Context, m *abatekafka.Message) error {
				if string(m.Value) == "m-1" {
					panic(errors.New("assignment to entry in nil map"))
				}
				handled.note(string(m.Value))
				return nil
			},
			OnDeadLetter: func(_ context.Context, l letter.Letter) { told <- l },
		}
		runConsumer(t, c)
		select {
		case l := <-told:
			if l.Class != "panic" || !strings.Contains(l.Message, "nil map") || !strings.Contains(l.Trace, "consumer_test.go") {
				t.Errorf("class %q, message %q, trace %q", l.Class, l.Message, l.Trace)
			}
		case <-time.After(patience):
			t.Fatal("no dead letter")
		}
		eventually(t, "the others", func() bool { return handled.distinct() == 2 })
	})
}

func TestHandlerThatHangsIsToldOfAndSkipsNothing(t *testing.T) {
	b := newFake(t, false)
	topic := b.topic(t, 1)
	b.produce(t, topic, spread(3, 1)...)
	policy := shortTiers()
	policy.HandlerTimeout = 100 * time.Millisecond
	var events journal
	var handled seen
	free := make(chan struct{})
	c := &abatekafka.Consumer{
		Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t),
		Redelivery: policy.Always(), Observer: &events,
		Handler: func(ctx context.Context, m *abatekafka.Message) error {
			if string(m.Value) == "m-0" && m.Delivery == 1 {
				<-free // whatever ctx says
				if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
					t.Errorf("ctx says %v", ctx.Err())
				}
				return ctx.Err()
			}
			handled.note(string(m.Value))
			return nil
		},
	}
	runConsumer(t, c)
	eventually(t, "somebody to be told", func() bool { return events.count(redelivery.Stuck, "") > 0 })
	if s := c.State(); s.OldestHandler < policy.HandlerTimeout {
		t.Errorf("the oldest handler is said to run for %v", s.OldestHandler)
	}
	if handled.distinct() > 0 {
		t.Error("a message overtook the one that hangs, with a concurrency of 1")
	}
	close(free)
	eventually(t, "all messages", func() bool { return handled.distinct() == 3 })
}

func TestPartitionGetsNoFurtherAheadThanItsWindow(t *testing.T) {
	b := newFake(t, false)
	topic := b.topic(t, 1)
	b.produce(t, topic, spread(200, 1)...)
	policy := shortTiers()
	policy.Concurrency, policy.Window = 4, 50
	var handled seen
	free := make(chan struct{})
	c := &abatekafka.Consumer{
		Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t),
		Redelivery: policy.Always(),
		Handler: func(_ context.Context, m *abatekafka.Message) error {
			if m.Offset == 0 {
				<-free
			}
			handled.note(m.ID())
			return nil
		},
	}
	runConsumer(t, c)
	eventually(t, "the window to be used up", func() bool { return handled.distinct() == 49 })
	eventually(t, "the state to say so", func() bool {
		for _, p := range c.State().Partitions {
			if p.Tier == redelivery.Main {
				return p.Lane.Ahead == 49 && p.Lane.Oldest == 0
			}
		}
		return false
	})
	if n := handled.distinct(); n != 49 {
		t.Errorf("%d messages were handled with a window of 50 and the first unfinished", n)
	}
	close(free)
	eventually(t, "all messages", func() bool { return handled.distinct() == 200 })
}

func TestShutdownLetsHandlersFinishAndCommits(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		topic := b.topic(t, 1)
		b.produce(t, topic, spread(10, 1)...)
		begun, finish := make(chan struct{}), make(chan struct{})
		var got seen
		c := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t),
			Redelivery: shortTiers().Always(),
			Handler: func(ctx context.Context, m *abatekafka.Message) error {
				if got.note(string(m.Value)); m.Offset == 4 {
					close(begun)
					<-finish
					if ctx.Err() != nil {
						t.Errorf("the context ended with %v although there was time", ctx.Err())
					}
					return errors.New("failed on the way out")
				}
				return nil
			},
		}
		stop := runConsumer(t, c)
		<-begun
		go func() {
			eventually(t, "shutdown to begin", func() bool { return c.State().Partitions != nil })
			close(finish)
		}()
		stop()
		if n := got.distinct(); n > 10 {
			t.Errorf("%d", n)
		}
		offsets, err := b.admin(t).FetchOffsets(context.Background(), topic)
		if err != nil {
			t.Fatal(err)
		}
		if o, _ := offsets.Lookup(topic, 0); o.At != int64(got.distinct()) {
			t.Errorf("committed %d, delivered %d", o.At, got.distinct())
		}
		if n := len(b.everything(t, topic+"-retry-200ms")); n != 1 {
			t.Errorf("%d records in the retry topic, want the one that failed on the way out", n)
		}
	})
}

func TestNothingIsLeftRunning(t *testing.T) {
	b := newFake(t, false)
	topic := b.topic(t, 4)
	b.produce(t, topic, spread(100, 4)...)
	before := runtime.NumGoroutine()
	for range 3 {
		policy := shortTiers()
		policy.Concurrency = 8
		var got seen
		c := &abatekafka.Consumer{
			Brokers: []string{b.addr}, Group: unique(t), Topics: []string{topic},
			Handler: func(_ context.Context, m *abatekafka.Message) error { got.note(m.ID()); return nil },
		}
		policy.GroupInNames = true
		c.Guard, c.Redelivery = guardOf(t), policy.Always()
		stop := runConsumer(t, c)
		eventually(t, "all messages", func() bool { return got.distinct() == 100 })
		stop()
	}
	// connections of the broker end a little later
	eventually(t, "all goroutines to end", func() bool { return runtime.NumGoroutine() <= before+8 })
}

func TestConsumerThatIsNotFitSaysEverythingAtOnce(t *testing.T) {
	err := (&abatekafka.Consumer{Topics: []string{"a", "a"}}).Run(context.Background())
	for _, want := range []string{"Brokers is empty", "Group is empty", "Handler is nil", `"a" twice`, "Guard is nil"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	c := &abatekafka.Consumer{Brokers: []string{"x:1"}, Group: "g", Topics: []string{"a"},
		Handler: func(context.Context, *abatekafka.Message) error {
			return nil
		}}
	c.Guard = guardOf(t)
	if err := c.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "Redelivery is nil") {
		t.Errorf("no redelivery: %v", err)
	}
	c.Redelivery = redelivery.Config{Tiers: []time.Duration{time.Second, time.Second}}.Always()
	if err := c.Run(context.Background()); err == nil || !strings.Contains(err.Error(),
		"kafka.tiers[1]: 1s does not come after 1s") {
		t.Errorf("a mistake: %v", err)
	}
	c.Redelivery = redelivery.Config{}.Always()
	if err := c.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "kafka.tiers") {
		t.Errorf("a policy without retry topics: %v", err)
	}
	c.Redelivery = exactly().Always()
	if err := c.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "Consumer.Instance") {
		t.Errorf("exactlyOnce without an instance: %v", err)
	}
}

func TestHandlerThatEndsItsGoroutineIsAFailure(t *testing.T) {
	b := newFake(t, false)
	topic := b.topic(t, 1)
	b.produce(t, topic, spread(3, 1)...)
	var handled seen
	c := &abatekafka.Consumer{
		Brokers: []string{b.addr}, Group: topic, Topics: []string{topic}, Guard: guardOf(t),
		Redelivery: shortTiers().Always(),
		Handler: func(_ context.Context, m *abatekafka.Message) error {
			if string(m.Value) == "m-1" && m.Delivery < 3 {
				runtime.Goexit()
			}
			handled.note(string(m.Value))
			return nil
		},
	}
	runConsumer(t, c)
	eventually(t, "all messages", func() bool { return handled.distinct() == 3 })
	caughtUp(t, b, topic, topic)
}
