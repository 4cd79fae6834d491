package abateotel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateotel"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/pacing"
	"github.com/abate-go/abate/policy/retry"
	"github.com/abate-go/abate/startup"
)

// adjusted is a guard whose policy tells the metrics.
func (f fixture) adjusted(t testing.TB, name string, p abate.Policy) *abate.Guard {
	t.Helper()
	f.Adjust(name, &p)
	g := guard(t, name, p)
	f.Add(g)
	return g
}

func fail(ctx context.Context, g *abate.Guard) error {
	_, err := abate.Do(ctx, g, func(context.Context) (int, error) { return 0, errDown })
	return err
}

func TestHowCallsEndIsCounted(t *testing.T) {
	duration := func(outcome, kind string) string {
		if kind != "" {
			kind = ",error.type=" + kind
		}
		return "abate.client.call.duration{abate.guard=s,abate.outcome=" + outcome + kind + "}"
	}
	attempts := func(outcome string) string {
		return "abate.client.attempts{abate.guard=s,abate.outcome=" + outcome + "}"
	}
	const retries, delays = "abate.client.retries{abate.guard=s}", "abate.client.retry.delay{abate.guard=s}"
	waits := abate.Policy{
		Retry: abate.Retry{MaxRetries: 2, InitialDelay: time.Second, Multiplier: 2, Jitter: retry.NoJitter},
	}
	broke := waits
	broke.RetryBudget = budget.Config{Kind: budget.Tokens, MaxTokens: 1, CostPerRetry: 1}
	for name, c := range map[string]struct {
		policy abate.Policy
		errs   []error
		want   map[string]float64
	}{
		"success": {
			waits, []error{nil}, map[string]float64{duration("success", ""): 1, attempts("success"): 1},
		},
		"success after a retry": {
			waits, []error{errDown, nil}, map[string]float64{
				duration("success", ""): 1, duration("success", "") + "#": 1, attempts("failure"): 1, attempts("success"): 1,
				retries: 1, delays: 1, delays + "#": 1,
			},
		},
		"exhausted": {waits, []error{errDown, errDown, errDown}, map[string]float64{
			duration("failure", "attempts_exhausted"): 1, attempts("failure"): 3, retries: 2, delays + "#": 3,
		}},
		"budget exhausted": {
			broke, []error{errDown, errDown}, map[string]float64{duration("failure", "budget_exhausted"): 1, retries: 1},
		},
		"permanent": {waits, []error{abate.Permanent(errDown)}, map[string]float64{duration("failure", "failure"): 1}},
		"overload": {abate.Policy{}, []error{abate.RetryAfter(errDown, 0)}, map[string]float64{
			duration("overload", "overload"): 1, attempts("overload"): 1,
		}},
		"an answer": {
			waits, []error{abate.Ignore(errDown)}, map[string]float64{duration("ignored", ""): 1, attempts("ignored"): 1},
		},
		"circuit open": {abate.Policy{CircuitBreaker: breaker.Config{Mode: breaker.ForcedOpen}}, nil, map[string]float64{
			duration("refused", "circuit_open"): 1,
		}},
		"the caller left": {waits, []error{context.Canceled}, map[string]float64{duration("ignored", ""): 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := telemetry(t, nil)
				g := f.adjusted(t, "s", c.policy)
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				n := 0
				_, _ = abate.Do(ctx, g, func(context.Context) (int, error) {
					err := c.errs[n]
					if n++; err == context.Canceled {
						leave()
					}
					return 0, err
				})
				m := f.collect(t)
				m.want(t, c.want)
				m.want(t, map[string]float64{
					"abate.client.active_calls{abate.guard=s}": 0, "abate.client.active_attempts{abate.guard=s}": 0,
				})
				series := 0
				for name := range m {
					if strings.HasPrefix(name, "abate.client.call.duration") {
						series++
					}
				}
				if series != 2 { // one, and its sum
					t.Errorf("one call made %d series: %v", series, m)
				}
			})
		})
	}
}

func TestACallerThatLeavesBetweenAttemptsIsNoError(t *testing.T) {
	for name, wait := range map[string]time.Duration{"before the call": 0, "while it waits": 500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := telemetry(t, nil)
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				go func() {
					time.Sleep(wait)
					leave()
				}()
				if wait == 0 {
					leave()
				}
				g := f.adjusted(t, "s", abate.Policy{
					Retry: abate.Retry{MaxRetries: 2, InitialDelay: time.Second, Jitter: retry.NoJitter},
				})
				if err := fail(ctx, g); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				outcome := "failure"
				if wait == 0 {
					outcome = "ignored"
				}
				f.collect(t).want(t, map[string]float64{
					"abate.client.call.duration{abate.guard=s,abate.outcome=" + outcome + "}": 1,
				})
			})
		})
	}
}

