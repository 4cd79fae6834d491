package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/sim/engine"
)

// ejecting is a policy of one attempt that ejects an endpoint for good after so many failures in a row.
func ejecting(failures int) string {
	return plain + fmt.Sprintf(", outlierDetection: {consecutiveFailures: %d, baseEjectionTime: 1h, maxEjectionTime: 1h}",
		failures)
}

// oneBad is ten replicas of which one is ill from the second second on.
func oneBad(load, service, fault string) []string {
	return []string{
		"clients: {f: {" + load + ", calls: [s]}}",
		"services: {s: {replicas: 10, balancing: least-request, " + service + "}}",
		"faults: [{at: 1s, for: 8s, share: 10%, " + fault + "}]",
	}
}

func TestEachCallerEjectsAReplicaThatFails(t *testing.T) {
	lines := oneBad("rate: 600, instances: 4", "serviceTime: 1ms", "outage: s, mode: fail")
	for _, failures := range []int{1, 3, 7} {
		// What fails at once fails before the next attempt begins, so that no caller sends one too many.
		r := run(t, world(ejecting(failures), lines...))
		equal(t, fmt.Sprintf("failed requests, %d in a row", failures), total(r.Fleets[0].Failed), int64(4*failures))
	}
	r := run(t, world(plain+", outlierDetection: {disabled: true}", lines...))
	within(t, "failed requests, nothing is ejected", float64(total(r.Fleets[0].Failed)), 450, 900)
}

func TestAnotherAttemptGoesToAnotherReplica(t *testing.T) {
	const two = "services: {s: {replicas: 2, balancing: %s, serviceTime: 1ms}}"
	lines := func(balancing string) []string {
		return []string{"clients: {f: {rate: 100, calls: [s]}}", fmt.Sprintf(two, balancing),
			"faults: [{at: 1s, for: 8s, share: 50%, outage: s, mode: fail}]"}
	}
	policy := strings.Replace(thrice("20ms"), "maxRetries: 2", "maxRetries: 1", 1) + ", outlierDetection: {disabled: true}"
	equal(t, "failed requests", total(run(t, world(policy, lines("least-request")...)).Fleets[0].Failed), 0)
	random := run(t, world(policy, lines("random")...))
	within(t, "failed requests, random replicas", float64(total(random.Fleets[0].Failed)), 150, 300)
}

// Copies of a hedged attempt are sent to different replicas: one that hangs holds nobody up.
func TestACopyGoesToAnotherReplica(t *testing.T) {
	lines := oneBad("rate: 100", "serviceTime: 1ms", "outage: s, mode: blackhole")
	policy := plain + ", attemptTimeout: 1s, hedge: {delay: 50ms, maxHedges: 1}, outlierDetection: {disabled: true}"
	r := run(t, world(policy, lines...))
	equal(t, "failed requests", total(r.Fleets[0].Failed), 0)
	if _, slowest := latencies(r); slowest > 60*ms {
		t.Errorf("the slowest answer took %v, want that of a copy after 50 ms", slowest)
	}
}

// Attempts that are pending make a replica busy, for each caller those of its own.
func TestASlowReplicaGetsLess(t *testing.T) {
	lines := oneBad("rate: 500", "serviceTime: 10ms", "slowdown: s, factor: 20")
	slow := func(balancing string) float64 {
		text := strings.Replace(world(plain, lines...), "least-request", balancing, 1)
		r := run(t, text)
		return r.Fleets[0].Latency[engine.During].Quantile(0.97)
	}
	within(t, "97 % of the answers, random", slow("random"), 0.15, 0.25)
	within(t, "97 % of the answers, least-request", slow("least-request"), 0, 0.02)
}

func TestAProgramThatRestartsHasForgottenWhoFailed(t *testing.T) {
	lines := oneBad("rate: 100", "serviceTime: 1ms", "outage: s, mode: fail")
	lines[2] = strings.Replace(lines[2], "}]", "}, {at: 5s, operator: f, action: restart}]", 1)
	equal(t, "failed requests", total(run(t, world(ejecting(3), lines...)).Fleets[0].Failed), 6)
}

// The weights of a policy are those of the replicas, again from the first one on.
func TestHeavyReplicasGetMore(t *testing.T) {
	text := world(plain+", outlierDetection: {disabled: true}", "clients: {f: {rate: 1000, calls: [s]}}",
		"services: {s: {replicas: 4, balancing: least-request}}",
		"faults: [{at: 1s, for: 8s, share: 25%, outage: s, mode: fail}]")
	text = strings.Replace(text, "defaults:", "services: {s: {weights: [1, 3]}}, defaults:", 1)
	within(t, "failed requests", float64(total(run(t, text).Fleets[0].Failed)), 1000-5*30, 1000+5*30)
}

func TestAReplicaThatComesBackStartsSlowly(t *testing.T) {
	lines := []string{"clients: {f: {rate: 1000, calls: [s]}}", "services: {s: {replicas: 2, balancing: least-request}}",
		"faults: [{at: 1s, for: 8s, share: 50%, outage: s, mode: fail}]"}
	failed := func(keys string) float64 {
		const policy = plain + ", outlierDetection: {consecutiveFailures: 100, baseEjectionTime: 1s, maxEjectionTime: 1s"
		r := run(t, world(policy+keys+"}", lines...))
		return float64(between(r, r.Fleets[0].Failed, 2200*ms, 2400*ms))
	}
	// A hundred failures in a row take 0.2 s; a second later it is back.
	within(t, "failed requests, at once", failed(""), 80, 120)
	within(t, "failed requests, slowly", failed(", slowStart: 1h"), 10, 35)
}

