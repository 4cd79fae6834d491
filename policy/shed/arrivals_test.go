package shed_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/shed"
)

func TestRetriesTooMany(t *testing.T) {
	tests := []struct {
		name           string
		c              shed.Config
		firsts, others int
		want           bool
	}{
		{"few enough", shed.Config{}, 1000, 100, false},
		{"too many", shed.Config{}, 1000, 101, true},
		{"another share", shed.Config{MaxRetryShare: 0.5}, 1000, 500, false},
		{"more than another share", shed.Config{MaxRetryShare: 0.5}, 1000, 501, true},
		{"too little to tell", shed.Config{}, 10, 9, false},
		{"retries only", shed.Config{}, 0, 20, true},
		{"off", shed.Config{Disabled: true}, 10, 1000, false},
	}
	for _, test := range tests {
		for _, places := range []int{1, 10_000} { // refused ones count as well
			t.Run(test.name, func(t *testing.T) {
				test.c.Concurrency, test.c.MaxConcurrency = shed.Fixed, places
				s := shed.New(test.c)
				if s.RetriesTooMany(0) {
					t.Error("before anything came")
				}
				for i := range test.firsts {
					s.Admit(100*ms, shed.Request{Attempt: i % 2}) // 0 is a first attempt too
				}
				for i := range test.others {
					s.Admit(200*ms, shed.Request{Attempt: 2 + i%3})
				}
				for now := 500 * ms; now < 10*sec; now += 100 * ms {
					if got := s.RetriesTooMany(now); got != test.want {
						t.Fatalf("at %v: %v, want %v", now, got, test.want)
					}
				}
				if st := s.State(9 * sec); st.Attempts[0] != test.firsts ||
					st.Attempts[1]+st.Attempts[2]+st.Attempts[3] != test.others {
					t.Errorf("attempts %v, want %d and %d", st.Attempts, test.firsts, test.others)
				}
				if st := s.State(12 * sec); st.RetryShare != 0 || s.RetriesTooMany(12*sec) {
					t.Errorf("share %v long after", st.RetryShare)
				}
			})
		}
	}
}

func TestArrivalsLeaveTheWindowWhetherLookedAtOrNot(t *testing.T) {
	s := shed.New(shed.Config{Concurrency: shed.Gradient})
	s.SkipArrivals(shed.WrapArrivals - 50)
	s.State(0)
	for range 100 { // the counter wraps
		s.Admit(ms, shed.Request{})
	}
	if got := s.State(8 * sec).Attempts[0]; got != 100 {
		t.Errorf("%d arrivals, want 100", got)
	}
	s.Admit(8*sec, shed.Request{})
	if got := s.State(11 * sec).Attempts[0]; got != 1 {
		t.Errorf("%d arrivals three seconds later, want only the last", got)
	}
}

func TestArrivalsAreCountedWhateverBecomesOfThem(t *testing.T) {
	s, p := full(t, shed.Config{MaxQueue: 2, QueueInterval: 10 * ms, CPU: 0.5})
	queued(t, s, 1, shed.Request{})
	queued(t, s, 1, shed.Request{Priority: shed.SheddablePlus})
	send(s, 1, shed.Request{})                         // displaces
	send(s, 1, shed.Request{Priority: shed.Sheddable}) // refused
	send(s, 1, shed.Request{Deadline: 1})              // expired
	s.Release(2, p, shed.Done)
	s.Admit(2, shed.Request{Priority: shed.CriticalPlus}) // overtakes, if only to be told to wait
	if st := s.State(3); st.Attempts[0] != 7 {
		t.Errorf("%d arrivals, want 7", st.Attempts[0])
	}
}

