package lint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

func TestAProxySendsARequestOneWay(t *testing.T) {
	const form = `services: [{name: edge, answersWith: same, proxy: %v}, {name: a, answersWith: same}, {name: b,
  answersWith: same}]
calls:
- {from: edge, to: a, layers: [{kind: gateway, repeats: [{on: ["503"], tries: 3}]}]}
- {from: edge, to: b, layers: [{kind: gateway, repeats: [{on: ["503"], tries: 2}]}]}
- {from: a, to: db}
- {from: b, to: db}
`
	for proxy, want := range map[bool]float64{true: 3, false: 5} {
		_, r := bound(t, lint.Amplification(parse(t, fmt.Sprintf(form, proxy)), lint.Options{}), "db", topology.S503)
		if r.Proved != want || r.Worst != want {
			t.Errorf("proxy %v: %+v, want %v", proxy, r, want)
		}
	}
}

func TestASidecarThatOnlyConnectsAgainCountsForNothing(t *testing.T) {
	const inward = `calls: [{from: a, to: b, layers: [{kind: client, repeats: [{on: [refused, "503"], tries: 2}]},
  {kind: sidecar-in, repeats: [{on: [%s], tries: 3}]}]}]`
	for on, want := range map[string]float64{"refused": 2, `refused, "503"`: 6} {
		f := parse(t, fmt.Sprintf(inward, on))
		if _, r := bound(t, lint.Amplification(f, lint.Options{}), "b", topology.Refused); r.Proved != want {
			t.Errorf("on %s: %v attempts, want %v", on, r.Proved, want)
		}
		if got := len(of("F103", lint.Run(f, lint.Options{}))); got > 0 != (want == 6) {
			t.Errorf("on %s: %d findings of several layers", on, got)
		}
	}
}

// What was read may be too much by itself; what was not read is another rule's.
func TestANumberThatCouldNotBeReadIsNotTakenForTheWorst(t *testing.T) {
	const form = `services: [{name: b}]
calls:
- {from: a, to: b, layers: [{kind: client, repeats: [{on: ["503"], tries: %s}]}]}
- {from: b, to: c, layers: [{kind: client, repeats: [{on: ["503"], tries: 4}]},
  {kind: gateway, repeats: [{on: ["502"], tries: unknown (a template)}]}]}
`
	for tries, want := range map[string]string{"2": "", "unknown (a template)": "", "4": "up to 16 attempts"} {
		got := of("F102", lint.Run(parse(t, fmt.Sprintf(form, tries)), lint.Options{}))
		if len(got) > 0 != (want != "") || len(got) > 0 && !strings.Contains(got[0].Message, want) {
			t.Errorf("tries %s: %+v, want %q", tries, got, want)
		}
	}
}

func TestHowBadAFindingIsDependsOnWhatItRestsOn(t *testing.T) {
	twelve := func(outcome, more string) string {
		return call(nobody, on("12", outcome)+more)
	}
	for name, c := range map[string]struct {
		rule, form string
		want       lint.Severity
	}{
		"attempts that arrive":       {"F101", twelve("503", ""), lint.Error},
		"connections nobody accepts": {"F101", twelve("refused", ""), lint.Warning},
		"every layer has a budget":   {"F101", twelve("503", ", budget: {ratio: 0.2, perSecond: 10}"), lint.Warning},
		"nobody wrote a limit":       {"F204", call(nobody, on("2", "503")), lint.Warning},
		"somebody wrote none":        {"F204", call(nobody, "overall: 0s, "+on("2", "503")), lint.Note},
		"all endpoints, as written":  {"F504", call(nobody, "ejection: {consecutive: 5, maxShare: 1}"), lint.Warning},
		"all endpoints, as by default": {"F504", call(nobody,
			`ejection: {consecutive: "1 (default of nginx 1.30)", maxShare: "1 (default of nginx 1.30)"}`), lint.Note},
		"two in one file":  {"F603", remark(""), lint.Error},
		"two in two files": {"F603", remark(", assumed: both are applied"), lint.Warning},
	} {
		got := of(c.rule, lint.Run(parse(t, c.form), lint.Options{}))
		if len(got) != 1 || got[0].Severity != c.want {
			t.Errorf("%s: %+v, want %v", name, got, c.want)
		}
	}
}

func remark(more string) string {
	return "calls: [{from: a, to: b}]\nremarks: [{rule: F603, at: \"f.yaml:3:4\", subject: x, text: y" + more + "}]\n"
}
