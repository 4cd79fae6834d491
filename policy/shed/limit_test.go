package shed_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/shed"
)

// spike is a minute of half of the capacity with ten seconds of twenty times the capacity in it.
func spike(c service) *service {
	c.timeout, c.load = 20*c.mean, between(0.5, 20, 20*sec, 30*sec)
	return &c
}

var (
	workers  = service{workers: 10, mean: 10 * ms, work: fixedWork}
	sharing  = service{workers: 10, mean: 10 * ms, work: fixedWork, shares: true}
	random   = service{workers: 10, mean: 10 * ms, work: randomWork, shares: true}
	mixed    = service{workers: 10, mean: 10 * ms, work: mixedWork}
	slow     = service{workers: 50, mean: 50 * ms, work: randomWork}
	twoCores = service{workers: 2, mean: 10 * ms, work: fixedWork, shares: true}
	thrashes = service{workers: 20, mean: 20 * ms, work: fixedWork, shares: true, thrash: 0.5}
)

// TestRecoverySpike is the promise for the algorithm of the default protection.
func TestRecoverySpike(t *testing.T) {
	for _, test := range []struct {
		name  string
		c     service
		worst float64 // second
		times float64 // p99 in that of the unloaded service
	}{
		{"workers", workers, 0.95, 3}, {"sharing", sharing, 0.95, 3}, {"random work", random, 0.9, 3},
		{"mixed work", mixed, 0.9, 3},
		{"slow", slow, 0.9, 3}, {"two cores", twoCores, 0.9, 3}, {"slows down under load", thrashes, 0.8, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := spike(test.c)
			o := c.run(shed.Config{Concurrency: shed.Gradient}, 40*sec)
			if _, worst := o.goodput(c, 20*sec, 30*sec); worst < test.worst {
				t.Errorf("goodput %.2f of the capacity in one second, want %.2f", worst, test.worst)
			}
			unloaded, loaded := o.quantile(0.99, 10*sec, 20*sec), o.quantile(0.99, 20*sec, 30*sec)
			if float64(loaded) > test.times*float64(unloaded) {
				t.Errorf("p99 of the admitted %v, unloaded %v", loaded, unloaded)
			}
			if o.queued > o.limits[1999]+1 {
				t.Errorf("%d waited, with a limit of %d", o.queued, o.limits[1999])
			}
			if mean, _ := o.goodput(c, 31*sec, 40*sec); mean < 0.47 {
				t.Errorf("goodput %.2f of the capacity afterwards, want what arrives: 0.5", mean)
			}
		})
	}
}

func TestLimitFollowsTheServiceForGood(t *testing.T) {
	for _, a := range []shed.Algorithm{shed.Gradient, shed.Vegas} {
		for _, base := range []service{workers, random} {
			for _, test := range []struct {
				name          string
				before, after float64
				least, most   time.Duration
			}{{"slower", 1, 3, 27 * ms, 40 * ms}, {"faster", 3, 1, 8 * ms, 30 * ms}} {
				t.Run(fmt.Sprint(a, test.name), func(t *testing.T) {
					c := base
					c.timeout, c.load = 300*ms, between(2/test.after, 2/test.after, 0, 0)
					c.slower = func(now time.Duration) float64 {
						if now < 20*sec {
							return test.before
						}
						return test.after
					}
					var last time.Duration
					c.spy = func(now time.Duration, s *shed.Shedder) { last = s.State(now).Latency }
					o := c.run(shed.Config{Concurrency: a}, 90*sec)
					if mean, _ := o.goodput(&c, 70*sec, 90*sec); mean*test.after < 0.93 {
						t.Errorf("goodput %.2f of the new capacity", mean*test.after)
					}
					if last < test.least || last > test.most {
						t.Errorf("latency without load: %v, want %v to %v", last, test.least, test.most)
					}
				})
			}
		}
	}
}

