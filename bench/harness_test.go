package bench_test

import (
	"context"
	"errors"
	"testing"
	"time"
)

// errFlaky is the failure every benchmarked function returns: one value, so that
// no row pays for building errors that another row does not build.
var errFlaky = errors.New("flaky")

// errOpen is what a breaker of ours refuses with when it is driven by hand.
var errOpen = errors.New("open")

// now is the clock that drives policies of ours: time since an arbitrary origin.
func now() time.Duration { return time.Since(origin) }

var origin = time.Now()

// maker builds the operation for one goroutine. State that a goroutine must not
// share (a failing function's counter, a request) belongs to the closure.
type maker func() func() error

// run measures op alone (mode=seq) and from every processor at once (mode=par).
// An operation that returns an error fails the benchmark: a library that gives
// up early would otherwise look fast.
func run(b *testing.B, name string, newOp maker) {
	seq(b, name, newOp)
	b.Run(name+"/mode=par", func(b *testing.B) { parallel(b, newOp, false) })
}

// seq is run from one goroutine only.
func seq(b *testing.B, name string, newOp maker) {
	b.Run(name+"/mode=seq", func(b *testing.B) { alone(b, newOp, false) })
}

// refused is run for an operation that must be refused with want.
func refused(b *testing.B, name string, want error, op func() error) {
	if err := op(); !errors.Is(err, want) {
		b.Fatalf("%s: got %v, want %v", name, err, want)
	}
	b.Run(name+"/mode=seq", func(b *testing.B) { alone(b, shared(op), true) })
	b.Run(name+"/mode=par", func(b *testing.B) { parallel(b, shared(op), true) })
}

func alone(b *testing.B, newOp maker, fails bool) {
	b.ReportAllocs()
	op := newOp()
	for b.Loop() {
		if err := op(); (err != nil) != fails {
			b.Fatal(err)
		}
	}
}

func parallel(b *testing.B, newOp maker, fails bool) {
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		op := newOp()
		for pb.Next() {
			if err := op(); (err != nil) != fails {
				b.Error(err)
				return
			}
		}
	})
}

// shared is a maker for an operation that every goroutine may use as it is.
func shared(op func() error) maker {
	return func() func() error { return op }
}

// work is the guarded call that succeeds at once.
//
//go:noinline
func work() error { return nil }

// workCtx is work for libraries that hand a context to the function.
//
//go:noinline
func workCtx(context.Context) error { return nil }

// workInt is work for libraries whose function returns a value.
//
//go:noinline
func workInt() (int, error) { return 1, nil }

// flaky fails twice, then succeeds, again and again. It is not safe for several
// goroutines: build one per maker call.
type flaky struct{ calls int }

func (f *flaky) work() error {
	f.calls++
	if f.calls%3 != 0 {
		return errFlaky
	}
	return nil
}

func (f *flaky) workInt() (int, error) { return f.calls, f.work() }
