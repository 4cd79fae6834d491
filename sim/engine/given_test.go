package engine_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/abate-go/abate/sim/engine"
)

// flood is 4,000 requests/s, each tried three times, at a service for 2,000 that has any number wait.
func flood(model, policy, queue, faults string) string {
	return fmt.Sprintf(`
duration: 8s
warmUp: 0s
model: {drain: 1s%s}
clients: {f: {rate: 4000, instances: 4, calls: [a]}}
services: {a: {workers: 200, serviceTime: exponential 100ms, errorRate: 5%%, queue: {%s}}}
faults: [%s]
variants: {only: {policy: {defaults: {%s}}}}
`, model, queue, faults, policy)
}

// played runs a scenario with seed 1, and returns how many requests the engine had room for at once.
func played(t *testing.T, text string, rememberAll bool) (*engine.Record, int) {
	t.Helper()
	s := read(t, text)
	e, err := engine.New(s, &s.Variants[0])
	if err != nil {
		t.Fatal(err)
	}
	e.ForgetAtOnce(1 << 12)
	if rememberAll {
		e.RememberEverybody()
	}
	r, err := e.Run(1, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r, e.Remembered()
}

func TestRequestsInLineThatNobodyWaitsForGoOnCostingWhatTheyCost(t *testing.T) {
	if testing.Short() {
		return // a cost shows over many requests
	}
	naive := thrice("200ms") + ", attemptTimeout: 300ms"
	const hang = "{at: 1s, for: 3s, outage: a, mode: hang}"
	for name, text := range map[string]string{
		"first come, first served": flood("", naive, "", ""),
		"last come, first served":  flood("", naive, "order: lifo", ""),
		"CoDel":                    flood("", naive, "order: codel", ""),
		"dropped when expired":     flood("", naive, "dropExpired: true", hang),
		"of callers without one": strings.Replace(flood("", naive, "dropExpired: true", hang), "[a]",
			"[{to: a, naive: true}]", 1),
		"a slowdown":                flood("", naive, "", "{at: 2s, for: 2s, slowdown: a, factor: 3, requests: 50%}"),
		"a service that hangs":      flood("", naive, "", hang),
		"callers that are guarded":  flood("", "attemptTimeout: 300ms, circuitBreaker: {disabled: true}", "", ""),
		"times drawn on arrival":    flood(", serviceTimeDrawn: arrival", naive, "", ""),
		"a line of limited length":  flood("", naive, "limit: 6000", ""),
		"cancellation that is told": flood(", cancellation: propagates", naive, "", ""),
	} {
		forgetful, few := played(t, text, false)
		rememberer, many := played(t, text, true)
		if got, want := hash(t, forgetful), hash(t, rememberer); got != want {
			t.Errorf("%s: forgetting who waits for nobody gives %s, remembering them %s", name, got, want)
		}
		if name == "first come, first served" && few*2 > many {
			t.Errorf("%s: room for %d requests, %d if all were remembered: nothing is saved", name, few, many)
		}
	}
}

func TestARestartEmptiesTheLineOfThoseToo(t *testing.T) {
	r, _ := played(t, flood("", thrice("200ms")+", attemptTimeout: 300ms", "",
		"{at: 5s, for: 500ms, restart: a}"), false)
	a := service(t, r, "a")
	before, after := a.Waiting[int(4900e6/float64(r.Bin))], a.Waiting[int(5400e6/float64(r.Bin))]
	if before < 1<<12 || after != 0 {
		t.Errorf("%d wait before the restart, %d in it; want thousands, and none", before, after)
	}
}

func TestMemoryDoesNotGrowFromRunToRun(t *testing.T) {
	if testing.Short() {
		return // memory that grows shows over many runs
	}
	s := read(t, flood("", thrice("200ms")+", attemptTimeout: 300ms, hedge: {delay: 100ms}", "", ""))
	e, err := engine.New(s, &s.Variants[0])
	if err != nil {
		t.Fatal(err)
	}
	e.ForgetAtOnce(1 << 12)
	var after [4]uint64
	for i := range after {
		for seed := range uint64(3) {
			if _, err := e.Run(seed, false, nil); err != nil {
				t.Fatal(err)
			}
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		after[i] = m.HeapAlloc
	}
	const slack = 256 << 10 // what a runtime and a test keep for themselves
	if after[3] > after[0]+slack {
		t.Errorf("an engine keeps %d KiB after each three of the same runs", []uint64{after[0] >> 10, after[1] >> 10,
			after[2] >> 10, after[3] >> 10})
	}
	runtime.KeepAlive(e)
}
