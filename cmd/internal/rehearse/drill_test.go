package rehearse

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/drill/httpdrill"
)

// runDrill runs "abate drill" and returns its exit code and what it wrote.
func runDrill(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = everything.DrillCommand(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

// farScenario is more than the drill supports.
const farScenario = `
duration: 9s
clients: {shop: {rate: 40, calls: [pay]}}
services: {pay: {workers: 3, replicas: 99, serviceTime: 50ms}}
faults: [{at: 2s, for: 2s, outage: pay}]
`

// nearScenario is a drill of seconds.
const nearScenario = `
duration: 4500ms
warmUp: 200ms
clients: {shop: {rate: 40, arrivals: even, instances: 4, calls: [pay]}}
services: {pay: {workers: 4, serviceTime: 50ms, queue: {limit: 20}}}
faults: [{at: 1s, for: 500ms, outage: pay, mode: fail}]
variants:
  plain: {policy: {defaults: {attemptTimeout: 1s, maxRetries: 0, retryBudget: {disabled: true}, circuitBreaker: {disabled: true}}}}
  stubborn: {policy: {defaults: {attemptTimeout: 1s, maxRetries: 3, retryBudget: {disabled: true}, circuitBreaker: {disabled: true}}}}
`

func TestDrillTellsAllBadFlagsAtOnce(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("services: {payment-service: {maxRetrys: 3}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	far := filepath.Join(t.TempDir(), "far.yaml")
	if err := os.WriteFile(far, []byte(farScenario), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		args []string
		want []string
	}{
		{"many", []string{"--capacity", "0", "--rate", "-1", "--outage=24h", "--seed=x", "--before", "soon", "--act", "third",
			"--policy", "none.yaml", "no-such-file.yaml", "more"}, []string{
			"--capacity: 0 is out of range", "--rate: -1 is out of range", "--outage: 24h0m0s is out of range", `--seed: "x"`,
			`--before: "soon" is not a length of time`, `--act: "third" is not known; allowed: unguarded, guarded, both`,
			`"more" is one file too many`, "open no-such-file.yaml", "--policy: open none.yaml"}},
		{"an unknown flag and what follows it", []string{
			"--capacty", "3", "--rate", "-1", "-x=7", "--clients", "0", "---queue",
		}, []string{
			"abate drill: --capacty is not a flag\n", "--rate: -1 is out of range", "abate drill: -x is not a flag\n",
			"--clients: 0 is out of range", "---queue is not a flag"}},
		{"no such file and what follows it", []string{"now", "--queue", "0"}, []string{
			"open now: ", "--queue: 0 is out of range",
		}},
		{"a bad scenario", []string{bad, "--queue", "0"}, []string{
			bad + ":1:1: duration: is missing", bad + ":1:1: clients: ", bad + ":1:30: ", "--queue: 0 is out of range",
		}},
		{"a scenario that it does not run", []string{far, "--queue", "0"}, []string{
			"--queue: 0 is out of range", far + ": services.pay.replicas: 99 is out of range",
			far + ": services.pay.queue: the drill supports a queue with a limit",
		}},
		{"no value", []string{"--clients", "0", "--seed"}, []string{"--clients: 0 is out of range", "--seed needs a value"}},
		{"a switch with a value", []string{"--json=maybe", "--clients=0"}, []string{
			`--json: "maybe" is neither true nor false`, "--clients: 0",
		}},
		{"more load than capacity", []string{"--rate", "1000"}, []string{"nine tenths of what payment-service can do"}},
		{"more within than after", []string{"--after", "3s", "--within", "4s"}, []string{
			"--within: 4s is out of range; allowed: 1s to 3s",
		}},
		{"no such policy file", []string{"--policy", "no-such-file.yaml"}, []string{"--policy: open no-such-file.yaml"}},
		{"a bad policy file", []string{"--policy", bad, "--clients", "0"}, []string{
			"--policy: " + bad + ":1:", "--clients: 0",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := runDrill(t.Context(), tt.args...)
			if code != 2 || stdout != "" {
				t.Errorf("exit code %d, stdout %q; want 2 and nothing", code, stdout)
			}
			for _, want := range tt.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("stderr lacks %q:\n%s", want, stderr)
				}
			}
			if lines := strings.Count(stderr, "\n"); lines != len(tt.want)+1 {
				t.Errorf("%d lines, want one for each of %d problems and a last one:\n%s", lines, len(tt.want), stderr)
			}
		})
	}
}

func TestDrillHelpKnowsEveryFlag(t *testing.T) {
	code, stdout, _ := runDrill(t.Context(), "-h")
	if code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	for _, name := range []string{"act", "policy", "print-policy", "rate", "clients", "capacity", "service-time", "queue",
		"before", "outage", "after", "within", "seed", "compare", "json", "quiet", "help"} {
		if !strings.Contains(stdout, "--"+name+" ") {
			t.Errorf("the help does not explain --%s", name)
		}
	}
	for line := range strings.Lines(stdout) {
		if len(line) > 101 { // with its end
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

func TestDrillFlagsReachTheConfig(t *testing.T) {
	o, err := everything.parseDrill(
		[]string{"--act", "guarded", "--rate", "30", "--clients", "3", "--capacity", "5", "--service-time", "20ms",
			"--queue", "400", "--before", "2s", "--outage", "3s", "--after", "4s", "--within", "3s", "--seed", "7", "--json",
			"--quiet", "--compare"})
	if err != nil || len(o.problems) > 0 {
		t.Fatalf("%v %q", err, o.problems)
	}
	c := o.config
	if c.Seed != 7 || len(c.Acts) != 1 || c.Acts[0] != "guarded" || !o.json || !o.quiet || !o.compare {
		t.Errorf("options %+v", o)
	}
	fleet, service, fault := c.Scenario.Clients[0], c.Scenario.Services[0], c.Scenario.Faults[0]
	if fleet.Rate != 30 || fleet.Instances != 3 || service.Workers != 5 ||
		service.ServiceTime.Mean() != 20*time.Millisecond || service.Queue.Limit != 400 {
		t.Errorf("fleet %+v, service %+v", fleet, service)
	}
	if fault.At != 2*time.Second || fault.For != 3*time.Second || c.Scenario.Duration != 9*time.Second ||
		c.Guarded().Expect[1].Value != 3 {
		t.Errorf("fault %+v, duration %v, expected %v", fault, c.Scenario.Duration, c.Guarded().Expect)
	}
}

func TestDrillPrintsItsPolicyAndTakesItBack(t *testing.T) {
	code, printed, _ := runDrill(t.Context(), "--print-policy")
	if code != 0 || !strings.Contains(printed, "payment-service:") {
		t.Fatalf("exit code %d, policy:\n%s", code, printed)
	}
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(printed), 0o600); err != nil {
		t.Fatal(err)
	}
	if o, err := everything.parseDrill([]string{"--policy", file}); err != nil || len(o.problems) > 0 ||
		o.config.Policy != file {
		t.Errorf("%v %q, policy %q", err, o.problems, o.config.Policy)
	}
}

func TestDrillPlaysAFileAndComparesIt(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	file := filepath.Join(t.TempDir(), "near.yaml")
	if err := os.WriteFile(file, []byte(nearScenario), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := runDrill(t.Context(), file, "--act", "plain", "--compare", "--json", "--quiet")
	var result httpdrill.Result
	if err := json.Unmarshal([]byte(stdout), &result); err != nil {
		t.Fatalf("%v in %q, %s", err, stdout, stderr)
	}
	if len(result.Acts) != 1 || result.Acts[0].Act != "plain" || result.Comparison == nil ||
		len(result.Comparison.Acts) != 1 {
		t.Fatalf("result %+v", result)
	}
	// A request that is sent once is sent once, however busy the machine is; whether all come back in time it decides.
	// What was due while the machine stood still may begin in the last moment of the act, and be sent after it.
	if a, some := result.Acts[0], 4+int(40*result.Acts[0].LateSeconds); a.Attempts < a.Offered-some ||
		a.Attempts > a.Offered+some {
		t.Errorf("%d attempts for %d requests", a.Attempts, a.Offered)
	}
	if want := result.Passed && result.Comparison.Agrees; (code == 0) != want || code > 1 {
		t.Errorf("exit code %d, passed %v, agrees %v", code, result.Passed, result.Comparison.Agrees)
	}
}

func TestInterruptedDrillPrintsWhatIsKnown(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	code, stdout, _ := runDrill(ctx)
	if code != 130 || !strings.Contains(stdout, "Stopped before the end") {
		t.Errorf("exit code %d, output:\n%s", code, stdout)
	}
	code, stdout, stderr := runDrill(ctx, "--json")
	var result httpdrill.Result
	if err := json.Unmarshal([]byte(stdout), &result); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	if code != 130 || !result.Interrupted || result.Version != httpdrill.Version || len(result.Acts) != 1 {
		t.Errorf("exit code %d, result %+v", code, result)
	}
	if !strings.Contains(stderr, "on schedule") {
		t.Errorf("the introduction is not on stderr: %q", stderr)
	}
	if _, stdout, stderr = runDrill(ctx, "--quiet"); strings.Contains(stdout+stderr, "on schedule") {
		t.Errorf("--quiet wrote an introduction:\n%s%s", stdout, stderr)
	}
}

func TestDrillsOfThePageAboutTheProxyHaveWordsThatAreKnown(t *testing.T) {
	page, err := os.ReadFile("../../../docs/proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("`go run \\./cmd/abate drill ([^`]*)`").FindAllStringSubmatch(string(page), -1) {
		if strings.HasPrefix(m[1], "kafka") {
			continue // in package kafkatools
		}
		if o, err := everything.parseDrill(strings.Fields(m[1])); err != nil || len(o.problems) > 0 {
			t.Errorf("%s: %v %q", m[0], err, o.problems)
		}
	}
}
