package lint_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

// call is a form with one call from a to b, which has the layers given.
func call(services string, layers ...string) string {
	text := "services:" + services + "\ncalls:\n- from: a\n  to: b\n  layers:\n"
	for _, l := range layers {
		text += "  - {kind: client, " + l + "}\n"
	}
	if len(layers) == 0 {
		text = strings.TrimSuffix(text, "  layers:\n")
	}
	return text
}

// on is a rule of a layer that tries so often.
func on(tries string, outcomes ...string) string {
	for i, o := range outcomes {
		outcomes[i] = fmt.Sprintf("%q", o)
	}
	return fmt.Sprintf("repeats: [{on: [%s], tries: %s}]", strings.Join(outcomes, ", "), tries)
}

const nobody = " []"

// chained is a → b → c with a layer on each call, and what b is.
func chained(b, outer, inner string) string {
	return fmt.Sprintf("services:\n- {name: a}\n- {name: b, %s}\n- {name: c, capacity: 100}\ncalls:\n- {from: a, to: "+
		"b, layers: [{kind: client, %s}]}\n- {from: b, to: c, layers: [{kind: client, %s}]}\n", b, outer,
		inner)
}

// ruleCase is a form in which a rule complains and one in which it does not.
type ruleCase struct {
	fires, quiet string
	says         string // part of the message
	at           string // line and column, where the case looks at that
}