func TestHedgesFallbacksAndChangesAreCounted(t *testing.T) {
	f := telemetry(t, nil)
	p := abate.Policy{Hedge: hedge.Config{Delay: time.Millisecond}, CircuitBreaker: breaker.Config{FailureThreshold: 2},
		RetryBudget: budget.Config{Kind: budget.Tokens, MaxTokens: 1, CostPerRetry: 1}}
	g := f.adjusted(t, "s", p)
	var c, denied core.Call
	g.Begin(&c, 0, core.NoDeadline)
	n, _, ok := c.Hedge(time.Millisecond)
	f.collect(t).want(t, map[string]float64{
		"abate.client.active_calls{abate.guard=s}": 1, "abate.client.active_attempts{abate.guard=s}": 2,
	})
	c.AttemptDone(time.Millisecond, n, abate.Outcome{})
	g.Begin(&denied, 0, core.NoDeadline)
	if _, _, also := denied.Hedge(0); !ok || also {
		t.Fatalf("hedges: %v, %v", ok, also)
	}
	denied.AttemptDone(0, 0, abate.Outcome{})
	g.UsedFallback(errDown)
	g.CountHiddenRetries(3)
	_, _ = fail(t.Context(), g), fail(t.Context(), g)
	f.Adjust("s", &p)
	if err := g.Update(p); err != nil {
		t.Fatal(err)
	}
	f.collect(t).want(t, map[string]float64{
		"abate.client.hedges{abate.guard=s}": 1, "abate.client.hedge.denials{abate.guard=s,abate.reason=budget_exhausted}": 1,
		"abate.client.fallbacks{abate.guard=s}": 1, "abate.client.hidden_retries{abate.guard=s}": 3,
		"abate.policy.changes{abate.guard=s}":                                               1,
		"abate.circuit_breaker.transitions{abate.circuit_breaker.state=open,abate.guard=s}": 1,
		"abate.circuit_breaker.state{abate.circuit_breaker.state=open,abate.guard=s}":       1,
		"abate.circuit_breaker.state{abate.circuit_breaker.state=closed,abate.guard=s}":     0,
		"abate.circuit_breaker.state{abate.circuit_breaker.state=half_open,abate.guard=s}":  0,
		"abate.circuit_breaker.state{abate.circuit_breaker.state=ramp_up,abate.guard=s}":    0,
		"abate.client.attempts{abate.guard=s,abate.outcome=ignored}":                        1,
		"abate.client.active_attempts{abate.guard=s}":                                       0,
	})
}

func TestStateIsReadWhenItIsCollected(t *testing.T) {
	f := telemetry(t, nil)
	p := abate.DefaultPolicy()
	p.Bulkhead = bulkhead.Config{MaxConcurrentCalls: 7}
	p.Pacing = pacing.Config{PerSecond: 10}
	g := f.adjusted(t, "s", p)
	const balance = "abate.retry_budget.balance{abate.guard=s}"
	f.collect(t).want(t, map[string]float64{
		balance: 10, "abate.bulkhead.limit{abate.guard=s}": 7, "abate.bulkhead.running{abate.guard=s}": 0,
		"abate.bulkhead.queued{abate.guard=s}": 0,
	})
	var c core.Call
	g.Begin(&c, 0, core.NoDeadline)
	defer c.Abort(0)
	m := f.collect(t)
	m.want(t, map[string]float64{"abate.bulkhead.running{abate.guard=s}": 1})
	if _, there := m["abate.pacing.wait{abate.guard=s}"]; !there {
		t.Errorf("the pacing is not shown: %v", m)
	}
}

func TestWhatIsOffIsLeftOut(t *testing.T) {
	f := telemetry(t, nil)
	f.adjusted(t, "s", abate.Policy{})
	for name := range f.collect(t) {
		if !strings.HasPrefix(name, "abate.client.active_") {
			t.Errorf("%s is shown, and there is nothing to show", name)
		}
	}
}

// The policy has no circuit, and all calls are refused by one: what somebody has forced open is a state all the same.
func TestACircuitForcedOpenByHandIsShownWhereThePolicyHasNone(t *testing.T) {
	f := telemetry(t, nil)
	g := f.adjusted(t, "s", abate.Policy{})
	if err := g.Override(abate.OverrideForcedOpen); err != nil {
		t.Fatal(err)
	}
	m := f.collect(t)
	if is, there := m["abate.circuit_breaker.state{abate.circuit_breaker.state=open,abate.guard=s}"]; !there || is != 1 {
		t.Errorf("not shown: %v", m)
	}
}

func TestAStartThatFailsSaysWhy(t *testing.T) {
	for want, end := range map[string]struct {
		policy abate.Policy
		err    error
	}{
		"permanent": {abate.Policy{}, abate.Permanent(errDown)},
		"gave_up":   {abate.Policy{Retry: abate.Retry{MaxElapsed: time.Minute, InitialDelay: time.Second}}, errDown},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := telemetry(t, nil)
			f.Adjust("s", &end.policy)
			if _, err := startup.Connect(t.Context(), "s", end.policy, func(context.Context) (int, error) {
				return 0, end.err
			}); err == nil {
				t.Fatal("no error")
			}
			f.collect(t).want(t, map[string]float64{
				"abate.client.call.duration{abate.guard=s,abate.outcome=failure,error.type=" + want + "}": 1,
			})
		})
	}
}

