package shed_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/shed"
)

// TestManyAtOnce counts that no permit is lost or given twice, that the limit holds, and that every waiter has exactly
// one outcome, while the shedder is reconfigured, read and told of the processor.
func TestManyAtOnce(t *testing.T) {
	const limit, goroutines, each = 8, 16, 3000
	c := shed.Config{Concurrency: shed.Fixed, MaxConcurrency: limit, MaxQueue: 6, MaxCallerShare: 0.6, CPU: 0.9,
		QueueInterval: ms}
	s := shed.New(c)
	var clock atomic.Int64
	var inside, over, woken, waited, wrong atomic.Int64
	var all sync.WaitGroup
	now := func() time.Duration { return time.Duration(clock.Add(1000)) }
	for g := range goroutines {
		all.Go(func() {
			for i := range each {
				r := shed.Request{Priority: shed.Sheddable + shed.Priority((g+i)%4), Attempt: i % 5, Caller: uint64(g % 3)}
				p, v, _ := s.Admit(now(), r)
				if v == shed.Full {
					done := make(chan struct{}, 2)
					w := &shed.Waiter{Wake: func() { woken.Add(1); done <- struct{}{} }}
					if v, _ = s.Enqueue(now(), w, r); v == shed.Queued {
						waited.Add(1)
						if i%3 != 0 || !s.Leave(now(), w, i%2 == 0) {
							// Somebody has to make room: give up if nobody does.
							for woke := false; !woke; {
								select {
								case <-done:
									woke = true
								default:
									runtime.Gosched()
									if s.Leave(now(), w, true) {
										woken.Add(1)
										woke = true
									}
								}
							}
						} else {
							woken.Add(1)
						}
					}
					var reason shed.Reason
					p, reason = w.Outcome()
					if p != (shed.Permit{}) && reason != shed.None {
						wrong.Add(1)
					}
				}
				if p == (shed.Permit{}) {
					continue
				}
				if inside.Add(1) > limit {
					over.Add(1)
				}
				runtime.Gosched()
				inside.Add(-1)
				s.Release(now(), p, shed.Result(i%3))
			}
		})
	}
	all.Go(func() {
		for i := range 300 {
			c.MaxQueue = 1 + i%7
			s.Reconfigure(now(), c)
			s.SetCPU(now(), float64(i%10)/10)
			s.Backlog(now())
			s.RetriesTooMany(now())
			s.State(now())
			runtime.Gosched()
		}
	})
	all.Wait()
	st := s.State(now())
	if st.InFlight != 0 || st.Queued != 0 || over.Load() != 0 || wrong.Load() != 0 || woken.Load() != waited.Load() {
		t.Errorf("%+v, %d over the limit, %d with a permit and a reason, %d waited and %d had an outcome", st, over.Load(),
			wrong.Load(), waited.Load(), woken.Load())
	}
	if waited.Load() == 0 {
		t.Error("nobody waited")
	}
	// Every place and every caller's count is free again.
	for i := range limit {
		if _, v, _ := s.Admit(now(), shed.Request{Caller: 1, Priority: shed.CriticalPlus}); v != shed.Admitted {
			t.Errorf("place %d: %v", i, v)
		}
	}
}

// TestLearningAtOnce is the adaptive limit from many goroutines.
func TestLearningAtOnce(t *testing.T) {
	for _, a := range []shed.Algorithm{shed.Gradient, shed.BBR} {
		learnAtOnce(t, a)
	}
}

func learnAtOnce(t *testing.T, a shed.Algorithm) {
	s := shed.New(shed.Config{Concurrency: a, MinConcurrency: 2})
	var clock atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 20_000 {
				p, v, _ := s.Admit(time.Duration(clock.Add(10_000)), shed.Request{})
				if v == shed.Admitted {
					s.Release(time.Duration(clock.Add(10_000)), p, shed.Result(i%50/49))
				}
			}
		})
	}
	all.Wait()
	if st := s.State(time.Duration(clock.Load())); st.InFlight != 0 || st.Queued != 0 || st.Limit < 1 || st.Latency <= 0 {
		t.Errorf("%s: %+v", a, st)
	}
}

func TestFastPathsAllocateNothing(t *testing.T) {
	for _, a := range []shed.Algorithm{shed.Gradient, shed.BBR} {
		s := shed.New(shed.Config{Concurrency: a, MaxCallerShare: 0.5, CPU: 0.9})
		now := time.Duration(0)
		r := shed.Request{Deadline: time.Hour, Attempt: 2, Caller: 3}
		if n := testing.AllocsPerRun(1000, func() {
			now += ms
			p, _, _ := s.Admit(now, r)
			s.Release(now, p, shed.Done)
			s.RetriesTooMany(now)
			s.Backlog(now)
		}); n != 0 {
			t.Errorf("%s: %v allocations for a request", a, n)
		}
	}
	f, _ := full(t, shed.Config{MaxQueue: 1, QueueInterval: time.Minute})
	queued(t, f, 1, shed.Request{})
	if n := testing.AllocsPerRun(1000, func() { f.Admit(1, shed.Request{}) }); n != 0 {
		t.Errorf("%v allocations for a refusal", n)
	}
}