var ruleCases = map[string]ruleCase{
	"F101": {fires: chained("answersWith: \"503\"", on("4", "503"), on("3", "503")), says: "up to 12 attempts",
		quiet: chained("answersWith: \"503\"", on("3", "503"), on("3", "503"))},
	"F102": {fires: chained("cancels: true", on("4", "500"), on("3", "503")), says: "at least 3 attempts",
		quiet: chained("answersWith: \"503\"", on("4", "500"), on("3", "503"))},
	"F103": {fires: call(nobody, on("2", "503"), on("2", "503")), says: "2 layers retry the call a → b",
		quiet: call(nobody, on("2", "503"), on("2", "refused"))},
	"F104": {fires: `services: [{name: b, answersWith: "503"}]
calls:
- {from: a, to: b, layers: [{kind: client, ` + on("4", "503") + `}]}
- {from: b, to: c, order: 1}
- {from: b, to: d, order: 2}
`, quiet: `services: [{name: b, answersWith: "503"}]
calls:
- {from: a, to: b, layers: [{kind: client, ` + on("3", "503") + `}]}
- {from: b, to: c, order: 1}
- {from: b, to: d, order: 2}
`, says: "calls c, which is healthy, up to 4 times"},
	"F105": {fires: call("\n- {name: a, rate: 50}\n- {name: b, capacity: 100}", on("3", "503")), says: "150 attempts " +
		"per second",
		quiet: call("\n- {name: a, rate: 50}\n- {name: b, capacity: 100}", on("3", "503")+", budget: {ratio: 0.1}")},
	"F106": {fires: "calls:\n- {from: a, to: b, layers: [{kind: client, " + on("2", "503") + "}]}\n- {from: b, to: a}\n",
		quiet: "calls:\n- {from: a, to: b}\n- {from: b, to: a}\n- {from: b, to: c, layers: [{kind: client, " +
			on("2", "503") + "}]}\n", says: "circle"},
	"F107": {fires: call(nobody, on(`"3 (default of Istio 1.24 and later)"`, "503")), says: "the default of Istio 1.24",
		quiet: call(nobody, on("3", "503"))},
	"F108": {fires: call(nobody, on("unbounded", "503")), says: "without a count", quiet: call(nobody, on("3", "503"))},
	"F201": {fires: call(nobody, "perTry: 2s, overall: 2s, "+on("3", "hang")), says: "never tried again",
		quiet: call(nobody, "perTry: 500ms, overall: 2s, "+on("3", "hang"))},
	"F202": {fires: call(nobody, "perTry: 1s, overall: 1500ms, "+on("3", "hang")), says: "only 2 of them",
		quiet: call(nobody, "perTry: 1s, overall: 3s, "+on("3", "hang"))},
	"F203": {fires: chained("cancels: false", "perTry: 2s", "perTry: 1s, "+on("3", "hang")), says: "leaves after 2s, " +
		"and b may need 3s",
		quiet: chained("cancels: false", "perTry: 4s", "perTry: 1s, "+on("3", "hang"))},
	"F204": {fires: call(nobody, on("3", "503")), says: "nothing ends the call a → b", quiet: call(nobody, "overall: 3s")},
	"F205": {fires: call(nobody, "overall: 3s, "+on("3", "503", "hang")), says: "no try has a limit",
		quiet: call(nobody, "overall: 3s, "+on("3", "503"))},
	"F206": {fires: call(nobody, "perTry: 60s, "+on("3", "hang")), says: "up to 3m0s", quiet: call(nobody,
		"perTry: 20s, "+on("3", "hang"))},
	"F207": {fires: chained("cancels: true", "perTry: 1s", "perTry: 1s"), says: "same limit of 1s",
		quiet: chained("cancels: true", "perTry: 2s", "perTry: 1s")},
	"F208": {fires: call("\n- {name: b, ownTime99: 300ms}", "perTry: 200ms"), says: "takes 300ms",
		quiet: call("\n- {name: b, ownTime99: 300ms}", "perTry: 400ms")},
	"F209": {fires: call(nobody, "cancels: false, "+on("3", "503")), says: "after its caller has left",
		quiet: call(nobody, "cancels: true, "+on("3", "503"))},
	"F301": {fires: call(nobody, on("2", "503")), says: "would send POST and PATCH", at: "6:",
		quiet: call(nobody, strings.Replace(on("2", "503"), "on:", "methods: safe, on:", 1))},
	"F302": {fires: call(nobody, on("2", "500", "502")), says: "after 500", quiet: call(nobody, on("2", "502"))},
	"F303": {fires: call(nobody, on("2", "429")), says: "after 429",
		quiet: call(nobody, "backoff: {retryAfter: true}, "+on("2", "429"))},
	"F304": {fires: call(nobody, on("2", "409")), says: "after 409", quiet: call(nobody, on("2", "502"))},
	"F305": {fires: call(nobody, on("2", "UNAVAILABLE", "INTERNAL")), says: "after INTERNAL",
		quiet: call(nobody, on("2", "UNAVAILABLE"))},
	"F307": {fires: call(nobody, "overridable: true"), says: "by request headers", quiet: call(nobody, "overridable: "+
		"false")},
	"F401": {fires: call(nobody, on("3", "503")), says: "without a wait", quiet: call(nobody, on("2", "503"))},
	"F402": {fires: call(nobody, "backoff: {first: 100ms, jitter: none}, "+on("3", "503")), says: "exactly 100ms",
		quiet: call(nobody, "backoff: {first: 100ms, jitter: full}, "+on("3", "503"))},
	"F403": {fires: call(nobody, "budget: {concurrent: unbounded}, "+on("3", "503")), says: "is lifted",
		quiet: call(nobody, "budget: {concurrent: unbounded, ratio: 0.2}, "+on("3", "503"))},
	"F404": {fires: call("\n- {name: a, rate: 100, replicas: 2}\n- {name: b, ownTime: 10ms}", "budget: {concurrent: "+
		"3}, "+on("3", "503")),
		quiet: call("\n- {name: a, rate: 5000, replicas: 2}\n- {name: b, ownTime: 10ms}", "budget: {concurrent: 3}, "+
			""+on("3", "503")),
		says: "600 retries per second"},
	"F405": {fires: call("\n- {name: a, replicas: 20}\n- {name: b, capacity: 1000}", "budget: {ratio: 0.2, perSecond: "+
		"10}, "+on("3", "503")),
		quiet: call("\n- {name: a, replicas: 2}\n- {name: b, capacity: 1000}", "budget: {ratio: 0.2, perSecond: 10}, "+
			""+on("3", "503")),
		says: "together 200"},
	"F406": {fires: sameNumbers(3), quiet: sameNumbers(2), says: "3 services have the same retries"},
	"F407": {fires: call(nobody, "backoff: {first: 2s, max: 1s}"), says: "at most 1s and at first 2s",
		quiet: call(nobody, "backoff: {first: 1s, max: 2s}")},
	"F501": {fires: call("\n- {name: a, rate: 10, replicas: 2}", "breaker: {minimumCalls: 100, window: 10s}"),
		says:  "about 50",
		quiet: call("\n- {name: a, rate: 100, replicas: 2}", "breaker: {minimumCalls: 100, window: 10s}")},
	"F502": {fires: call(nobody, "breaker: {openFor: 60s, insideRetry: true}, backoff: {first: 500ms}, "+on("3", "503")),
		quiet: call(nobody, "breaker: {openFor: 60s, insideRetry: false}, backoff: {first: 500ms}, "+on("3", "503")),
		says:  "over after 1s"},
	"F504": {fires: call(nobody, "ejection: {consecutive: 5, maxShare: 1}"), says: "all endpoints",
		quiet: call(nobody, "ejection: {consecutive: 5, maxShare: 0.1}")},
	"F505": {fires: call(nobody, "limits: {requests: unbounded, pending: unbounded}"), says: "no limit on pending, " +
		"requests",
		quiet: call(nobody, "limits: {requests: unbounded, pending: 100}")},
}

