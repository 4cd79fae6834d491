package shed_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/shed"
)

func TestDefaults(t *testing.T) {
	got := shed.Config{}.WithDefaults()
	want := shed.Config{MaxConcurrency: 1000, MinConcurrency: 4, InitialConcurrency: 20, MaxRetryShare: 0.1}
	if got != want || got.WithDefaults() != want || got.Enabled() {
		t.Errorf("%+v", got)
	}
	got = shed.Config{Concurrency: shed.Gradient, MaxConcurrency: 2, MaxQueue: 7, NoQueue: true, QueueTarget: ms,
		CPU: 0.5}.WithDefaults()
	if got.MinConcurrency != 2 || got.InitialConcurrency != 2 || got.MaxQueue != 7 || got.QueueTarget != ms ||
		!got.Enabled() {
		t.Errorf("%+v", got)
	}
}

func TestConfigsThatDoSomething(t *testing.T) {
	for _, test := range []struct {
		c    shed.Config
		want bool
	}{
		{shed.Config{}, false}, {shed.Config{Shadow: true, MaxQueue: 5}, false}, {shed.Config{CPU: 0.9}, true},
		{shed.Config{Concurrency: shed.AIMD}, true}, {shed.Config{Concurrency: shed.AIMD, Disabled: true}, false},
	} {
		if got := test.c.Enabled(); got != test.want {
			t.Errorf("%+v: %v", test.c, got)
		}
	}
}

func TestValuesOutsideTheirRangesAreMovedInside(t *testing.T) {
	for _, c := range []shed.Config{
		{Concurrency: "nonsense", MaxConcurrency: -5, MinConcurrency: -1, InitialConcurrency: -7, MaxQueue: -1, CPU: -1,
			MaxRetryShare: -1, MaxCallerShare: -1},
		{Concurrency: shed.Gradient, MaxConcurrency: 1 << 40, MinConcurrency: 1 << 41, InitialConcurrency: 1 << 42,
			MaxQueue: 1 << 43, QueueTarget: time.Hour, QueueInterval: -1, CPU: 100, MaxRetryShare: 100, MaxCallerShare: 7},
	} {
		s := shed.New(c)
		s.SetCPU(0, 0.5)
		p, v, _ := s.Admit(0, shed.Request{Caller: 1})
		if st := s.State(0); v != shed.Admitted || st.Limit < 1 || st.Limit > 1_000_000 {
			t.Errorf("%+v: %v, %+v", c, v, st)
		}
		s.Release(1, p, shed.Dropped)
	}
}

func TestReconfigureAdmitsAndKeeps(t *testing.T) {
	s, p := full(t, shed.Config{MaxQueue: 4})
	a, b, c, d := queued(t, s, 1, shed.Request{}), queued(t, s, 2, shed.Request{}), queued(t, s, 3, shed.Request{}),
		queued(t, s, 4, shed.Request{})
	s.Reconfigure(5, shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 3, MaxQueue: 1})
	pa, pb := a.admitted(t), b.admitted(t)
	if st := s.State(5); st.InFlight != 3 || st.Queued != 2 || st.Limit != 3 {
		t.Errorf("%+v, want two still waiting in a queue of one", st)
	}
	if _, v, reason := send(s, 6, shed.Request{}); v != shed.Refused || reason != shed.QueueFull {
		t.Errorf("a newcomer: %v %q", v, reason)
	}
	s.Reconfigure(7, shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 1, MaxQueue: 1})
	s.Release(8, p, shed.Done)
	s.Release(8, pa, shed.Done)
	if c.woken+d.woken != 0 {
		t.Error("admitted above the lowered limit")
	}
	s.Release(8, pb, shed.Done)
	p = c.admitted(t)
	s.Reconfigure(9, shed.Config{})
	s.Release(10, d.admitted(t), shed.Done)
	s.Release(10, p, shed.Done)
	if st := s.State(11); st.InFlight != 0 || st.Queued != 0 {
		t.Errorf("%+v, want nothing", st)
	}
}

