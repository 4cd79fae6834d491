package lint_test

import (
	"fmt"
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

// What is no service of HTTP or gRPC has no POST, no conflict and no status, so only writes that must not be repeated
// are worth a word.
func TestNothingIsSaidOfStatusesOfWhatHasNone(t *testing.T) {
	for call, want := range map[string]string{
		"speaks: http":                  "F301 F302 F303 F304 F307",
		"speaks: other":                 "F307",
		"speaks: other}], unsafe: true": "F301 F307",
	} {
		call, more, _ := strings.Cut(call, "}]")
		form := parse(t, "services: [{name: store, "+call+"}]\ncalls:\n- from: a\n  to: store\n"+
			strings.Replace(more, ", ", "  ", 1)+"\n  layers:\n  - {kind: sidecar-out, product: dapr, overridable: true, "+
			"perTry: 1s, repeats: [{on: [\"500\", \"429\", \"409\", RESOURCE_EXHAUSTED], tries: 3}]}\n")
		var got []string
		for _, f := range lint.Run(form, lint.Options{Only: []string{"F301", "F302", "F303", "F304", "F305", "F307"}}) {
			if got = append(got, f.Rule); f.Rule == "F301" && strings.Contains(f.Message, "POST") == (more != "") {
				t.Error(f.Message)
			}
		}
		if slices.Sort(got); strings.Join(got, " ") != want {
			t.Errorf("%s%s: %v, want %s", call, more, got, want)
		}
	}
}

// A code that nobody can answer is neither worth a warning nor a reason to fear that a request was carried out.
func TestCodesOfGRPCAreNoMistakeInFrontOfAServiceOfHTTP(t *testing.T) {
	for speaks, want := range map[string]int{"http": 0, "grpc": 2} {
		form := parse(t, "services: [{name: b, speaks: "+speaks+"}]\ncalls:\n- from: a\n  to: b\n  layers:\n"+
			"  - {kind: sidecar-out, repeats: [{on: [INTERNAL], tries: 3}]}\n")
		if got := lint.Run(form, lint.Options{Only: []string{"F301", "F305"}}); len(got) != want {
			t.Errorf("%s: %+v, want %d findings", speaks, got, want)
		}
	}
}

// A service that speaks HTTP answers no code of gRPC, so two layers that repeat one are not one inside the other there.
func TestLayersThatRepeatWhatAServiceNeverAnswersAreNotStacked(t *testing.T) {
	const call = "services: [{name: b, speaks: %s}]\ncalls:\n- {from: a, to: b, layers: [{kind: client, repeats: [{on: " +
		"[\"429\", UNAVAILABLE], tries: 4}]}, {kind: sidecar-out, repeats: [{on: [refused, UNAVAILABLE], tries: 5}]}]}\n"
	for speaks, want := range map[string]int{"http": 0, "grpc": 1} {
		if got := of("F103", lint.Run(parse(t, fmt.Sprintf(call, speaks)), lint.Options{})); len(got) != want {
			t.Errorf("%s: %+v", speaks, got)
		}
	}
}
