package abateprom_test

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/shed"
)

// noticed is what a page shows for the rules only, without the service.
func (p page) noticed() map[string]float64 {
	found := map[string]float64{}
	for name, v := range p {
		if rest, ok := strings.CutPrefix(name, "abate_noticed_"); ok {
			rest = strings.NewReplacer(`,service="s"`, "", `{service="s"}`, "").Replace(rest)
			found[rest] = v
		}
	}
	return found
}

// Rules read every instance every few seconds, so an instance that is well shows them nothing.
func TestWhatTheRulesReadIsThereWhileSomethingHappensAndForTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := metrics(t)
		o, g := m.observer("s"), m.gateObserver("s")
		want := func(when string, want map[string]float64) {
			t.Helper()
			if got := m.scrape(t).noticed(); !maps.Equal(got, want) {
				t.Errorf("%s: %v, want %v", when, got, want)
			}
		}
		call := func(attempts int, class abate.Class, why error) {
			for n := range attempts {
				o.Observe(abate.Event{Kind: core.AttemptBegan, Attempt: n + 1})
				o.Observe(abate.Event{Kind: core.AttemptEnded, Attempt: n + 1, Class: class})
			}
			o.Observe(abate.Event{Kind: core.CallEnded, Attempt: attempts, Class: class, Reason: why})
		}
		call(1, abate.Success, nil)
		g.ObserveGate(inbound.GateEvent{Kind: inbound.RequestAdmitted, Priority: shed.Critical})
		want("all is well", map[string]float64{})

		call(3, abate.Success, nil)
		retried := map[string]float64{`total{of="first_attempts"}`: 2, `total{of="extra_attempts"}`: 2,
			`total{of="retries"}`: 2}
		want("retries help", retried)

		time.Sleep(5 * time.Minute)
		call(1, abate.Failure, abate.ErrBudgetExhausted)
		g.ObserveGate(inbound.GateEvent{Kind: inbound.RequestRefused, Reason: abate.ErrOverloaded, Shed: shed.CPU,
			Priority: shed.Critical})
		both := map[string]float64{`total{of="calls"}`: 3, `total{of="failed_calls"}`: 1,
			`total{of="budget_exhausted"}`: 1, `total{of="shed"}`: 1, `total{of="critical_arrivals"}`: 2,
			`total{of="critical_shed"}`: 1}
		maps.Copy(both, retried)
		both[`total{of="first_attempts"}`] = 3
		want("a call fails, a request is shed", both)

		time.Sleep(5 * time.Minute)
		for of := range retried {
			delete(both, of)
		}
		want("ten minutes without a retry", both)
		time.Sleep(5 * time.Minute)
		want("ten minutes without trouble", map[string]float64{})
		call(2, abate.Success, nil)
		want("once more", map[string]float64{`total{of="first_attempts"}`: 4, `total{of="extra_attempts"}`: 3,
			`total{of="retries"}`: 3})
	})
}

func TestWhatAPolicyAllowsIsShownToTheRulesWhileThereAreExtraAttempts(t *testing.T) {
	m := metrics(t)
	p := retrying(2)
	p.RetryBudget = budget.Config{Kind: budget.Ratio, Ratio: 0.2, Reserve: 20}
	g := m.guard(t, "s", p)
	shown := func() map[string]float64 {
		found := m.scrape(t).noticed()
		maps.DeleteFunc(found, func(name string, _ float64) bool { return !strings.HasPrefix(name, "policy") })
		return found
	}
	if got := shown(); len(got) > 0 {
		t.Errorf("without extra attempts: %v", got)
	}
	_ = failing(g, 0)
	want := map[string]float64{`policy{of="max_extra_attempts"}`: 2, `policy{of="budget_ratio"}`: 0.2,
		`policy{of="budget_failing_ratio"}`: 0.2, `policy{of="budget_reserve"}`: 20}
	if got := shown(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestOnlyACircuitThatIsOpenOrOverriddenIsShownToTheRules(t *testing.T) {
	m := metrics(t)
	g := m.guard(t, "s", opening())
	state := func() map[string]float64 {
		found := m.scrape(t).noticed()
		maps.DeleteFunc(found, func(name string, _ float64) bool { return strings.HasPrefix(name, "total") })
		return found
	}
	if got := state(); len(got) > 0 {
		t.Errorf("closed: %v", got)
	}
	_ = failing(g, 0)
	if got := state(); !maps.Equal(got, map[string]float64{"circuit_open": 1}) {
		t.Errorf("open: %v", got)
	}
	if err := g.Override(abate.OverrideShadow); err != nil {
		t.Fatal(err)
	}
	if got := state(); !maps.Equal(got, map[string]float64{`override{override="shadow"}`: 1}) {
		t.Errorf("overridden: %v", got)
	}
	if err := g.Override(abate.NoOverride); err != nil {
		t.Fatal(err)
	}
	if got := state(); !maps.Equal(got, map[string]float64{"circuit_open": 1}) {
		t.Errorf("not any more: %v", got)
	}
}