// sameNumbers is n services that call each the next with the same numbers, each written at its own place.
func sameNumbers(n int) string {
	text := "calls:\n"
	for i := range n {
		text += fmt.Sprintf("- {from: s%d, to: db%d, layers: [{kind: client, perTry: 1s, %s}]}\n", i, i, on("3", "503"))
	}
	return text
}

func of(rule string, all []lint.Finding) (these []lint.Finding) {
	for _, f := range all {
		if f.Rule == rule {
			these = append(these, f)
		}
	}
	return these
}

func TestEachRuleComplainsWhereItShouldAndNotElsewhere(t *testing.T) {
	for _, rule := range lint.Rules() {
		c, decided := ruleCases[rule.ID]
		if !decided { // importers decide it
			text := fmt.Sprintf("calls: [{from: a, to: b}]\nremarks: [{rule: %s, at: \"f.yaml:3:4\", subject: x, text: y}]\n",
				rule.ID)
			c = ruleCase{fires: text, quiet: "calls: [{from: a, to: b}]\n", says: "y", at: "3:4"}
		}
		t.Run(rule.ID, func(t *testing.T) {
			got := of(rule.ID, lint.Run(parse(t, c.fires), lint.Options{}))
			if len(got) != 1 {
				t.Fatalf("%d findings, want one\n%s\n%+v", len(got), c.fires, got)
			}
			f := got[0]
			if !strings.Contains(f.Message, c.says) || !strings.Contains(f.At.String(), c.at) {
				t.Errorf("%s: %q lacks %q, or is not at %s", f.At, f.Message, c.says, c.at)
			}
			if decided && (f.Fix == "" || f.Subject == "" || f.At.IsZero() || strings.Contains(f.Message, "\n")) {
				t.Errorf("it is not whole: %+v", f)
			}
			if quiet := of(rule.ID, lint.Run(parse(t, c.quiet), lint.Options{})); len(quiet) > 0 {
				t.Errorf("complains about\n%s\n%+v", c.quiet, quiet)
			}
			if other := lint.Run(parse(t, c.fires), lint.Options{Only: []string{"none"}}); len(other) > 0 {
				t.Errorf("rules that were not asked: %+v", other)
			}
		})
	}
}

func TestTheTableOfRulesIsWhole(t *testing.T) {
	ids := map[string]bool{}
	for _, r := range lint.Rules() {
		if ids[r.ID] {
			t.Errorf("%s is there twice", r.ID)
		}
		ids[r.ID] = true
		if _, ok := lint.RuleOf(r.ID); !ok || r.Title == "" || r.Why == "" || r.Source == "" || r.Fine == "" || r.Fix == "" {
			t.Errorf("%s is not whole", r.ID)
		}
	}
	for id := range ruleCases {
		if !ids[id] {
			t.Errorf("%s has a case and is in no table", id)
		}
	}
	if _, ok := lint.RuleOf("F999"); ok {
		t.Error("F999 is a rule")
	}
}

