package engine_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/sim/engine"
)

// lone is one replica of one worker, with parts to be filled in.
const lone = `
clients: {shop: {arrivals: even, rate: RATE, patience: 60s, calls: [api]}}
services: {api: {workers: 1, serviceTime: WORK, PARTS}}
`

func TestAReplicaDiesOfTooMuchAndStartsAgain(t *testing.T) {
	r := run(t, world(plain, edit(lone, "RATE", "20", "WORK", "100ms", "PARTS", "crash: {above: 10}, start: {takes: 1s}")))
	w := service(t, r, "api").World()
	// It gets 10/s more than it can do: eleven too many after a little more than a second, and then it is down for one.
	within(t, "restarts", float64(total(w.Restarts)), 4, 5)
	within(t, "time ready", value(t, r, "replicas(api) > 0"), 0.5, 0.6)
	if r.Fleets[0].Ends[engine.Reset] < 40 || r.Fleets[0].Ends[engine.RefusedConnection] < 70 {
		t.Errorf("requests ended as %s", ends(r.Fleets[0].Ends))
	}
}

func TestRestartsInARowWaitLonger(t *testing.T) {
	r := run(t, world(plain, edit(lone, "RATE", "100", "WORK", "1s", "PARTS",
		"crash: {above: 10}, start: {takes: 100ms, backoff: 1s}")))
	// About 0.1 s until it is full again: up at 0, then after 0, 1, 2 and 4 s of waiting.
	equal(t, "restarts", total(service(t, r, "api").World().Restarts), 5)
}

func TestALivenessProbeRestartsWhatIsBusy(t *testing.T) {
	r := run(t, world(plain, edit(lone, "RATE", "4", "WORK", "1s", "PARTS",
		"probes: {liveness: {period: 1s, timeout: 500ms, failureThreshold: 3}}")))
	n := total(service(t, r, "api").World().Restarts)
	if n < 2 || n > 4 {
		t.Errorf("%d restarts in 10 s, want one after each third probe that waits behind more than 500 ms of work", n)
	}
	idle := run(t, world(plain, edit(lone, "RATE", "4", "WORK", "100ms", "PARTS",
		"probes: {liveness: {period: 1s, timeout: 500ms, failureThreshold: 3}}")))
	equal(t, "restarts of what is idle", total(service(t, idle, "api").World().Restarts), 0)
}

func TestProbesSeeOutages(t *testing.T) {
	for mode, lasts := range map[string]string{"hang": "3s", "blackhole": "3s", "refuse": "2s", "fail": "2s"} {
		r := run(t, world(plain, edit(lone, "RATE", "1", "WORK", "1ms", "PARTS",
			"start: {takes: 500ms}, probes: {liveness: {period: 1s, failureThreshold: 2}}"),
			"faults: [{at: 4s, for: "+lasts+", outage: api, mode: "+mode+"}]"))
		equal(t, mode+": restarts", total(service(t, r, "api").World().Restarts), 1)
	}
}

func TestAReadinessProbeTakesOutAndIn(t *testing.T) {
	r := run(t, world(plain, `
clients: {shop: {rate: 200, calls: [api]}}
services:
  api:
    replicas: 4
    workers: 10
    serviceTime: 1ms
    probes: {readiness: {period: 500ms, timeout: 200ms, failureThreshold: 2}}
faults: [{at: 3s, for: 3s, outage: api, mode: fail, share: 25%}]
`))
	w := service(t, r, "api").World()
	equal(t, "ready before", w.Ready[25], 4)
	equal(t, "ready during", w.Ready[50], 3)
	equal(t, "ready after", w.Ready[80], 4)
	equal(t, "failures once it is out", between(r, r.Fleets[0].Failed, 4500*ms, 6*time.Second), 0)
	if between(r, r.Fleets[0].Failed, 3*time.Second, 4*time.Second) == 0 {
		t.Error("nothing failed before the probe had seen it")
	}
}

func TestNobodyIsReady(t *testing.T) {
	r := run(t, world(plain, `
clients: {shop: {arrivals: even, rate: 10, calls: [api]}}
services: {api: {replicas: 3, workers: 10, serviceTime: 1ms, probes: {readiness: {period: 1s, failureThreshold: 1}}}}
faults: [{at: 3s, for: 3s, outage: api, mode: blackhole}]
`))
	if r.Fleets[0].Ends[engine.RefusedConnection] < 5 {
		t.Errorf("requests ended as %s, want them refused once no replica is ready", ends(r.Fleets[0].Ends))
	}
}