func TestLearnedLimitSurvivesAnotherAlgorithm(t *testing.T) {
	s := shed.New(shed.Config{Concurrency: shed.Gradient})
	now := teach(t, s, 0, 300, 60, 10*ms, shed.Done)
	learned := s.State(now).Limit
	if learned < 50 {
		t.Fatalf("limit %d, want room for 60", learned)
	}
	s.Reconfigure(now, shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 7})
	if got := s.State(now).Limit; got != 7 {
		t.Errorf("fixed: %d", got)
	}
	now = teach(t, s, now, 100, 60, 10*ms, shed.Done)
	s.Reconfigure(now, shed.Config{Concurrency: shed.Vegas})
	if got := s.State(now).Limit; got != learned {
		t.Errorf("limit %d, want the learned %d", got, learned)
	}
	s.Reconfigure(now, shed.Config{Concurrency: shed.Vegas, MaxConcurrency: 30})
	if got := s.State(now).Limit; got != 30 {
		t.Errorf("limit %d, want the new bound", got)
	}
	fresh := shed.New(shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 900})
	fresh.Reconfigure(0, shed.Config{Concurrency: shed.AIMD, InitialConcurrency: 11})
	if got := fresh.State(0).Limit; got != 11 {
		t.Errorf("limit %d, want the initial one", got)
	}
}

func TestOneThatIsOffCountsWhatIsInFlight(t *testing.T) {
	s := shed.New(shed.Config{})
	var ps []shed.Permit
	for range 10 {
		p, _, _ := s.Admit(0, shed.Request{})
		ps = append(ps, p)
	}
	s.Reconfigure(1, shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 5, NoQueue: true})
	for i, p := range ps {
		_, v, _ := s.Admit(2, shed.Request{})
		if want := shed.Refused; v != want && i < 6 {
			t.Errorf("%d in flight: %v", 10-i, v)
		}
		s.Release(3, p, shed.Done)
	}
}

func TestShadowModelsTheLoadItWouldHaveRefused(t *testing.T) {
	c := shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 10, MaxQueue: 5, MaxCallerShare: 0.5, Shadow: true}
	s := shed.New(c)
	reasons := map[shed.Reason]int{}
	var ps []shed.Permit
	admit := func(r shed.Request) {
		p, v, reason := s.Admit(100, r)
		if v != shed.Admitted {
			t.Fatalf("%v in shadow mode", v)
		}
		ps = append(ps, p)
		reasons[reason]++
	}
	for range 100 {
		admit(shed.Request{})
	}
	if st := s.State(100); reasons[shed.None] != 15 || reasons[shed.QueueFull] != 85 || st.InFlight != 10 ||
		st.Queued != 5 || st.Limit != 10 {
		t.Errorf("%v, %+v", reasons, st)
	}
	admit(shed.Request{Deadline: 50})
	admit(shed.Request{Priority: shed.Sheddable})
	if reasons[shed.Expired] != 1 || reasons[shed.QueueFull] != 86 {
		t.Errorf("%v", reasons)
	}
	for _, p := range ps {
		s.Release(200, p, shed.Done)
	}
	if st := s.State(200); st.InFlight != 0 || st.Attempts[0] != 102 {
		t.Errorf("%+v, want nothing in flight and 102 arrivals", st)
	}
	clear(reasons)
	for range 20 {
		admit(shed.Request{Caller: 3})
		admit(shed.Request{Priority: shed.Sheddable})
	}
	if reasons[shed.Unfair] == 0 || reasons[shed.LowPriority] == 0 {
		t.Errorf("%v", reasons)
	}
}

func TestShadowRefusesNothingForTheProcessor(t *testing.T) {
	s := shed.New(shed.Config{CPU: 0.5, Shadow: true})
	reasons := map[shed.Reason]int{}
	for i := range 10 {
		s.SetCPU(time.Duration(i)*sec, 1)
		for range 100 {
			_, v, reason := s.Admit(time.Duration(i)*sec, shed.Request{})
			if v != shed.Admitted {
				t.Fatal(v)
			}
			reasons[reason]++
		}
	}
	if reasons[shed.CPU] < 100 {
		t.Errorf("%v", reasons)
	}
}

