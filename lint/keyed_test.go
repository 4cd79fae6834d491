package lint_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/lint"
)

func TestARouteForRequestsWithAKeyMayRepeatThem(t *testing.T) {
	for other, want := range map[string]int{"headers x-idempotency-key": 0, "port 80, header Idempotency-Key": 0,
		"no header idempotency-key": 1, "withoutHeaders idempotency-key": 1, "query parameter idempotency-key": 1,
		"headers x-user": 1} {
		form := call(nobody, `match: {other: "`+other+`"}, `+on("2", "503"))
		if got := of("F301", lint.Run(parse(t, form), lint.Options{})); len(got) != want {
			t.Errorf("%q: %d findings of F301, want %d", other, len(got), want)
		}
	}
}

// F205 says of such a layer that what hangs is not tried again.
func TestWhatNoLimitOfATryEndsIsNotSaidToBeSentAgain(t *testing.T) {
	for layer, want := range map[string]string{
		on("2", "hang", "502"):                             "after 502",
		"perTry: 1s, " + on("2", "hang", "502"):            "after hang, 502",
		"perTry: unknown (in code), " + on("2", "hang"):    "after hang",
		"perTry: none, " + on("2", "hang"):                 "",
		"perTry: none, " + on("2", "hang", "reset-unsent"): "",
	} {
		got := of("F301", lint.Run(parse(t, call(nobody, layer)), lint.Options{}))
		if (len(got) == 1) != (want != "") || len(got) == 1 && !strings.Contains(got[0].Message, want) {
			t.Errorf("%s: %+v, want %q", layer, got, want)
		}
	}
}

// A ServiceProfile of Linkerd has no count, only its budget: F108 says so once.
func TestOneLayerWithoutACountIsSaidOnceWhereABudgetPays(t *testing.T) {
	const form = "calls:\n- from: a\n  to: b\n  layers:\n  - {kind: sidecar-out, budget: {ratio: 0.2}, overall: " +
		"10s, repeats: [{on: ['503'], tries: unbounded}]}\n"
	for _, c := range []struct {
		form        string
		f101, f108  int
		description string
	}{
		{form, 0, 1, "one layer with a budget"},
		{strings.Replace(form, "budget: {ratio: 0.2}, ", "", 1), 1, 1, "no budget"},
		{strings.Replace(form, "  layers:", "  perRequest: 2\n  layers:", 1), 1, 1, "two calls"},
	} {
		all := lint.Run(parse(t, c.form), lint.Options{})
		if len(of("F101", all)) != c.f101 || len(of("F108", all)) != c.f108 {
			t.Errorf("%s: %d of F101 and %d of F108, want %d and %d", c.description, len(of("F101", all)),
				len(of("F108", all)), c.f101, c.f108)
		}
	}
}
