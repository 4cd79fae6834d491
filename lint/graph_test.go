package lint_test

import (
	"testing"

	"github.com/abate-go/abate/lint"
)

// A layer that only bounds what is in flight is no way past the limit of another of its kind.
func TestWhatOnlyGuardsACallIsNoOtherWayOfIt(t *testing.T) {
	for limit, want := range map[string]int{"overall: 2s": 0, "product: consul": 1} {
		form := parse(t, `calls:
- from: a
  to: b
  layers:
  - {kind: sidecar-out, limits: {connections: 3}, ejection: {consecutive: 5}}
  - {kind: sidecar-out, match: {path: /a}, `+limit+`}
  - {kind: sidecar-out, limits: {requests: 3}}
  - {kind: sidecar-out, match: {path: /b}, `+limit+`}
`)
		if got := of("F204", lint.Run(form, lint.Options{})); len(got) != want {
			t.Errorf("%s: %+v, want %d findings", limit, got, want)
		}
	}
}

// It neither repeats nor hides the tries of the others, which stay alternatives.
func TestRoutesBesideWhatOnlyGuardsStayAlternatives(t *testing.T) {
	form := parse(t, `calls:
- from: a
  to: b
  layers:
  - {kind: sidecar-out, match: {path: /a}, repeats: [{on: ["503"], tries: 3}]}
  - {kind: sidecar-out, limits: {requests: 3}}
  - {kind: sidecar-out, match: {path: /b}, repeats: [{on: ["503"], tries: 4}]}
`)
	if n := lint.Ceiling(&form.Calls[0]); n != 4 {
		t.Errorf("%v tries, want 4", n)
	}
}
