package lint_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/lint"
)

// Findings of one cause are one, which says what it says of the place where that stands.
func TestAFindingOfOneCauseStandsWhereItsWordsAreTrue(t *testing.T) {
	const form = "calls:\n" +
		"- from: edge\n  to: orders\n  layers:\n" +
		"  - {kind: gateway, product: x, name: one, at: \"f.yaml:1:1\", overall: 0s (default of x 1)}\n" +
		"- from: edge\n  to: stock\n  layers:\n" +
		"  - {kind: gateway, product: x, name: two, at: \"f.yaml:2:1\", overall: 0s (default of x 1), match: {path: /a}}\n" +
		"  - {kind: gateway, product: x, name: two, at: \"f.yaml:2:1\", overall: 0s (default of x 1), match: {path: /b}}\n"
	for _, f := range lint.Run(parse(t, form), lint.Options{}) {
		if f.Rule != "F204" {
			continue
		}
		if len(f.Copies) != 1 || len(f.Related) != 1 || f.Related[0].At == f.At || f.Copies[0] == f.At ||
			strings.Contains(f.Message, "stock") != (f.At.Line == 2) {
			t.Errorf("%v: %s (%v, %v)", f.At, f.Message, f.Copies, f.Related)
		}
		return
	}
	t.Error("no F204")
}

// One gateway bounds nothing by default: that is one thing to know of it, however many routes it has.
func TestWhatAGatewayDoesNotBoundIsSaidOnce(t *testing.T) {
	const form = "calls:\n" +
		"- from: edge\n  to: orders\n  layers:\n" +
		"  - {kind: gateway, product: x, name: one, at: \"f.yaml:1:1\", limits: {requests: unbounded (default of x 1)}}\n" +
		"- from: edge\n  to: stock\n  layers:\n" +
		"  - {kind: gateway, product: x, name: two, at: \"f.yaml:2:1\", limits: {requests: unbounded (default of x 1)}}\n" +
		"- from: edge\n  to: cart\n  layers:\n" +
		"  - {kind: gateway, product: x, name: three, at: \"f.yaml:3:1\", limits: {requests: unbounded}}\n"
	var said []string
	for _, f := range lint.Run(parse(t, form), lint.Options{}) {
		if f.Rule == "F505" {
			said = append(said, f.Message)
		}
	}
	if len(said) != 1 || !strings.Contains(said[0], "in 2 further places") {
		t.Errorf("%q, want one", said)
	}
}

// A site that has its limit in a file for HTTP and in one for HTTPS has it in two places, and that is one finding.
func TestALimitThatCopiesHaveAlikeIsOneFinding(t *testing.T) {
	const form = "calls:\n- from: edge\n  to: orders\n  layers:\n" +
		"  - {kind: gateway, product: x, name: site, perTry: 10m (http.conf:7:1), repeats: [{on: [refused], tries: 1}]}\n" +
		"  - {kind: gateway, product: x, name: site, perTry: 10m (https.conf:9:1), repeats: [{on: [refused], tries: 1}]}\n"
	found := 0
	for _, f := range lint.Run(parse(t, form), lint.Options{}) {
		if f.Rule == "F206" {
			if found++; len(f.Copies) != 1 {
				t.Errorf("%+v", f)
			}
		}
	}
	if found != 1 {
		t.Errorf("%d findings", found)
	}
}

// What is to be done about all values that templates fill in is one thing; about a value that is wrong it is not.
func TestWhatOnlyATemplateKnowsIsOneFinding(t *testing.T) {
	const form = "remarks:\n" +
		"- {rule: F702, at: \"a.yaml:1:1\", text: \"the host is a template: x\", fix: pass the file as it is rendered}\n" +
		"- {rule: F702, at: \"b.yaml:1:1\", text: \"the host is a template: y\", fix: pass the file as it is rendered}\n" +
		"- {rule: F702, at: \"c.yaml:1:1\", text: 5sec is no duration, fix: correct it}\n" +
		"- {rule: F702, at: \"d.yaml:1:1\", text: 6sec is no duration, fix: correct it}\n"
	all := lint.Run(parse(t, form), lint.Options{})
	if len(all) != 3 || !strings.Contains(all[0].Message, "in 1 further place") || len(all[0].Copies) != 1 {
		t.Errorf("%+v", all)
	}
}

// A key that does nothing wherever it stands is one thing to know, whatever it stands beside.
func TestRemarksInTheSameWordsAreOneFinding(t *testing.T) {
	const form = "remarks:\n- {rule: F601, at: \"a.yaml:1:1\", subject: a, text: x has no key k, fix: remove it}\n" +
		"- {rule: F601, at: \"a.yaml:2:1\", subject: b, text: x has no key k, fix: remove it}\n" +
		"- {rule: F601, at: \"a.yaml:3:1\", subject: c, text: x has no key k, fix: remove it, assumed: x 1}\n" +
		"- {rule: F601, at: \"a.yaml:4:1\", subject: d, text: x has no key k, fix: write j}\n"
	all := lint.Run(parse(t, form), lint.Options{})
	if len(all) != 3 || len(all[0].Copies) != 1 || len(all[0].Fingerprints()) != 2 {
		t.Errorf("%+v", all)
	}
}

