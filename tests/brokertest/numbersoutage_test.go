package brokertest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/redelivery"
)

// dependency is the service that the handler calls: it takes a while for each call, and is down for a while. It counts
// the calls that it gets in each tenth of a second.
type dependency struct {
	mu    sync.Mutex
	down  bool
	began time.Time
	calls []int // by tenths of a second
}

var errOutage = errors.New("connection refused")

func (d *dependency) set(down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = down
}

// call takes 5 ms, or fails at once.
func (d *dependency) call(ctx context.Context) error {
	d.mu.Lock()
	at := int(time.Since(d.began) / (100 * time.Millisecond))
	for len(d.calls) <= at {
		d.calls = append(d.calls, 0)
	}
	d.calls[at]++
	down := d.down
	d.mu.Unlock()
	if down {
		return errOutage
	}
	select {
	case <-time.After(5 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// load returns the calls per second in the busiest time of some length between two moments.
func (d *dependency) load(from, to time.Time, length time.Duration) (most float64) {
	const slot = 100 * time.Millisecond
	d.mu.Lock()
	defer d.mu.Unlock()
	first, last, slots := int(from.Sub(d.began)/slot), min(int(to.Sub(d.began)/slot), len(d.calls)), int(length/slot)
	sum := 0
	for i := first; i < last; i++ {
		sum += d.calls[i]
		if i-slots >= first {
			sum -= d.calls[i-slots]
		}
		most = max(most, float64(sum)/length.Seconds())
	}
	return most
}

// outage has a service go down for a while under a steady stream of messages, which goes on afterwards too.
func (n *numbers) outage(t *testing.T) {
	rate := n.size(1667, 500)
	before, down := time.Duration(n.size(20, 2))*time.Second, time.Duration(n.size(60, 2))*time.Second
	after := n.size(20_000, 500) // messages that come when the service is back
	arrive := func(d time.Duration) int { return int(d.Seconds() * float64(rate)) }
	total := arrive(before) + arrive(down) + after
	const partitions = 3
	topic := n.b.topic(t, partitions)
	seen, service := newOnce(total), &dependency{began: time.Now()}
	policy := abate.DefaultPolicy()
	config := redelivery.Config{
		Tiers: []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second}, Concurrency: 16,
	}
	if !n.full {
		policy.CircuitBreaker.SlidingWindow = breaker.Window{Duration: time.Second} // as short as the outage
	}
	guard := n.guard(t, policy)
	consumer := &abatekafka.Consumer{
		Brokers: []string{n.b.addr}, Group: topic, Topics: []string{topic}, Replication: 1, Logger: quietLog(), Guard: guard,
		Redelivery: config.Always(),
		Options:    []kgo.Opt{kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())},
		Handler: func(ctx context.Context, m *abatekafka.Message) error {
			if err := service.call(ctx); err != nil {
				return err
			}
			seen.handled(number(m.Value))
			return nil
		},
	}
	stop := n.running(t, consumer)
	flow := n.flow(t, topic, partitions)
	flow.at(rate, arrive(before))
	falls := time.Now()
	service.set(true)
	flow.at(rate, arrive(down))
	service.set(false)
	back := time.Now()
	flow.at(rate, after)
	twice := seen.wait(t, n.failed, 15*time.Minute)
	// What is normal is what the policy takes for it: the busiest ten seconds.
	normal := service.load(service.began.Add(time.Second), falls, min(10*time.Second, before-time.Second))
	during := service.load(falls, back, down)
	peak, sustained := service.load(back, seen.ends, time.Second), service.load(back, seen.ends, 10*time.Second)
	stop()
	letters := len(n.b.everything(t, abatekafka.NewChain(topic, topic, config).DeadLetters))
	if letters > 0 {
		t.Errorf("%d dead letters of an outage", letters)
	}
	t.Logf("%d messages, %d of them during %v of outage: load %.0f/s, during the outage %.0f/s, afterwards at most "+
		"%.0f/s for a second and %.0f/s for ten; all handled %v after the recovery",
		total, arrive(down), down, normal, during, peak, sustained, seen.ends.Sub(back).Round(time.Second))
	n.add("100,000 messages during a 60 s outage: handled more than once", "0", twice == 0, "%d", twice)
	n.add("... dead letters", "0", letters == 0, "%d", letters)
	n.add("... load after the recovery, busiest 10 s ÷ that before", "≤ 1.2", sustained < 1.205*normal,
		"%.2f (%.0f ÷ %.0f calls/s)", sustained/normal, sustained, normal)
	n.add("... busiest second ÷ the same", "≤ 1.2", peak < 1.205*normal, "%.2f (%.0f calls/s)", peak/normal, peak)
	n.add("... load during the outage ÷ normal", "", true, "%.2f; everything handled %v after the recovery", during/normal,
		seen.ends.Sub(back).Round(time.Second))
}