func TestOneCauseIsOneFinding(t *testing.T) {
	text := "calls:\n"
	for i := range 5 {
		text += fmt.Sprintf("- {from: s%d, to: db%d, layers: [{kind: sidecar-out, product: istio, name: mesh, at: "+
			"\"m.yaml:1:1\", repeats: [{on: [\"500\"], tries: \"3 (m.yaml:4:5)\", at: \"m.yaml:5:6\"}]}]}\n", i, i)
	}
	got := of("F302", lint.Run(parse(t, text), lint.Options{}))
	if len(got) != 1 || got[0].At.String() != "m.yaml:5:6" || !strings.Contains(got[0].Message, "4 further places") {
		t.Fatalf("%+v", got)
	}
}

func TestFingerprintsSurviveMovedLines(t *testing.T) {
	prints := func(text string) (all []string) {
		for _, f := range lint.Run(parse(t, text), lint.Options{}) {
			all = append(all, f.Rule+" "+f.Fingerprint())
		}
		slices.Sort(all)
		return all
	}
	for id, c := range ruleCases {
		before, after := prints(c.fires), prints("# a comment\n\n"+c.fires)
		if !slices.Equal(before, after) {
			t.Errorf("%s: the fingerprints are %v, and %v two lines further down", id, before, after)
		}
		if len(slices.Compact(before)) != len(before) {
			t.Errorf("%s: two findings have one fingerprint: %v", id, before)
		}
	}
}

// What is said in the same words of several places is one finding, and each of them has a fingerprint.
func TestTwoPlacesHaveTwoFingerprints(t *testing.T) {
	layer := `[{kind: client, product: spring, name: retry, repeats: [{on: ["500"], tries: 2, at: "%s"}]}]`
	text := "calls:\n"
	for i, at := range []string{"a.yaml:1:1", "b.yaml:1:1", "b.yaml:7:1", "b.yaml:9:1"} {
		text += fmt.Sprintf("- {from: s%d, to: db%d, layers: "+layer+"}\n", i, i, at)
	}
	prints := map[string]bool{}
	all := of("F302", lint.Run(parse(t, text), lint.Options{}))
	for _, f := range all {
		for _, print := range f.Fingerprints() {
			prints[print] = true
		}
	}
	if len(prints) != 4 || len(all) != 1 {
		t.Errorf("%d fingerprints of %d findings, want 4 of one", len(prints), len(all))
	}
}