// The load balancer of a cloud has limits of which nothing is known here, though the sidecar behind it has none.
func TestOfAGatewayOfWhichNothingIsKnownItIsNotSaidThatNothingEndsItsCalls(t *testing.T) {
	const form = "services: [{name: edge, proxy: PROXY}]\ncalls: [{from: edge, to: a, layers: [{kind: sidecar-in, " +
		"product: x, repeats: [{on: [reset-sent], tries: 3 (default of x 1)}]}]}]\n"
	for proxy, want := range map[string]int{"true": 0, "false": 1} {
		all := lint.Run(parse(t, strings.Replace(form, "PROXY", proxy, 1)), lint.Options{})
		if got := of("F204", all); len(got) != want {
			t.Errorf("proxy %s: %+v", proxy, got)
		}
	}
}

// What is said of several routes in the same words is one finding, but an error is one to mend at each place.
func TestTheSameWordsOfSeveralRoutesAreOneFinding(t *testing.T) {
	route := func(to, line, tries, more string) string {
		return "- from: edge\n  to: " + to + "\n" + more + "  layers: [{kind: gateway, product: x, name: r" + line +
			", at: \"f.yaml:" + line + ":1\", repeats: [{on: [\"500\"], tries: " + tries + "}]}]\n"
	}
	for more, want := range map[string]int{"": 2, "  unsafe: true\n": 3} {
		form := "calls:\n" + route("orders", "1", "3", more) + route("stock", "2", "3", more) + route("cart", "3", "4", more)
		if got := of("F301", lint.Run(parse(t, form), lint.Options{})); len(got) != want {
			t.Errorf("%q: %+v, want %d", more, got, want)
		}
	}
}

func TestProfilesThatWereNotCountedAreOneFinding(t *testing.T) {
	const form = "remarks:\n- {rule: F702, at: \"a.yaml:1:1\", text: x, fix: \"tell which profiles are active: a\"}\n" +
		"- {rule: F702, at: \"b.yaml:1:1\", text: y, fix: \"tell which profiles are active: b\"}\n"
	if all := lint.Run(parse(t, form), lint.Options{}); len(all) != 1 {
		t.Errorf("%+v", all)
	}
}

// What an exception of a program's own is thrown for, only code says.
func TestNobodyRepeatsBugsWithAnExceptionOfHisOwn(t *testing.T) {
	const form = "calls: [{from: a, to: b, layers: [{kind: client, product: resilience4j, repeats: [{on: [reset-sent, " +
		"\"500\", \"409\", INTERNAL], tries: 3, word: WORD}]}]}]\n"
	for word, want := range map[string]int{"every exception": 1, "java.lang.Exception": 1, "shop.ClosedException": 0} {
		all := lint.Run(parse(t, strings.Replace(form, "WORD", word, 1)), lint.Options{})
		if got := len(of("F302", all)); got != want || len(of("F304", all)) != want || len(of("F301", all)) != 1 {
			t.Errorf("%s: %+v", word, all)
		}
	}
}

// A mesh whose default is one limit for all has it at each hop.
func TestTheSameDefaultAtSeveralHopsIsOneFinding(t *testing.T) {
	hop := func(from, to, limit string) string {
		return "- {from: " + from + ", to: " + to + ", layers: [{kind: sidecar-out, product: x, name: " + to +
			", at: \"f.yaml:LINE:1\", overall: " + limit + "}]}\n"
	}
	form := func(limit string) string {
		text := "calls:\n"
		for i, c := range []string{"a b", "b c", "c d"} {
			from, to, _ := strings.Cut(c, " ")
			text += strings.Replace(hop(from, to, limit), "LINE", string(rune('1'+i)), 1)
		}
		return text
	}
	for limit, want := range map[string]int{"10s (default of x 1)": 1, "10s": 2} {
		if got := of("F207", lint.Run(parse(t, form(limit)), lint.Options{})); len(got) != want {
			t.Errorf("%s: %+v, want %d", limit, got, want)
		}
	}
}

// What has part in a finding at one place has none at the others.
func TestCopiesDoNotBringWhatHasPartInThem(t *testing.T) {
	layer := func(line string) string {
		return "- from: a\n  to: b" + line + "\n  layers: [{kind: gateway, product: x, name: r" + line +
			", perTry: 2s (f.yaml:" + line + ":2), overall: 5s (f.yaml:" + line +
			":3), repeats: [{on: [hang], tries: 4 (f.yaml:" + line + ":1)}]}]\n"
	}
	got := of("F202", lint.Run(parse(t, "calls:\n"+layer("1")+layer("2")+layer("3")), lint.Options{}))
	if len(got) != 1 || len(got[0].Copies) != 2 || len(got[0].Related) != 4 {
		t.Errorf("%+v, want two limits and two places more", got)
	}
}
