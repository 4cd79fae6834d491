//go:build !race

package rehearse

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// fleetPod is what one instance of a program shows, per second: of its calls to payment-service, and of its gate.
type fleetPod struct{ first, extra, calls, failed, open, arrived, shed, full float64 }

// What instances of a fleet do.
var (
	well      = fleetPod{first: 10, extra: 0.2, calls: 10, arrived: 10}
	amplifies = fleetPod{first: 10, extra: 25, calls: 10, arrived: 10}
	fails     = fleetPod{first: 10, extra: 0.2, calls: 10, failed: 9, arrived: 10}
	isOpen    = fleetPod{first: 10, calls: 10, failed: 10, open: 1, arrived: 10}
	sheds     = fleetPod{first: 10, calls: 10, arrived: 10, shed: 3}
	forgets   = fleetPod{first: 10, calls: 10, arrived: 10, full: 0.1}
)

// The trouble of a fleet, and how long it is watched.
const troubleAt, troubleEnds, watched = 4 * time.Minute, 11 * time.Minute, 18 * time.Minute

// fleet is the series of n instances of the program shop, of which the first bad ones are in trouble for some minutes.
// What none of them has is left out.
func fleet(t testing.TB, n, bad int, trouble fleetPod) (all []inputSeries) {
	t.Helper()
	const program = `job="shop", namespace="prod", cluster="west"`
	for i := range n {
		then := well
		if i < bad {
			then = trouble
		}
		labels := fmt.Sprintf(`{service="payment-service", %s, instance="%d"}`, program, i)
		counter := func(name string, usual, then, ever float64) {
			if s := scraping.Seconds(); ever > 0 {
				all = append(all, growing(name+labels, usual*s, then*s, troubleAt, troubleEnds, watched))
			}
		}
		level := func(name string, usual, then float64) {
			all = append(all, steady(name+labels, usual, then, troubleAt, troubleEnds, watched))
		}
		counter("abate_first_attempts_total", well.first, then.first, trouble.extra)
		counter("abate_extra_attempts_total", well.extra, then.extra, trouble.extra)
		counter("abate_calls_ended_total", well.calls, then.calls, trouble.failed)
		counter("abate_calls_failed_total", well.failed, then.failed, trouble.failed)
		counter("abate_requests_arrived_total", well.arrived, then.arrived, trouble.shed)
		counter("abate_critical_requests_arrived_total", well.arrived, then.arrived, trouble.shed)
		counter("abate_critical_requests_shed_total", well.shed, then.shed, trouble.shed)
		counter("abate_idempotency_forgotten_total", well.full, then.full, trouble.full)
		level("abate_attempts_running", 1, 1)
		if trouble.open > 0 {
			level("abate_circuit_breaker_open", 0, then.open)
		}
		if trouble.full > 0 {
			level("abate_idempotency_max_keys", 1e6, 1e6)
		}
	}
	return append(all, policySeries(t, "services: {payment-service: {}}\nprotect: {payment-service: {}}", watched,
		program+`, instance="0"`)...)
}

// A person is woken when a whole program is in trouble, or a quarter of its instances. One bad instance of a hundred is
// a ticket; the hundred are well.
func TestOneBadInstanceOfAHundredIsATicketAndThirtyAreAPage(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	rules := rulesOf(t, everyAlertPolicy)
	var tests []ruleTest
	for _, c := range []struct {
		alert   string
		trouble fleetPod
		besides string // what follows from it
	}{
		{"RequestAmplification", amplifies, ""}, {"DependencyFailing", fails, ""}, {"CircuitBreakerOpen", isOpen,
			"DependencyFailing"}, {"ShedRate", sheds, ""}, {"IdempotencyKeysFull", forgets, ""},
	} {
		for _, f := range []struct {
			n, bad    int
			is, isNot string
		}{{100, 1, warn, pager}, {100, 30, pager, warn}, {1, 1, pager, warn}} {
			tests = append(tests, ruleTest{Name: fmt.Sprintf("%s in %d of %d", c.alert, f.bad, f.n),
				Series: fleet(t, f.n, f.bad, c.trouble), Exprs: []exprTest{
					noAlert(troubleAt), firing(c.alert, f.is, troubleAt+4*time.Minute), firing(c.alert, f.is, troubleEnds),
					notFiring(c.alert, f.isNot, troubleAt+4*time.Minute), notFiring(c.alert, f.isNot, troubleEnds),
					noAlertBut(watched, c.alert+"|"+c.besides), notFiring(c.alert, f.is, troubleEnds+6*time.Minute),
					{At: prometheusTime(troubleAt + 4*time.Minute),
						Expr: fmt.Sprintf(`count by (cluster, namespace, job, service) (ALERTS{alertstate="firing", `+
							`alertname=%q})`, c.alert), Samples: []sample{
							{`{cluster="west", namespace="prod", job="shop", service="payment-service"}`, 1}}}}})
		}
	}
	rulesHold(t, rules, tests...)
}

// Where callers get a fallback, all of them in trouble is a ticket.
func TestNobodyIsWokenWhereCallersGetAFallback(t *testing.T) {
	series := append(fleet(t, 1, 1, fails),
		inputSeries{`abate_policy_fallback{service="payment-service", job="shop", namespace="prod", cluster="west"}`,
			"1x120"})
	rulesHold(t, rulesOf(t, everyAlertPolicy), ruleTest{Series: series, Exprs: []exprTest{
		firing("DependencyFailing", warn, troubleEnds), notFiring("DependencyFailing", pager, troubleEnds)}})
}

