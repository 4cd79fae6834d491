package shed_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/shed"
)

var origin = time.Now()

// BenchmarkAdmitRelease is a request that finds a place, with room to spare, and the two readings of the clock.
func BenchmarkAdmitRelease(b *testing.B) {
	for name, c := range map[string]shed.Config{
		"gradient": {Concurrency: shed.Gradient},
		"bbr":      {Concurrency: shed.BBR},
		"fair":     {Concurrency: shed.Gradient, MaxCallerShare: 0.5},
	} {
		s := shed.New(c)
		r := shed.Request{Attempt: 1, Caller: 7, Deadline: time.Hour}
		both(b, name, func() {
			p, _, _ := s.Admit(time.Since(origin), r)
			s.Release(time.Since(origin), p, shed.Done)
		})
	}
}

// BenchmarkRefused is one that finds none, and the reading of the clock.
func BenchmarkRefused(b *testing.B) {
	full := shed.New(shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 1, NoQueue: true})
	full.Admit(0, shed.Request{})
	both(b, "places", func() { full.Admit(time.Since(origin), shed.Request{}) })
	long := shed.New(shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 1, MaxQueue: 1, QueueInterval: time.Minute})
	long.Admit(0, shed.Request{})
	long.Enqueue(time.Since(origin), &shed.Waiter{}, shed.Request{})
	both(b, "queue", func() { long.Admit(time.Since(origin), shed.Request{}) })
}

// BenchmarkHandOver is a wait in full: queue, release, wake.
func BenchmarkHandOver(b *testing.B) {
	s := shed.New(shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 1})
	p, _, _ := s.Admit(0, shed.Request{})
	wake := func() {}
	b.ReportAllocs()
	for b.Loop() {
		now := time.Since(origin)
		w := &shed.Waiter{Wake: wake}
		s.Admit(now, shed.Request{})
		s.Enqueue(now, w, shed.Request{})
		s.Release(now, p, shed.Done)
		p, _ = w.Outcome()
	}
}

// BenchmarkClock is what two readings of the clock cost.
func BenchmarkClock(b *testing.B) {
	both(b, "two", func() { _, _ = time.Since(origin), time.Since(origin) })
}

func both(b *testing.B, name string, f func()) {
	b.Run(name+"/seq", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f()
		}
	})
	b.Run(name+"/par", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				f()
			}
		})
	})
}
