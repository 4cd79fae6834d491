package abateprom_test

import (
	"maps"
	"math"
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
		near := func(a, b float64) bool { return math.Abs(a-b) < 0.001 }
		want := func(when string, want map[string]float64) {
			t.Helper()
			if got := m.scrape(t).noticed(); !maps.EqualFunc(got, want, near) {
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

		time.Sleep(time.Minute) // two extra attempts in a minute are few
		call(3, abate.Success, nil)
		retried := map[string]float64{`total{of="extra_attempts"}`: 2,
			`policy{of="bank"}`: 10, `policy{of="allowed_retries"}`: 0.3, `policy{of="allowed_extra_attempts"}`: 0.11,
			`policy{of="storm"}`: 1.555} // nobody has added the guard: the default policy's
		want("retries help", retried)

		time.Sleep(5 * time.Minute)
		call(1, abate.Failure, abate.ErrBudgetExhausted)
		g.ObserveGate(inbound.GateEvent{Kind: inbound.RequestRefused, Reason: abate.ErrOverloaded, Shed: shed.CPU,
			Priority: shed.Critical})
		both := map[string]float64{`total{of="unsent_calls"}`: 0, `total{of="failed_calls"}`: 1,
			`total{of="budget_exhausted"}`: 1, `total{of="shed"}`: 1, `total{of="critical_arrivals"}`: 2,
			`total{of="critical_shed"}`: 1}
		maps.Copy(both, retried)
		want("a call fails, a request is shed", both)

		time.Sleep(5 * time.Minute)
		for of := range retried {
			delete(both, of)
		}
		want("ten minutes without a retry", both)
		time.Sleep(5 * time.Minute)
		want("ten minutes without trouble", map[string]float64{})
		time.Sleep(time.Minute)
		call(2, abate.Success, nil)
		retried[`total{of="extra_attempts"}`] = 3
		want("once more", retried)
	})
}

// A few extra attempts are everywhere. That an instance may be in a storm of its own is told when there are ten in a
// minute, which the rules forgive, and not for fewer than five, however often somebody looks.
func TestWhetherAnInstanceIsInAStormIsAskedOnlyWhereItHasManyExtraAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, scrape := range []time.Duration{5 * time.Second, 15 * time.Second, time.Minute} {
			m := metrics(t)
			o := m.observer("s")
			minute := func(extra int) (told bool) {
				for range time.Minute / scrape {
					for ; extra > 0; extra-- { // all at once, which is the same in a minute
						o.Observe(abate.Event{Kind: core.AttemptBegan, Attempt: 2})
					}
					time.Sleep(scrape)
					_, told = m.scrape(t).noticed()[`total{of="many_extra_attempts"}`]
				}
				return told
			}
			m.scrape(t)
			if minute(0) || minute(4) {
				t.Errorf("scraped every %v: told of a few", scrape)
			}
			if !minute(10) {
				t.Errorf("scraped every %v: not told of ten in a minute", scrape)
			}
			for range 9 {
				minute(0)
			}
			if minute(0) {
				t.Errorf("scraped every %v: told ten minutes later", scrape)
			}
		}
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
	want := map[string]float64{`policy{of="allowed_extra_attempts"}`: 0.22, `policy{of="storm"}`: 1.11,
		`policy{of="allowed_retries"}`: 0.133, `policy{of="bank"}`: 20}
	near := func(a, b float64) bool { return math.Abs(a-b) < 0.001 }
	if got := shown(); !maps.EqualFunc(got, want, near) {
		t.Errorf("%v, want %v", got, want)
	}
}

// In a healthy fleet retries are everywhere. What they are compared with is shown by an instance of which they exceed
// it between two scrapes, so that it is there whenever all instances together exceed it.
func TestWhereAlertsBeginIsShownOnlyWhereExtraAttemptsAreMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := metrics(t)
		o := m.observer("s")
		shown := func(first, retries, hedges int) bool {
			for range first {
				o.Observe(abate.Event{Kind: core.AttemptBegan, Attempt: 1})
			}
			for range retries {
				o.Observe(abate.Event{Kind: core.AttemptBegan, Attempt: 2})
			}
			for range hedges {
				o.Observe(abate.Event{Kind: core.HedgeSent})
			}
			time.Sleep(15 * time.Second)
			_, there := m.scrape(t).noticed()[`policy{of="bank"}`]
			return there
		}
		// nobody has added the guard: 30 % of the attempts are many retries, and the first alert begins at half of that;
		// 11 extra attempts for 100 first ones are many
		if shown(100, 10, 0) || shown(100, 0, 10) || shown(100, 0, 0) {
			t.Error("shown for a few")
		}
		if !shown(100, 0, 12) {
			t.Error("not shown for many hedges")
		}
		for range 39 {
			shown(100, 1, 0)
		}
		if shown(100, 1, 0) {
			t.Error("shown ten minutes later")
		}
		if !shown(2, 2, 0) {
			t.Error("not shown for many retries")
		}
	})
}

func TestOnlyACircuitThatIsOpenOrOverriddenIsShownToTheRules(t *testing.T) {
	m := metrics(t)
	g := m.guard(t, "s", opening())
	state := func() map[string]float64 {
		found := m.scrape(t).noticed()
		maps.DeleteFunc(found, func(name string, _ float64) bool {
			return strings.HasPrefix(name, "total") && name != `total{of="calls"}`
		})
		return found
	}
	// whether it is called, and how long it may be open, are shown with it
	open := map[string]float64{"circuit_open": 1, `policy{of="circuit_wait"}`: 10, `total{of="calls"}`: 1}
	if got := state(); len(got) > 0 {
		t.Errorf("closed: %v", got)
	}
	_ = failing(g, 0)
	if got := state(); !maps.Equal(got, open) {
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
	if got := state(); !maps.Equal(got, open) {
		t.Errorf("not any more: %v", got)
	}
}