func TestLimitFollowsASlowerServiceSoon(t *testing.T) {
	c := random
	c.timeout, c.load = 300*ms, between(2, 2, 0, 0)
	c.slower = func(now time.Duration) float64 { return 1 + 2*min(math.Floor(now.Seconds()/20), 1) }
	o := c.run(shed.Config{Concurrency: shed.Gradient}, 30*sec)
	if mean, _ := o.goodput(&c, 20*sec, 30*sec); 3*mean < 0.85 {
		t.Errorf("goodput %.2f of the capacity in the ten seconds after it fell to a third", 3*mean)
	}
}

func TestLimitIsFoundWhenOverloadIsThereFromTheFirstRequest(t *testing.T) {
	for _, a := range []shed.Algorithm{shed.Gradient, shed.Vegas} {
		for _, c := range []service{sharing, workers, slow} {
			c.timeout, c.load = sec, between(2, 2, 0, 0)
			o := c.run(shed.Config{Concurrency: a}, 20*sec)
			mean, _ := o.goodput(&c, 10*sec, 20*sec)
			if p50 := o.quantile(0.5, 10*sec, 20*sec); mean < 0.95 || p50 > 3*c.mean {
				t.Errorf("%s, %d workers: goodput %.2f, half of the requests take more than %v, alone %v", a, c.workers, mean,
					p50, c.mean)
			}
		}
	}
}

func TestLimitDoesNotGrowWhileRequestsAreDropped(t *testing.T) {
	for _, a := range []shed.Algorithm{shed.Gradient, shed.Vegas, shed.AIMD} {
		s := shed.New(shed.Config{Concurrency: a, InitialConcurrency: 10, MinConcurrency: 10})
		now := time.Duration(0)
		for range 500 {
			p, _, _ := s.Admit(now, shed.Request{})
			now = teach(t, s, now, 1, 9, 10*ms, shed.Done)
			s.Release(now, p, shed.Dropped)
			if got := s.State(now).Limit; got > 10 {
				t.Fatalf("%s: limit %d", a, got)
			}
		}
	}
}

func TestLimitDoesNotDriftUnderLongOverload(t *testing.T) {
	for _, base := range []service{workers, sharing, random} {
		c := base
		c.timeout, c.load = 300*ms, between(2, 2, 0, 0)
		o := c.run(shed.Config{Concurrency: shed.Gradient}, 110*sec)
		for from := 10 * sec; from < 110*sec; from += 50 * sec {
			if mean, _ := o.goodput(&c, from, from+50*sec-10*sec); mean < 0.95 {
				t.Errorf("goodput %.2f from %v", mean, from)
			}
		}
		first, last := o.quantile(0.99, 10*sec, 60*sec), o.quantile(0.99, 60*sec, 110*sec)
		if float64(last) > 1.3*float64(first) {
			t.Errorf("p99 %v at first, %v at last", first, last)
		}
	}
}

func TestLimitStaysWhileIdle(t *testing.T) {
	for _, a := range []shed.Algorithm{shed.Gradient, shed.Vegas, shed.AIMD} {
		c := workers
		c.timeout = sec
		c.load = func(now time.Duration) float64 {
			switch {
			case now < 20*sec:
				return 0.9
			case now < 10*time.Minute:
				return 0.05 // a request each 20 ms
			}
			return 0
		}
		o := c.run(shed.Config{Concurrency: a, MaxConcurrency: 500}, 10*time.Minute)
		before, after := o.limits[2100], o.limits[len(o.limits)-1]
		if before != after || after > 100 {
			t.Errorf("%s: limit %d, %d after idle minutes", a, before, after)
		}
	}
}

// teach reports n requests that took d, with k in flight, and returns the time.
func teach(t *testing.T, s *shed.Shedder, now time.Duration, n, k int, d time.Duration, r shed.Result) time.Duration {
	t.Helper()
	for range n {
		var ps []shed.Permit
		for range k {
			if p, v, _ := s.Admit(now, shed.Request{}); v == shed.Admitted {
				ps = append(ps, p)
			}
		}
		now += d
		for _, p := range ps {
			s.Release(now, p, r)
		}
	}
	return now
}