func TestBacklogIsWhatTheServiceNeedsForWhatWaits(t *testing.T) {
	c := &service{workers: 10, mean: 10 * ms, timeout: sec, work: fixedWork} // 1000 a second
	for _, load := range []float64{0.5, 1.2, 3, 20} {
		c.load = between(load, load, 0, 0)
		var wait, each time.Duration
		queued := 0
		c.spy = func(now time.Duration, s *shed.Shedder) {
			wait, each = s.Backlog(now)
			queued = s.State(now).Queued
		}
		c.run(shed.Config{Concurrency: shed.Gradient}, 15*sec)
		if wait != time.Duration(queued)*each || load > 1 && (each < 700*time.Microsecond || each > 1300*time.Microsecond) {
			t.Errorf("load %v: %v for %d, %v each", load, wait, queued, each)
		}
	}
	if wait, each := shed.New(shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 20}).Backlog(-time.Hour); wait != 0 ||
		each != 50*ms {
		t.Errorf("nothing known: %v, %v, want 0 and a second for each place", wait, each)
	}
}

// TestProcessor feeds back: the processor's use follows from what is admitted.
func TestProcessor(t *testing.T) {
	mixes := map[string][]shed.Request{
		"one class": {{}},
		"retries":   {{}, {Attempt: 2}},
		"four priorities": {{Priority: shed.Sheddable}, {Priority: shed.SheddablePlus}, {Priority: shed.Critical},
			{Priority: shed.CriticalPlus}},
		"sheddable only": {{Priority: shed.Sheddable}},
	}
	for name, mix := range mixes {
		for _, load := range []float64{0.5, 0.88, 1.3, 2, 10} {
			s := shed.New(shed.Config{CPU: 0.9})
			var passed, came [16]float64
			now, use := time.Duration(0), 0.0
			for tick := range 200 {
				now += 250 * ms
				s.SetCPU(now, math.Min(use, 1))
				use = 0
				for i := range 1000 {
					k := i % len(mix)
					_, v, reason := s.Admit(now, mix[k])
					if v == shed.Refused && reason != shed.CPU {
						t.Fatalf("refused for %q", reason)
					}
					if tick >= 100 {
						came[k]++
					}
					if v == shed.Admitted {
						use += load / 1000
						if tick >= 100 {
							passed[k]++
						}
					}
				}
			}
			total := 0.0
			for k := range mix {
				share := passed[k] / came[k]
				total += share / float64(len(mix))
				if share < 0.04 {
					t.Errorf("%s, load %v: only %v of %+v pass", name, load, share, mix[k])
				}
				if k > 0 && name == "four priorities" && share < passed[k-1]/came[k-1]-0.01 {
					t.Errorf("load %v: %v of %+v pass, more of what matters less", load, share, mix[k])
				}
			}
			if want := math.Min(0.9/load, 1); math.Abs(total-want) > 0.1*want {
				t.Errorf("%s, load %v: %.3f pass, want about %.3f", name, load, total, want)
			}
			if st := s.State(now); st.CPU == 0 || load > 1 && st.CPURefused == 0 {
				t.Errorf("state %+v", st)
			}
		}
	}
}

func TestProcessorIsForgotten(t *testing.T) {
	busy := func() *shed.Shedder {
		s := shed.New(shed.Config{CPU: 0.5})
		for i := range 40 {
			for range 100 {
				s.Admit(time.Duration(i)*250*ms, shed.Request{})
			}
			s.SetCPU(time.Duration(i)*250*ms, 1)
		}
		return s
	}
	refused := func(s *shed.Shedder, now time.Duration) (n int) {
		for range 100 {
			if _, v, _ := s.Admit(now, shed.Request{}); v == shed.Refused {
				n++
			}
		}
		return n
	}
	s := busy()
	if n := refused(s, 10*sec); n < 80 || n > 96 {
		t.Errorf("%d of 100 refused", n)
	}
	if n := refused(s, 21*sec); n != 0 {
		t.Errorf("%d of 100 refused long after the last reading", n)
	}
	s = busy()
	s.Reconfigure(10*sec, shed.Config{Concurrency: shed.Gradient})
	if n := refused(s, 10*sec); n > 80 {
		t.Errorf("%d refused with the processor not looked at", n)
	}
	for _, nonsense := range []float64{math.NaN(), math.Inf(1), -1, 7} {
		s = shed.New(shed.Config{CPU: 0.99})
		s.SetCPU(1, nonsense)
		if n := refused(s, 2); n != 0 {
			t.Errorf("%v: %d refused", nonsense, n)
		}
	}
}

