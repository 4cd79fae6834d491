//go:build !race

package sim_test

import (
	"context"
	"strings"
	"testing"

	"github.com/abate-go/abate/sim"
)

const unguarded = "attemptTimeout: 1s, maxRetries: 3, backoff: fixed, initialDelay: 1s, jitter: none, " +
	"retryBudget: {disabled: true}, circuitBreaker: {disabled: true}"

// failing is a scenario of which pieces of a policy can be pasted at the end.
func failing(services, expected string) string {
	return "name: failing\nduration: 40s\nclients: {shop: {rate: 100, instances: 5, calls: [pay]}}\n" + services +
		"\nfaults: [{outage: pay, at: 5s, for: 10s}]\nexpect: [" + expected + "]\nvariants:\n  naive:\n    policy:\n" +
		"      defaults: {" + unguarded + "}\n"
}

const paid = "services:\n  pay:\n    workers: 15\n    serviceTime: exponential 100ms"

// pasted is a scenario with the piece that an advice prints: in the policy, or in the service.
func pasted(t *testing.T, services, expected, piece string) string {
	t.Helper()
	text := failing(services, expected)
	if inService, ok := strings.CutPrefix(piece, "services: # of the scenario, for the service itself\n  pay:\n"); ok {
		return strings.Replace(text, services, services+"\n"+inService, 1)
	}
	for line := range strings.Lines(piece) {
		text += "      " + line
	}
	return text
}

func advised(t *testing.T, text string, o sim.Options) *sim.VariantResult {
	t.Helper()
	o.Advice = true
	v := &study(t, read(t, text), o).Variants[0]
	for i, a := range v.Advice {
		if a.Verdict != sim.Pass || a.Held <= 0.9 || a.Runs < 35 || a.YAML == "" || a.Step <= 0 || a.Why != "" {
			t.Errorf("advice %+v", a)
		}
		if strings.Contains(a.YAML+a.Change, "…") {
			t.Errorf("%s is cut", a.YAML)
		}
		if i > 0 && a.Step < v.Advice[i-1].Step {
			t.Errorf("%s (step %v) comes after %s (step %v), but is smaller", a.Change, a.Step, v.Advice[i-1].Change,
				v.Advice[i-1].Step)
		}
	}
	return v
}

// At two thirds of the capacity naive retries collapse. A gate, a breaker or an adaptive pace each let the service come
// back; what is advised, once it is pasted, passes with seeds that nobody has seen.
func TestAdviceThatIsPastedPasses(t *testing.T) {
	if testing.Short() {
		return // a whole search for advice, and each of them again
	}
	const expected = "collapse < 10%"
	v := advised(t, failing(paid, expected), sim.Options{})
	found := ""
	for _, a := range v.Advice {
		found += a.Change + "; "
		r := study(t, read(t, pasted(t, paid, expected, a.YAML)), sim.Options{Seed: 5_000_000})
		equal(t, "verdict after "+a.Change, r.Verdict, sim.Pass)
	}
	for _, want := range []string{"protect pay: ", "pay: circuitBreaker: {", "pay: pacing: {"} {
		if !strings.Contains(found, want) {
			t.Errorf("no advice %q among: %s", want, found)
		}
	}
	if s := v.AdviceSearch; s.Tried < 40 || s.Runs < s.Tried || s.Checked < len(v.Advice) || s.Closest != nil ||
		!strings.Contains(s.Text, "on fresh seeds") {
		t.Errorf("the search says %+v", s)
	}
}

// With eight runs no expectation of 90 % can pass, and there used to be no advice.
func TestAdviceNeedsNoMoreRunsThanItsVariant(t *testing.T) {
	if testing.Short() {
		return // two whole searches for advice
	}
	for _, runs := range []int{8, 20} {
		if v := advised(t, failing(paid, "collapse < 10%"), sim.Options{Runs: runs, Exactly: true}); len(v.Advice) == 0 {
			t.Errorf("%d runs: %+v", runs, v.AdviceSearch)
		}
	}
}

// One service is in a storm, the other has errors that only retries help against: no single change does both.
func TestAdviceTriesPairsWhenNoSingleChangeHolds(t *testing.T) {
	if testing.Short() {
		return // all pairs of changes are played
	}
	const more = paid + "\n  books: {workers: 20, serviceTime: 10ms, errorRate: 10%}"
	two := func(text string) string {
		text = strings.Replace(text, "calls: [pay]}}", "calls: [pay]}, clerks: {rate: 20, instances: 2, calls: [books]}}", 1)
		return strings.Replace(text, "      defaults: {"+unguarded+"}\n", "      defaults: {"+unguarded+
			"}\n      services:\n        books:\n          maxRetries: 0\n", 1)
	}
	const expected = "collapse < 10%, goodput(clerks) > 97%"
	v := advised(t, two(failing(more, expected)), sim.Options{})
	if len(v.Advice) == 0 || v.AdviceSearch.Pairs == 0 {
		t.Fatalf("advice %+v, search %+v", v.Advice, v.AdviceSearch)
	}
	for _, a := range v.Advice {
		if !strings.Contains(a.Change, "books: maxRetries: ") || !strings.Contains(a.Change, "; ") {
			t.Errorf("advice %s", a.Change)
		}
	}
}

func TestThereIsAlwaysAnAnswer(t *testing.T) {
	if testing.Short() {
		return // whole searches for advice
	}
	for name, c := range map[string]struct {
		text string
		want string // in the answer; empty where there is nothing to answer
	}{
		"it passes":             {strings.Replace(failing(paid, "collapse < 10%"), "workers: 15", "workers: 80", 1), ""},
		"nothing is expected":   {strings.Replace(failing(paid, ""), "expect: []\n", "", 1), ""},
		"the storm is expected": {failing(paid, "collapse > 90%, goodput > 99%"), "there to show the collapse"},
		"nothing can help":      {failing(paid, "goodput > 99%"), "none holds; the closest is "},
	} {
		v := advised(t, c.text, sim.Options{})
		switch s := v.AdviceSearch; {
		case len(v.Advice) > 0:
			t.Errorf("%s: advice %+v", name, v.Advice)
		case c.want == "" && s != nil, c.want != "" && (s == nil || !strings.Contains(s.Text, c.want)):
			t.Errorf("%s: the answer is %+v, want %q", name, s, c.want)
		case strings.Contains(c.want, "closest") && (s.Closest == nil || s.Closest.YAML == "" || s.Pairs == 0 ||
			!strings.Contains(s.Text, "goodput > 99% holds in 0 of ")):
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestAdviceThatIsStoppedSaysSo(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	r, err := sim.Run(ctx, read(t, failing(paid, "goodput > 99%")), sim.Options{Advice: true, Runs: 8,
		Progress: func(p sim.Progress) {
			if p.Stage == "advice" && p.Done > 5 {
				stop()
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Variants[0].AdviceSearch; s == nil || !strings.Contains(s.Text, "stopped") || !r.Interrupted {
		t.Errorf("the search says %+v", s)
	}
}
