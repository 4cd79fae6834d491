package abate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/startup"
)

// logged returns a context whose log lines, without their time, lines returns.
func logged(ctx context.Context) (_ context.Context, lines func() []string) {
	var buf bytes.Buffer
	log := slog.New(
		slog.NewTextHandler(&buf, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey && len(groups) == 0 {
				return slog.Attr{}
			}
			return a
		}}))
	return startup.ContextWithLogger(ctx, log), func() []string {
		return strings.Split(strings.TrimSuffix(buf.String(), "\n"), "\n")
	}
}

// laterThere is a dependency that is there from its nth attempt on.
func laterThere(n int) func(context.Context) (string, error) {
	attempts := 0
	return func(context.Context) (string, error) {
		if attempts++; attempts < n {
			return "half", errDown
		}
		return "whole", nil
	}
}

func TestConnectWaitsUntilTheDependencyIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, lines := logged(t.Context())
		began := time.Now()
		v, err := startup.Connect(ctx, "postgres", steady(), laterThere(3))
		if took := time.Since(began); v != "whole" || err != nil || took != 300*ms {
			t.Errorf("%q, %v after %v", v, err, took)
		}
		want := []string{
			`level=WARN msg="abate: dependency is not there" dependency=postgres attempt=1 elapsed=0s retry_in=100ms error=down`,
			`level=WARN msg="abate: dependency is not there" dependency=postgres attempt=2 elapsed=100ms retry_in=200ms ` +
				`error=down`,
			`level=INFO msg="abate: dependency is there" dependency=postgres attempts=3 elapsed=300ms`,
		}
		if got := lines(); !slices.Equal(got, want) {
			t.Errorf("logged\n%s", strings.Join(got, "\n"))
		}
	})
}

func TestConnectThatSucceedsAtOnceSaysNothing(t *testing.T) {
	ctx, lines := logged(t.Context())
	if v, err := startup.Connect(ctx, "postgres", startup.Policy(), laterThere(1)); v != "whole" || err != nil ||
		lines()[0] != "" {
		t.Errorf("%q, %v, %q", v, err, lines())
	}
}

func TestConnectGivesUpWithOneClearError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, lines := logged(t.Context())
		began := time.Now()
		v, err := startup.Connect(ctx, "postgres", startup.Policy(), func(context.Context) (string, error) {
			return "half", io.ErrUnexpectedEOF
		})
		took := time.Since(began)
		var e *abate.Error
		if v != "" || !errors.As(err, &e) || e.Reason != startup.ErrGaveUp || e.Elapsed != took ||
			!errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q, %v", v, err)
		}
		if want := fmt.Sprintf("postgres: gave up waiting after %d attempts in %v: unexpected EOF", e.Attempts,
			took.Round(time.Microsecond)); err.Error() != want {
			t.Errorf("got  %q\nwant %q", err, want)
		}
		if took > time.Minute || took < 50*time.Second || e.Attempts < 14 || len(lines()) != e.Attempts-1 {
			t.Errorf("%d attempts in %v, %d lines", e.Attempts, took, len(lines()))
		}
	})
}

func TestAPermanentFailureEndsConnectAtOnce(t *testing.T) {
	attempts := 0
	ctx, _ := logged(t.Context())
	_, err := startup.Connect(ctx, "postgres", startup.Policy(), func(context.Context) (int, error) {
		attempts++
		return 0, fmt.Errorf("open: %w", abate.Permanent(errPassword))
	})
	if !errors.Is(err, startup.ErrPermanent) || !errors.Is(err, errPassword) || attempts != 1 ||
		!strings.HasPrefix(err.Error(), "postgres: permanent failure after 1 attempt in ") {
		t.Errorf("%v after %d attempts", err, attempts)
	}
	p := startup.Policy()
	p.Classify = func(err error) abate.Outcome { return abate.Outcome{Class: abate.Failure, NoRetry: true} }
	if _, err = startup.Connect(ctx, "postgres", p, laterThere(2)); !errors.Is(err, startup.ErrPermanent) {
		t.Errorf("classified: %v", err)
	}
}

func TestAPanicIsAnErrorWithItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, _ := logged(t.Context())
		p := steady()
		p.MaxElapsed = 50 * ms
		_, err := startup.Connect(ctx, "postgres", p, panicsHere)
		if err == nil || !strings.Contains(err.Error(), ": panic: runtime error: index out of range [0] with length 0\n") ||
			!strings.Contains(err.Error(), "panicsHere") || !strings.Contains(err.Error(), "connect_test.go:") {
			t.Errorf("%v", err)
		}
		var oops runtime.Error
		if !errors.As(err, &oops) || strings.Count(err.Error(), "\n") > 8 {
			t.Errorf("%v", err)
		}
		if _, err = startup.Connect(ctx, "postgres", p, func(context.Context) (int, error) {
			panic("a word")
		}); err == nil || !strings.Contains(err.Error(), "panic: a word\n") {
			t.Errorf("%v", err)
		}
		first := true // another attempt may fix it
		if v, err := startup.Connect(ctx, "postgres", steady(), func(context.Context) (int, error) {
			if first {
				first = false
				panic("not initialised yet")
			}
			return 7, nil
		}); v != 7 || err != nil {
			t.Errorf("%d, %v", v, err)
		}
	})
}

