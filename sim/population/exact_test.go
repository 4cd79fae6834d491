// One goroutine runs a population: the race detector has nothing to find here, and makes these tests twenty times
// slower.

//go:build !race

package population_test

import (
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/retry"
	"github.com/abate-go/abate/sim/population"
)

const ms = time.Millisecond

// phones is an instance with known results: every client calls once in the two minutes of an outage, and the server
// then takes 1.2 times the clients' normal rate.
func phones(clients int, jitter retry.Jitter) population.Config {
	return population.Config{
		Clients:  clients,
		Within:   2 * time.Minute,
		Duration: 15 * time.Minute,
		Retry:    retry.Config{MaxRetries: 100, InitialDelay: time.Second, MaxDelay: time.Minute, Jitter: jitter},
		Capacity: 1.2 * float64(clients) / 120,
		Outages:  []population.Outage{{To: 2 * time.Minute}},
	}
}

func exact(t *testing.T, c population.Config, seed uint64) *population.Curve {
	t.Helper()
	curve, err := population.Exact(c, seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	sums := curve.Totals()
	if sums.Offered != sums.Served+sums.Failed+sums.Waiting {
		t.Fatalf("%+v: requests are lost or made up", sums)
	}
	return curve
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s = %v, want %v ± %v", what, got, want, tolerance)
	}
}

// Full jitter halves the mean delay, so it makes more attempts while nobody answers, and is done sooner.
func TestTwoMinutesOfOutageForPhones(t *testing.T) {
	const clients = 300_000
	for _, tt := range []struct {
		jitter                             retry.Jitter
		attempts, firstSecond, last, about float64
	}{
		{retry.NoJitter, 7.71, 5.0, 245.5, 1.5},
		{retry.FullJitter, 9.61, 6.6, 237.5, 1},
	} {
		c := exact(t, phones(clients, tt.jitter), 1)
		name := string(tt.jitter)
		near(t, name+": attempts per client", c.Totals().Attempts/clients, tt.attempts, 0.03)
		near(t, name+": attempts of the first second, of capacity", c.PerSecond(c.Attempts)[120]/(clients/100),
			tt.firstSecond, 0.1)
		at, ok := c.ServedBy(0.99)
		near(t, name+": seconds until 99 % are served", at.Seconds(), tt.last, tt.about)
		if total := c.Totals(); !ok || total.Served != clients || c.Events != int64(total.Attempts) {
			t.Errorf("%s: %+v with %d events, want all served and an event per attempt", name, total, c.Events)
		}
	}
}

// A thousand clients that fail together for a minute.
func TestAttemptsOfOneMinute(t *testing.T) {
	for _, tt := range []struct {
		backoff retry.Backoff
		want    float64
	}{
		{retry.FixedBackoff, 60_000},
		{retry.ExponentialBackoff, 6_000}, // at 0, 1, 3, 7, 15, 31 s
		{retry.LinearBackoff, 11_000},     // at 0, 1, 3, 6 … 55 s
	} {
		c := population.Config{
			Clients: 1000, Duration: time.Minute, Outages: []population.Outage{{To: time.Hour}},
			Retry: retry.Config{
				MaxRetries: 100, Backoff: tt.backoff, InitialDelay: time.Second, MaxDelay: time.Hour, Jitter: retry.NoJitter,
			},
		}
		if got := exact(t, c, 1).Totals(); got.Attempts != tt.want || got.Waiting != 1000 {
			t.Errorf("%s, exact: %+v, want %v attempts and all waiting", tt.backoff, got, tt.want)
		}
		got := cohort(t, c).Totals()
		near(t, string(tt.backoff)+", cohort: attempts", got.Attempts, tt.want, 1e-6)
		near(t, string(tt.backoff)+", cohort: waiting", got.Waiting, 1000, 1e-6)
	}
}

// times lists when the members of a series happened.
func times(c *population.Curve, series []float64) []time.Duration {
	var list []time.Duration
	for i, n := range series {
		for range int(n) {
			list = append(list, time.Duration(i)*c.Slot)
		}
	}
	return list
}

