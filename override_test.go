package abate_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
)

// passes reports whether a call gets through, and that it is an open circuit that refuses it if not.
func passes(t *testing.T, g *abate.Guard) bool {
	t.Helper()
	called := false
	_, err := abate.Do(t.Context(), g, func(context.Context) (int, error) { called = true; return 0, nil })
	if called == (err != nil) || err != nil && !errors.Is(err, abate.ErrCircuitOpen) {
		t.Fatalf("called: %v, error: %v", called, err)
	}
	return called
}

func override(t *testing.T, g *abate.Guard, o abate.Override) {
	t.Helper()
	if err := g.Override(o); err != nil {
		t.Fatal(err)
	}
	if got := g.State().Override; got != o {
		t.Errorf("State says %q, want %q", got, o)
	}
}

func fail(t *testing.T, g *abate.Guard, times int) {
	for range times {
		_, _ = abate.Do(t.Context(), g, func(context.Context) (int, error) { return 0, errDown })
	}
}

// A circuit that is made by forcing it open tells of it as one that was there does: whoever counts sees both ends.
func TestForcingACircuitOpenIsToldWhereThereWasNone(t *testing.T) {
	var told [][2]breaker.State
	o := abate.ObserverFunc(func(e abate.Event) {
		if e.Kind == core.BreakerChanged {
			told = append(told, [2]breaker.State{e.From, e.To})
		}
	})
	for name, p := range map[string]abate.Policy{
		"none": {}, "off": {CircuitBreaker: breaker.Config{Disabled: true, FailureThreshold: 2}}, "on": {
			CircuitBreaker: breaker.Config{FailureThreshold: 2},
		},
	} {
		told = nil
		p.Observer = o
		g, err := abate.New("g", p)
		if err != nil {
			t.Fatal(err)
		}
		for _, by := range []abate.Override{abate.OverrideForcedOpen, abate.NoOverride} {
			override(t, g, by)
		}
		if want := [][2]breaker.State{
			{breaker.Closed, breaker.Open}, {breaker.Open, breaker.Closed},
		}; !slices.Equal(told, want) {
			t.Errorf("%s: %v, want %v", name, told, want)
		}
	}
	told = nil
	if _, err := abate.New("g", abate.Policy{
		Observer: o, CircuitBreaker: breaker.Config{Mode: breaker.ForcedOpen},
	}); err != nil || told != nil {
		t.Errorf("made forced open: %v %v", err, told)
	}
}

func TestAnOverrideGoesBeforeThePolicy(t *testing.T) {
	tripping := abate.Policy{CircuitBreaker: breaker.Config{FailureThreshold: 2, WaitDurationInOpenState: time.Minute}}
	disabled := tripping
	disabled.CircuitBreaker.Disabled = true
	forced := abate.Policy{CircuitBreaker: breaker.Config{Mode: breaker.ForcedOpen}}
	for _, row := range []struct {
		name   string
		policy abate.Policy
		o      abate.Override
		healed bool // whether a call passes while nothing is wrong,
		broken bool // after two failures,
		after  bool // and when the override has been taken back
	}{
		{"none", tripping, abate.NoOverride, true, false, false},
		{"forced open", tripping, abate.OverrideForcedOpen, false, false, true},
		{"forced open without a circuit breaker", abate.Policy{}, abate.OverrideForcedOpen, false, false, true},
		{"forced open with one that is off", disabled, abate.OverrideForcedOpen, false, false, true},
		{"forced open twice", forced, abate.OverrideForcedOpen, false, false, false},
		{"disabled", tripping, abate.OverrideDisabled, true, true, true},
		{"disabled without a circuit breaker", abate.Policy{}, abate.OverrideDisabled, true, true, true},
		{"disabled what the policy forces open", forced, abate.OverrideDisabled, true, true, false},
		{"shadow", tripping, abate.OverrideShadow, true, true, false},
		{"shadow without a circuit breaker", abate.Policy{}, abate.OverrideShadow, true, true, true},
		{"shadow with one that is off", disabled, abate.OverrideShadow, true, true, true},
		{"shadow of what the policy forces open", forced, abate.OverrideShadow, true, true, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := guard(t, row.policy)
			override(t, g, row.o)
			if got := passes(t, g); got != row.healed {
				t.Errorf("at first a call passes: %v", got)
			}
			fail(t, g, 2)
			if got := passes(t, g); got != row.broken {
				t.Errorf("after failures a call passes: %v", got)
			}
			if err := g.Update(row.policy); err != nil {
				t.Fatal(err)
			}
			if got := passes(t, g); got != row.broken {
				t.Errorf("after a reload a call passes: %v", got)
			}
			override(t, g, abate.NoOverride)
			if got := passes(t, g); got != row.after {
				t.Errorf("when it has been taken back a call passes: %v", got)
			}
		})
	}
}

func TestAShadowedCircuitSaysWhatItWouldHaveDone(t *testing.T) {
	g := guard(t, abate.Policy{CircuitBreaker: breaker.Config{FailureThreshold: 2, WaitDurationInOpenState: time.Minute}})
	override(t, g, abate.OverrideShadow)
	fail(t, g, 2)
	if s := g.State().Breaker; s.State != breaker.Open || s.Mode != breaker.Shadow {
		t.Errorf("%+v", s)
	}
}

