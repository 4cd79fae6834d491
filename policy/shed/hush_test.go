package shed_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/shed"
)

// rig is that of bench/arena: callers wait for a second, and the service does not notice when they have left.
func rig() service {
	return service{workers: 20, mean: 50 * ms, work: fixedWork, timeout: sec, leaves: true,
		load: func(time.Duration) float64 { return 0.625 }}
}

func inTrouble(t time.Duration) bool { return t >= 5*sec && t < 10*sec }

// slowed is a service that takes so many times as long while it is in trouble.
func slowed(c service, factor float64) service {
	c.slower = func(t time.Duration) float64 {
		if inTrouble(t) {
			return factor
		}
		return 1
	}
	return c
}

// In the arena's storms no requests are left behind for which nobody waits any more, so that it is over with the cause.
func TestBBRComesBackAtOnce(t *testing.T) {
	surge := rig()
	surge.load = between(0.625, 3*0.625, 5*sec, 10*sec)
	for _, test := range []struct {
		name  string
		c     service
		most  float64 // work there is, in units of the capacity and of seconds
		want  float64 // of the work
		after float64 // of the capacity, in the seconds after the trouble
	}{
		{"hang", slowed(rig(), 1e6), 25 * 0.625, 0.8, 0.58},
		{"slow", slowed(rig(), 5), 25 * 0.625, 0.82, 0.58},
		{"surge", surge, 20*0.625 + 5*3*0.625, 0.79, 0.58},
	} {
		o := test.c.run(shed.Config{Concurrency: shed.BBR}, 25*sec)
		if mean, _ := o.goodput(&test.c, 0, 25*sec); mean*25/test.most < test.want {
			t.Errorf("%s: %.3f of all is answered, want %v", test.name, mean*25/test.most, test.want)
		}
		if mean, _ := o.goodput(&test.c, 10500*ms, 12*sec); mean < test.after {
			t.Errorf("%s: %.2f of the capacity is used afterwards, want %v", test.name, mean, test.after)
		}
	}
}

// hung is a shedder whose service has stopped to answer: it has learned that a request takes 10 ms, and requests came
// each 10 ms for a second since, of which those that found a place are inside.
func hung(t *testing.T, s *shed.Shedder) (now time.Duration, inside []shed.Permit, line []*shed.Waiter) {
	t.Helper()
	now = teach(t, s, 0, 100, 4, 10*ms, shed.Done)
	for end := now + sec; now < end; now += 10 * ms {
		r := shed.Request{Deadline: now + 2*sec}
		p, v, _ := s.Admit(now, r)
		if v == shed.Admitted {
			inside = append(inside, p)
			continue
		}
		w := &shed.Waiter{}
		if v, _ = s.Enqueue(now, w, r); v == shed.Admitted {
			p, _ = w.Outcome()
			inside = append(inside, p)
		} else {
			line = append(line, w)
		}
	}
	return now, inside, line
}

func places(line []*shed.Waiter) (n int) {
	for _, w := range line {
		if p, _ := w.Outcome(); p != (shed.Permit{}) {
			n++
		}
	}
	return n
}

func TestSilentServiceGetsFewRequests(t *testing.T) {
	s := shed.New(shed.Config{Concurrency: shed.BBR})
	now, inside, line := hung(t, s)
	if n := len(inside) + places(line); n > 75 || n < 50 { // a quarter of the patience, and then probes
		t.Errorf("%d of 100 were let in", n)
	}
	before := places(line)
	s.Release(now, inside[len(inside)-1], shed.Done)
	if n := places(line); n < len(line)-1 {
		t.Errorf("%d of %d were let in after the first answer, %d before", n, len(line), before)
	}
}

// An error that comes at once is an answer; a caller that leaves is none.
func TestSilenceEndsWithAQuickErrorAndNotWithALeavingCaller(t *testing.T) {
	for _, test := range []struct {
		age   time.Duration
		freed bool
	}{{100 * ms, true}, {sec, false}} {
		s := shed.New(shed.Config{Concurrency: shed.BBR})
		now, inside, line := hung(t, s)
		before := places(line)
		p := inside[0]
		for _, w := range line {
			if q, _ := w.Outcome(); test.freed && q != (shed.Permit{}) {
				p = q // the last probe
			}
		}
		if test.freed {
			now += test.age / 100
		}
		s.Release(now, p, shed.Ignored)
		if freed := places(line) > before+2; freed != test.freed {
			t.Errorf("%v old: %d let in before, %d afterwards", test.age, before, places(line))
		}
	}
}

func TestReconfigureEndsASilence(t *testing.T) {
	for _, c := range []shed.Config{{}, {Concurrency: shed.BBR, Shadow: true}, {Concurrency: shed.BBR, NoQueue: true},
		{Concurrency: shed.Fixed, MaxConcurrency: 200}} {
		s := shed.New(shed.Config{Concurrency: shed.BBR})
		now, _, _ := hung(t, s)
		s.Reconfigure(now, c)
		r := shed.Request{Deadline: now + 2*sec, Priority: shed.CriticalPlus}
		if _, v, reason := s.Admit(now, r); v != shed.Admitted {
			t.Errorf("%+v: %v %v", c, v, reason)
		}
	}
}

// What was given up would have taken longer; its age is that of its caller's patience.
func TestWhatWasGivenUpTeachesNoLatency(t *testing.T) {
	s := shed.New(shed.Config{Concurrency: shed.BBR})
	now := teach(t, s, 0, 200, 4, 10*ms, shed.Done)
	before := s.State(now).Latency
	for i := range 400 {
		p, v, _ := s.Admit(now, shed.Request{Deadline: now + 100*ms})
		if v != shed.Admitted {
			continue
		}
		if now += 60 * ms; i%2 == 0 {
			s.Release(now, p, shed.Dropped)
		} else {
			s.Release(now, p, shed.Ignored)
		}
	}
	if after := s.State(now).Latency; after != before || before == 0 {
		t.Errorf("latency %v, was %v", after, before)
	}
}