func TestOnlyHandledRequestsTellTheLatency(t *testing.T) {
	for _, other := range []shed.Result{shed.Ignored, shed.Dropped} {
		s := shed.New(shed.Config{Concurrency: shed.Gradient, MinConcurrency: 20})
		now := teach(t, s, 0, 1000, 5, 10*ms, shed.Done)
		for range 1000 {
			now = teach(t, s, now, 1, 5, time.Microsecond, other)
			p, _, _ := s.Admit(now, shed.Request{Deadline: now}) // refused
			s.Release(now, p, shed.Done)
		}
		now = teach(t, s, now, 3000, 5, ms, other)
		now = teach(t, s, now, 1000, 5, 30*ms, other)
		if got := s.State(now).Latency; got < 9900*time.Microsecond || got > 10100*time.Microsecond {
			t.Errorf("result %d: latency without load %v, want 10ms", other, got)
		}
	}
}

func TestWaitingDoesNotCountAsLatency(t *testing.T) {
	s, p := full(t, shed.Config{MaxQueue: 4, QueueInterval: sec, QueueTarget: sec})
	now := time.Duration(0)
	for range 300 {
		w := queued(t, s, now, shed.Request{})
		now += 10 * ms
		s.Release(now, p, shed.Done)
		p = w.admitted(t)
	}
	if got := s.State(now).Latency; got < 9*ms || got > 11*ms {
		t.Errorf("latency %v, want 10ms", got)
	}
}

func TestDroppedRequestsLowerTheLimitOncePerRoundTrip(t *testing.T) {
	for _, a := range []shed.Algorithm{shed.Gradient, shed.Vegas, shed.AIMD} {
		s := shed.New(shed.Config{Concurrency: a, InitialConcurrency: 100, MinConcurrency: 10})
		limit := 100.0
		now := time.Duration(0)
		for range 10 {
			now = teach(t, s, now+1, 1, 50, sec, shed.Dropped)
			limit *= 0.9
			if got := s.State(now).Limit; got != int(limit) {
				t.Fatalf("%s: limit %d after 50 dropped at once, want %d", a, got, int(limit))
			}
		}
		now = teach(t, s, now+1, 100, 5, sec, shed.Dropped)
		if got := s.State(now).Limit; got != 10 {
			t.Errorf("%s: limit %d, want the least", a, got)
		}
	}
}

func TestLimitStaysInItsBounds(t *testing.T) {
	for _, a := range []shed.Algorithm{shed.Gradient, shed.Vegas, shed.AIMD} {
		s := shed.New(shed.Config{Concurrency: a, MinConcurrency: 5, InitialConcurrency: 10, MaxConcurrency: 30})
		now := teach(t, s, 0, 2000, 40, 10*ms, shed.Done)
		if got := s.State(now).Limit; got != 30 {
			t.Errorf("%s: limit %d while nothing is slow, want the most", a, got)
		}
		for i := range 3000 { // ever slower
			now = teach(t, s, now, 1, 40, 10*ms+time.Duration(i)*ms/3, shed.Done)
			if got := s.State(now).Limit; got > 30 || got < 2 { // half of the least, for a moment
				t.Fatalf("%s: limit %d", a, got)
			}
		}
	}
}

func TestLearningGoesOnAfterARush(t *testing.T) {
	s := shed.New(shed.Config{Concurrency: shed.Gradient})
	now := time.Duration(0)
	rush := func(n int, d time.Duration) (timed int) {
		for range n {
			p, _, _ := s.Admit(now, shed.Request{})
			at := now
			now += d
			if s.NeedsTime(p) {
				at = now
				timed++
			}
			s.Release(at, p, shed.Done)
		}
		return timed
	}
	rush(5_000_000, 200*time.Nanosecond)
	if n := rush(500_000, 200*time.Nanosecond); n > 5000 || n < 20 {
		t.Errorf("%d of 500,000 requests learned from in a tenth of a second", n)
	}
	rush(1000, 10*ms)
	if got := s.State(now).Latency; got < 9*ms {
		t.Errorf("ten seconds after the rush: latency %v, want 10ms", got)
	}
}