func TestAReloadUnderAnOverrideIsInForceWhenItIsTakenBack(t *testing.T) {
	g := guard(t, abate.Policy{})
	override(t, g, abate.OverrideForcedOpen)
	next := abate.Policy{Retry: abate.Retry{MaxRetries: 7}, CircuitBreaker: breaker.Config{Mode: breaker.ForcedOpen}}
	if err := g.Update(next); err != nil {
		t.Fatal(err)
	}
	if got := g.Describe(); got.MaxRetries != 7 || got.CircuitBreaker.Mode != breaker.ForcedOpen {
		t.Errorf("%+v", got)
	}
	override(t, g, abate.NoOverride)
	if passes(t, g) {
		t.Error("the file forces the circuit open, too")
	}
	bad := abate.Policy{Retry: abate.Retry{MaxRetries: -1}}
	if err := g.Update(bad); err == nil || g.Describe().MaxRetries != 7 {
		t.Errorf("an invalid policy: %v, and %d retries are in force", err, g.Describe().MaxRetries)
	}
}

// Who compares the policy of a guard with that of a file must not take the override for the file's.
func TestDescribeIsThePolicyWithoutTheOverride(t *testing.T) {
	g := guard(t, abate.DefaultPolicy())
	before := *g.Describe()
	for _, o := range []abate.Override{
		abate.OverrideForcedOpen, abate.OverrideDisabled, abate.OverrideShadow, abate.NoOverride,
	} {
		override(t, g, o)
		if got := g.Describe().CircuitBreaker; got != before.CircuitBreaker {
			t.Errorf("%q: %+v", o, got)
		}
	}
}

func TestWhatIsNoOverrideChangesNothing(t *testing.T) {
	g := guard(t, abate.Policy{})
	override(t, g, abate.OverrideForcedOpen)
	err := g.Override("open")
	if want := `abate: guard "payment-service": "open" is not an override; allowed: forcedOpen, disabled, shadow, or ` +
		`nothing to take it back`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if got := g.State().Override; got != abate.OverrideForcedOpen || passes(t, g) {
		t.Errorf("%q is in force", got)
	}
}

func TestObserversAreToldOfAnOverride(t *testing.T) {
	var told []string
	p := abate.Policy{CircuitBreaker: breaker.Config{FailureThreshold: 2},
		Observer: abate.ObserverFunc(func(e abate.Event) {
			switch e.Kind {
			case core.PolicyChanged:
				told = append(told, e.Detail)
			case core.BreakerChanged:
				told = append(told, e.From.String()+" to "+e.To.String()+": "+e.Detail)
			}
		})}
	g := guard(t, p)
	for _, o := range []abate.Override{
		abate.OverrideForcedOpen, abate.OverrideShadow, abate.OverrideDisabled, abate.NoOverride,
	} {
		override(t, g, o)
	}
	if err := g.Update(p); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"circuit breaker forcedOpen by hand", "closed to open: forced open", "circuit breaker shadow by hand",
		"open to closed: reconfigured",
		"circuit breaker disabled by hand", "circuit breaker left to the policy again", "",
	}
	if !slices.Equal(told, want) {
		t.Errorf("got  %q\nwant %q", told, want)
	}
}

func TestCallsThatRunFinishAsTheyBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, abate.Policy{Retry: fixed(100*ms, 1), CircuitBreaker: breaker.Config{FailureThreshold: 9}})
		n := 0
		_, err := abate.Do(t.Context(), g, func(context.Context) (int, error) {
			if n++; n == 1 {
				override(t, g, abate.OverrideForcedOpen)
				return 0, errDown
			}
			return 1, nil
		})
		// Its breaker is the guard's, and open: that ends it before another attempt.
		if n != 1 || !errors.Is(err, abate.ErrCircuitOpen) || !errors.Is(err, errDown) {
			t.Errorf("%d attempts, %v", n, err)
		}
	})
}

func TestOverridesReloadsAndCallsAtOnceLoseNothing(t *testing.T) {
	on, off := connections(), abate.DefaultPolicy()
	on.Rand = nil
	on.Pacing.PerSecond, on.Bulkhead.MaxConcurrentCalls = 1e6, 4
	off.Bulkhead.MaxConcurrentCalls = 4
	g := guard(t, on)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 200 {
				switch i {
				case 0:
					_ = g.Override([]abate.Override{
						abate.OverrideForcedOpen, abate.NoOverride, abate.OverrideDisabled, abate.OverrideShadow, "none",
					}[n%5])
				case 1:
					_ = g.Update([]abate.Policy{on, off}[n%2])
				case 2:
					_, _ = abate.Do(t.Context(), g, func(context.Context) (int, error) {
						return 0, []error{nil, abate.Ignore(errDown)}[n%2]
					})
				case 3:
					if a, err := core.AdmitOne(t.Context(), g); err == nil {
						_ = a.Done(nil)
					}
					g.State()
					g.Describe()
				}
			}
		})
	}
	all.Wait()
	override(t, g, abate.NoOverride)
	if err := g.Update(off); err != nil {
		t.Fatal(err)
	}
	if s := g.State(); s.Bulkhead.InFlight != 0 || s.Breaker.State != breaker.Closed || !passes(t, g) {
		t.Errorf("%+v", s)
	}
}
