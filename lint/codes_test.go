package lint_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

// meshed is calls whose layers repeat codes of gRPC more often than what HTTP answers, in one list, as meshes do.
const meshed = `services:
- {name: front, answersWith: same}
- {name: cart, SPEAKS}
- {name: stock, SPEAKS}
calls:
- from: front
  to: cart
  layers:
  - {kind: client, product: istio, repeats: [{on: ["503"], tries: 4}, {on: [CANCELLED], tries: 6}]}
- from: cart
  to: stock
  layers:
  - {kind: sidecar-out, product: istio, repeats: [{on: ["503"], tries: 3}, {on: [CANCELLED, UNAVAILABLE], tries: 5}]}
`

func TestCodesOfGRPCDecideNoNumberOfAServiceThatSpeaksHTTP(t *testing.T) {
	const http = "12 attempts at stock while that fails with 503"
	const codes = "30 attempts at stock while that answers gRPC's CANCELLED"
	for speaks, want := range map[string]string{"replicas: 1": codes, "speaks: grpc": codes, "speaks: http": http,
		"speaks: other": http} {
		form := strings.ReplaceAll(meshed, "SPEAKS", "answersWith: same, "+speaks)
		found := of("F101", lint.Run(parse(t, form), lint.Options{}))
		if len(found) != 1 || !strings.Contains(found[0].Message, want) {
			t.Errorf("%s: %+v, want %q", speaks, found, want)
		}
	}
}

// A service that may answer anything when a call of its own has failed still answers in what it speaks.
func TestAServiceOfHTTPAnswersNoCodeOfGRPCWhenACallFails(t *testing.T) {
	for speaks, want := range map[string]float64{"replicas: 1, speaks: http": 12, "replicas: 1, speaks: grpc": 30} {
		a := lint.Amplification(parse(t, strings.ReplaceAll(meshed, "SPEAKS", speaks)), lint.Options{})
		most := 0.0
		for _, b := range a.Bounds {
			for _, r := range b.Roots {
				if most = max(most, r.Worst); speaks == "replicas: 1, speaks: http" && slices.ContainsFunc(b.Outcomes, grpc) &&
					b.Service != "front" {
					t.Errorf("%s fails with %v", b.Service, b.Outcomes)
				}
			}
		}
		if most != want {
			t.Errorf("%s: at most %v attempts, want %v", speaks, most, want)
		}
	}
}

func TestAPathSaysThatItTakesServicesForNoneOfGRPC(t *testing.T) {
	const rests = "services of which no file says that they speak gRPC do not"
	for speaks, says := range map[string]bool{
		`answersWith: same, speaks: "http (assumed: no file says more)"`: true,
		`answersWith: same, speaks: http`:                                false,
	} {
		found := of("F101", lint.Run(parse(t, strings.ReplaceAll(meshed, "SPEAKS", speaks)), lint.Options{}))
		if len(found) != 1 || slices.Contains(found[0].Assumptions, rests) != says {
			t.Errorf("%s: %+v", speaks, found)
		}
	}
}

func grpc(o topology.Outcome) bool { return o.GRPC() }
