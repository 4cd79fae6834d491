package engine_test

import (
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/sim/engine"
)

// everything is a small scenario with most of what there is: two layers, pools, hedges, breakers, bulkheads, gates,
// faults.
const everything = `
duration: 8s
warmUp: 1s
clients:
  shop: {rate: 80, instances: 3, calls: [{to: api, latency: exponential 1ms}]}
  people: {users: 5, think: exponential 300ms, patience: 2s, calls: [api, {to: db, share: 20%, optional: true}]}
services:
  api: {replicas: 2, balancing: least-queue, workers: 6, serviceTime: lognormal median 10ms p99 80ms, calls: [{to: db, pool: 4, connect: connections}, {to: log, share: 50%, times: 2, optional: true}], parallel: true, queue: {limit: 40, order: lifo}}
  log: {serviceTime: uniform 1ms..9ms, slowsDown: 0.1, optimisticLock: true}
  db: {workers: 4, serviceTime: exponential 15ms, queue: {work: 500ms, order: codel}, errorRate: 1%, retryAfter: 200ms, connections: {max: 12, cost: 2ms}}
faults:
  - {at: 2s, for: 1s, outage: db}
  - {at: 4s, for: 500ms, restart: api, share: 50%}
  - {at: 4s, for: 2s, slowdown: db, factor: 2, requests: 50%}
variants:
  guarded: {policy: {defaults: {attemptTimeout: 200ms, hedge: {quantile: 0.95, delay: 50ms}, bulkhead: {maxConcurrentCalls: 30, maxQueue: 20}}}}
  naive: {policy: {defaults: {attemptTimeout: 300ms, maxRetries: 3, backoff: fixed, initialDelay: 100ms, jitter: none, retryBudget: {disabled: true}, circuitBreaker: {disabled: true}}}}
  protected:
    policy:
      defaults: {attemptTimeout: 300ms, rateLimit: {limit: 40/s, maxWait: 100ms}, throttle: {k: 1.5, minimumNumberOfCalls: 5}}
      redis: {embedded: true}
      services: {connections: {preset: connections, pacing: {perSecond: 2}}}
      protect:
        api: {rateLimit: {limit: 30/s, key: ip}, shed: {concurrency: gradient, maxCallerShare: 0.5, cpu: 0.8}}
        db: {rateLimit: {limit: 60/s, fleet: true}, shed: {concurrency: vegas}}
        log: {shed: {concurrency: aimd}, timeout: 50ms}
`

// hash is of all bytes of a record.
func hash(t *testing.T, r *engine.Record) string { return hashOf(t, r) }