func TestAdjustingTwiceCountsOnce(t *testing.T) {
	f := telemetry(t, nil)
	told := 0
	p := abate.Policy{Observer: abate.ObserverFunc(func(abate.Event) { told++ })}
	f.Adjust("s", &p)
	f.Adjust("s", &p)
	other := telemetry(t, nil)
	other.Adjust("s", &p)
	f.Adjust("s", &p)
	g := guard(t, "s", p)
	_ = fail(t.Context(), g)
	for _, one := range []fixture{f, other} {
		one.collect(t).want(t, map[string]float64{"abate.client.attempts{abate.guard=s,abate.outcome=failure}": 1})
	}
	if told != 4 { // call began, attempt began and ended, call ended
		t.Errorf("the observer that was there was told %d times", told)
	}
	alone := telemetry(t, nil)
	var q abate.Policy
	alone.Adjust("s", &q)
	alone.Adjust("s", &q)
	_ = fail(t.Context(), guard(t, "s", q))
	alone.collect(t).want(t, map[string]float64{"abate.client.attempts{abate.guard=s,abate.outcome=failure}": 1})
	var a, b abate.Policy
	f.Adjust("s", &a)
	f.Adjust("s", &b)
	if a.Observer != b.Observer {
		t.Error("two policies of one service have observers that differ: every reload would look like a change")
	}
}

func TestUnitsAreThoseOfTheConventions(t *testing.T) {
	f := telemetry(t, nil)
	p := abate.DefaultPolicy()
	p.Bulkhead = bulkhead.Config{MaxConcurrentCalls: 7}
	g := f.adjusted(t, "s", p)
	g.UsedFallback(errDown)
	_ = fail(t.Context(), g)
	var all metricdata.ResourceMetrics
	if err := f.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	if s := all.ScopeMetrics[0].Scope; len(all.ScopeMetrics) != 1 ||
		s.Name != "github.com/abate-go/abate/adapter/abateotel" || s.SchemaURL == "" {
		t.Errorf("scopes %+v", all.ScopeMetrics)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		unit := "{attempt}"
		switch {
		case strings.HasSuffix(m.Name, ".duration"), strings.HasSuffix(m.Name, ".delay"):
			unit = "s"
		case strings.HasPrefix(m.Name, "abate.bulkhead"), m.Name == "abate.circuit_breaker.held",
			strings.HasSuffix(m.Name, "calls"),
			strings.HasSuffix(m.Name, "fallbacks"):
			unit = "{call}"
		case m.Name == "abate.circuit_breaker.state":
			unit = "1"
		}
		if m.Unit != unit || m.Description == "" {
			t.Errorf("%s has unit %q, want %q; description %q", m.Name, m.Unit, unit, m.Description)
		}
	}
}

// grumpy is a meter provider that refuses some instruments.
type grumpy struct {
	noop.MeterProvider
	refused string
}

func (g grumpy) Meter(string, ...metric.MeterOption) metric.Meter {
	return grumpyMeter{refused: g.refused}
}

type grumpyMeter struct {
	noop.Meter
	refused string
}

func (g grumpyMeter) Int64Counter(name string, o ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	if strings.HasSuffix(name, g.refused) {
		return nil, errors.New(name + " is no name")
	}
	return g.Meter.Int64Counter(name, o...)
}

func (g grumpyMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	if g.refused == "callback" {
		return nil, errDown
	}
	return noop.Registration{}, nil
}

func TestAMeterThatRefusesInstrumentsIsAnErrorThatNamesThem(t *testing.T) {
	for refused, words := range map[string][]string{
		"retries":  {"abateotel: the meter provider refuses", "abate.client.retries", "abate.client.hidden_retries"},
		"callback": {"down"},
	} {
		_, err := abateotel.New(abateotel.Config{MeterProvider: grumpy{refused: refused}})
		for _, word := range words {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%s: the error is %v, without %q", refused, err, word)
			}
		}
	}
	if _, err := abateotel.New(abateotel.Config{}); err != nil {
		t.Errorf("the global providers: %v", err)
	}
}

// TestNothingIsLostWhenManyCount: the race detector looks on, and the sums are exact.
func TestNothingIsLostWhenManyCount(t *testing.T) {
	const workers, rounds = 8, 100
	f := telemetry(t, nil)
	g := f.adjusted(t, "s", eager(1))
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := range rounds {
				_ = fail(context.Background(), g)
				f.Add(g)
				f.Adjust(fmt.Sprint("service-", i%20), new(abate.Policy))
			}
		})
	}
	for range 10 {
		f.collect(t)
	}
	all.Wait()
	f.collect(t).want(t, map[string]float64{
		"abate.client.attempts{abate.guard=s,abate.outcome=failure}":                                    2 * workers * rounds,
		"abate.client.retries{abate.guard=s}":                                                           workers * rounds,
		"abate.client.call.duration{abate.guard=s,abate.outcome=failure,error.type=attempts_exhausted}": workers * rounds,
		"abate.client.active_calls{abate.guard=s}":                                                      0,
	})
}