func TestFindingsAreWrittenAsJSON(t *testing.T) {
	all := lint.Run(parse(t, ruleCases["F106"].fires), lint.Options{})
	if text, err := json.Marshal(all); err != nil || !strings.Contains(string(text), `"Severity":"error"`) {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestTheSameFormHasTheSameFindings(t *testing.T) {
	for seed := range 50 {
		f := drawing{rand.New(rand.NewPCG(uint64(seed), 5)), seed%2 == 0}.form()
		first, again := lint.Run(f, lint.Options{}), lint.Run(f, lint.Options{})
		if !reflect.DeepEqual(first, again) {
			t.Fatalf("once\n%+v\nthen\n%+v", first, again)
		}
	}
}

func TestTheWorstComesFirst(t *testing.T) {
	var last lint.Finding
	for i, f := range lint.Run(parse(t, ruleCases["F101"].fires), lint.Options{}) {
		if i > 0 && (f.Severity > last.Severity || f.Severity == last.Severity && f.Effect > last.Effect) {
			t.Errorf("%s (%v, %v) comes after %s (%v, %v)", f.Rule, f.Severity, f.Effect, last.Rule, last.Severity, last.Effect)
		}
		if last = f; i == 0 && f.Rule != "F101" {
			t.Errorf("the first is %s: %s", f.Rule, f.Message)
		}
	}
}

func TestSeveritiesFollowTheNumbers(t *testing.T) {
	for _, c := range []struct {
		rule, form string
		want       lint.Severity
	}{
		{"F103", call(nobody, on("2", "503"), on("2", "503")), lint.Warning},
		{"F103", call(nobody, on("2", "503"), on("3", "503")), lint.Error},
		{"F103", call(nobody, on("2", "503"), "hedge: {copies: 2, delay: 1s}"), lint.Error}, // which has no list of outcomes
		{"F203", chained("cancels: false", "perTry: 2s", "perTry: 1s, "+on("3", "hang")), lint.Error},
		// Whatever the layer between the two waits for, the service works on when its caller has left.
		{"F203", chained("cancels: false", "perTry: 2s}, {kind: sidecar-out, perTry: 4s",
			"perTry: 1s, "+on("3", "hang")), lint.Error},
		{"F203", chained("cancels: true", "perTry: 9s, overall: 2s", "perTry: 1s, "+on("3", "hang")), lint.Warning},
		{"F203", chained("cancels: true", "perTry: 2s", "perTry: 1s, "+on("3", "hang")), lint.Warning},
		{"F101", call(nobody, on("11", "503")), lint.Error},
		{"F101", call(nobody, on("11", "503")+", budget: {ratio: 0.1}"), lint.Warning},
		{"F301", call(nobody, on("2", "503")), lint.Warning},
		{"F301", strings.Replace(call(nobody, on("2", "503")), "to: b", "to: b\n  unsafe: true", 1), lint.Error},
		{"F107", call(nobody, on(`"3 (default of Istio 1.24 and later)"`, "503")), lint.Note},
		{"F107", chained("cancels: true", on(`"4 (default of Istio 1.24 and later)"`, "500"), on("3", "503")), lint.Note},
		{"F107", call(nobody, on(`"11 (default of Istio 1.24 and later)"`, "503")), lint.Warning},
	} {
		got := of(c.rule, lint.Run(parse(t, c.form), lint.Options{}))
		if len(got) != 1 || got[0].Severity != c.want {
			t.Errorf("%s: %+v, want %v\n%s", c.rule, got, c.want, c.form)
		}
	}
}

func TestAssumptionsAreSaid(t *testing.T) {
	f := parse(t, `services: [{name: b, answersWith: "503"}]
calls:
- from: a
  to: b
  layers:
  - {kind: sidecar-out, product: istio, version: "1.27 (assumed: no file says the version of istio)", `+
		on(`"11 (default of Istio 1.24 and later)"`, "503")+`}
`)
	got := of("F101", lint.Run(f, lint.Options{}))
	want := []string{"istio 1.27: no file says the version of istio", "the default of Istio 1.24 and later"}
	if len(got) != 1 || !slices.Equal(got[0].Assumptions, want) {
		t.Errorf("%+v, want assumptions %q", got, want)
	}
}

func TestTheLineToChangeIsNotThatOfTheLayerThatSharesItsTries(t *testing.T) {
	got := of("F101", lint.Run(parse(t, chained("answersWith: \"503\"", on("3", "503"),
		"product: abate, owner: nearest, "+on("6", "503"))), lint.Options{}))
	if len(got) != 1 || !strings.Contains(got[0].Message, "18 attempts") || strings.Contains(got[0].Fix, "in abate") {
		t.Errorf("%+v", got)
	}
}

func TestDatabasesAreAskedByWhatSomebodySaysOfTheCall(t *testing.T) {
	for services, want := range map[string]int{" [{name: b, database: true}]": 0, " [{name: b}]": 1} {
		if got := of("F301", lint.Run(parse(t, call(services, on("2", "503"))), lint.Options{})); len(got) != want {
			t.Errorf("%s: %+v", services, got)
		}
	}
}

func TestTheNeedOfALayerIsNotTakenForThatOfTheService(t *testing.T) {
	got := of("F203", lint.Run(parse(t, call(nobody, "perTry: 1s", "perTry: 2s, "+on("2", "hang"))), lint.Options{}))
	if len(got) != 1 || !strings.Contains(got[0].Message, "the layer inside of it may need 4s") {
		t.Errorf("%+v", got)
	}
	got = of("F203", lint.Run(parse(t, `calls:
- {from: a, to: b, layers: [{kind: client, perTry: 1s}, {kind: sidecar-out}]}
- {from: b, to: c, layers: [{kind: client, perTry: 2s}]}
`), lint.Options{}))
	if len(got) != 1 || !strings.Contains(got[0].Message, "b may need 2s") {
		t.Errorf("%+v", got)
	}
}

func FuzzEveryFormThatCanBeReadIsJudged(f *testing.F) {
	for _, c := range ruleCases {
		f.Add([]byte(c.fires))
	}
	f.Add([]byte("calls: [{from: a, to: b, perRequest: unknown (template), layers: [{kind: client, perTry: unknown " +
		"(x)}]}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		form, err := topology.Parse("t.yaml", data)
		if err != nil {
			return
		}
		for _, finding := range lint.Run(form, lint.Options{}) {
			if finding.Rule == "" && len(form.Remarks) == 0 || finding.Message == "" && len(form.Remarks) == 0 {
				t.Errorf("a finding says nothing: %+v", finding)
			}
		}
		for _, b := range lint.Amplification(form, lint.Options{}).Bounds {
			for _, r := range b.Roots {
				if !(r.Proved <= r.Worst) || r.Proved < 0 || r.Longest < 0 {
					t.Errorf("%s: %+v", b.Service, r)
				}
			}
		}
	})
}

func TestWhatNobodyWroteInCopiesOfAFileIsOneFinding(t *testing.T) {
	const copies = "calls:\n- from: a\n  to: b\n  layers:\n" +
		"  - {kind: gateway, product: x, name: r, limits: {requests: unbounded}, overall: 3s, " +
		"repeats: [{on: [refused], tries: 3 (default of x 1)}]}\n" +
		"  - {kind: gateway, product: x, name: NAME, limits: {requests: unbounded}, overall: 3s, " +
		"repeats: [{on: [refused], tries: 3 (default of x 1)}]}\n"
	for name, want := range map[string]int{"r": 1, "other": 1} {
		found := map[string]int{}
		for _, f := range lint.Run(parse(t, strings.Replace(copies, "NAME", name, 1)), lint.Options{}) {
			found[f.Rule]++
			if f.Rule == "F505" && name == "r" && (len(f.Related) != 1 || f.Related[0].At.Line != 6 ||
				!strings.Contains(f.Message, "in 1 further place")) {
				t.Errorf("%+v", f)
			}
		}
		if found["F107"] != 1 || found["F505"] != want {
			t.Errorf("%s: %v, want one F107 and %d of F505", name, found, want)
		}
	}
}

func TestPagesOfThoseWhoOperateNeedNoLimits(t *testing.T) {
	const form = "calls:\n- from: edge\n  to: NAME\n  layers:\n  - {kind: KIND, product: x, " +
		"limits: {requests: unbounded}, repeats: [{on: [\"503\"], tries: 3 (default of x 1)}]}\n"
	for with, want := range map[string]int{"grafana.istio-system gateway": 0, "grafana gateway": 0,
		"grafana-api gateway": 3, "orders gateway": 3, "grafana client": 3} {
		to, kind, _ := strings.Cut(with, " ")
		found := 0
		for _, f := range lint.Run(parse(t, strings.NewReplacer("NAME", to, "KIND", kind).Replace(form)), lint.Options{}) {
			if f.Rule == "F107" || f.Rule == "F204" || f.Rule == "F505" {
				found++
			}
		}
		if found != want {
			t.Errorf("%s: %d findings, want %d", with, found, want)
		}
	}
}

// Of layers that are for parts of the calls, the finding stands where the one is that ends nothing.
func TestTheLayerThatEndsNothingIsNamed(t *testing.T) {
	const form = "calls:\n- from: a\n  to: b\n  layers:\n" +
		"  - {kind: gateway, product: x, name: first, match: {path: /1}, at: \"f.yaml:1:1\", overall: unknown}\n" +
		"  - {kind: gateway, product: x, name: second, match: {path: /2}, at: \"f.yaml:2:1\"}\n"
	for _, f := range lint.Run(parse(t, form), lint.Options{}) {
		if f.Rule == "F204" {
			if f.At.Line != 2 {
				t.Errorf("at %s, want f.yaml:2:1", f.At)
			}
			return
		}
	}
	t.Error("there is none")
}
