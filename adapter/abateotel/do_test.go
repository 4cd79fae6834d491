package abateotel_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateotel"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/retry"
)

func TestAFunctionsAttemptsAreSpansBelowTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := telemetry(t, nil)
		p := abate.Policy{Retry: abate.Retry{MaxRetries: 2, InitialDelay: 250 * time.Millisecond, Jitter: retry.NoJitter}}
		var within []trace.SpanID
		v, err := abateotel.Do(t.Context(), f.Telemetry, guard(t, "ledger", p), func(ctx context.Context) (int, error) {
			within = append(within, trace.SpanFromContext(ctx).SpanContext().SpanID())
			if len(within) == 1 {
				return 0, errDown
			}
			return 7, nil
		})
		if v != 7 || err != nil {
			t.Fatalf("got %d, %v", v, err)
		}
		call, attempts := f.named(t, "call ledger", 1)[0], f.named(t, "attempt ledger", 2)
		call.want(t, map[string]string{
			"abate.guard": "ledger", "abate.attempts": "2", "abate.outcome": "success", "error.type": "",
		})
		if got, want := call.events(), []string{
			"abate.retry.scheduled abate.attempt=1 abate.retry.delay=0.25 error.type=*errors.errorString",
		}; !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
		for i, a := range attempts {
			a.want(t, map[string]string{"abate.guard": "ledger", "abate.attempt": []string{"1", "2"}[i],
				"error.type": []string{"*errors.errorString", ""}[i]})
			if a.Parent().SpanID() != call.SpanContext().SpanID() || a.SpanContext().SpanID() != within[i] ||
				(a.Status().Code == codes.Error) != (i == 0) {
				t.Errorf("attempt %d: parent %v, in the context %v, status %v", i+1, a.Parent().SpanID(), within[i], a.Status())
			}
		}
		if pause := attempts[1].StartTime().Sub(attempts[0].EndTime()); pause != 250*time.Millisecond {
			t.Errorf("the wait is in a span: %v between the attempts", pause)
		}
	})
}

func TestHowAFunctionEndsIsOnItsSpans(t *testing.T) {
	open := abate.Policy{CircuitBreaker: breaker.Config{Mode: breaker.ForcedOpen}}
	for name, c := range map[string]struct {
		policy        abate.Policy
		err           error
		outcome, kind string
		call, attempt codes.Code
		attempts      int
		attemptKind   string
	}{
		"success": {eager(1), nil, "success", "", codes.Unset, codes.Unset, 1, ""},
		"failure": {eager(1), errDown, "failure", "attempts_exhausted", codes.Error, codes.Error, 2, "*errors.errorString"},
		"permanent": {eager(1), abate.Permanent(errDown), "failure", "failure", codes.Error, codes.Error, 1,
			"*errors.errorString"},
		"overload": {eager(0), abate.RetryAfter(errDown, time.Second), "overload", "overload", codes.Error, codes.Error,
			1, "*errors.errorString"},
		"an answer": {eager(1), abate.Ignore(errDown), "ignored", "", codes.Unset, codes.Unset, 1, ""},
		"timeout":   {eager(0), context.DeadlineExceeded, "failure", "failure", codes.Error, codes.Error, 1, "timeout"},
		"a guard inside has given up": {eager(0),
			abate.Permanent(&abate.Error{Reason: abate.ErrAttemptsExhausted, Err: errDown}), "failure",
			"failure", codes.Error, codes.Error, 1, "*abate.Error"},
		"a policy is invalid": {eager(0), abate.Permanent(&abate.FieldError{Path: "maxRetries"}), "failure", "failure",
			codes.Error, codes.Error, 1, "*abate.FieldError"},
		"refused": {open, errDown, "refused", "circuit_open", codes.Error, codes.Unset, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := telemetry(t, nil)
			_, _ = abateotel.Do(t.Context(), f.Telemetry, guard(t, "s", c.policy), func(context.Context) (int, error) {
				return 0, c.err
			})
			call := f.named(t, "call s", 1)[0]
			call.want(t, map[string]string{"abate.outcome": c.outcome, "error.type": c.kind})
			if call.Status().Code != c.call {
				t.Errorf("the call has status %v, want %v", call.Status(), c.call)
			}
			for _, a := range f.named(t, "attempt s", c.attempts) {
				a.want(t, map[string]string{"error.type": c.attemptKind})
				if a.Status().Code != c.attempt {
					t.Errorf("an attempt has status %v, want %v", a.Status(), c.attempt)
				}
			}
		})
	}
}

