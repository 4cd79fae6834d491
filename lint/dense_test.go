package lint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

// dense is services each of which calls all that come after it, through layers.
func dense(t *testing.T, services int, layers string) topology.Form {
	t.Helper()
	var b strings.Builder
	b.WriteString("calls:\n")
	for i := range services {
		fmt.Fprintf(&b, "- {to: s%d, layers: [%s]}\n", i, layers)
		for j := i + 1; j < services; j++ {
			fmt.Fprintf(&b, "- {from: s%d, to: s%d, layers: [%s]}\n", i, j, layers)
		}
	}
	return parse(t, b.String())
}

// The ways through 30 services that call each other are more than a billion. Once, what the files say of values that
// nobody knows was followed anew for each service and root, without an end that anybody would wait for.
func TestADenseGraphEndsWithinACountedNumberOfSteps(t *testing.T) {
	known := `{kind: client, perTry: 1s, overall: 7s, backoff: {first: 100ms}, ` +
		`repeats: [{on: ["503", hang], tries: 3}]}, ` +
		`{kind: sidecar-out, perTry: 300ms, repeats: [{on: ["503", hang], tries: 4}, {on: ["500"], tries: 2}]}`
	unknown := `{kind: client, perTry: unknown, repeats: [{on: ["503", hang], tries: unknown}]}, ` +
		`{kind: sidecar-out, repeats: [{on: ["503", hang], tries: 12}, {on: [refused], tries: 2, methods: safe}]}`
	for name, layers := range map[string]string{"known": known, "unknown": unknown} {
		t.Run(name, func(t *testing.T) {
			f := dense(t, 30, layers)
			const work = 1_000_000
			steps, again := 0, 0
			found := of("F109", lint.Run(f, lint.Options{Work: work, Steps: &steps}))
			// Beside the limit: what the last way of failing takes, once in each assumption, a coarse look at each call, and
			// what is written, which is asked for the bounds that were followed.
			if most := work + work/2; steps < work || steps > most {
				t.Errorf("%d steps, want %d to %d", steps, work, most)
			}
			if len(found) != 1 || !strings.Contains(found[0].Message, "30 services and 465 calls") ||
				!strings.Contains(found[0].Message, "never below what can happen") {
				t.Errorf("what was not finished: %+v", found)
			}
			if len(found) == 1 && found[0].At.IsZero() { // where it could be accepted, and a pipeline shows it
				t.Error("it stands nowhere")
			}
			if lint.Run(f, lint.Options{Work: work, Steps: &again}); again != steps {
				t.Errorf("%d steps at first, then %d", steps, again)
			}
		})
	}
}

func TestWhatIsNotFinishedIsSaidOnlyWhereSomethingIsNot(t *testing.T) {
	f := dense(t, 6, `{kind: client, repeats: [{on: ["503"], tries: 3}]}`)
	if found := of("F109", lint.Run(f, lint.Options{})); len(found) > 0 {
		t.Errorf("six services: %+v", found)
	}
	// The bound is not below what all steps show.
	most := map[string]float64{}
	for _, b := range lint.Amplification(f, lint.Options{}).Bounds {
		for _, r := range b.Roots {
			most[b.Service] = max(most[b.Service], r.Worst)
		}
	}
	coarse := 0
	for _, b := range lint.Amplification(f, lint.Options{Work: 1}).Bounds {
		for _, r := range b.Roots {
			if b.Coarse {
				coarse++
			}
			if b.Coarse && r.Worst < most[b.Service] {
				t.Errorf("%s: coarsely %v, exactly %v", b.Service, r.Worst, most[b.Service])
			}
		}
	}
	if coarse == 0 {
		t.Error("no bound was coarse")
	}
}