func TestCallerWithItsShareDoesNotWait(t *testing.T) {
	s := shed.New(shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 10, MaxQueue: 10, MaxCallerShare: 0.5})
	var ps []shed.Permit
	for range 10 { // nobody else is there
		p, v, _ := s.Admit(0, shed.Request{Caller: 1})
		if v != shed.Admitted {
			t.Fatal("one that is alone may use every place")
		}
		ps = append(ps, p)
	}
	if _, v, reason := s.Admit(1, shed.Request{Caller: 1}); v != shed.Refused || reason != shed.Unfair {
		t.Errorf("an eleventh: %v %q", v, reason)
	}
	for range 5 {
		queued(t, s, 2, shed.Request{Caller: 2})
	}
	if _, v, reason := send(s, 3, shed.Request{Caller: 2}); v != shed.Refused || reason != shed.Unfair {
		t.Errorf("those that wait count too: %v %q", v, reason)
	}
	queued(t, s, 3, shed.Request{}) // nobody in particular
	queued(t, s, 3, shed.Request{Caller: 3})
	for _, p := range ps[:6] {
		s.Release(4, p, shed.Done)
	}
	// Caller 1 has four left.
	queued(t, s, 5, shed.Request{Caller: 1})
	if _, v, reason := send(s, 6, shed.Request{Caller: 1}); v != shed.Refused || reason != shed.Unfair {
		t.Errorf("a sixth: %v %q", v, reason)
	}
}

func TestCallersAreNotTakenForOthers(t *testing.T) {
	s := shed.New(shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 100, MaxCallerShare: 0.5})
	for range 100 {
		s.Admit(0, shed.Request{Caller: 1})
	}
	for caller := uint64(2); caller < 5000; caller++ {
		if _, v, reason := s.Admit(1, shed.Request{Caller: caller}); v != shed.Full {
			t.Fatalf("caller %d, who holds nothing: %v %q", caller, v, reason)
		}
	}
}

func TestCallersAreForgottenWithTheirRequests(t *testing.T) {
	s, p := full(t, shed.Config{MaxQueue: 1, QueueInterval: 10 * ms, MaxCallerShare: 1})
	s.Release(1, p, shed.Ignored)
	for i := range 10_000 {
		now := time.Duration(100*i) * ms
		r := shed.Request{Caller: uint64(i%7) + 1, Priority: shed.Priority(i%4) + shed.Sheddable}
		p, v, _ := s.Admit(now, r)
		if v != shed.Admitted {
			t.Fatalf("%d: %v", i, v)
		}
		// One that is displaced, and one that leaves, or is late.
		other := shed.Request{Caller: 99}
		queued(t, s, now, shed.Request{Caller: 98, Priority: shed.Sheddable}) // displaced
		w := queued(t, s, now, other)
		if i%2 == 0 {
			s.Leave(now+ms, &w.w, false)
		}
		s.Release(now+50*ms, p, shed.Done)
	}
}

// TestFloodingCallerLeavesRoomForOthers is one caller at twenty times the capacity and one at a twentieth.
func TestFloodingCallerLeavesRoomForOthers(t *testing.T) {
	for _, share := range []float64{0, 0.5} {
		c := &service{workers: 10, mean: 10 * ms, timeout: sec, work: fixedWork, load: between(20, 20, 0, 0)}
		small, served := 0, 0
		c.request = func(r *rand.Rand, q *shed.Request) {
			q.Caller = 1
			if r.IntN(400) == 0 {
				q.Caller = 2
				small++
			}
		}
		c.answered = func(q shed.Request) {
			if q.Caller == 2 {
				served++
			}
		}
		o := c.run(shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 12, MaxCallerShare: share}, 10*sec)
		if got := float64(served) / float64(small); share == 0 && got > 0.5 || share > 0 && got < 0.95 {
			t.Errorf("share %v: %.2f of the small caller's requests were served", share, got)
		}
		if mean, _ := o.goodput(c, sec, 10*sec); mean < 0.95 {
			t.Errorf("share %v: goodput %.2f", share, mean)
		}
	}
}