// podFile is what a pod shows of its policy file: the hash of it, from one time to another, and whether the last reload
// was good.
func podFile(pod, hash, info, good string) []inputSeries {
	labels := fmt.Sprintf(`job="shop", namespace="prod", instance=%q`, pod)
	return []inputSeries{{fmt.Sprintf(`abate_policy_info{%s, hash=%q}`, labels, hash), info},
		{fmt.Sprintf(`abate_config_last_reload_successful{%s, hash=%q}`, labels, hash), good}}
}

func TestAFailedReloadAndPoliciesThatDifferAreTickets(t *testing.T) {
	const hour = 240 // scrapes
	of := func(parts ...[]inputSeries) []inputSeries { return slices.Concat(parts...) }
	program := `group by (job, namespace) (ALERTS{alertstate="firing", alertname="PolicyNotInForce", why="%s", ` +
		`severity="warning"})`
	asked := func(why, at string, fires bool) exprTest {
		x := exprTest{Expr: fmt.Sprintf(program, why), At: at}
		if fires {
			x.Samples = []sample{{`{job="shop", namespace="prod"}`, 1}}
		}
		return x
	}
	var rolling [][]inputSeries // one pod after the other, two minutes each, gets the new file
	for i := range 10 {
		pod, n := fmt.Sprint("pod-", i), 8*(i+1)
		rolling = append(rolling, podFile(pod, "old", fmt.Sprintf("1x%d stale", n-1), fmt.Sprintf("1x%d stale", n-1)),
			podFile(pod, "new", fmt.Sprintf("_x%d 1x%d", n, hour-n), fmt.Sprintf("_x%d 1x%d", n, hour-n)))
	}
	rulesHoldHoweverOften(t, 4*scraping, rulesOf(t, everyAlertPolicy),
		ruleTest{Name: "a file with a mistake", Series: of(podFile("a", "x", "1x240", "1x40 0x80 1x120"),
			podFile("b", "x", "1x240", "1x240")), Exprs: []exprTest{
			asked("mistakes", "14m", false), asked("mistakes", "16m", true), asked("differ", "29m", false),
			noAlertBut(time.Hour, "PolicyNotInForce"), asked("mistakes", "31m", false)}},
		ruleTest{Name: "a pod that did not get the new file", Series: of(podFile("a", "old", "1x240", "1x240"),
			podFile("b", "old", "1x40 stale", "1x40 stale"), podFile("b", "new", "_x41 1x200", "_x41 1x200")), Exprs: []exprTest{
			asked("differ", "39m", false), asked("differ", "42m", true), asked("mistakes", "42m", false),
			noAlertBut(time.Hour, "PolicyNotInForce")}},
		ruleTest{Name: "a roll-out of twenty minutes", Series: of(rolling...), Exprs: []exprTest{noAlert(time.Hour)}})
}

// all is a pod that shows everything, and is well.
var all = fleetPod{first: 10, extra: 0.2, calls: 10, failed: 0.1, open: 1, arrived: 10, shed: 1, full: 1}

// What happens every day raises no alert: a roll-out of pods that count from zero, a pod that has just started and has
// three calls that fail, scrapes that are lost, a service that nobody calls.
func TestWhatHappensEveryDayRaisesNoAlert(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	rules := rulesOf(t, everyAlertPolicy)
	var rollOut, gaps []inputSeries
	for i := range 10 { // each pod is followed by another one, half a minute later than the pod before
		for _, s := range fleet(t, 1, 0, all) {
			at := 20 + 2*i
			old, next := s, s
			old.Series = strings.ReplaceAll(s.Series, `instance="0"`, fmt.Sprintf(`instance="old-%d"`, i))
			next.Series = strings.ReplaceAll(s.Series, `instance="0"`, fmt.Sprintf(`instance="new-%d"`, i))
			first := strings.Fields(s.Values)[0] // 0+150x39
			each, _, _ := strings.Cut(first, "x")
			old.Values, next.Values = fmt.Sprintf("%sx%d stale", each, at), fmt.Sprintf("_x%d %sx%d", at, each, 72-at)
			rollOut = append(rollOut, old, next)
		}
	}
	for _, s := range fleet(t, 3, 0, all) { // a minute and a half without a scrape
		each, _, _ := strings.Cut(strings.Fields(s.Values)[0], "x")
		later := each
		if !strings.HasSuffix(each, "+0") { // a counter that grows
			later = strings.Replace(each, "0+", "7000+", 1)
		}
		s.Values = fmt.Sprintf("%sx20 _x6 %sx46", each, later)
		gaps = append(gaps, s)
	}
	started := append(fleet(t, 9, 0, all),
		inputSeries{`abate_calls_ended_total{service="payment-service", job="shop", instance="new"}`, "_x30 0 3x41"},
		inputSeries{`abate_calls_failed_total{service="payment-service", job="shop", instance="new"}`, "_x30 0 3x41"},
		inputSeries{`abate_circuit_breaker_open{service="payment-service", job="shop", instance="new"}`, "_x30 0 1x4 0x37"},
		inputSeries{`abate_attempts_running{service="payment-service", job="shop", instance="new"}`, "_x30 0x42"})
	idle := fleet(t, 3, 0, all)
	for i := range idle {
		if strings.HasSuffix(strings.SplitN(idle[i].Series, "{", 2)[0], "_total") {
			idle[i].Values = "0x72"
		}
	}
	rulesHold(t, rules,
		ruleTest{Name: "a rolling update", Series: rollOut, Exprs: []exprTest{noAlert(watched)}},
		ruleTest{Name: "scrapes that are lost", Series: gaps, Exprs: []exprTest{noAlert(17 * time.Minute)}},
		ruleTest{Name: "a pod that has just started", Series: started, Exprs: []exprTest{noAlert(watched)}},
		ruleTest{Name: "a service without traffic", Series: idle, Exprs: []exprTest{noAlert(watched)}})
}
