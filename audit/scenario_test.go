package audit_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/audit"
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
