//go:build !race

package sim_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/sim"
)

// minority is a healthy fleet beside one, of a tenth of the load, whose retries keep its service down for ever.
func minority(more ...string) string {
	return strings.Join(append([]string{`
name: a dead minority
duration: 50s
clients:
  shop: {rate: 90, patience: 5s, calls: [front]}
  batch: {rate: 10, patience: 5s, calls: [ledger]}
services:
  front: {workers: 40, serviceTime: exponential 100ms}
  ledger: {workers: 2, serviceTime: exponential 100ms}
faults: [{at: 10s, for: 10s, outage: ledger}]
variants: {naive: ` + naive + `}`}, more...), "\n")
}

func TestADeadMinorityIsNoPass(t *testing.T) {
	r := study(t, read(t, minority(`expect: ["collapse < 10%", "recovery < 10s"]`)), sim.Options{})
	v := &r.Variants[0]
	for _, x := range v.Expectations {
		if x.Verdict != sim.Fail || !strings.Contains(x.Where, "batch") || strings.Contains(x.Where, "shop") {
			t.Errorf("%s is %s (%s), want FAIL because of batch", x.Text, x.Verdict, x.Where)
		}
	}
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "batch collapsed in 8 of 8 runs") {
		t.Errorf("Err is %v, want one that names the fleet", err)
	}
	equal(t, "share of runs that collapsed", v.Collapse.Share, 1)
	if len(v.Fleets) != 2 || v.Fleets[0].Collapse.Share != 0 || v.Fleets[1].Collapse.Share != 1 ||
		len(v.Fleets[0].Recovery) != v.Runs || len(v.Fleets[1].Recovery) != 0 {
		t.Errorf("fleets %+v", v.Fleets)
	}
	if one := study(t, read(t, halves), sim.Options{Runs: 2}).Variants[0]; one.Fleets != nil {
		t.Errorf("a single fleet is told apart from itself: %+v", one.Fleets)
	}
}

func TestEachFleetAndServiceHasAVerdict(t *testing.T) {
	verdicts := map[string]string{
		"collapse(shop) < 10%": sim.Pass, "collapse(batch) < 10%": sim.Fail, "collapse(batch) > 90%": sim.Pass,
		"recovery(shop) < 1s": sim.Pass, "recovery(batch) < 10s": sim.Fail, "goodput(batch, after) < 10%": sim.Pass,
		"collapse(front) < 10%": sim.Pass, "collapse(ledger) > 90%": sim.Pass, "recovery(front) < 1s": sim.Pass,
		"recovery(ledger) < 20s": sim.Fail, "goodput(after) > 85%": sim.Pass,
	}
	list := slices.Sorted(maps.Keys(verdicts))
	r := study(t, read(t, minority("expect: ['"+strings.Join(list, "', '")+"']")), sim.Options{})
	for _, x := range r.Variants[0].Expectations {
		equal(t, x.Text, x.Verdict, verdicts[x.Text])
	}
}

func TestWhatAVerdictDoesNotCoverStandsBesideIt(t *testing.T) {
	if testing.Short() {
		return // many runs of several systems
	}
	for name, c := range map[string]struct {
		text  string
		wants []string
	}{
		"a dead fleet that nobody asked about": {minority(`expect: ["goodput(after) > 80%"]`), []string{
			"batch collapsed in 35 of 35 runs, and no expectation is about that: add collapse(batch) < 10%",
			"batch: only 74 of its requests a run show whether it collapses; with fewer than 100 that may be chance",
			"shop in trouble: no fault reaches it or what it calls",
			"how far the cliff is: the margin was not searched"}},
		"one of two": {minority(`expect: ["collapse(shop) < 10%"]`), []string{"batch collapsed in 35 of 35 runs"}},
		"a dead fleet whose good days are asked about": {hanging(200, "") +
			`expect: ["goodput > 10%", "goodput(before) > 95%"]`,
			[]string{"shop collapsed in 35 of 35 runs, and no expectation is about that: add collapse(shop) < 10%"}},
		"a dead fleet that may be half dead": {hanging(200, "") +
			`expect: ["failures(after) < 99.99%", "goodput(during) < 90%"]`,
			[]string{"shop collapsed in 35 of 35 runs, and no expectation is about that: add collapse(shop) < 10%"}},
		"a dead fleet that is expected to be": {hanging(200, "") + `expect: ["goodput(after) < 50%"]`,
			[]string{"how far the cliff"}},
		"it is asked about": {minority(`expect: ["collapse(batch) > 90%"]`), []string{"batch: only ",
			"shop in trouble", "how far the cliff"}},
		"a measure that is none": {"duration: 10s\nclients: {f: {rate: 100, calls: [s]}}\nservices: {s: {}}\nfaults: " +
			"[{at: 2s, for: 2s, outage: s, mode: refuse}]\nvariants: {v: " + plain + "}\nexpect: ['latency(p99, during) < 1s']",
			[]string{"latency(p99, during) < 1s could not be measured in 8 of 8 runs, which count against it",
				"how far the cliff is"}},
		"nothing to judge by": {"duration: 10s\nclients: {f: {rate: 100, calls: [s]}, g: {curve: [{at: 0s, rate: 0}, " +
			"{at: 9990ms, rate: 0.001}], calls: [s]}}\nservices: {s: {}}\nfaults: " +
			"[{at: 2s, for: 2s, outage: s, mode: refuse}]\nvariants: {v: " + plain +
			"}\nexpect: ['collapse < 10%']", []string{"g: it offered nothing by which to judge it", "how far the cliff is"}},
		"too few runs": {"runs: 40\nduration: 10s\nclients: {f: {rate: 100, calls: [s]}}\nservices: {s: {}}\nfaults: " +
			"[{at: 2s, for: 2s, outage: s, mode: refuse}]\nvariants: {v: " + plain + "}\nexpect: ['collapse < 1%']", []string{
			"collapse < 1%: 40 runs are too few to show it, at least 381 are needed", "how far the cliff is"}},
	} {
		got := study(t, read(t, c.text), sim.Options{}).Variants[0].NotCovered
		for i, want := range c.wants {
			if i >= len(got) || !strings.HasPrefix(got[i], want) {
				t.Errorf("%s: not covered are %q, want %q in place %d", name, got, want, i)
			}
		}
	}
	v := study(t, read(t, hanging(800, "")+"expect: [collapse < 10%]\n"), sim.Options{Margin: true}).Variants[0]
	if len(v.NotCovered) != 0 || v.NotCovered == nil {
		t.Errorf("of a verdict that leaves nothing open: %q", v.NotCovered)
	}
}

