package abate_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate/startup"
)

func TestAProgramIsReadyWhenEverythingIsThere(t *testing.T) {
	var r startup.Readiness
	at := func(now time.Duration) bool { return r.Report(t.Context(), now).Ready }
	if !at(0) {
		t.Error("it waits for nothing, and is not ready")
	}
	postgres, cache := r.Await("postgres"), r.Await("cache")
	full := error(nil)
	r.Check("disk", func(context.Context) error { return full })
	if at(0) {
		t.Error("ready before anything is there")
	}
	if postgres.Ready(); at(0) {
		t.Error("ready without the cache")
	}
	if cache.Ready(); !at(0) {
		t.Errorf("not ready: %+v", r.Report(t.Context(), 0))
	}
	if cache.NotReady(errDown); at(0) || r.Report(t.Context(), 0).Parts[1].Err != errDown {
		t.Errorf("the cache has gone: %+v", r.Report(t.Context(), 0))
	}
	cache.Ready()
	full = errors.New("disk full")
	if report := r.Report(t.Context(), time.Second); report.Ready || report.Parts[2].Err != full ||
		report.Parts[2].Name != "disk" {
		t.Errorf("%+v", report)
	}
	full = nil
	if r.Drain("shutting down"); at(2*time.Second) || r.Report(t.Context(), 2*time.Second).Draining != "shutting down" {
		t.Error("ready while it drains")
	}
	if r.Resume(); !at(2 * time.Second) {
		t.Error("not ready after the drain")
	}
	if r.Drain(""); r.Report(t.Context(), 0).Draining == "" {
		t.Error("it drains and does not say so")
	}
}

func TestACheckIsMadeOnceASecondAtMost(t *testing.T) {
	var r startup.Readiness
	var made atomic.Int32
	r.Check("disk", func(context.Context) error { made.Add(1); return errDown })
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if r.Report(t.Context(), 0).Parts[0].Err != errDown {
				t.Error("the result is lost")
			}
		})
	}
	all.Wait()
	r.Report(t.Context(), 999*ms)
	if n := made.Load(); n != 1 {
		t.Errorf("made %d times within a second", n)
	}
	if r.Report(t.Context(), time.Second); made.Load() != 2 {
		t.Errorf("made %d times in two seconds", made.Load())
	}
}

// A file system that hangs holds up one probe, and not every one after it.
func TestACheckThatHangsHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine is left
		var r startup.Readiness
		hangs := make(chan struct{})
		r.Check("disk", func(context.Context) error { <-hangs; return nil })
		go r.Report(t.Context(), 0)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 900*ms)
		defer cancel()
		if report := r.Report(ctx, time.Minute); report.Ready || report.Parts[0].Err == nil {
			t.Errorf("%+v", report)
		} else if want := "the check that began before has not ended: context deadline " +
			"exceeded"; report.Parts[0].Err.Error() != want {
			t.Errorf("%v, want %s", report.Parts[0].Err, want)
		}
		close(hangs)
		synctest.Wait()
		if report := r.Report(t.Context(), time.Minute); !report.Ready {
			t.Errorf("%+v", report)
		}
	})
}

func TestACheckThatPanicsHasFailed(t *testing.T) {
	var r startup.Readiness
	r.Check("disk", func(context.Context) error { panic("no disk") })
	for range 2 {
		if report := r.Report(t.Context(), 0); report.Ready || report.Parts[0].Err.Error() != "the check panicked: no disk" {
			t.Errorf("%+v", report)
		}
	}
}
