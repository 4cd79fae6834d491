package abate_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/retry"
)

// shots is a function that answers as written, its last answer for ever, and notes when it was called.
type shots struct {
	began time.Time
	at    []time.Duration
	list  []shot
}

type shot struct {
	v   int
	err error
}

func shooting(list ...shot) *shots { return &shots{began: time.Now(), list: list} }

func (s *shots) call(context.Context) (int, error) {
	s.at = append(s.at, time.Since(s.began))
	next := s.list[min(len(s.at), len(s.list))-1]
	return next.v, next.err
}

func (s *shots) run(ctx context.Context) error { _, err := s.call(ctx); return err }

func below(limit int) func(int) bool { return func(v int) bool { return v < limit } }

var errDeclined = errors.New("declined")

func reasonOf(err error) string {
	for name, reason := range map[string]error{
		"attempts": abate.ErrAttemptsExhausted, "open": abate.ErrCircuitOpen, "budget": abate.ErrBudgetExhausted,
		"deadline": abate.ErrDeadline,
	} {
		if errors.Is(err, reason) {
			return name
		}
	}
	return fmt.Sprint(err)
}

// trips is a policy whose circuit opens with the first failure.
func trips(p abate.Policy) abate.Policy {
	p.CircuitBreaker = breaker.Config{FailureThreshold: 1}
	return p
}