func panicsHere(context.Context) (int, error) {
	var none []int
	return none[len(none)], nil
}

func TestAnAttemptThatHangsIsCutOffAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, lines := logged(t.Context())
		attempts := 0
		v, err := startup.Connect(ctx, "postgres", steady(), func(ctx context.Context) (int, error) {
			if attempts++; attempts == 1 {
				<-ctx.Done()
				return 0, fmt.Errorf("dial: %w", ctx.Err())
			}
			return 7, nil
		})
		if v != 7 || err != nil ||
			!strings.Contains(lines()[0], `error="no answer within 2s: dial: context deadline exceeded"`) {
			t.Errorf("%d, %v, %q", v, err, lines())
		}
	})
}

func TestTheContextOfAnAttemptEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var of context.Context
		_, err := startup.Connect(t.Context(), "postgres", steady(), func(ctx context.Context) (int, error) {
			of = ctx
			return 0, ctx.Err()
		})
		if limit, ok := core.TimeLimit(of); err != nil || of.Err() != context.Canceled || !ok || limit != 2*time.Second {
			t.Errorf("%v; afterwards %v, limit %v", err, of.Err(), limit)
		}
	})
}

func TestTheEndOfTheCallersContextEndsConnectAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("told to stop")
		for name, fn := range map[string]func(context.Context) (int, error){
			"in an attempt": func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() },
			"in a wait":     func(context.Context) (int, error) { return 0, errDown },
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			ctx, _ = logged(ctx)
			began := time.Now()
			time.AfterFunc(450*ms, func() { cancel(cause) })
			_, err := startup.Connect(ctx, "postgres", steady(), fn)
			var e *abate.Error
			if took := time.Since(began); took != 450*ms || !errors.As(err, &e) || e.Reason != context.Canceled ||
				name == "in a wait" && e.Err != errDown {
				t.Errorf("%s: %v after %v", name, err, took)
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		_, err := startup.Connect(ctx, "postgres", steady(), func(context.Context) (int, error) {
			t.Error("tried")
			return 0, nil
		})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
			t.Errorf("before it began: %v", err)
		}
		limited, stop := context.WithTimeout(t.Context(), 450*ms)
		defer stop()
		limited, _ = logged(limited)
		if _, err = startup.Connect(limited, "postgres", steady(), laterThere(9)); !errors.Is(err, abate.ErrDeadline) ||
			!errors.Is(err, errDown) {
			t.Errorf("deadline: %v", err)
		}
	})
}

func TestAPolicyOrNameThatIsWrongIsToldBeforeAnyAttempt(t *testing.T) {
	bad := startup.Policy()
	bad.InitialDelay = time.Minute
	for _, err := range []error{
		func() error { _, err := startup.Connect(t.Context(), "postgres", bad, laterThere(1)); return err }(),
		func() error { _, err := startup.Connect(t.Context(), "", steady(), laterThere(1)); return err }(),
		func() error {
			_, err := startup.ConnectInBackground(t.Context(), nil, "postgres", bad, laterThere(1))
			return err
		}(),
	} {
		if err == nil || errors.Is(err, startup.ErrGaveUp) {
			t.Errorf("%v", err)
		}
	}
}

func TestInTheBackgroundTheProgramIsNotReadyUntilTheDependencyIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, lines := logged(t.Context())
		var ready startup.Readiness
		h, err := startup.ConnectInBackground(ctx, &ready, "postgres", steady(), laterThere(3))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the first attempt has failed
		_, err = h.Get()
		var e *abate.Error
		if !errors.As(err, &e) || e.Reason != startup.ErrNotReady || e.Attempts != 1 || !errors.Is(err, errDown) {
			t.Errorf("%v", err)
		}
		report := ready.Report(ctx, core.Now())
		if s := report.Parts[0]; report.Ready || s.Ready || s.Name != "postgres" || s.Attempts != 1 || s.NextTry != 100*ms ||
			s.Err != errDown {
			t.Errorf("%+v", report)
		}
		time.Sleep(150 * ms)
		if s := ready.Report(ctx, core.Now()).Parts[0]; s.Attempts != 2 || s.NextTry != 150*ms || s.Elapsed != 150*ms {
			t.Errorf("%+v", s)
		}
		<-h.Done()
		v, err := h.Get()
		if report = ready.Report(ctx, core.Now()); v != "whole" || err != nil || !report.Ready ||
			report.Parts[0].Attempts != 3 || report.Parts[0].Elapsed != 300*ms || report.Parts[0].Err != nil {
			t.Errorf("%q, %v, %+v", v, err, report)
		}
		if got := lines(); len(got) != 2 { // the same cause is not logged again for a minute
			t.Errorf("logged\n%s", strings.Join(got, "\n"))
		}
	})
}

