package lint_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

// parse reads a form, which must be right.
func parse(t testing.TB, text string) topology.Form {
	t.Helper()
	f, err := topology.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// bound finds the bound of a service for an outcome, at the root with the most.
func bound(t testing.TB, a *lint.Amplified, service string, o topology.Outcome) (lint.Bound, lint.RootBound) {
	t.Helper()
	for _, b := range a.Bounds {
		if b.Service == service && slices.Contains(b.Outcomes, o) {
			if len(b.Roots) == 0 {
				return b, lint.RootBound{}
			}
			return b, b.Roots[0]
		}
	}
	t.Fatalf("no bound of %s for %v", service, o)
	return lint.Bound{}, lint.RootBound{}
}

const fourLayers = `services:
- {name: edge}
- {name: orders, answersWith: %s}
calls:
- from: edge
  to: orders
  layers:
  - {kind: client, repeats: [{on: ["503"], tries: 3}]}
  - {kind: sidecar-out, repeats: [{on: ["503"], tries: 3}]}
- from: orders
  to: db
  layers:
  - {kind: client, repeats: [{on: ["503"], tries: 3}], budget: {ratio: 0.1}}
  - {kind: sidecar-out, repeats: [{on: ["503"], tries: 3}]}
`

func TestFourLayersThatTryThreeTimesMakeEightyOne(t *testing.T) {
	for _, c := range []struct {
		answers       string
		proved, worst float64
	}{{"same", 81, 81}, {`"503"`, 81, 81}, {`"500"`, 9, 9}, {`"200"`, 9, 9}, {"unknown", 9, 81}} {
		a := lint.Amplification(parse(t, fmt.Sprintf(fourLayers, c.answers)), lint.Options{})
		b, r := bound(t, a, "db", topology.S503)
		if r.Proved != c.proved || r.Worst != c.worst || r.Root != "edge" || !r.Known {
			t.Errorf("orders answers %s: %+v, want %v and %v", c.answers, r, c.proved, c.worst)
		}
		if got, want := b.Outcomes, []topology.Outcome{topology.S503}; !slices.Equal(got, want) {
			t.Errorf("the bound is about %v, want %v", got, want)
		}
		product := 1.0
		for _, hop := range a.Path(b, r, true) {
			product *= hop.Times
			for _, f := range hop.Factors {
				product *= f.Times
			}
		}
		if product != c.worst {
			t.Errorf("orders answers %s: the path comes to %v, want %v", c.answers, product, c.worst)
		}
	}
}

func TestABudgetLowersTheMeanAndNotTheMost(t *testing.T) {
	a := lint.Amplification(parse(t, fmt.Sprintf(fourLayers, "same")), lint.Options{})
	if _, r := bound(t, a, "db", topology.S503); r.Proved != 81 || math.Abs(r.Mean-9*1.1*3) > 1e-9 {
		t.Errorf("most %v, mean %v; want 81 and %v", r.Proved, r.Mean, 9*1.1*3)
	}
}

func TestWhatNobodyKnowsIsAtLeastWhatIsCertain(t *testing.T) {
	a := lint.Amplification(parse(t, `calls:
- from: edge
  to: orders
  layers:
  - {kind: client, repeats: [{on: ["503"], tries: 3}]}
  - {kind: gateway, repeats: [{on: ["503"], tries: unknown (a template)}]}
`), lint.Options{})
	if _, r := bound(t, a, "orders", topology.S503); r.Proved != 3 || !math.IsInf(r.Worst, 1) || r.Known {
		t.Errorf("%+v, want at least 3 and no more known", r)
	}
}

func TestACallerThatLeavesEndsWhatStopsWithIt(t *testing.T) {
	const form = `services: [{name: orders, answersWith: "503", cancels: %v}]
calls:
- from: edge
  to: orders
  layers: [{kind: client, perTry: 2500ms, repeats: [{on: [hang], tries: 2}]}]
- from: orders
  to: db
  layers: [{kind: client, perTry: 1s, cancels: true, repeats: [{on: [hang], tries: 4}]}]
`
	for cancels, want := range map[bool]float64{true: 6, false: 8} {
		a := lint.Amplification(parse(t, fmt.Sprintf(form, cancels)), lint.Options{})
		if _, r := bound(t, a, "db", topology.Hang); r.Proved != want || r.Worst != want {
			t.Errorf("cancels %v: %+v, want %v", cancels, r, want)
		} else if r.Longest != 5*time.Second || !r.Ends {
			t.Errorf("cancels %v: it takes up to %v (%v), want 5s", cancels, r.Longest, r.Ends)
		}
	}
}

func TestPathsAddUpAndTheHeaviestIsNamed(t *testing.T) {
	a := lint.Amplification(parse(t, `services: [{name: a, answersWith: same}, {name: b, answersWith: same}, {name: c,
		answersWith: same}]
calls:
- {from: a, to: b, order: 0}
- {from: a, to: c, order: 1, perRequest: 2, layers: [{kind: client, repeats: [{on: ["503"], tries: 2}]}]}
- {from: b, to: d, layers: [{kind: client, repeats: [{on: ["503"], tries: 3}]}]}
- {from: c, to: d}
- {to: a, layers: [{kind: gateway, repeats: [{on: ["503"], tries: 2}]}]}
`), lint.Options{})
	b, r := bound(t, a, "d", topology.S503)
	if r.Proved != 2*(3+2*2) || !r.Outside {
		t.Errorf("%+v, want 14 for one request from outside", r)
	}
	var way []string
	for _, h := range a.Path(b, r, false) {
		way = append(way, h.Call.To)
	}
	if got := strings.Join(way, " "); got != "a c d" {
		t.Errorf("the path is %s, want a c d", got)
	}
}

func TestLayersForPartsOfTheCallsDoNotMultiply(t *testing.T) {
	a := lint.Amplification(parse(t, `calls:
- from: a
  to: b
  layers:
  - {kind: sidecar-out, product: istio, match: {path: /x}, repeats: [{on: ["503"], tries: 3}]}
  - {kind: sidecar-out, product: istio, match: {path: /y}, repeats: [{on: ["503"], tries: 4}]}
`), lint.Options{})
	if _, r := bound(t, a, "b", topology.S503); r.Proved != 4 {
		t.Errorf("%v attempts, want 4", r.Proved)
	}
}

func TestACycleIsNamedAndBoundsNothing(t *testing.T) {
	a := lint.Amplification(parse(t, `calls: [{from: a, to: b}, {from: b, to: c}, {from: c, to: b}, {from: c, to: d}]`),
		lint.Options{})
	b, _ := bound(t, a, "d", topology.S503)
	if got := strings.Join(b.Cycle, " "); got != "b c b" && got != "c b c" {
		t.Errorf("the cycle is %q", got)
	}
}

func TestThreeLayersOfOursMakeThree(t *testing.T) {
	for owner, want := range map[string]float64{"nearest": 3, "edge": 3, "none": 27} {
		layer := `[{kind: client, product: abate, owner: ` + owner + `, repeats: [{on: ["503"], tries: 3}]}]`
		a := lint.Amplification(parse(t, `services:
- {name: a, callTree: true, answersWith: same}
- {name: b, callTree: true, answersWith: same}
- {name: c, callTree: true, answersWith: same}
calls:
- {from: a, to: b, layers: `+layer+`}
- {from: b, to: c, layers: `+layer+`}
- {from: c, to: d, layers: `+layer+`}
`), lint.Options{})
		if _, r := bound(t, a, "d", topology.S503); r.Proved != want || r.Worst != want {
			t.Errorf("owner %s: %+v, want %v", owner, r, want)
		}
	}
}

// TestBudgetsKeepTheMean plays many requests against one set of budgets.
func TestBudgetsKeepTheMean(t *testing.T) {
	graphs, close := 0, 0
	for seed := range 400 {
		d := drawing{rand.New(rand.NewPCG(uint64(seed), 7)), false}
		f := d.form()
		for _, b := range lint.Amplification(f, lint.Options{}).Bounds {
			if len(b.Cycle) > 0 || len(b.Roots) == 0 || math.IsInf(b.Roots[0].Worst,
				1) || b.Roots[0].MeanWorst == b.Roots[0].Worst {
				continue
			}
			r, m := b.Roots[0], b.Methods
			if m == topology.AllMethods {
				m = topology.Safe
			}
			s := newSystem(f, b.Service, b.Outcomes[0], m)
			s.tokens = map[*topology.Layer]float64{}
			s.fortune = fortune{rnd: d.Rand, wants: true, slow: true, way: d.Uint64()}
			const n = 60
			for range n {
				s.request(r.Root, r.Outside)
			}
			graphs++
			// A call of 0.3 for each request is played as one, so the mean is that of a form in which it is one.
			if got := float64(s.count) / n; got > r.MeanWorst*1.001 && whole(f) && !s.capped {
				t.Fatalf("%s fails with %v: %v attempts on average at %s, the bound is %v of %v\n%s", b.Service, b.Outcomes[0], got,
					r.Root, r.MeanWorst, r.Worst, f.YAML())
			} else if got >= r.MeanWorst*0.9 {
				close++
			}
			break
		}
	}
	if graphs < 30 || close*3 < graphs {
		t.Errorf("%d forms with budgets, %d of them near their bound", graphs, close)
	}
}

func whole(f topology.Form) bool {
	for _, c := range f.Calls {
		if n := c.PerRequest.Or(1); n != math.Ceil(n) {
			return false
		}
		for _, l := range c.Layers {
			if l.Hedge.Copies.Or(0) > 0 {
				return false // the executor does not pay for hedges
			}
		}
	}
	return true
}

func TestCoarseBoundsLieAroundTheExactOnes(t *testing.T) {
	coarse := 0
	for seed := range 500 {
		f := drawing{rand.New(rand.NewPCG(uint64(seed), 9)), seed%2 == 0}.form()
		exact := map[string]lint.RootBound{} // of each service, the least proved and the most in the worst case
		for _, b := range lint.Amplification(f, lint.Options{}).Bounds {
			for _, r := range b.Roots {
				e, seen := exact[b.Service]
				if e.Worst = max(e.Worst, r.Worst); !seen || r.Proved > e.Proved {
					e.Proved = r.Proved
				}
				exact[b.Service] = e
			}
		}
		// The first class of outcomes is always followed; its work uses up what there is.
		for _, b := range lint.Amplification(f, lint.Options{Work: 1}).Bounds {
			if !b.Coarse {
				continue
			}
			coarse++
			if e, r := exact[b.Service], b.Roots[0]; r.Worst < e.Worst || r.Proved > max(e.Proved, 1) {
				t.Fatalf("%s: coarsely %+v, exactly %+v\n%s", b.Service, r, e, f.YAML())
			}
		}
	}
	if coarse < 100 {
		t.Errorf("only %d coarse bounds", coarse)
	}
}

// large makes a form of n services; each calls a few that come after it.
func large(n, calls, reach int, layers ...topology.Layer) topology.Form {
	d := rand.New(rand.NewPCG(1, 1))
	var f topology.Form
	name := func(i int) string { return fmt.Sprint("s", i) }
	for i := range n {
		f.Services = append(f.Services, topology.Service{Name: name(i)})
		for range calls {
			if j := i + 1 + d.IntN(reach); j < n {
				f.Calls = append(f.Calls, topology.Call{From: name(i), To: name(j), Layers: layers})
			}
		}
	}
	return f
}

func TestTenThousandServicesAreBounded(t *testing.T) {
	if testing.Short() {
		return // a form of ten thousand services
	}
	retries := topology.Layer{Kind: topology.SidecarOut, Cancels: value(true), PerTry: value(20 * ms),
		Repeats: []topology.Repeat{{On: []topology.Outcome{topology.S503, topology.Hang}, Tries: value(3)}}}
	round := large(10_000, 1, 1, retries)
	round.Calls = append(round.Calls, topology.Call{From: "s9999", To: "s0"})
	for name, f := range map[string]topology.Form{"a chain": large(10_000, 1, 1, retries), "one cycle": round,
		"a dense graph": large(10_000, 3, 9_000, retries), "a ladder": large(10_000, 2, 2, retries)} {
		t.Run(name, func(t *testing.T) {
			a := lint.Amplification(f, lint.Options{Least: 2})
			if len(a.Bounds) < 9_000 {
				t.Errorf("%d bounds", len(a.Bounds))
			}
			for _, b := range a.Bounds {
				for _, r := range b.Roots {
					if !(r.Proved <= r.Worst) || r.Proved < 1 {
						t.Fatalf("%s: %+v", b.Service, r)
					}
				}
			}
		})
	}
}

// Ten calls of one request are no attempts: nothing is to be switched off. What another root's requests meet does not
// count for this one.
func TestManyCallsWithoutARetryAreNoAmplification(t *testing.T) {
	const calls = "calls:\n- {from: a, to: b, perRequest: 4}\n- {from: b, to: c, perRequest: 5}\n" +
		"- {from: x, to: c, layers: [{kind: client, repeats: [{on: [\"503\"], tries: 2}]}]}\n"
	for text, want := range map[string]int{
		calls: 0,
		strings.Replace(calls, "perRequest: 4", "layers: [{kind: client, repeats: [{on: [\"503\"], tries: 4}]}]", 1): 1,
		strings.Replace(calls, "perRequest: 4", "perRequest: 4, layers: [{kind: client, repeats: [{on: [\"503\"], tries: "+
			"unknown}]}]", 1): 1,
	} {
		found := 0
		for _, f := range lint.Run(parse(t, text), lint.Options{MaxAmplification: 10}) {
			if f.Rule == "F101" || f.Rule == "F102" {
				found++
			}
		}
		if found != want {
			t.Errorf("%d findings, want %d, of\n%s", found, want, text)
		}
	}
}