// A pool has so many connections in all: to get one to another replica it gives one up.
func TestAPoolMovesItsConnectionsToTheReplicasThatAreChosen(t *testing.T) {
	lines := oneBad("rate: 200", "serviceTime: 5ms, workers: 4, connections: {cost: 1ms}", "outage: s, mode: fail")
	lines[0] = "clients: {f: {rate: 200, calls: [{to: s, pool: 3}]}}"
	r := run(t, world(ejecting(2), lines...))
	equal(t, "failed requests", total(r.Fleets[0].Failed), 2)
	s := service1(t, r)
	for bin, n := range s.Conns {
		if n > 3 {
			t.Fatalf("bin %d: %d connections, want the 3 of the pool", bin, n)
		}
	}
	if n := total(s.Connects); n < 500 {
		t.Errorf("%d connections were opened for 2,000 requests at ten replicas: the pool has not moved them", n)
	}
	lines[0] = "clients: {f: {rate: 200, calls: [{to: s, pool: 100}]}}"
	within(t, "connections opened by a pool with room for all", float64(total(service1(t, run(t,
		world(ejecting(2), lines...))).Connects)), 10, 100)
}

func TestBalancersForgetWhenARunEnds(t *testing.T) {
	lines := oneBad("rate: 300, instances: 3", "workers: 2, serviceTime: exponential 20ms, queue: {limit: 4}",
		"outage: s, mode: blackhole")
	policy := "attemptTimeout: 200ms, maxRetries: 2, hedge: {delay: 60ms}"
	for _, drawn := range []string{"start", "request"} {
		s := read(t, world(policy, append(lines, "model: {drain: 0s, serviceTimeDrawn: "+drawn+"}")...))
		e, err := engine.New(s, &s.Variants[0])
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(3) {
			r, err := e.Run(seed, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			if n := e.Unsettled(); n != 0 {
				t.Errorf("%s, seed %d: balancers count %d attempts that have ended", drawn, seed, n)
			}
			if got, want := hash(t, r), hash(t, playVariant(t, s, 0, seed)); got != want {
				t.Errorf("%s, seed %d on an engine that was used before: %s, on a new one %s", drawn, seed, got, want)
			}
		}
	}
}

// Who takes part in balancing moves the random numbers of nobody else.
func TestBalancersDrawFromTheirOwnStreams(t *testing.T) {
	const text = "clients: {f: {rate: 100, calls: [s]}, g: {rate: 50, calls: [x]}}\n" +
		"services: {s: {replicas: 3, workers: 2, serviceTime: exponential 50ms}, " +
		"x: {replicas: 3, balancing: %s, workers: 2, serviceTime: exponential 50ms}}"
	a, b := run(t, world(plain, fmt.Sprintf(text, "random"))), run(t, world(plain, fmt.Sprintf(text, "least-request")))
	if hash(t, &engine.Record{Fleets: a.Fleets[:1], Services: a.Services[:1]}) !=
		hash(t, &engine.Record{Fleets: b.Fleets[:1], Services: b.Services[:1]}) {
		t.Error("how x is balanced moves the numbers of s")
	}
}

// Callers that choose a replica by themselves are told which there are.
func TestCallersLearnOfReplicasThatComeAndGo(t *testing.T) {
	r := run(t, world("outlierDetection: {disabled: true}, "+plain, `
duration: 20s
clients: {shop: {rate: 200, instances: 5, calls: [api]}}
services:
  api:
    replicas: 4
    balancing: least-request
    workers: 10
    serviceTime: 1ms
    probes: {readiness: {period: 500ms, timeout: 200ms, failureThreshold: 2}}
faults: [{at: 3s, for: 5s, outage: api, mode: fail, share: 25%}]
`))
	w := service(t, r, "api").World()
	equal(t, "ready during", w.Ready[50], 3)
	equal(t, "failures once it is out", between(r, r.Fleets[0].Failed, 4500*ms, 20*time.Second), 0)
	if between(r, r.Fleets[0].Failed, 3*time.Second, 4*time.Second) == 0 {
		t.Error("nothing failed before the probe had seen it")
	}
}

func TestCallersWithNobodyToChooseAreRefused(t *testing.T) {
	r := run(t, world(plain, `
clients: {shop: {arrivals: even, rate: 50, calls: [api]}}
services:
  api: {replicas: 2, balancing: least-request, workers: 1, serviceTime: 10ms, crash: {above: 5}, start: {takes: 1s}}
faults: [{at: 2s, for: 3s, outage: api}]
`))
	// Both hang, fill up, and die; those that come up hang again.
	if n := r.Fleets[0].Ends[engine.RefusedConnection]; n < 50 {
		t.Errorf("%d were refused: %s", n, ends(r.Fleets[0].Ends))
	}
	equal(t, "failures afterwards", between(r, r.Fleets[0].Failed, 7*time.Second, 10*time.Second), 0)
}

func TestCallersUseReplicasThatAnAutoscalerAdds(t *testing.T) {
	r := run(t, world(plain, `
duration: 60s
clients: {shop: {rate: 100, instances: 3, calls: [api]}}
services:
  api:
    replicas: 2
    balancing: least-request
    workers: 4
    serviceTime: exponential 100ms
    queue: {limit: 20}
    autoscale: {target: 50%, max: 20, every: 5s}
`))
	within(t, "replicas", value(t, r, "replicas(api) > 0"), 4, 8)
	equal(t, "failures once they are there", between(r, r.Fleets[0].Failed, 30*time.Second, 60*time.Second), 0)
}
