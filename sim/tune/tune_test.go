//go:build !race

package tune_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/sim/scenario"
	"github.com/abate-go/abate/sim/tune"
)

func read(t *testing.T, name, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse(name, []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return s
}

// crowd is a service for 150 requests per second with 100, and four times as many for some seconds; quiet is the same
// without.
func crowd(t *testing.T) []*scenario.Scenario {
	const same = "duration: 20s\nwarmUp: 2s\nclients: {shop: {rate: 100, instances: 50, patience: 2s, calls: [pay]}}\n" +
		"services: {pay: {workers: 15, serviceTime: exponential 100ms}}\n" +
		"variants: {v: {policy: {defaults: {attemptTimeout: 1s}}}}\n"
	return []*scenario.Scenario{
		read(t, "crowd.yaml", "name: crowd\nfaults: [{surge: shop, at: 4s, for: 5s, factor: 4}]\n"+same),
		read(t, "quiet.yaml", "name: quiet\n"+same),
	}
}

func TestThePolicyIsBetterAndHarmsNowhere(t *testing.T) {
	if testing.Short() {
		return // a whole search
	}
	r, err := tune.Run(context.Background(), crowd(t), tune.Options{Runs: 700, Copies: 1, Systems: 2, Changes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Better || len(r.Changes) == 0 || len(r.Given) != 2 || len(r.Copies) != 2 || len(r.Generated) != 2 {
		t.Fatalf("%s\n%+v", r.Text, r)
	}
	if r.Given[0].Ratio > 0.9 || r.Given[1].Ratio > 1.02 {
		t.Errorf("crowd × %v, quiet × %v", r.Given[0].Ratio, r.Given[1].Ratio)
	}
	if len(r.Changes[0].Bought) == 0 {
		t.Errorf("the change bought nothing: %+v", r.Changes[0])
	}
	file, err := policyfile.Parse("policy.yaml", r.Policy)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Policy)
	}
	if p, _ := file.Policy("pay"); p.AttemptTimeout.Seconds() != 1 {
		t.Errorf("the attempt timeout of the scenario is lost:\n%s", r.Policy)
	}
	var text, page bytes.Buffer
	if err := tune.Text(&text, r); err != nil {
		t.Fatal(err)
	}
	if err := tune.HTML(&page, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"crowd", "quiet", "bought", "perturbed copies", "generated systems"} {
		if !strings.Contains(text.String(), want) || !strings.Contains(strings.ToLower(page.String()), want) {
			t.Errorf("no %q in the text or the page:\n%s", want, text.String())
		}
	}
}

func TestTheResultDependsOnTheSeedAlone(t *testing.T) {
	if testing.Short() {
		return // whole searches
	}
	var first []byte
	for _, parallel := range []int{1, 4} {
		r, err := tune.Run(context.Background(), crowd(t), tune.Options{Runs: 160, Copies: 1, Systems: -1, Changes: 1,
			Parallel: parallel})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := tune.Text(&b, r); err != nil {
			t.Fatal(err)
		}
		b.Write(r.Policy)
		if first == nil {
			first = b.Bytes()
		} else if !bytes.Equal(first, b.Bytes()) {
			t.Errorf("with %d goroutines:\n%s\nwith one:\n%s", parallel, b.Bytes(), first)
		}
	}
}

func TestWhereNothingHelpsItSaysSo(t *testing.T) {
	r, err := tune.Run(context.Background(), crowd(t)[1:], tune.Options{Runs: 120, Copies: -1, Systems: -1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Better || len(r.Changes) > 0 || !strings.Contains(r.Text, "nothing that was tried beats the default policy") {
		t.Errorf("%s: %+v", r.Text, r.Changes)
	}
	if _, err := policyfile.Parse("policy.yaml", r.Policy); err != nil {
		t.Errorf("%v\n%s", err, r.Policy)
	}
}

func TestTheBoundOnRunsHoldsForTheSearch(t *testing.T) {
	searched := 0
	_, err := tune.Run(context.Background(), crowd(t), tune.Options{Runs: 150, Copies: -1, Systems: -1, Changes: 1,
		Progress: func(p tune.Progress) {
			if p.Stage == "search" {
				searched = p.Done
			}
		}})
	if err != nil || searched > 150 || searched == 0 {
		t.Errorf("%d runs, %v", searched, err)
	}
}

func TestWhatCannotBeTunedIsRefused(t *testing.T) {
	s := read(t, "phones.yaml", "duration: 60s\nclients: {p: {users: 50000, think: exponential 10s, method: cohort, "+
		"calls: [db]}}\nservices: {db: {workers: 1000, serviceTime: 20ms}}\n"+
		"variants: {v: {policy: {defaults: {maxRetries: 0, "+
		"attemptTimeout: 1s, retryBudget: {disabled: true}, circuitBreaker: {disabled: true}}}}}\n")
	if _, err := tune.Run(context.Background(), []*scenario.Scenario{s, s}, tune.Options{}); err == nil ||
		strings.Count(err.Error(), "phones.yaml") != 2 {
		t.Errorf("error %v", err)
	}
}

func TestObjectivesAreExpectationsWithoutAValue(t *testing.T) {
	for text, fine := range map[string]bool{
		"goodput >": true, "latency(p99, after) <": true, "attempts(pay) <": true, "amplification(pay) <": true,
		"goodput": false, "speed >": false, "goodput > 5%": false, "": false,
	} {
		x, err := tune.ParseObjective(text)
		if (err == nil) != fine || fine && x.Text != text {
			t.Errorf("%q: %+v, %v", text, x, err)
		}
	}
}
