//go:build unix

package bench_test

import (
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// One iteration of BenchmarkGRPCLoopbackCPU: so many turns for each side, of so many calls each.
const (
	turns        = 40
	callsPerTurn = 250
)

// BenchmarkGRPCLoopbackCPU is what a unary call over the loopback interface costs in processor time, client and server
// together. A few per cent are to be seen on machines where the same work costs a fifth more from one second to the
// next, so the client and plain grpc-go take turns of a few milliseconds, and the middle of the turns counts. Each row
// reports
//
//	cpu-ns/op       processor time of a call
//	peer-cpu-ns/op  that of a call of plain grpc-go, with a time limit if ours has one
//	cpu-ratio       the middle of the ratios of neighbouring turns
//
// mode=seq is one call at a time, mode=par 16 at once.
func BenchmarkGRPCLoopbackCPU(b *testing.B) {
	addr := echoServer(b)
	for _, c := range echoClients(b, addr) {
		if c.impl == "plain-untimed" {
			continue // impl=plain shows well enough how far from 1 a ratio is that should be 1
		}
		b.Run("impl="+c.impl+"/mode=seq", func(b *testing.B) { byTurns(b, 1, c.call, c.plain) })
		if c.impl == "abate" {
			b.Run("impl="+c.impl+"/mode=par", func(b *testing.B) { byTurns(b, 16, c.call, c.plain) })
		}
	}
}

// byTurns compares two operations, with so many goroutines for each.
func byTurns(b *testing.B, goroutines int, ours, plain maker) {
	us, them := operations(goroutines, ours), operations(goroutines, plain)
	turn(b, us) // connects, and fills the pools
	turn(b, them)
	var cpu, peer, ratios []float64
	var took time.Duration
	for b.Loop() {
		for n := range turns {
			start := time.Now()
			var x, y float64
			if n%2 == 0 {
				x, y = turn(b, us), turn(b, them)
			} else {
				y, x = turn(b, them), turn(b, us)
			}
			took += time.Since(start)
			cpu, peer, ratios = append(cpu, x), append(peer, y), append(ratios, x/y)
		}
	}
	b.ReportMetric(float64(took)/float64(len(ratios))/(2*callsPerTurn), "ns/op") // of a call, whoever made it
	b.ReportMetric(middle(cpu), "cpu-ns/op")
	b.ReportMetric(middle(peer), "peer-cpu-ns/op")
	b.ReportMetric(middle(ratios), "cpu-ratio")
}

func operations(n int, newOp maker) []func() error {
	ops := make([]func() error, n)
	for i := range ops {
		ops[i] = newOp()
	}
	return ops
}

// turn makes callsPerTurn calls and returns the nanoseconds of processor time that each took.
func turn(b *testing.B, ops []func() error) float64 {
	start := processorTime(b)
	var all sync.WaitGroup
	for _, op := range ops {
		all.Go(func() {
			for range callsPerTurn / len(ops) {
				if err := op(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if b.Failed() {
		b.FailNow()
	}
	return float64(processorTime(b)-start) / float64(callsPerTurn/len(ops)*len(ops))
}

// processorTime is what this process has used.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func middle(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
