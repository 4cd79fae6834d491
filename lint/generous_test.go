package lint_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/lint"
)

func TestABudgetOfMoreRetriesThanCallsBoundsNothing(t *testing.T) {
	for ratio, percent := range map[string]string{"5": "500 %", "1.01": "101 %", "1": "", "0.2": ""} {
		form := call(nobody, "budget: {ratio: "+ratio+"}, "+on("3", "503"))
		got := of("F403", lint.Run(parse(t, form), lint.Options{}))
		if (len(got) == 1) != (percent != "") || len(got) > 0 && !strings.Contains(got[0].Message, "is "+percent+" of the") {
			t.Errorf("a ratio of %s: %+v, want %q", ratio, got, percent)
		}
	}
}

// A try that fails at once is over before any limit of it, so nobody needs to know the limit.
func TestAnUnknownLimitOfATryHidesNoRetriesOfWhatFailsAtOnce(t *testing.T) {
	proved := func(form string, o string) float64 {
		most := 0.0
		for _, b := range lint.Amplification(parse(t, form), lint.Options{}).Bounds {
			for _, r := range b.Roots {
				if b.Service == "b" && b.Outcomes[0].String() == o {
					most = max(most, r.Proved)
				}
			}
		}
		return most
	}
	for layer, want := range map[string]float64{
		"perTry: unknown (in code), " + on("7", "refused"):                                         7,
		"perTry: unknown (in code), backoff: {first: 1s}, overall: 3500ms, " + on("7", "refused"):  4,
		"perTry: unknown (in code), backoff: {first: unknown (a template)}, " + on("7", "refused"): 1,
		"overall: unknown (in code), backoff: {first: 1s}, " + on("7", "refused"):                  1,
	} {
		if got := proved(call(nobody, layer), "refused"); got != want {
			t.Errorf("%s: proved %v, want %v", layer, got, want)
		}
	}
	if got := proved(call(nobody, "perTry: unknown (in code), "+on("7", "hang")), "hang"); got != 1 {
		t.Errorf("a hang: proved %v, want 1", got)
	}
}