func TestAFunctionThatPanicsEndsItsSpans(t *testing.T) {
	for name, c := range map[string]func(){"panic": func() { panic(errDown) }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			f, done := telemetry(t, nil), make(chan any)
			go func() {
				defer func() { done <- recover() }()
				_, _ = abateotel.Do(t.Context(), f.Telemetry, guard(t, "s", eager(1)), func(context.Context) (int, error) {
					c()
					return 0, nil
				})
			}()
			if r := <-done; name == "panic" && r != any(errDown) {
				t.Errorf("the panic became %v", r)
			}
			for _, s := range []span{f.named(t, "call s", 1)[0], f.named(t, "attempt s", 1)[0]} {
				if s.Status().Code != codes.Error {
					t.Errorf("%s: status %v", s.Name(), s.Status())
				}
			}
		})
	}
}

func TestHedgedFunctionsHaveSpansSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := telemetry(t, nil)
		g := guard(t, "s", abate.Policy{Hedge: hedge.Config{Delay: 10 * time.Millisecond}})
		copies := make(chan struct{}, 1)
		copies <- struct{}{}
		v, err := abateotel.DoHedged(t.Context(), f.Telemetry, g, func(ctx context.Context) (string, error) {
			select {
			case <-copies: // the first
				<-ctx.Done()
				return "", ctx.Err()
			default:
				return "quick", nil
			}
		})
		if v != "quick" || err != nil {
			t.Fatalf("got %q, %v", v, err)
		}
		f.named(t, "call s", 1)[0].want(t, map[string]string{"abate.attempts": "2", "abate.outcome": "success"})
		attempts := f.named(t, "attempt s", 2)
		attempts[0].want(t, map[string]string{"abate.attempt": "1", "error.type": "canceled"})
		attempts[1].want(t, map[string]string{"abate.attempt": "2", "error.type": ""})
		if attempts[0].Status().Code != codes.Unset {
			t.Errorf("the loser has status %v", attempts[0].Status())
		}
	})
}

func TestAFunctionThatNobodyRecordsRunsWithoutSpans(t *testing.T) {
	f := telemetry(t, sdktrace.NeverSample())
	v, err := abateotel.Do(t.Context(), f.Telemetry, guard(t, "s", eager(1)), func(ctx context.Context) (bool, error) {
		return trace.SpanContextFromContext(ctx).IsValid() && core.ObserverOf(ctx) == nil, nil
	})
	if !v || err != nil || len(f.spans.Started()) != 0 {
		t.Errorf("got %v, %v, spans %v", v, err, f.names())
	}
}

func TestDecisionsAreEventsOfTheSpanThatIsThere(t *testing.T) {
	f := telemetry(t, nil)
	ctx, outer := f.tracer.Start(t.Context(), "SELECT")
	_, err := abate.Do(abateotel.Decisions(ctx), guard(t, "db", eager(1)), func(context.Context) (int, error) {
		return 0, errDown
	})
	if !errors.Is(err, abate.ErrAttemptsExhausted) {
		t.Fatal(err)
	}
	outer.End()
	s := f.named(t, "SELECT", 1)[0]
	want := []string{"abate.retry.scheduled abate.attempt=1 abate.retry.delay=0 error.type=*errors.errorString",
		"abate.call.stopped abate.reason=attempts_exhausted abate.attempts=2"}
	if got := s.events(); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	if s.Status().Code != codes.Unset || len(s.attributes) != 0 {
		t.Errorf("the span of somebody else got status %v and %v", s.Status(), s.attributes)
	}
	for _, kv := range s.Events()[0].Attributes {
		if kv.Key == "abate.guard" && kv.Value.AsString() != "db" {
			t.Errorf("the event names guard %v", kv.Value)
		}
	}
	if ctx := t.Context(); abateotel.Decisions(ctx) != ctx {
		t.Error("without a span there is nothing to write into, and the context is another all the same")
	}
}

func TestAGuardInsideACallAddsOnlyEvents(t *testing.T) {
	f := telemetry(t, nil)
	inner := guard(t, "inner", eager(1))
	_, err := abateotel.Do(t.Context(), f.Telemetry, guard(t, "outer", eager(0)), func(ctx context.Context) (int, error) {
		_, _ = abate.Do(ctx, inner, func(context.Context) (int, error) { return 0, errDown })
		return 0, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	call := f.named(t, "call outer", 1)[0]
	call.want(t, map[string]string{
		"abate.guard": "outer", "abate.attempts": "1", "abate.outcome": "success", "error.type": "", "abate.reason": "",
	})
	if got := call.events(); len(got) != 2 || call.Status().Code != codes.Unset {
		t.Errorf("events %q, status %v", got, call.Status())
	}
}