// A secret is fixed at noon; the pod that has started at ten is still there.
func TestInTheBackgroundAWrongPasswordIsTriedAgainRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, lines := logged(t.Context())
		fixed, attempts := time.Now().Add(2*time.Hour), 0
		h, err := startup.ConnectInBackground(ctx, nil, "postgres", startup.Policy(), func(context.Context) (int, error) {
			if attempts++; time.Now().Before(fixed) {
				return 0, abate.Permanent(errPassword)
			}
			return 7, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		<-h.Done()
		if v, err := h.Get(); v != 7 || err != nil || attempts < 121 || attempts > 242 || len(lines()) > 125 {
			t.Errorf("%d, %v after %d attempts and %d lines", v, err, attempts, len(lines()))
		}
	})
}

// A pool whose connections are opened under a guard says each time how long that took.
func TestACauseThatAGuardInsideReportsIsNotLoggedAsNewEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, lines := logged(t.Context())
		inside, err := abate.New("pool", abate.Policy{Retry: abate.Retry{MaxRetries: 1}})
		if err != nil {
			t.Fatal(err)
		}
		there := time.Now().Add(10 * time.Minute)
		h, err := startup.ConnectInBackground(ctx, nil, "postgres", startup.Policy(), func(ctx context.Context) (int, error) {
			return abate.Do(ctx, inside, func(context.Context) (int, error) {
				if time.Now().Before(there) {
					return 0, errDown
				}
				return 7, nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		<-h.Done()
		if got := lines(); len(got) < 10 || len(got) > 12 {
			t.Errorf("%d lines in ten minutes, want one a minute, such as\n%s", len(got), strings.Join(got[:3], "\n"))
		}
	})
}

func TestNothingIsLeftOfAWaitInTheBackgroundWhoseContextHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine is left
		ctx, cancel := context.WithCancel(t.Context())
		ctx, _ = logged(ctx)
		var ready startup.Readiness
		var all []*startup.Connecting[string]
		for range 20 {
			h, err := startup.ConnectInBackground(ctx, &ready, "postgres", startup.Policy(), laterThere(1000))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, h)
		}
		time.Sleep(3 * time.Second)
		cancel()
		for _, h := range all {
			<-h.Done()
			if _, err := h.Get(); !errors.Is(err, context.Canceled) || !errors.Is(err, errDown) {
				t.Errorf("%v", err)
			}
		}
		time.Sleep(time.Hour) // what is told stays as it was
		if s := ready.Report(context.Background(), core.Now()).Parts[0]; s.Ready || s.NextTry != 0 ||
			s.Elapsed != 3*time.Second {
			t.Errorf("%+v", s)
		}
	})
}

func TestAFunctionThatEndsItsGoroutineEndsTheWait(t *testing.T) {
	h, err := startup.ConnectInBackground(t.Context(), nil, "postgres", steady(), func(context.Context) (int, error) {
		runtime.Goexit()
		return 0, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	<-h.Done()
	if _, err := h.Get(); err == nil || !strings.Contains(err.Error(), "postgres has ended its goroutine") {
		t.Errorf("%v", err)
	}
}

// leaving is the context of a caller that leaves when Err is called for the nth time.
type leaving struct {
	context.Context
	leave context.CancelFunc
	asked atomic.Int32
	nth   int32
}

func (l *leaving) Err() error {
	if l.asked.Add(1) == l.nth {
		l.leave()
	}
	return l.Context.Err()
}

// A caller that leaves while an attempt of his is judged has left: the failure is not permanent.
func TestACallerThatLeavesAtAnyMomentHasLeft(t *testing.T) {
	for nth := range int32(20) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			ctx, _ = logged(ctx)
			_, err := startup.Connect(&leaving{Context: ctx, leave: cancel, nth: nth + 1}, "postgres", startup.Policy(),
				laterThere(1000))
			if !errors.Is(err, context.Canceled) || errors.Is(err, core.ErrPermanent) {
				t.Errorf("call %d of Err: %v", nth+1, err)
			}
		})
	}
}