// peerRows are things that users of other libraries can say, each as it is said here: what comes of it.
var peerRows = []struct {
	peer, says string
	run        func(t *testing.T) string
	want       string
}{
	{"failsafe-go", "handle a result: try again while it is this one", func(t *testing.T) string {
		s := shooting(shot{1, nil}, shot{1, nil}, shot{7, nil})
		v, err := abate.Do(t.Context(), guard(t, abate.Policy{Retry: fixed(ms, 5)}), abate.RetryIf(s.call, func(v int) bool {
			return v == 1
		}))
		return fmt.Sprint(v, err, len(s.at))
	}, "7 <nil> 3"},
	{"failsafe-go", "handle if: a predicate of result and error", func(t *testing.T) string {
		s := shooting(shot{1, nil}, shot{0, errDown}, shot{7, nil})
		v, err := abate.Do(t.Context(), guard(t, abate.Policy{Retry: fixed(ms, 5)}), abate.RetryIf(s.call, below(5)))
		return fmt.Sprint(v, err, len(s.at))
	}, "7 <nil> 3"},
	{"failsafe-go", "the last result comes with the error", func(t *testing.T) string {
		s := shooting(shot{1, nil}, shot{2, nil})
		v, err := abate.Do(t.Context(), guard(t, abate.Policy{Retry: fixed(ms, 1)}), abate.RetryIf(s.call, below(5)))
		return fmt.Sprint(v, " ", reasonOf(err), " ", errors.Is(err, abate.ErrPending))
	}, "2 attempts true"},
	{"failsafe-go", "a delay that is computed from the number of the retry", func(t *testing.T) string {
		p := abate.Policy{Retry: fixed(ms, 3)}
		p.Delay = func(n int, _ abate.Outcome, _ uint64) time.Duration { return time.Duration(n*n) * 100 * ms }
		s := shooting(shot{0, errDown})
		abate.DoErr(t.Context(), guard(t, p), s.run)
		return fmt.Sprint(s.at)
	}, "[0s 100ms 500ms 1.4s]"},
	{"failsafe-go", "the execution: attempts, first or retry, last error, elapsed time", func(t *testing.T) string {
		got := ""
		abate.DoErr(core.WithAttemptInfo(t.Context()), guard(t, abate.Policy{Retry: fixed(100*ms, 1)}),
			func(ctx context.Context) error {
				a, _ := core.AttemptOf(ctx)
				got += fmt.Sprintln(a.Number, a.Number == 1, a.Err, a.Elapsed)
				return errDown
			})
		return got
	}, "1 true <nil> 0s\n2 false down 100ms\n"},
	{"failsafe-go", "the execution knows whether it is a hedge", hedges,
		"[{payment-service 1 false 0s <nil>} {payment-service 2 true 100ms <nil>}]"},
	{"failsafe-go", "a fallback around a hedge", func(t *testing.T) string {
		s := shooting(shot{0, errDown})
		v, err := abate.DoHedgedWithFallback(t.Context(), guard(t, abate.Policy{Hedge: hedge.Config{Delay: time.Second}}),
			s.call,
			func(_ context.Context, err error) (int, error) { return 9, nil })
		return fmt.Sprint(v, err)
	}, "9 <nil>"},
	{"failsafe-go", "a fallback sees the last error", func(t *testing.T) string {
		s := shooting(shot{0, errDown}, shot{0, errDeclined})
		_, err := abate.DoWithFallback(t.Context(), guard(t, abate.Policy{Retry: fixed(ms, 1)}), s.call,
			func(_ context.Context, err error) (int, error) {
				return 0, fmt.Errorf("%t %t", errors.Is(err, errDown), errors.Is(err, errDeclined))
			})
		return fmt.Sprint(err)
	}, "false true"},
	{"failsafe-go", "one budget for several executors", func(t *testing.T) string {
		shared := budget.New(budget.Config{Ratio: 0.0001, Reserve: 2})
		p := abate.Policy{Retry: fixed(ms, 3), SharedBudget: shared}
		a, b := shooting(shot{0, errDown}), shooting(shot{0, errDown})
		abate.DoErr(t.Context(), guard(t, p), a.run)
		err := abate.DoErr(t.Context(), guard(t, p), b.run)
		return fmt.Sprint(len(a.at)+len(b.at), " ", reasonOf(err))
	}, "4 budget"},
	{"failsafe-go", "run: a function without a value", func(t *testing.T) string {
		s := shooting(shot{0, errDown}, shot{})
		return fmt.Sprint(abate.DoErr(t.Context(), guard(t, abate.Policy{Retry: fixed(ms, 1)}), s.run), len(s.at))
	}, "<nil> 2"},
	{"failsafe-go", "a timeout that leaves what was returned alone", func(t *testing.T) string {
		ctx, err := abate.Do(t.Context(), guard(t, abate.Policy{AttemptTimeout: time.Second}),
			func(ctx context.Context) (context.Context, error) {
				context.AfterFunc(ctx, func() {})
				return ctx, nil
			})
		time.Sleep(time.Minute)
		return fmt.Sprint(err, ctx.Err())
	}, "<nil> <nil>"},
	{"retry-go", "the type of the delay depends on the error", func(t *testing.T) string {
		p := abate.Policy{Retry: fixed(ms, 2)}
		p.Delay = func(_ int, last abate.Outcome, _ uint64) time.Duration {
			if errors.Is(last.Err, errDeclined) {
				return time.Second
			}
			return 10 * ms
		}
		s := shooting(shot{0, errDown}, shot{0, errDeclined})
		abate.DoErr(t.Context(), guard(t, p), s.run)
		return fmt.Sprint(s.at)
	}, "[0s 10ms 1.01s]"},
	{"retry-go", "a delay of several parts, one of them random", func(t *testing.T) string {
		p := abate.Policy{Retry: fixed(ms, 1), Rand: func() uint64 { return 25 }}
		p.Delay = func(n int, _ abate.Outcome, rnd uint64) time.Duration {
			return 100*ms<<n + time.Duration(rnd%100)*ms
		}
		s := shooting(shot{0, errDown})
		abate.DoErr(t.Context(), guard(t, p), s.run)
		return fmt.Sprint(s.at)
	}, "[0s 225ms]"},
	{"retry-go", "a longest delay holds for one's own type of delay", func(t *testing.T) string {
		p := abate.Policy{Retry: fixed(ms, 1)}
		p.MaxDelay = 2 * time.Second
		p.Delay = func(int, abate.Outcome, uint64) time.Duration { return time.Hour }
		s := shooting(shot{0, errDown})
		abate.DoErr(t.Context(), guard(t, p), s.run)
		return fmt.Sprint(s.at)
	}, "[0s 2s]"},
	{"retry-go", "retry if: a predicate of the error", func(t *testing.T) string {
		p := abate.Policy{Retry: fixed(ms, 5)}
		p.Classify = func(err error) abate.Outcome {
			return abate.Outcome{Class: abate.Failure, NoRetry: !errors.Is(err, errDown)}
		}
		s := shooting(shot{0, errDown}, shot{0, errDeclined})
		err := abate.DoErr(t.Context(), guard(t, p), s.run)
		return fmt.Sprint(err == errDeclined, len(s.at))
	}, "true 2"},
	{"retry-go", "unrecoverable", func(t *testing.T) string {
		s := shooting(shot{0, abate.Permanent(errDeclined)})
		err := abate.DoErr(t.Context(), guard(t, abate.Policy{Retry: fixed(ms, 5)}), s.run)
		return fmt.Sprint(err == errDeclined, len(s.at))
	}, "true 1"},
	{"retry-go", "on retry: number and error", notified, "1 down 10ms; 2 down 10ms; "},
	{"backoff", "stop: the function has seen enough", func(t *testing.T) string {
		s := shooting(shot{3, abate.Permanent(errDeclined)})
		v, err := abate.Do(t.Context(), guard(t, abate.Policy{Retry: fixed(ms, 5)}), s.call)
		return fmt.Sprint(v, err)
	}, "3 declined"},
	{"backoff", "retry after so many seconds", func(t *testing.T) string {
		s := shooting(shot{0, abate.RetryAfter(errDown, 5*time.Second)}, shot{})
		p := abate.Policy{Retry: fixed(ms, 1)}
		p.RetryAfterJitter = 1e-12
		err := abate.DoErr(t.Context(), guard(t, p), s.run)
		return fmt.Sprint(err, s.at[1].Round(ms))
	}, "<nil> 5s"},
	{"backoff", "a back-off of one's own", func(t *testing.T) string {
		fibonacci := []time.Duration{1, 1, 2, 3, 5}
		p := abate.Policy{Retry: fixed(ms, 5)}
		p.Delay = func(n int, _ abate.Outcome, _ uint64) time.Duration { return fibonacci[n-1] * time.Second }
		s := shooting(shot{0, errDown})
		abate.DoErr(t.Context(), guard(t, p), s.run)
		return fmt.Sprint(s.at)
	}, "[0s 1s 2s 4s 7s 12s]"},
	{"backoff", "an end of all attempts in time", func(t *testing.T) string {
		p := abate.Policy{Retry: fixed(time.Second, 100)}
		p.MaxElapsed = 3500 * ms
		s := shooting(shot{0, errDown})
		abate.DoErr(t.Context(), guard(t, p), s.run)
		return fmt.Sprint(len(s.at))
	}, "4"},
	{"backoff", "a polled operation returns its data in the end", func(t *testing.T) string {
		s := shooting(shot{10, nil}, shot{50, nil}, shot{100, nil})
		v, err := abate.Do(t.Context(), guard(t, abate.Policy{Retry: fixed(time.Second, 5)}),
			abate.RetryIf(s.call, below(100)))
		return fmt.Sprint(v, err, s.at)
	}, "100 <nil> [0s 1s 2s]"},
	{"gobreaker", "is excluded: an error that is counted neither way", func(t *testing.T) string {
		g := guard(t, trips(abate.Policy{}))
		err := abate.DoErr(t.Context(), g, func(context.Context) error { return abate.Ignore(errDeclined) })
		return fmt.Sprint(err == errDeclined, g.State().Breaker.State)
	}, "true closed"},
	{"gobreaker", "is successful: the error says that it works", func(t *testing.T) string {
		p := abate.Policy{CircuitBreaker: breaker.Config{FailureThreshold: 2}}
		p.Classify = func(err error) abate.Outcome {
			if errors.Is(err, errDeclined) {
				return abate.Outcome{Class: abate.Success, Err: err}
			}
			return abate.Outcome{Class: abate.Failure}
		}
		g, s := guard(t, p), shooting(shot{0, errDown}, shot{0, errDeclined}, shot{0, errDown})
		var errs []any
		for range 3 {
			errs = append(errs, abate.DoErr(t.Context(), g, s.run))
		}
		return fmt.Sprint(errs, g.State().Breaker.State)
	}, "[down declined down] closed"},
	{"gobreaker", "in two steps, without a function", func(t *testing.T) string {
		g := guard(t, trips(abate.Policy{}))
		a, err := core.AdmitOne(t.Context(), g)
		if err != nil {
			return err.Error()
		}
		a.Done(errDown)
		_, err = core.AdmitOne(t.Context(), g)
		return reasonOf(err)
	}, "open"},
	{"gobreaker", "one breaker for each key", func(t *testing.T) string {
		guards, err := abate.NewGuards[string]("tenant", trips(abate.Policy{}), 10)
		if err != nil {
			return err.Error()
		}
		fail := func(context.Context) error { return errDown }
		abate.DoErr(t.Context(), guards.For("a"), fail)
		return fmt.Sprint(reasonOf(abate.DoErr(t.Context(), guards.For("a"), fail)),
			" ", reasonOf(abate.DoErr(t.Context(), guards.For("b"), fail)))
	}, "open down"},
	{"resilience4j", "retry on a result, with a breaker around that does not mind", func(t *testing.T) string {
		g, s := guard(t, trips(abate.Policy{Retry: fixed(ms, 5)})), shooting(shot{1, nil}, shot{1, nil}, shot{7, nil})
		v, err := abate.Do(t.Context(), g, abate.RetryIf(s.call, below(5)))
		return fmt.Sprint(v, err, g.State().Breaker.State)
	}, "7 <nil> closed"},
	{"resilience4j", "record a result as a failure", func(t *testing.T) string {
		g := guard(t, trips(abate.Policy{}))
		v, err := abate.Do(t.Context(), g, func(context.Context) (int, error) { return 500, errDown })
		return fmt.Sprint(v, err, g.State().Breaker.State)
	}, "500 down open"},
	{"resilience4j", "the interval depends on attempt and result", func(t *testing.T) string {
		p := abate.Policy{Retry: fixed(ms, 2)}
		p.Delay = func(n int, last abate.Outcome, _ uint64) time.Duration {
			if errors.Is(last.Err, abate.ErrPending) {
				return time.Duration(n) * time.Second
			}
			return 10 * ms
		}
		s := shooting(shot{1, nil}, shot{0, errDown}, shot{7, nil})
		v, err := abate.Do(t.Context(), guard(t, p), abate.RetryIf(s.call, below(5)))
		return fmt.Sprint(v, err, s.at)
	}, "7 <nil> [0s 1s 1.01s]"},
	{"resilience4j", "a runnable", func(t *testing.T) string {
		return fmt.Sprint(abate.DoErr(t.Context(), guard(t, abate.Policy{}), func(context.Context) error { return nil }))
	}, "<nil>"},
	{"resilience4j", "a registry: named instances of one configuration, which changes for all", func(t *testing.T) string {
		guards, _ := abate.NewGuards[int]("shard", abate.Policy{Timeout: time.Second}, 10)
		a := guards.For(1)
		err := guards.Update(abate.Policy{Timeout: time.Minute})
		return fmt.Sprint(a.Name(), " ", err, a.Describe().Timeout, guards.For(2).Describe().Timeout, guards.For(1) == a,
			guards.Len())
	}, "shard/1 <nil> 1m0s 1m0s true 2"},
	{"resilience4j", "fail after the last attempt though there is a result", func(t *testing.T) string {
		s := shooting(shot{1, nil})
		_, err := abate.Do(t.Context(), guard(t, abate.Policy{Retry: fixed(ms, 2)}), abate.RetryIf(s.call, below(5)))
		return fmt.Sprint(reasonOf(err), " ", len(s.at))
	}, "attempts 3"},
	{"Polly", "handle a result that is to be had later", func(t *testing.T) string {
		s := shooting(shot{0, abate.RetryAfter(abate.ErrPending, 3*time.Second)}, shot{7, nil})
		p := abate.Policy{Retry: fixed(ms, 1)}
		p.RetryAfterJitter = 1e-12
		v, err := abate.Do(t.Context(), guard(t, p), s.call)
		return fmt.Sprint(v, err, s.at[1].Round(ms))
	}, "7 <nil> 3s"},
	{"Polly", "a generator of delays that is given the outcome", func(t *testing.T) string {
		got, s := "", shooting(shot{0, abate.RetryAfter(errDown, time.Second)}, shot{})
		p := abate.Policy{Retry: fixed(ms, 1)}
		p.Delay = func(n int, last abate.Outcome, _ uint64) time.Duration {
			got = fmt.Sprint(n, last.Class, last.RetryAfter, last.Err)
			return 0
		}
		abate.DoErr(t.Context(), guard(t, p), s.run)
		return got
	}, "1 overload 1s down"},
	{"Polly", "a hedge of a result that is not good enough", func(t *testing.T) string {
		s := shooting(shot{1, nil}, shot{7, nil})
		v, err := abate.DoHedged(t.Context(), guard(t, abate.Policy{
			Retry: fixed(ms, 2), Hedge: hedge.Config{Delay: time.Second},
		}), abate.RetryIf(s.call, below(5)))
		return fmt.Sprint(v, err, len(s.at))
	}, "7 <nil> 2"},
	{"Polly", "a registry of pipelines by key of any type", func(t *testing.T) string {
		type key struct{ Region, Tenant string }
		guards, _ := abate.NewGuards[key]("search", abate.Policy{}, 10)
		return guards.For(key{"eu", "acme"}).Name()
	}, "search/{eu acme}"},
	{"Polly", "properties of the context reach the callback", func(t *testing.T) string {
		type key struct{}
		v, _ := abate.Do(context.WithValue(t.Context(), key{}, 5), guard(t, abate.Policy{AttemptTimeout: time.Second}),
			func(ctx context.Context) (any, error) {
				return ctx.Value(key{}), nil
			})
		return fmt.Sprint(v)
	}, "5"},
	{"Polly", "isolate by hand", func(t *testing.T) string {
		g := guard(t, abate.Policy{CircuitBreaker: breaker.Config{Mode: breaker.ForcedOpen}})
		return reasonOf(abate.DoErr(t.Context(), g, func(context.Context) error { return nil }))
	}, "open"},
}