func TestAnAutoscalerAddsAndRemoves(t *testing.T) {
	r := run(t, world(plain, `
duration: 120s
clients: {shop: {curve: [{at: 0s, rate: 12}, {at: 20s, rate: 80}, {at: 70s, rate: 12}], arrivals: even, calls: [api]}}
services:
  api:
    replicas: 4
    workers: 1
    serviceTime: 100ms
    start: {takes: 2s}
    autoscale: {target: 50%, max: 30, every: 5s, delay: 3s, coolDown: 20s}
`))
	w := service(t, r, "api").World()
	equal(t, "before", w.Ready[150], 4)
	within(t, "at 80/s, which is 8 busy workers at 50 %", float64(w.Ready[650]), 14, 24)
	within(t, "until the cool-down is over", float64(w.Ready[740]), 14, 24)
	equal(t, "at the end", w.Ready[1190], 4)
	// A look at 25 s, 3 s of delay, 2 s to start.
	equal(t, "while the first ones start", w.Ready[297], 4)
	if w.Ready[305] <= 4 {
		t.Error("nobody has come at 30.5 s")
	}
}

func TestAnAutoscalerHasASizeAndAStep(t *testing.T) {
	r := run(t, world(plain, `
duration: 60s
clients: {shop: {rate: 200, calls: [api]}}
services:
  api:
    replicas: 2
    workers: 1
    serviceTime: 100ms
    queue: {limit: 10}
    autoscale: {target: 50%, max: 7, every: 5s, step: 2}
`))
	w := service(t, r, "api").World()
	equal(t, "after the first look", w.Ready[60], 4)
	equal(t, "after the second", w.Ready[110], 6)
	equal(t, "at the end", w.Ready[590], 7)
}

func TestAReplicaThatHasJustStartedIsSlow(t *testing.T) {
	r := run(t, world(plain, edit(lone, "RATE", "2", "WORK", "100ms", "PARTS", "start: {slower: 4, warmUp: 4s}"),
		"faults: [{at: 2s, for: 1s, restart: api}]"))
	s := service(t, r, "api")
	took := func(from, to time.Duration) float64 {
		return float64(between(r, s.WorkNS, from, to)) / 1e6 / float64(between(r, s.Served, from, to))
	}
	within(t, "before, ms", took(0, 1900*ms), 100, 100)
	within(t, "in the first second, ms", took(3*time.Second, 4*time.Second), 300, 400)
	within(t, "when half of it is over, ms", took(4500*ms, 5500*ms), 200, 300)
	within(t, "afterwards, ms", took(7500*ms, 10*time.Second), 100, 100)
}

func TestLivesAreTheSameForTheSameSeed(t *testing.T) {
	s := read(t, world(plain, `
clients: {shop: {rate: 300, instances: 3, patience: 2s, calls: [api]}}
services:
  api:
    replicas: 3
    balancing: least-queue
    workers: 10
    serviceTime: exponential 90ms
    calls: [{to: cache, else: [db]}]
    start: {takes: 1s, slower: 3, warmUp: 2s, backoff: 1s}
    crash: {above: 60}
    probes: {liveness: {period: 1s, timeout: 300ms}, readiness: {period: 500ms, timeout: 300ms}}
    autoscale: {target: 60%, max: 8, every: 2s}
  cache: {replicas: 2, cache: {keys: 300, skew: 0.8, capacity: 50, ttl: uniform 1s..3s, coalesce: true}}
  db: {workers: 8, serviceTime: 20ms}
faults: [{at: 4s, for: 1s, restart: api, share: 50%}, {at: 6s, flush: cache}]
`))
	e, err := engine.New(s, &s.Variants[0])
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(5) {
		r, err := e.Run(seed, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		fresh := playVariant(t, s, 0, seed)
		for i := range r.Services {
			if got, want := hashOf(t, r.Services[i].World()), hashOf(t, fresh.Services[i].World()); got != want {
				t.Errorf("seed %d, %s: %s on an engine that was used before, %s on a new one", seed, r.Services[i].Name, got, want)
			}
		}
		if got, want := hash(t, r), hash(t, fresh); got != want {
			t.Errorf("seed %d: %s on an engine that was used before, %s on a new one", seed, got, want)
		}
	}
}
