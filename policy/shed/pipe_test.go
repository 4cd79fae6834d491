package shed_test

import (
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/shed"
)

// A service that can do all that comes is left alone, however much that is.
func TestBBRHoldsNobodyWhileTheServiceKeepsUp(t *testing.T) {
	for _, base := range []service{workers, sharing, mixed} {
		c := base
		c.timeout, c.load = 50*c.mean, between(0.3, 0.9, 5*sec, 7*sec)
		if o := c.run(shed.Config{Concurrency: shed.BBR}, 10*sec); len(o.refused) != 0 {
			t.Errorf("%d workers: refused %v", c.workers, o.refused)
		}
	}
	s := shed.New(shed.Config{Concurrency: shed.BBR})
	for i := range 5000 {
		if _, v, reason := s.Admit(0, shed.Request{}); v != shed.Admitted {
			t.Fatalf("request %d of a shedder that knows nothing: %v %v", i, v, reason)
		}
	}
}

// Twenty times too much: the work that can be done is done. A service that works on all at once, on dear requests as on
// cheap ones, loses some of it until its limit has come down.
func TestBBRKeepsTheServiceBusyUnderOverload(t *testing.T) {
	for _, test := range []struct {
		name string
		c    service
		want float64 // of the capacity
	}{
		{"workers", workers, 0.95}, {"sharing", sharing, 0.95}, {"mixed", mixed, 0.95}, {"slow", slow, 0.95},
		{"two cores", twoCores, 0.95}, {"random", random, 0.8}, {"thrashes", thrashes, 0.3},
	} {
		c := spike(test.c)
		o := c.run(shed.Config{Concurrency: shed.BBR}, 40*sec)
		if mean, _ := o.goodput(c, 20*sec, 30*sec); mean < test.want {
			t.Errorf("%s: goodput %.2f of the capacity", test.name, mean)
		}
		if mean, _ := o.goodput(c, 31*sec, 40*sec); mean < 0.45 {
			t.Errorf("%s: goodput %.2f afterwards, want what arrives: 0.5", test.name, mean)
		}
	}
}

// A service that has become ten times slower, so that a request takes half of what its caller waits: many are late
// however few are inside, so that halving the limit does not help and is taken back.
func TestBBRLeavesWorkToAServiceThatHasBecomeSlow(t *testing.T) {
	c := service{workers: 50, mean: 10 * ms, work: randomWork}
	c.slower = func(now time.Duration) float64 { return 1 + 9*min(math.Floor(now.Seconds()/5), 1) }
	c.timeout, c.load = 200*ms, between(0.05, 1, 5*sec, 60*sec)
	o := c.run(shed.Config{Concurrency: shed.BBR}, 60*sec)
	if mean, _ := o.goodput(&c, 10*sec, 60*sec); mean < 0.04 {
		t.Errorf("goodput %.3f of the capacity before, want 0.04 of 0.1", mean)
	}
}

// Errors that come at once say nothing of how long work takes, and are not refused to save anybody.
func TestBBRLetsFastErrorsPass(t *testing.T) {
	s := shed.New(shed.Config{Concurrency: shed.BBR})
	now := time.Duration(0)
	for i := range 2000 {
		r := shed.Done
		if i >= 1000 {
			r = shed.Ignored
		}
		took := 10 * ms
		if r == shed.Ignored {
			took = 10 * time.Microsecond
		}
		p, v, reason := s.Admit(now, shed.Request{Deadline: now + sec})
		if v != shed.Admitted {
			t.Fatalf("request %d: %v %v", i, v, reason)
		}
		now += took
		s.Release(now, p, r)
	}
}

// Places that are never given back keep nobody out for good.
func TestBBRTriesAgainWhenPlacesAreLost(t *testing.T) {
	s := shed.New(shed.Config{Concurrency: shed.BBR})
	now := teach(t, s, 0, 100, 4, 10*ms, shed.Done)
	lost := 0
	for ; ; now += ms {
		if _, v, _ := s.Admit(now, shed.Request{Deadline: now + sec}); v != shed.Admitted {
			break
		}
		lost++
	}
	tried := 0
	for end := now + 10*time.Minute; now < end; now += 20 * ms {
		if _, v, _ := s.Admit(now, shed.Request{Deadline: now + sec}); v == shed.Admitted {
			tried++
		}
	}
	if tried < 600 || tried > 2400 { // each half a second at least, and each quarter at most
		t.Errorf("%d places lost, and %d more tried in ten minutes", lost, tried)
	}
}
