package sidecar

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/abate-go/abate/cmd/internal/clitest"
	"github.com/abate-go/abate/cmd/internal/tracedraw"
)

func TestFlagsAboutTracesThatAreWrongAreToldAllAtOnce(t *testing.T) {
	code, _, stderr := runProxy(t, clitest.Ended(t), "-c", "policy.yaml", "--otlp-endpoint", "collector:4317",
		"--trace-ratio", "1%", "--plain-metric-names", "no")
	for _, want := range []string{
		`--otlp-endpoint: "collector:4317" is no URL of a collector: write one with http:// or https://`,
		`--trace-ratio: "1%" is no share: write a number from 0 to 1, for example 0.01`,
		`--plain-metric-names "no" is not known: write on or off`,
	} {
		if code != 2 || !strings.Contains(stderr, "abate proxy: "+want) {
			t.Errorf("%d, and no %q in\n%s", code, want, stderr)
		}
	}
	code, _, stderr = runProxy(t, clitest.Ended(t), "-c", "policy.yaml", "--trace-ratio", "0.1")
	if code != 2 || !strings.Contains(stderr, "nothing where to: add --otlp-endpoint URL or --trace-file FILE") {
		t.Errorf("%d %s", code, stderr)
	}
}

// What somebody has set for all programs of a machine must not keep the proxy from starting.
func TestAVariableThatIsWrongIsLoggedAndFlagsGoBeforeTheOthers(t *testing.T) {
	t.Setenv("OTEL_TRACES_SAMPLER", "sometimes")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	policy := clitest.Put(t, "policy.yaml", "services: {s: {upstreams: ['http://127.0.0.1:1']}}\n")
	for flag, want := range map[string]string{"": "to=http://127.0.0.1:1/v1/traces sampler=parentbased_always_on",
		"--otlp-endpoint=http://127.0.0.1:2": "to=http://127.0.0.1:2/v1/traces", "--otlp-endpoint=off": ""} {
		args := []string{"-c", policy, "--listen", "127.0.0.1:0", "--admin", "off"}
		if flag != "" {
			args = append(args, flag)
		}
		code, _, stderr := runProxy(t, clitest.Ended(t), args...)
		if code != 0 ||
			!strings.Contains(stderr, `OTEL_TRACES_SAMPLER: \"sometimes\" is no sampler: write one of always_on`) ||
			!strings.Contains(stderr, want) || strings.Contains(stderr, "traces are recorded") != (want != "") {
			t.Errorf("%s: %d\n%s", flag, code, stderr)
		}
	}
}

func TestATraceFileThatCannotBeWrittenIsToldAtTheStart(t *testing.T) {
	policy := clitest.Put(t, "policy.yaml", "services: {s: {upstreams: ['http://127.0.0.1:1']}}\n")
	code, _, stderr := runProxy(t, clitest.Ended(t), "-c", policy, "--listen", "off", "--admin", "off", "--trace-file",
		"/none/spans.jsonl")
	if code != 1 || !strings.Contains(stderr, "abate proxy: the trace file cannot be written: open /none/spans.jsonl: ") {
		t.Errorf("%d %s", code, stderr)
	}
}

// TestATraceOfARetriedCallIsWrittenAndDrawn is what docs/telemetry.md begins with, with the program as users have it.
func TestATraceOfARetriedCallIsWrittenAndDrawn(t *testing.T) {
	var asked atomic.Int32
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	policy, file := filepath.Join(t.TempDir(), "policy.yaml"), filepath.Join(t.TempDir(), "spans.jsonl")
	rename(t, policy, "services: {s: {upstreams: ['http://"+s.addr+"'], routes: [{path: /}], initialDelay: 1ms}}\n")
	p := launch(t, policy, "--trace-file", file)
	if a := p.get("/a"); a.status != 200 {
		t.Fatal(a)
	}
	p.send(os.Interrupt)
	if code := p.exitCode(); code != 0 {
		t.Fatal(code)
	}
	var out, said strings.Builder
	code := tracedraw.Command(t.Context(), []string{file}, &out, &said)
	for _, want := range []string{"\nGET / ", "\n  attempt 1 to " + s.addr, "\n  wait ", "\n  attempt 2 to " + s.addr,
		", 503\n", ", 200, 2 attempts\n"} {
		if code != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%d %s, and no %q in\n%s", code, said.String(), want, out.String())
		}
	}
}
