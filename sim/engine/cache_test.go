package engine_test

import (
	"testing"

	"github.com/abate-go/abate/sim/engine"
)

const lookAside = `
clients: {shop: {rate: 200, calls: [{to: cache, else: [db]}]}}
services: {cache: {cache: {CACHE}}, db: {serviceTime: DB}}
`

func withCache(cache, db string) string {
	return edit(lookAside, "CACHE", cache, "DB", db)
}

func TestWhatIsMissingIsFetchedOnce(t *testing.T) {
	r := run(t, world(plain, withCache("keys: 50, cold: true", "0ms")))
	w := service(t, r, "cache").World()
	equal(t, "misses", total(w.Misses), 50)
	equal(t, "fetched", edge(t, r, "shop", "db").Calls, 50)
	equal(t, "hits and misses", total(w.Hits)+total(w.Misses), total(r.Fleets[0].Offered))
	equal(t, "held at the end", w.Held[len(w.Held)-1], 50)
	equal(t, "requests answered", r.Fleets[0].Ends[engine.Answered], total(r.Fleets[0].Offered))
}

func TestAWarmCacheHasEverything(t *testing.T) {
	r := run(t, world(plain, withCache("keys: 50", "0ms")))
	equal(t, "misses", total(service(t, r, "cache").World().Misses), 0)
	if got := value(t, r, "hits(cache) > 0%"); got != 1 {
		t.Errorf("hits are %v, want 1", got)
	}
}

func TestAFlushedCacheFetchesAgain(t *testing.T) {
	for _, fault := range []string{"{at: 5s, flush: cache}", "{at: 5s, for: 100ms, restart: cache}"} {
		r := run(t, world(plain, withCache("keys: 50", "0ms"), "faults: ["+fault+"]"))
		equal(t, fault+": fetched", total(service(t, r, "cache").World().Misses), 50)
	}
}

// Each of ten replicas has a tenth of the keys, and loses only those.
func TestAReplicaThatIsFlushedLosesItsOwnKeys(t *testing.T) {
	r := run(t, world(plain, `
clients: {shop: {rate: 500, calls: [{to: cache, else: [db]}]}}
services: {cache: {replicas: 10, cache: {keys: 200}}, db: {}}
faults: [{at: 5s, flush: cache, share: 10%}]
`))
	equal(t, "fetched", total(service(t, r, "cache").World().Misses), 20)
}

// A key that many ask for is fetched by all of them while it is not there, or by one.
func TestCallersFetchTogetherWhatOneCouldFetch(t *testing.T) {
	const db = "100ms"
	apart := run(t, world(plain, withCache("keys: 1, cold: true", db)))
	within(t, "fetched", float64(edge(t, apart, "shop", "db").Calls), 10, 30)
	together := run(t, world(plain, withCache("keys: 1, cold: true, coalesce: true", db)))
	equal(t, "fetched by one", edge(t, together, "shop", "db").Calls, 1)
	equal(t, "requests answered", together.Fleets[0].Ends[engine.Answered], total(together.Fleets[0].Offered))
	if _, longest := latencies(together); longest != 100*ms {
		t.Errorf("the longest wait is %v, want as long as fetching takes", longest)
	}
}

// Who waits for what another one fetches tries next if that fails, and leaves when its own time is over.
func TestWhoWaitsForAFetchTriesNext(t *testing.T) {
	r := run(t, world(plain+", attemptTimeout: 50ms", `
clients: {shop: {once: 5, patience: 120ms, calls: [{to: cache, else: [db]}]}}
services: {cache: {cache: {keys: 1, cold: true, coalesce: true}}, db: {serviceTime: 1s}}
`))
	wantEnds(t, r, "5 timed-out")
	equal(t, "fetches, one after the other", edge(t, r, "shop", "db").Calls, 3)
	equal(t, "the last request's end", r.LastEnd, 120*ms)
}

// Of two that fetch the same, one gets it, and the other one's failure takes it out again.
func TestAFailureForgets(t *testing.T) {
	const world2 = `
clients: {shop: {rate: 200, calls: [{to: cache, else: [db]}]}}
services: {cache: {cache: {keys: 1, cold: true, FORGETS}}, db: {serviceTime: uniform 50ms..150ms, errorRate: 0.5}}
`
	keeps := run(t, world(plain, edit(world2, "FORGETS", "forgetsOnError: false")))
	forgets := run(t, world(plain, edit(world2, "FORGETS", "forgetsOnError: true")))
	few, many := edge(t, keeps, "shop", "db").Calls, edge(t, forgets, "shop", "db").Calls
	if many < 5*few {
		t.Errorf("%d fetches where failures forget, %d where they do not", many, few)
	}
}

func TestACacheThatFailsIsPassedOver(t *testing.T) {
	r := run(t, world(plain, `
clients: {shop: {rate: 100, calls: [{to: cache, else: [db]}]}}
services: {cache: {cache: {keys: 10}}, db: {}}
faults: [{at: 5s, for: 2s, outage: cache, mode: refuse}]
`))
	equal(t, "requests answered", r.Fleets[0].Ends[engine.Answered], total(r.Fleets[0].Offered))
	within(t, "calls of the database", float64(edge(t, r, "shop", "db").Calls), 150, 250)
}

// A restart of the callers ends what they fetch, and those who wait for it.
func TestCallersThatRestartLeaveNobodyWaiting(t *testing.T) {
	r := run(t, world(plain, `
clients: {shop: {rate: 100, instances: 2, patience: 3s, calls: [api]}}
services: 
  api: {replicas: 2, calls: [{to: cache, else: [db]}]}
  cache: {cache: {keys: 1, cold: true, coalesce: true, ttl: 1s}}
  db: {serviceTime: 400ms}
faults: [{at: 4s, for: 100ms, restart: api, share: 50%}, {at: 7s, for: 100ms, restart: api}]
`))
	equal(t, "left without an answer", r.Fleets[0].Ends[engine.Unanswered], 0)
	within(t, "goodput", float64(total(r.Fleets[0].Good))/float64(total(r.Fleets[0].Offered)), 0.9, 1)
}