func TestWaitersPassWhenShadowModeBegins(t *testing.T) {
	s, p := full(t, shed.Config{MaxQueue: 4})
	a, b := queued(t, s, 1, shed.Request{}), queued(t, s, 1, shed.Request{Priority: shed.Sheddable})
	_, v, _ := s.Admit(2, shed.Request{})
	if v != shed.Full {
		t.Fatal(v)
	}
	s.Reconfigure(2, shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 1, Shadow: true})
	w := &shed.Waiter{Wake: func() { t.Error("woken") }}
	if v, _ := s.Enqueue(3, w, shed.Request{}); v != shed.Admitted {
		t.Errorf("one that was on its way to the queue: %v", v)
	}
	got, _ := w.Outcome()
	for _, p := range []shed.Permit{p, a.admitted(t), b.admitted(t), got} {
		s.Release(4, p, shed.Done)
	}
	if st := s.State(5); st.InFlight != 0 || st.Queued != 0 {
		t.Errorf("%+v", st)
	}
}

func TestQueueFollowsTheLatency(t *testing.T) {
	s := shed.New(shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 1, MaxQueue: 100})
	until := func(now time.Duration) time.Duration {
		p, _, _ := s.Admit(now, shed.Request{})
		w := queued(t, s, now, shed.Request{})
		defer s.Release(now, p, shed.Ignored)
		defer s.Leave(now, &w.w, false)
		return w.until - now
	}
	if got := until(0); got != 100*ms {
		t.Errorf("nothing known: may wait for %v", got)
	}
	now := teach(t, s, 0, 300, 1, 400*ms, shed.Done)
	if got := until(now); got < 790*ms || got > 810*ms {
		t.Errorf("requests take 400 ms: may wait for %v, want twice that", got)
	}
	p, _, _ := s.Admit(now, shed.Request{})
	for range 20 { // somebody always waits
		send(s, now, shed.Request{})
		now += 100 * ms
	}
	if w := queued(t, s, now, shed.Request{}); w.until-now < 190*ms || w.until-now > 210*ms {
		t.Errorf("in a standing queue: may wait for %v, want half of the time a request takes", w.until-now)
	}
	s.Release(now, p, shed.Ignored)
}

func TestALongTargetMakesTheIntervalLonger(t *testing.T) {
	s, _ := full(t, shed.Config{MaxQueue: 4, QueueTarget: sec})
	if w := queued(t, s, 0, shed.Request{}); w.until != 2*sec {
		t.Errorf("they may wait %v, with a target of 1s", w.until)
	}
}

func TestAShortIntervalMakesTheTargetShorter(t *testing.T) {
	s, _ := full(t, shed.Config{MaxQueue: 50, QueueInterval: 6 * ms})
	for now := time.Duration(0); now < 100*ms; now += ms {
		send(s, now, shed.Request{})
	}
	if w := queued(t, s, 100*ms, shed.Request{}); w.until != 103*ms {
		t.Errorf("in a standing queue they may wait %v", w.until-100*ms)
	}
}

func TestNoneIsNoLimitOfConcurrency(t *testing.T) {
	if (shed.Config{Concurrency: shed.Unlimited}).Enabled() ||
		!(shed.Config{Concurrency: shed.Unlimited, CPU: 0.9}).Enabled() {
		t.Error("it is taken for a limit")
	}
	c := shed.Config{Concurrency: shed.Unlimited, CPU: 0.9}.WithDefaults()
	if c.Concurrency != "" {
		t.Errorf("concurrency %q", c.Concurrency)
	}
	s := shed.New(shed.Config{Concurrency: shed.Unlimited, CPU: 0.9})
	for range 5000 {
		if _, v, reason := s.Admit(0, shed.Request{}); v != shed.Admitted {
			t.Fatalf("%v %q", v, reason)
		}
	}
}

func TestNobodyQueuesWhoComesPastTheBeginOfShadowMode(t *testing.T) {
	c := shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 1, MaxQueue: 5}
	shadow := c
	shadow.Shadow = true
	for range 5000 {
		s := shed.New(c)
		s.Admit(0, shed.Request{})
		if _, v, _ := s.Admit(0, shed.Request{}); v != shed.Full {
			t.Fatal(v)
		}
		switched := make(chan struct{})
		var ready, woken atomic.Bool
		go func() { ready.Store(true); s.Reconfigure(0, shadow); close(switched) }()
		for !ready.Load() { // so that both come at once
		}
		w := &shed.Waiter{Wake: func() { woken.Store(true) }}
		v, _ := s.Enqueue(0, w, shed.Request{})
		<-switched
		if v != shed.Admitted && !woken.Load() {
			t.Fatalf("%v, and nobody will wake it", v)
		}
	}
}
