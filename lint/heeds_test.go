package lint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abate-go/abate/lint"
)

// ruled returns the findings of one rule in a form.
func ruled(t *testing.T, rule, form string) (out []lint.Finding) {
	t.Helper()
	for _, f := range lint.Run(parse(t, form), lint.Options{}) {
		if f.Rule == rule {
			out = append(out, f)
		}
	}
	return out
}

// As in the file of a gateway with a dozen services, none of which says how often it is tried.
func TestOneDefaultOfAGatewayIsOneFinding(t *testing.T) {
	form, other := "calls:\n", ""
	for i, to := range []string{"orders", "stock", "mail"} {
		route := fmt.Sprintf("- from: edge\n  to: %s\n  layers:\n  - {kind: gateway, product: x, name: r%d, "+
			"repeats: [{on: [refused, \"503\"], tries: 3 (default of x 1)}]}\n", to, i)
		form, other = form+route, other+strings.ReplaceAll(route, "default of x 1", fmt.Sprint("default of x ", i))
	}
	for _, rule := range []string{"F107", "F204"} {
		all := ruled(t, rule, form)
		if len(all) != 1 || len(all[0].Copies) != 2 || !strings.Contains(all[0].Message, "in 2 further places") {
			t.Errorf("%s: %+v", rule, all)
		}
	}
	if all := ruled(t, "F107", "calls:\n"+other); len(all) != 3 {
		t.Errorf("three defaults: %+v", all)
	}
	if all := ruled(t, "F204", strings.Replace(form, "from: edge", "from: door", 1)); len(all) != 2 {
		t.Errorf("two gateways: %+v", all)
	}
	all := ruled(t, "F204", strings.ReplaceAll(form, "kind: gateway", "kind: client"))
	if len(all) != 1 || len(all[0].Copies) != 2 {
		t.Errorf("three clients: %+v", all)
	}
}

func TestRetriesThatHeedTheBreakerSleepForNothingNever(t *testing.T) {
	const form = "calls:\n- from: a\n  to: b\n  layers:\n  - {kind: client, product: PRODUCT, breaker: {openFor: 60s, " +
		"insideRetry: true}, backoff: {first: 500ms}, repeats: [{on: [refused], tries: 3, word: WORD}]}\n"
	for _, c := range []struct {
		product, word string
		want          int
	}{
		{"resilience4j", "every exception", 1},
		{"resilience4j", "java.io.IOException", 0},
		{"resilience4j", "org.springframework.web.reactive.function.client.WebClientRequestException", 0},
		{"resilience4j", "io.github.resilience4j.circuitbreaker.CallNotPermittedException", 1},
		{"resilience4j", "java.lang.RuntimeException", 1},
		{"resilience4j", "java.lang.Throwable", 1},
		{"dapr", "every failure", 0},
		{"other", "java.io.IOException", 1},
	} {
		all := ruled(t, "F502", strings.NewReplacer("PRODUCT", c.product, "WORD", c.word).Replace(form))
		if len(all) != c.want {
			t.Errorf("%s %s: %+v, want %d", c.product, c.word, all, c.want)
		}
	}
}

// In Dapr the refusal of an open breaker is an error that is not tried again.
func TestABreakerThatEndsTheTriesIsSaidBesideTheirNumber(t *testing.T) {
	const form = "calls:\n- from: a\n  to: b\n  unsafe: true\n  layers:\n  - {kind: sidecar-out, product: PRODUCT, " +
		"perTry: 5s, breaker: {consecutive: ROW, openFor: 30s, insideRetry: true}, backoff: {first: 5s}, " +
		"repeats: [{on: [hang, \"503\"], tries: 31}]}\n"
	for _, c := range []struct {
		product, row string
		said         bool
		severity     lint.Severity
	}{{"dapr", "5", true, lint.Warning}, {"dapr", "31", false, lint.Error}, {"other", "5", false, lint.Error}} {
		for _, rule := range []string{"F101", "F206", "F301"} {
			all := ruled(t, rule, strings.NewReplacer("PRODUCT", c.product, "ROW", c.row).Replace(form))
			if len(all) != 1 ||
				strings.Contains(all[0].Message, "unless its breaker sees 5 failures in a row") != c.said ||
				rule == "F101" && all[0].Severity != c.severity {
				t.Errorf("%s %s %s: %+v", c.product, c.row, rule, all)
			}
		}
	}
}
