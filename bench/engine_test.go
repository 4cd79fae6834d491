package bench_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/abate-go/abate/sim/kernel"
)

// BenchmarkEngineHold is the usual test of an event queue: pop the earliest event,
// push one an exponential time later, with a constant number pending. One operation
// is one event; drawing the time is part of it.
func BenchmarkEngineHold(b *testing.B) {
	for _, pending := range []int{100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("pending=%d/impl=abate/mode=seq", pending), func(b *testing.B) { hold(b, pending) })
	}
}

func hold(b *testing.B, pending int) {
	before := heapBytes()
	q := new(kernel.Queue)
	s := kernel.NewStream(1, 0)
	for i := range pending {
		q.Push(int64(s.Exp()*1e9), uint32(i), 0)
	}
	for range pending { // the time left of a pending event has another shape than a new one's
		e, _ := q.Pop()
		q.Push(e.At+int64(s.Exp()*1e9), e.Target, 0)
	}
	bytes := heapBytes() - before
	b.ReportAllocs()
	for b.Loop() {
		e, _ := q.Pop()
		q.Push(e.At+int64(s.Exp()*1e9), e.Target, 0)
	}
	b.ReportMetric(float64(bytes)/float64(pending), "B/pending")
	eventsPerSecond(b, b.N)
}

// heapBytes returns what is in use after a collection.
func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func eventsPerSecond(b *testing.B, events int) {
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkEngineLane is the hold test with one constant delay.
func BenchmarkEngineLane(b *testing.B) {
	for _, pending := range []int{100, 1_000_000} {
		b.Run(fmt.Sprintf("pending=%d/impl=abate/mode=seq", pending), func(b *testing.B) {
			q := new(kernel.Queue)
			lane := q.Lane(1e9)
			for i := range pending {
				q.PushLane(lane, int64(i), uint32(i), 0)
			}
			b.ReportAllocs()
			for b.Loop() {
				e, _ := q.Pop()
				q.PushLane(lane, e.At, e.Target, 0)
			}
			eventsPerSecond(b, b.N)
		})
	}
}

// BenchmarkEngineStation runs a station with c servers, one line, and exponential
// times at a load of 0.9 (M/M/c): one operation is one event, an arrival or a
// departure.
func BenchmarkEngineStation(b *testing.B) {
	for _, servers := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("servers=%d/impl=abate/mode=seq", servers), func(b *testing.B) { station(b, servers) })
	}
}

const (
	arrival uint8 = iota
	departure
)

func station(b *testing.B, servers int) {
	q := new(kernel.Queue)
	arrivals, services := kernel.NewStream(1, 0), kernel.NewStream(1, 1)
	const service = 1e9 // ns
	gap := service / (0.9 * float64(servers))
	waiting, busy := 0, 0
	q.Push(0, 0, kernel.Meta(arrival, 0))
	b.ReportAllocs()
	for b.Loop() {
		e, _ := q.Pop()
		switch e.Kind() {
		case arrival:
			q.Push(e.At+int64(arrivals.Exp()*gap), 0, kernel.Meta(arrival, 0))
			if busy == servers {
				waiting++
				continue
			}
			busy++
		case departure:
			if waiting == 0 {
				busy--
				continue
			}
			waiting--
		}
		q.Push(e.At+int64(services.Exp()*service), 1, kernel.Meta(departure, 0))
	}
	eventsPerSecond(b, b.N)
}