// TestEvidence measures the table in the package comment, prints it, and holds what is concluded from it.
func TestEvidence(t *testing.T) {
	if testing.Short() {
		return // make race measures it
	}
	var table strings.Builder
	algorithms := []shed.Algorithm{shed.Gradient, shed.Vegas, shed.AIMD}
	row := func(name string, cell func(a shed.Algorithm) string) {
		fmt.Fprintf(&table, "\n%-24s", name)
		for _, a := range algorithms {
			fmt.Fprintf(&table, " %16s", cell(a))
		}
	}
	row("", func(a shed.Algorithm) string { return string(a) })
	goodput, slowest := map[shed.Algorithm]float64{}, map[shed.Algorithm]float64{}
	for _, k := range []struct {
		name string
		c    service
	}{{"10 workers", workers}, {"10 shares", sharing}, {"10 shares, random", random}, {"10 workers, mixed", mixed},
		{"50 workers, random", slow}, {"2 shares", twoCores}, {"slows down", thrashes}} {
		row(k.name, func(a shed.Algorithm) string {
			c := spike(k.c)
			o := c.run(shed.Config{Concurrency: a}, 30*sec)
			mean, worst := o.goodput(c, 20*sec, 30*sec)
			times := float64(o.quantile(0.99, 20*sec, 30*sec)) / float64(o.quantile(0.99, 10*sec, 20*sec))
			goodput[a], slowest[a] = goodput[a]+mean/7, max(slowest[a], times)
			return fmt.Sprintf("%3.0f %3.0f %5.1f", 100*mean, 100*worst, times)
		})
	}
	row("cold: 90 % after", func(a shed.Algorithm) string {
		c := slow
		c.timeout, c.load = sec, between(4, 4, 0, 0)
		o := c.run(shed.Config{Concurrency: a}, 20*sec)
		for from := time.Duration(0); from < 19*sec; from += 100 * ms {
			if mean, _ := o.goodput(&c, from, from+sec); mean >= 0.9 {
				return from.String()
			}
		}
		return "never"
	})
	row("3 x slower for good", func(a shed.Algorithm) string {
		c := random
		c.timeout, c.load = 300*ms, between(2, 2, 0, 0)
		c.slower = func(now time.Duration) float64 { return 1 + 2*min(math.Floor(now.Seconds()/20), 1) }
		o := c.run(shed.Config{Concurrency: a}, 50*sec)
		mean, _ := o.goodput(&c, 20*sec, 30*sec)
		return fmt.Sprintf("%3.0f %5v %5v", 300*mean, o.quantile(0.99, 20*sec, 30*sec).Round(ms),
			o.quantile(0.99, 40*sec, 50*sec).Round(ms))
	})
	row("2 x for two minutes", func(a shed.Algorithm) string {
		c := sharing
		c.timeout, c.load = 300*ms, between(2, 2, 0, 0)
		o := c.run(shed.Config{Concurrency: a}, 120*sec)
		return fmt.Sprintf("%5v %5v", o.quantile(0.99, 10*sec, 40*sec).Round(ms), o.quantile(0.99, 90*sec, 120*sec).Round(ms))
	})
	t.Log(table.String())
	for _, other := range algorithms[1:] {
		if slowest[shed.Gradient] > slowest[other] || goodput[shed.Gradient] < goodput[other]-0.02 {
			t.Errorf("gradient is no longer the best choice: p99 %.1f times, %s %.1f; goodput %.2f, %.2f",
				slowest[shed.Gradient], other, slowest[other], goodput[shed.Gradient], goodput[other])
		}
	}
}