func TestTheMarginOfAFleetThatDiffersIsItsOwn(t *testing.T) {
	v := study(t, read(t, minority()), sim.Options{Margin: true, Runs: 2}).Variants[0]
	all := margin(t, &v, "load")
	if all.Stands || all.Fleet != "" || !strings.HasPrefix(all.Text, "batch collapses; would stand with ") {
		t.Errorf("of all fleets: %+v", all)
	}
	at := slices.IndexFunc(v.Margins, func(m sim.Margin) bool { return m.Fleet == "shop" })
	if at < 0 {
		t.Fatalf("no margin of shop in %+v", v.Margins)
	}
	if m := v.Margins[at]; !m.Stands || m.Here != 90 || !strings.HasPrefix(m.Text, "shop stands up to ") {
		t.Errorf("of shop: %+v", m)
	}
	if slices.ContainsFunc(v.Margins, func(m sim.Margin) bool { return m.Fleet == "batch" }) {
		t.Errorf("batch has a margin of its own, which is that of all: %+v", v.Margins)
	}
}

func TestTheMarginIsThatOfWhatIsExpected(t *testing.T) {
	const calm = "expect: ['queueWait(pay, after) < 200ms', 'goodput(after) > 99%']\n"
	bounded := strings.Replace(hanging(150, ""), "maxRetries: 3", "maxRetries: 0", 1)
	loose := margin(t, &study(t, read(t, bounded), sim.Options{Margin: true, Runs: 2}).Variants[0], "load")
	tight := margin(t, &study(t, read(t, bounded+calm), sim.Options{Margin: true, Runs: 2}).Variants[0], "load")
	if tight.Stands || !strings.HasPrefix(tight.Text, "misses queueWait(pay, after) < 200ms") {
		t.Errorf("of what is expected: %+v", tight)
	}
	if !loose.Stands || loose.Breaks != "collapses" {
		t.Errorf("without expectations: %+v", loose)
	}
	one := bounded + "expect: ['collapse(shop) < 10%', 'goodput(after) < 5%', 'offered > 1/s']\n"
	same := margin(t, &study(t, read(t, one), sim.Options{Margin: true, Runs: 2}).Variants[0], "load")
	if same.Low != loose.Low || same.Text != loose.Text {
		t.Errorf("what protects nothing moves the margin: %s, want %s", same.Text, loose.Text)
	}
}

func TestTheLoadHasAUnit(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	for name, c := range map[string]struct{ clients, unit, text string }{
		"users": {"f: {users: 300, think: exponential 1s, instances: 300, patience: 2s, calls: [s]}",
			"users", " users"},
		"once": {"f: {once: 500, within: 20s, patience: 2s, calls: [s]}", "requests", " requests"},
		"both": {"f: {users: 300, think: exponential 1s, instances: 300, patience: 2s, calls: [s]}, " +
			"g: {rate: 20, patience: " +
			"2s, calls: [s]}", "factor", " requests/s and "},
	} {
		text := "duration: 20s\nclients: {" + c.clients + "}\nservices: {s: {workers: 40, serviceTime: exponential 50ms}}\n" +
			"variants: {v: " + plain + "}"
		m := margin(t, &study(t, read(t, text), sim.Options{Margin: true, Runs: 2}).Variants[0], "load")
		if m.Unit != c.unit || !strings.Contains(m.Text, c.text) {
			t.Errorf("%s: %s (%s), want a load in %s", name, m.Text, m.Unit, c.unit)
		}
	}
}
