package rehearse

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/cmd/internal/clitest"
	"github.com/abate-go/abate/cmd/internal/viaproxy"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/drill/httpdrill"
	"github.com/abate-go/abate/sim/engine"
)

// stormScenario is the built-in drill on a sixth of the load, in a sixth of the time.
const stormScenario = `
duration: 4s
warmUp: 200ms
clients: {shop: {rate: 40, arrivals: jittered, instances: 10, calls: [pay]}}
services:
  pay: {workers: 3, serviceTime: 50ms, queue: {limit: 150}, callsFirst: true, calls: [db]}
  db: {}
faults: [{at: 1s, for: 1s, outage: db, mode: blackhole}]
model: {drain: 300ms}
variants:
  unguarded:
    policy:
      defaults: {attemptTimeout: 300ms, maxRetries: 3, backoff: fixed, initialDelay: 200ms, jitter: none, retryBudget: {disabled: true}, circuitBreaker: {disabled: true}}
      services: {db: &db {attemptTimeout: 200ms, maxRetries: 0, retryBudget: {disabled: true}, circuitBreaker: {disabled: true}}}
    expect: [collapse > 90%]
  guarded:
    policy:
      defaults: {attemptTimeout: 300ms, maxRetries: 3, retryBudget: {ratio: 0.1, reserve: 0}, circuitBreaker: {failureThreshold: 3, waitDurationInOpenState: 200ms, waitDurationMultiplier: 1, rampUp: 200ms}}
      services: {db: *db}
    expect: [amplification(pay) < 1.5]
`

// drillAct runs one act of a scenario through proxies.
func drillAct(t *testing.T, file, act string) (found httpdrill.ActResult) {
	code, stdout, stderr := runDrill(t.Context(), file, "--via", "proxy", "--act", act, "--json", "--quiet")
	var result httpdrill.Result
	if err := json.Unmarshal([]byte(stdout), &result); err != nil || len(result.Acts) != 1 {
		t.Errorf("%s: %v, exit code %d, %q, %s", act, err, code, stdout, stderr)
		return found
	}
	if passed := code == 0; code > 1 || passed != result.Passed {
		t.Errorf("%s: exit code %d, passed %v", act, code, result.Passed)
	}
	if notes := strings.Join(result.Setup.Notes, "\n"); !strings.Contains(notes, "an abate proxy of its own") {
		t.Errorf("%s: the notes do not say what was run: %q", act, notes)
	}
	return result.Acts[0]
}

func TestDrillViaProxyShowsTheStormAndTheRecovery(t *testing.T) {
	if testing.Short() {
		return
	}
	file := clitest.Put(t, "storm.yaml", stormScenario)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	before := clitest.Goroutines()
	var unguarded, guarded httpdrill.ActResult
	var both sync.WaitGroup
	both.Go(func() { unguarded = drillAct(t, file, "unguarded") })
	both.Go(func() { guarded = drillAct(t, file, "guarded") })
	both.Wait()
	clitest.Eventually(t, "all goroutines of the proxies are gone", func() bool {
		return runtime.NumGoroutine() <= before
	})
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if t.Failed() {
		return
	}
	for _, a := range []*httpdrill.ActResult{&unguarded, &guarded} {
		ends := 0
		for _, n := range a.Endings {
			ends += n
		}
		if !a.Complete || a.Offered == 0 || ends != a.Offered || a.Service.Worked > a.Attempts+40 {
			t.Errorf("%s: %d requests offered, %d ended, %d attempts, %+v", a.Act, a.Offered, ends, a.Attempts, a.Service)
		}
	}
	if d := unguarded.Phases[engine.During]; d.AttemptsPerSecond <= d.OfferedPerSecond ||
		unguarded.BreakerRefused+unguarded.BudgetRefused+unguarded.Refused != 0 {
		t.Errorf("unguarded: %v attempts/s for %v requests/s in the outage, %d refused", d.AttemptsPerSecond,
			d.OfferedPerSecond, unguarded.Refused)
	}
	// What was sent in the warm-up earns retries too: of 8 requests not one. And what was due while the machine stood
	// still may be sent in another phase.
	most := 1.1*float64(guarded.Offered-guarded.Refused) + 1 + 40*guarded.LateSeconds
	if float64(guarded.Attempts) > most || guarded.Refused == 0 || guarded.Refused > guarded.BreakerRefused {
		t.Errorf("guarded: %v attempts per request with a budget of 10 %% and no reserve, %d refused early, %d by the "+
			"breakers", guarded.PerSent, guarded.Refused, guarded.BreakerRefused)
	}
	// A machine that cannot answer in time while all is well has nothing to say about what comes after.
	if unguarded.Phases[engine.Before].Goodput > 0.9 && !unguarded.Collapsed {
		t.Errorf("unguarded, it does not collapse: %+v", unguarded.Phases)
	}
	if guarded.Phases[engine.Before].Goodput > 0.9 && guarded.Phases[engine.After].GoodputPerSecond == 0 {
		t.Errorf("guarded, it does not recover: %+v", guarded.Phases)
	}
}

func TestDrillViaIsAFlagWithOneValue(t *testing.T) {
	code, stdout, stderr := runDrill(t.Context(), "--via", "junk", "--rate", "-1")
	if code != 2 || stdout != "" ||
		!strings.Contains(stderr, `abate drill: --via: "junk" is not known; allowed: proxy`+"\n") ||
		!strings.Contains(stderr, "--rate: -1 is out of range") {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
	if o, err := everything.parseDrill([]string{"--via=proxy"}); err != nil || len(o.problems) > 0 || o.config.Via == nil {
		t.Errorf("%v %q", err, o.problems)
	}
	if o, err := everything.parseDrill(nil); err != nil || o.config.Via != nil {
		t.Errorf("without the flag: %v, via %v", err, o.config.Via != nil)
	}
	if !strings.Contains(drillHelp, "\n  --via proxy ") {
		t.Error("the help does not explain --via")
	}
}

func TestProxyOfADrillServesAndLeavesNothingBehind(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	before := clitest.Goroutines()
	var told atomic.Int32
	observer := abate.ObserverFunc(func(e abate.Event) {
		if e.Kind == core.AttemptBegan {
			told.Add(1)
		}
	})
	at, end, err := viaproxy.Start([]byte("services: {s: {upstreams: [\""+server.URL+"\"]}}\n"), observer)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(at)}}
	if a, err := client.Get(server.URL + "/"); err != nil || a.StatusCode != http.StatusTeapot || told.Load() != 1 {
		t.Errorf("%v, %v, %d attempts told", a, err, told.Load())
	} else {
		a.Body.Close()
	}
	end() // while the client keeps its connection
	client.CloseIdleConnections()
	server.CloseClientConnections()
	other := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(at)}}
	if a, err := other.Get(server.URL + "/"); err == nil {
		a.Body.Close()
		t.Errorf("it still answers: %d", a.StatusCode)
	}
	if _, _, err := viaproxy.Start([]byte("services: nonsense\n"), observer); err == nil {
		t.Error("a policy that is none is taken")
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	t.Setenv("TMPDIR", filepath.Join(temporary, "missing"))
	if _, _, err := viaproxy.Start([]byte("services: {}\n"), observer); err == nil ||
		!strings.Contains(err.Error(), "missing") {
		t.Errorf("no folder for the policy: %v", err)
	}
	clitest.Eventually(t, "all goroutines of the proxies are gone", func() bool {
		return runtime.NumGoroutine() <= before
	})
}