// hashOf is of all bytes of a part of a record; of nothing if there is no such part.
func hashOf[T any](t *testing.T, part *T) string {
	t.Helper()
	if part == nil {
		return ""
	}
	h := sha256.New()
	if err := gob.NewEncoder(h).Encode(part); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

func TestTheSameSeedGivesTheSameBytes(t *testing.T) {
	s := read(t, everything)
	seen := map[string]string{}
	for v := range s.Variants {
		e, err := engine.New(s, &s.Variants[v])
		if err != nil {
			t.Fatal(err)
		}
		for _, seed := range []uint64{1, 2, 1 << 63} {
			fresh := hash(t, playVariant(t, s, v, seed))
			for range 2 {
				r, err := e.Run(seed, false, nil)
				if err != nil {
					t.Fatal(err)
				}
				if got := hash(t, r); got != fresh {
					t.Errorf("%s, seed %d: %s on an engine that was used before, %s on a new one", s.Variants[v].Name, seed,
						got, fresh)
				}
			}
			if other := seen[fresh]; other != "" {
				t.Errorf("%s, seed %d gives the same run as %s", s.Variants[v].Name, seed, other)
			}
			seen[fresh] = s.Variants[v].Name
		}
	}
}

// golden is the hash of one run. It changes with everything that moves a single number of the simulation: then look at
// what the change does to the scenarios, and write the new hash here.
const golden = "31de5f2ff48b4c1b"

func TestARunIsWhatItWas(t *testing.T) {
	r := playVariant(t, read(t, everything), 0, 1)
	r.Events = 0 // how many steps the engine takes is its own affair
	if got := hash(t, r); got != golden {
		t.Errorf("the run with seed 1 has the hash %s, it was %s: results of the simulator have changed. If that is meant, "+
			"set golden in same_test.go to the new hash, and say in the change log what moved", got, golden)
	}
}

func TestDetailChangesNothing(t *testing.T) {
	s := read(t, everything)
	for v := range s.Variants {
		e, err := engine.New(s, &s.Variants[v])
		if err != nil {
			t.Fatal(err)
		}
		detailed, err := e.Run(1, true, nil)
		if err != nil {
			t.Fatal(err)
		}
		if detailed.Detail == nil {
			t.Fatal("no detail was kept")
		}
		detailed.Detail = nil
		if plain := playVariant(t, s, v, 1); hash(t, detailed) != hash(t, plain) {
			t.Errorf("%s: the run with detail is another one: %d events and %d attempts, without %d and %d",
				s.Variants[v].Name, detailed.Events, detailed.Attempts, plain.Events, plain.Attempts)
		}
	}
}

func TestAStoppedRunIsNil(t *testing.T) {
	s := read(t, strings.Replace(everything, "rate: 80", "rate: 8000", 1))
	e, err := engine.New(s, &s.Variants[1])
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	r, err := e.Run(1, false, func() bool { asked++; return asked == 2 })
	if r != nil || err != nil || asked != 2 {
		t.Errorf("got %v, %v after %d questions, want nothing after two", r, err, asked)
	}
	if r, err = e.Run(1, false, nil); err != nil || hash(t, r) != hash(t, playVariant(t, s, 1, 1)) {
		t.Errorf("the run after a stopped one is another one (error %v)", err)
	}
}

func TestVariantsMeetTheSameArrivals(t *testing.T) {
	for _, arrivals := range []string{"poisson", "even", "jittered"} {
		s := read(t, strings.Replace(everything, "shop: {rate: 80", "shop: {arrivals: "+arrivals+", rate: 80", 1))
		a, b := playVariant(t, s, 0, 1), playVariant(t, s, 1, 1)
		if !slices.Equal(a.Fleets[0].Offered, b.Fleets[0].Offered) {
			t.Errorf("two variants of a scenario are offered different requests, %s", arrivals)
		}
		if reflect.DeepEqual(a.Services, b.Services) {
			t.Error("two policies gave the same run: nothing was compared")
		}
	}
}

func TestAddingOneThingMovesNoOther(t *testing.T) {
	const alone = "clients: {f: {rate: 100, instances: 3, calls: [s]}%s}\nservices: {s: {workers: 9, serviceTime: " +
		"exponential 50ms}%s}"
	with := func(clients, services, faults string) *engine.Record {
		text := strings.Replace(strings.Replace(alone, "%s", clients, 1), "%s", services, 1)
		return run(t, world("attemptTimeout: 200ms", text, faults))
	}
	before := with("", "", "")
	for name, after := range map[string]*engine.Record{
		"another fleet and service": with(", g: {rate: 50, calls: [x]}", ", x: {serviceTime: exponential 1ms}", ""),
		"a closed loop":             with(", g: {users: 9, think: exponential 1s, calls: [x]}", ", x: {}", ""),
		"a fault of another service": with(", g: {rate: 50, calls: [x]}", ", x: {serviceTime: exponential 1ms}",
			"faults: [{outage: x, at: 2s, for: 2s}]"),
	} {
		if !reflect.DeepEqual(before.Fleets[0].Offered, after.Fleets[0].Offered) {
			t.Errorf("%s moves the arrivals", name)
		}
		if !reflect.DeepEqual(before.Services[0].WorkNS, after.Services[0].WorkNS) ||
			!reflect.DeepEqual(before.Fleets[0].Good, after.Fleets[0].Good) {
			t.Errorf("%s moves the service times", name)
		}
	}
	faulty := with("", "", "faults: [{operator: f, action: shed, at: 5s, for: 2s, rate: 50%}]")
	if !reflect.DeepEqual(before.Fleets[0].Offered, faulty.Fleets[0].Offered) {
		t.Error("shedding some of a fleet's requests moves its arrivals")
	}
}

func TestInstancesDrawFromTheirOwnStreams(t *testing.T) {
	const two = "clients: {f: {once: 200, instances: 2, calls: [s]}}\nservices: {s: {replicas: 2, balancing: " +
		"round-robin, serviceTime: exponential 100ms}}"
	r := run(t, world(plain, two))
	one := run(t, world(plain, strings.Replace(two, "replicas: 2, balancing: round-robin, ", "", 1)))
	if total(r.Services[0].WorkNS) == total(one.Services[0].WorkNS) {
		t.Error("two replicas do the work of one: they share their random numbers")
	}
}

// What is in the gates when a run ends must not be there when the next one begins.
func TestARunThatEndsWithRequestsInItsGatesLeavesNothingToTheNext(t *testing.T) {
	s := read(t, `
duration: 4s
warmUp: 0s
model: {drain: 0s}
clients: {f: {rate: 200, calls: [a]}}
services:
  a: {workers: 50, serviceTime: exponential 20ms, calls: [b]}
  b: {workers: 4, serviceTime: exponential 4s}
variants: {only: {policy: {defaults: {maxRetries: 0}, protect: {a: {shed: {disabled: true}}, b: {shed: {concurrency: fixed, maxConcurrency: 50}}}}}}
`)
	e, err := engine.New(s, &s.Variants[0])
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(10) {
		r, err := e.Run(seed, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := hash(t, r), hash(t, playVariant(t, s, 0, seed)); got != want {
			t.Errorf("seed %d on an engine that was used before: %s, on a new one %s", seed, got, want)
		}
	}
}