func TestServerAnswersInOrder(t *testing.T) {
	list := func(d ...time.Duration) []time.Duration { return d }
	for _, tt := range []struct {
		name           string
		c              population.Config
		served, failed []time.Duration
	}{
		{"a queue without end", population.Config{Clients: 4, QueueLimit: -1},
			list(0, 100*ms, 200*ms, 300*ms), nil},
		{"the work takes time", population.Config{Clients: 3, QueueLimit: -1, ServiceTime: 250 * ms},
			list(250*ms, 350*ms, 450*ms), nil},
		{"a queue of two", population.Config{Clients: 5, QueueLimit: 2},
			list(0, 100*ms, 200*ms), list(0, 0)},
		{"no queue", population.Config{Clients: 3}, list(0), list(0, 0)},
		{"no queue, and the work takes longer than anybody waits", population.Config{
			Clients: 1, ServiceTime: 30 * ms, AttemptTimeout: 20 * ms,
		},
			nil, list(20 * ms)},
		{"an answer at the instant of the timeout is in time", population.Config{
			Clients: 4, QueueLimit: -1, AttemptTimeout: 200 * ms,
		},
			list(0, 100*ms, 200*ms), list(200 * ms)},
		{"what was left is worked on", population.Config{Clients: 2, QueueLimit: -1, AttemptTimeout: 50 * ms,
			Retry: retry.Config{MaxRetries: 1, InitialDelay: 20 * ms, Jitter: retry.NoJitter}},
			// the retry at 70 ms finds its own first attempt before it, and would be answered at 200 ms
			list(0), list(120 * ms)},
		{"refused in an outage", population.Config{Clients: 2, QueueLimit: -1, Outages: []population.Outage{{To: 500 * ms}}},
			nil, list(0, 0)},
		{"held in the queue by an outage", population.Config{
			Clients: 3, QueueLimit: 1, Outages: []population.Outage{{To: 500 * ms, Hang: true}},
		},
			list(500*ms, 600*ms), list(0)},
		{"held in the queue for too long", population.Config{
			Clients: 2, QueueLimit: -1, AttemptTimeout: 500 * ms, Outages: []population.Outage{{To: 500 * ms, Hang: true}},
		},
			list(500 * ms), list(500 * ms)},
		{"nobody answers in an outage without a queue", population.Config{
			Clients: 2, AttemptTimeout: 600 * ms, Outages: []population.Outage{{To: 500 * ms, Hang: true}},
		},
			nil, list(600*ms, 600*ms)},
		{"what waits when an outage begins is taken after it", population.Config{
			Clients: 3, QueueLimit: -1, Outages: []population.Outage{
				{From: 50 * ms, To: 400 * ms}, {From: 450 * ms, To: 600 * ms},
			},
		},
			list(0, 600*ms, 700*ms), nil}, // the second is due after 100 ms of work: when the second outage begins
		{"the deadline ends an attempt", population.Config{Clients: 2, QueueLimit: -1, Patience: 30 * ms}, list(0),
			list(30 * ms)},
		{"no retry begins at the deadline", population.Config{Clients: 2, Patience: 40 * ms,
			Retry: retry.Config{MaxRetries: 9, Backoff: retry.FixedBackoff, InitialDelay: 20 * ms, Jitter: retry.NoJitter}},
			list(0), list(20 * ms)},
		{"no retry begins after MaxElapsed", population.Config{Clients: 2,
			Retry: retry.Config{
				MaxRetries: 9, Backoff: retry.FixedBackoff, InitialDelay: 20 * ms, Jitter: retry.NoJitter, MaxElapsed: 50 * ms,
			}},
			list(0), list(40 * ms)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.c.Capacity, tt.c.Duration = 10, time.Second
			c := exact(t, tt.c, 1)
			if served, failed := times(c, c.Served), times(c, c.Failed); !reflect.DeepEqual(served, tt.served) ||
				!reflect.DeepEqual(failed, tt.failed) {
				t.Errorf("served at %v, failed at %v; want %v and %v", served, failed, tt.served, tt.failed)
			}
		})
	}
}

// The policy decides with what it asks for: the last delay and the time since the begin of the request, alone and
// together. A client that is never answered is run here without the population.
func TestClientsRememberWhatThePolicyAsksFor(t *testing.T) {
	for name, config := range map[string]retry.Config{
		"decorrelated":                {MaxRetries: 100, Jitter: retry.DecorrelatedJitter},
		"max elapsed":                 {MaxRetries: 100, MaxElapsed: 20 * time.Second},
		"decorrelated to max elapsed": {MaxRetries: 100, Jitter: retry.DecorrelatedJitter, MaxElapsed: 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			const clients = 20_000
			total := exact(t, population.Config{
				Clients: clients, Duration: time.Minute, Retry: config, Outages: []population.Outage{{To: time.Hour}},
			}, 3).Totals()
			mean, sd, gaveUp := alone(config, clients, time.Minute)
			near(t, "attempts per client", total.Attempts/clients, mean, 4*sd*math.Sqrt(2.0/clients))
			near(t, "share given up", total.Failed/clients, gaveUp, 4*math.Sqrt(0.5/clients))
		})
	}
}

func TestClosedLoopThinksBetweenRequests(t *testing.T) {
	c := population.Config{Clients: 5000, Think: 4 * time.Second, ServiceTime: time.Second, Duration: time.Minute}
	total := exact(t, c, 1).Totals()
	near(t, "served per second", total.Served/60, 5000/5.0, 20) // the first second has no answers yet, then fewer think
	c.Capacity, c.QueueLimit = 500, -1
	total = exact(t, c, 1).Totals()
	near(t, "served per second at capacity", total.Served/59, 500, 1)
}

func TestSameSeedSameCurve(t *testing.T) {
	c := phones(2000, retry.FullJitter)
	one, again, other := exact(t, c, 7), exact(t, c, 7), exact(t, c, 8)
	if !reflect.DeepEqual(one, again) {
		t.Error("two runs of one seed differ")
	}
	if reflect.DeepEqual(one, other) {
		t.Error("two seeds give the same run")
	}
	var sum float64
	for i, n := range one.Attempts {
		sum += n * float64(i%1009)
	}
	if want := 10410591.0; sum != want {
		t.Errorf("checksum of the attempts = %v, want %v: the same seed gives other bytes than before", sum, want)
	}
}

func TestExactStopsWhenTold(t *testing.T) {
	asked := 0
	c, err := population.Exact(phones(100_000, retry.FullJitter), 1, func() bool { asked++; return asked == 3 })
	if c != nil || !errors.Is(err, population.ErrStopped) || asked != 3 {
		t.Errorf("curve %v, error %v after being told %d times", c, err, asked)
	}
}
