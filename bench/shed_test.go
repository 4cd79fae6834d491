package bench_test

import (
	"errors"
	"testing"

	"github.com/abate-go/abate/policy/shed"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
)

var errFull = errors.New("full")

// BenchmarkShed is one request admitted by a limit that learns, with room to spare, and its latency reported.
func BenchmarkShed(b *testing.B) {
	ours := shed.New(shed.Config{Concurrency: shed.Gradient})
	run(b, "impl=abate-policy", shared(func() error {
		at := now()
		p, verdict, _ := ours.Admit(at, shed.Request{Attempt: 1})
		if verdict != shed.Admitted {
			return errFull
		}
		err := work()
		if ours.NeedsTime(p) {
			at = now()
		}
		ours.Release(at, p, shed.Done)
		return err
	}))
	// The same by a driver that reads the clock twice whatever happens.
	twice := shed.New(shed.Config{Concurrency: shed.Gradient})
	run(b, "impl=abate-policy-twoclocks", shared(func() error {
		p, verdict, _ := twice.Admit(now(), shed.Request{Attempt: 1})
		if verdict != shed.Admitted {
			return errFull
		}
		err := work()
		twice.Release(now(), p, shed.Done)
		return err
	}))
	// What the fairness between callers adds.
	fair := shed.New(shed.Config{Concurrency: shed.Gradient, MaxCallerShare: 0.5})
	run(b, "impl=abate-policy-fair", shared(func() error {
		p, verdict, _ := fair.Admit(now(), shed.Request{Attempt: 1, Caller: 42})
		if verdict != shed.Admitted {
			return errFull
		}
		err := work()
		fair.Release(now(), p, shed.Done)
		return err
	}))

	fs := adaptivelimiter.NewWithDefaults[any]()
	run(b, "impl=failsafe-policy", shared(func() error {
		p, ok := fs.TryAcquirePermit()
		if !ok {
			return errFull
		}
		err := work()
		p.Record()
		return err
	}))
	fsExec := failsafe.With[any](adaptivelimiter.NewWithDefaults[any]())
	run(b, "impl=failsafe", shared(func() error { return fsExec.Run(work) }))
}

// BenchmarkShedRefused is one request that finds no place.
func BenchmarkShedRefused(b *testing.B) {
	ours := shed.New(shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 1, NoQueue: true})
	ours.Admit(now(), shed.Request{})
	refused(b, "impl=abate-policy", errFull, func() error {
		if _, verdict, _ := ours.Admit(now(), shed.Request{}); verdict != shed.Admitted {
			return errFull
		}
		return nil
	})

	fs := adaptivelimiter.NewBuilder[any]().WithLimits(1, 1, 1).Build()
	fs.TryAcquirePermit()
	refused(b, "impl=failsafe-policy", errFull, func() error {
		if _, ok := fs.TryAcquirePermit(); !ok {
			return errFull
		}
		return nil
	})
}