// hedges is what the copies of a hedged call know of themselves.
func hedges(t *testing.T) string {
	var mu sync.Mutex
	var got []core.AttemptInfo
	abate.DoHedged(core.WithAttemptInfo(t.Context()), guard(t, abate.Policy{Hedge: hedge.Config{Delay: 100 * ms}}),
		func(ctx context.Context) (int, error) {
			info, _ := core.AttemptOf(ctx)
			mu.Lock()
			got = append(got, info)
			mu.Unlock()
			if info.Hedge {
				return 1, nil
			}
			<-ctx.Done()
			return 0, ctx.Err()
		})
	return fmt.Sprint(got)
}

// notified is what an observer is told of the retries of a call.
func notified(t *testing.T) (got string) {
	var last error
	ctx := abate.WithObserver(t.Context(), abate.ObserverFunc(func(e abate.Event) {
		switch e.Kind {
		case core.AttemptEnded:
			last = e.Err
		case core.RetryScheduled:
			got += fmt.Sprint(e.Attempt, " ", last, " ", e.Delay, "; ")
		}
	}))
	abate.DoErr(ctx, guard(t, abate.Policy{
		Retry: retry.Config{MaxRetries: 2, Backoff: retry.FixedBackoff, InitialDelay: 10 * ms, Jitter: retry.NoJitter},
	}),
		func(context.Context) error { return errDown })
	return got
}

// What users of other libraries can say, they can say here. These are behaviours that their tests ask for, in calls of
// this package.
func TestWhatUsersOfOtherLibrariesCanSay(t *testing.T) {
	for _, row := range peerRows {
		t.Run(row.peer+" "+row.says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got := row.run(t); got != row.want {
					t.Errorf("%q, want %q", got, row.want)
				}
			})
		})
	}
}
