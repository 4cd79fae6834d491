package audit_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/scenario"
	"github.com/abate-go/abate/topology"
)

// chain is a shop whose library and sidecar each try three times on both hops.
const chain = `services:
- {name: shop, rate: 50}
- {name: orders, answersWith: "503"}
- {name: db, database: true}
calls:
- from: shop
  to: orders
  layers: &layers
  - {kind: client, product: library, perTry: 30s, repeats: [{on: [hang, "503", refused], tries: 3}]}
  - {kind: sidecar-out, product: istio, perTry: 10s, repeats: [{on: [hang, "503", refused], tries: 3}]}
- from: orders
  to: db
  layers: *layers
`

func parse(t *testing.T, text string) topology.Form {
	t.Helper()
	f, err := topology.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	joined, _ := f.Join()
	return joined
}

func TestAnOutageIsPlayedWithEachLayerOfEachCall(t *testing.T) {
	form := parse(t, chain)
	fixed := parse(t, strings.ReplaceAll(chain, "tries: 3", "tries: 1"))
	for _, c := range []struct {
		fails topology.Outcome
		want  float64 // attempts at the database for one request, while it fails
	}{{topology.Refused, 81}, {topology.S503, 81}} {
		text, assumed, err := audit.Play{Service: "db", Fails: c.fails, For: 20 * time.Second, Fixed: &fixed}.Scenario(form)
		if err != nil {
			t.Fatal(err)
		}
		s, err := scenario.Parse("outage.yaml", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		r, err := sim.Run(context.Background(), s, sim.Options{Runs: 2, Exactly: true})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []float64{c.want, 1} {
			got := measure(r.Variants[i].Measures, "amplification(db, during)")
			if got < 0.9*want || got > 1.01*want {
				t.Errorf("%s, %s: %.1f attempts for one request, want %.0f\n%s", c.fails, r.Variants[i].Name, got, want, text)
			}
		}
		if len(assumed) == 0 {
			t.Error("nothing is said to be assumed")
		}
	}
}

func measure(all []sim.Measure, name string) float64 {
	for _, m := range all {
		if m.Name == name {
			return m.Mean
		}
	}
	return -1
}

func TestAnOutageOfNobodyOrInACycleIsRefused(t *testing.T) {
	for _, c := range []struct{ service, form, want string }{
		{"x", chain, `no service "x"`},
		{"a", "calls: [{from: a, to: b}, {from: b, to: a}]", "cycle"},
	} {
		_, _, err := audit.Play{Service: c.service, For: time.Second}.Scenario(parse(t, c.form))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestAnOutageThatNotAllRunsSurviveIsNotSaidToEndWell(t *testing.T) {
	got := audit.Outage{Runs: 5, Recovered: 3, Recovery: 1}.String()
	if !strings.Contains(got, "recovers in 3 of 5 runs") {
		t.Errorf("three of five runs recovered, and it says %q", got)
	}
}

func TestLayersThatDoNothingAndThoseOfOnePodAreNotPlayed(t *testing.T) {
	form := parse(t, `services: [{name: shop, rate: 50}, {name: db}]
calls:
- from: shop
  to: db
  layers:
  - {kind: client, product: library, perTry: 1s, repeats: [{on: [refused], tries: 3}]}
  - {kind: sidecar-out, product: linkerd, repeats: [{on: ["503"], tries: 9}]}
  - {kind: sidecar-in, product: istio, repeats: [{on: [refused, reset-unsent], tries: 3}]}
`)
	text, _, err := audit.Play{Service: "db", Fails: topology.Refused, For: 20 * time.Second}.Scenario(form)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"shop/db/1": true, "shop/db/2": false, "shop/db/3": false} {
		if got := strings.Contains(string(text), name); got != want {
			t.Errorf("%s is played: %v, want %v\n%s", name, got, want, text)
		}
	}
	if got := attemptsAt(t, text); got < 2.9 || got > 3.1 {
		t.Errorf("%.1f attempts for one request, want 3: what is tried inside a pod reaches nobody\n%s", got, text)
	}
}

func attemptsAt(t *testing.T, text []byte) float64 {
	t.Helper()
	s, err := scenario.Parse("outage.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	r, err := sim.Run(context.Background(), s, sim.Options{Runs: 1, Exactly: true})
	if err != nil {
		t.Fatal(err)
	}
	return measure(r.Variants[0].Measures, "amplification(db, during)")
}

func TestBreakersAndBudgetsOfLayersActWhenTheyArePlayed(t *testing.T) {
	for guard, most := range map[string]float64{
		"breaker: {consecutive: 5, openFor: 5s}": 0.5,
		"budget: {ratio: 0.1}":                   1.3,
		"budget: {share: 0.2}":                   1.3,
		"budget: {concurrent: 1}":                2.5,
	} {
		form := parse(t, `services: [{name: shop, rate: 50}, {name: db}]
calls:
- from: shop
  to: db
  layers: [{kind: client, product: library, perTry: 1s, repeats: [{on: ["503"], tries: 4}], backoff: {first: 50ms}, `+
			guard+"}]\n")
		text, _, err := audit.Play{Service: "db", Fails: topology.S503, For: 20 * time.Second}.Scenario(form)
		if err != nil {
			t.Fatal(err)
		}
		if got := attemptsAt(t, text); got > most {
			t.Errorf("%.1f attempts for one request with %s, want %.1f at most\n%s", got, guard, most, text)
		}
	}
}

// A study in parts has the seeds of one study.
func TestFiveRunsThatAllCollapseAreEnough(t *testing.T) {
	files := file(`services: [{name: shop, rate: 20}, {name: db, capacity: 80}]
calls:
- from: shop
  to: db
  layers:
  - {kind: client, product: library, perTry: 1s, repeats: [{on: [hang, "503"], tries: 3}]}
  - {kind: sidecar-out, product: istio, perTry: 1s, repeats: [{on: [hang, "503"], tries: 4}]}
`)
	r := audit.Run(files, audit.Options{})
	r.Propose(files, lint.Options{})
	r.Simulate(context.Background(), audit.SimulateOptions{Outage: 10 * time.Second, Runs: 7, Service: "db"})
	v := r.Verdicts[0]
	if v.Failed != "" || v.After == nil {
		t.Fatalf("not played: %+v", v)
	}
	if v.Before.Collapse.Share != 1 || v.Before.Runs != 5 {
		t.Errorf("as configured it collapses in %v of %d runs, want all of 5", v.Before.Collapse.Share, v.Before.Runs)
	}
	if v.After.Collapse.Share != 0 || v.After.Runs != 7 {
		t.Errorf("with the changes it collapses in %v of %d runs, want none of 7", v.After.Collapse.Share, v.After.Runs)
	}
	s, err := scenario.Parse("outage.yaml", v.Scenario)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := sim.Run(context.Background(), s, sim.Options{Runs: 7, Exactly: true, Variants: []string{"fixed"}})
	if err != nil {
		t.Fatal(err)
	}
	want := measure(whole.Variants[0].Measures, "amplification(db, during)")
	if got := v.After.Amplification; got < want*0.999999 || got > want*1.000001 {
		t.Errorf("%v attempts, and %v in one study: the seeds differ", got, want)
	}
}
