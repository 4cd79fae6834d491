//go:build !race

package audit_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/exporter"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/topology"
)

// A policy that went through a format once comes through it unchanged: whatever is imported, in whichever format it is
// written, importing that again, writing it again and importing it again says the same.
func TestWhatIsImportedIsAFixpointOfEachFormat(t *testing.T) {
	formats := exporter.Formats
	if testing.Short() {
		formats = formats[:1]
	}
	for name, files := range annotatedCases(t) {
		policy, _, err := audit.Import(files, "", source.Assume{Implementation: "istio"})
		if err != nil {
			continue // of these files nothing is a call that is repeated
		}
		for _, f := range formats {
			once, ok := through(t, f, policy)
			if !ok {
				continue
			}
			if twice, _ := through(t, f, once); !bytes.Equal(once, twice) {
				t.Errorf("%s, %s:\n%s\nbecomes\n%s", name, f.Name, once, twice)
			}
		}
	}
}

// through writes a policy in a format and imports it again. Not ok: nothing of it is in what was written.
func through(t *testing.T, f exporter.Format, policy []byte) ([]byte, bool) {
	t.Helper()
	file, err := policyfile.Parse("policy.yaml", policy)
	if err != nil {
		t.Fatalf("%v\n%s", err, policy)
	}
	urls := map[string][]string{}
	for _, s := range file.Services {
		urls[s.Name] = []string{"http://" + s.Name}
	}
	text, _, err := audit.Export(f, importer.File{Name: "policy.yaml", Data: policy}, urls)
	if err != nil {
		t.Fatalf("%s: %v\n%s", f.Name, err, policy)
	}
	name := map[string]string{"grpc": "e.json", "nginx": "e.conf", "haproxy": "e.cfg",
		"spring": "application.yaml"}[f.Name]
	if name == "" {
		name = "e.yaml"
	}
	again, _, err := audit.Import([]importer.File{{Name: name, Data: text}}, "", source.Assume{Implementation: "istio"})
	return again, err == nil
}

// Other programs take limits and numbers that a policy file refuses; what import writes must be taken all the same.
func TestWhatImportWritesIsAPolicyFile(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for range policies(t, 2000) {
		text := exporter.Policy([]exporter.Route{{Service: "a", URLs: []string{"http://a", "http://b"},
			Layer: randomLayer(r)}})
		if _, err := policyfile.Parse("policy.yaml", text); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
}

func randomLayer(r *rand.Rand) topology.Layer {
	at := topology.Position{File: "f", Line: 1, Column: 1}
	d := func() (v topology.Value[time.Duration]) {
		if r.IntN(4) > 0 {
			all := []time.Duration{0, 1, time.Microsecond, time.Millisecond, time.Second, time.Minute, 100 * time.Hour}
			v = topology.Write(all[r.IntN(len(all))], at)
		}
		return v
	}
	n := func() (v topology.Value[int]) {
		if r.IntN(4) > 0 {
			all := []int{0, 1, 2, 5, 100, 5_000_000, topology.Unbounded}
			v = topology.Write(all[r.IntN(len(all))], at)
		}
		return v
	}
	f := func() (v topology.Value[float64]) {
		if r.IntN(4) > 0 {
			all := []float64{0, 1e-9, 0.1, 1, 2, 1000, 1e12}
			v = topology.Write(all[r.IntN(len(all))], at)
		}
		return v
	}
	jitter := []string{"none", "full", "equal", "±50%", "±0.01%", "±100%"}
	return topology.Layer{PerTry: d(), Overall: d(), StartsOnly: r.IntN(2) == 0,
		Repeats: []topology.Repeat{{On: topology.AllOutcomes()[:1+r.IntN(15)], Methods: topology.Methods(r.IntN(4)),
			Tries: n()}},
		Backoff: topology.Backoff{First: d(), Max: d(), Multiplier: f(), Jitter: topology.Write(jitter[r.IntN(6)], at)},
		Budget:  topology.Budget{Ratio: f(), PerSecond: f(), Share: f()},
		Breaker: topology.Breaker{FailureRatio: f(), Consecutive: n(), MinimumCalls: n(), WindowCalls: n(), Window: d(),
			OpenFor: d()},
		Ejection: topology.Ejection{Consecutive: n(), Base: d()}, Limits: topology.Limits{Requests: n()},
		Hedge: topology.Hedge{Copies: n(), Delay: d()}}
}
