package scenario_test

import "maps"

// The mistakes of a world that reacts.
func init() {
	maps.Copy(mistakes, map[string][]string{
		"autoscale-halves": {
			`:4:41: services.db.autoscale.target: is missing; for example target: 60%`,
			`:4:41: services.db.autoscale.max: is missing; for example max: 40`,
			`:4:41: services.db.autoscale: has no effect without workers: there is no share that is ` +
				`busy; remove it or set workers`,
		},
		"autoscale-small": {
			`:4:90: services.db.autoscale.max: 2 is less than the 3 replicas that there are; raise it`,
		},
		"cache-calls": {
			`:4:41: services.c.calls: a cache calls nobody: its caller does; write else in the call of ` +
				`the cache`,
		},
		"cache-few-keys": {
			`:4:44: services.c.cache.keys: 3 keys are too few for 10 replicas; raise it`,
		},
		"cache-flush": {
			`:5:18: faults[0].flush: "db" is no cache; set its cache, or hit one`,
			`:5:35: faults[0].for: does not belong to flush; remove it; allowed: at, share, zone`,
		},
		"cache-hits": {
			`:5:10: expect[0]: "hits(db) > 5%" needs a cache, and db is none; set its cache, for example ` +
				`cache: {keys: 10000}`,
		},
		"cache-miss-taken-by-nobody": {
			`:3:27: clients.shop.calls[0]: nobody is asked for what the cache c has not got; for example ` +
				`{to: c, else: [payment-db]}`,
			`:3:69: clients.shop.calls[1]: nobody is asked for what the cache d has not got; for example ` +
				`{to: d, else: [payment-db]}`,
		},
		"cache-too-large": {
			`:4:59: services.c.cache.capacity: 10 replicas hold all 100 keys; remove it`,
		},
		"cache-without-keys": {
			`:4:23: services.c.cache: does not say how many keys there are; for example cache: {keys: ` +
				`10000}`,
		},
		"crash-early": {
			`:4:63: services.db.crash.above: 5 requests kill a replica of 50 workers; raise it, or lower ` +
				`workers`,
		},
		"crash-empty": {
			`:4:24: services.db.crash: does not say of what; for example crash: {above: 500}`,
			`:4:47: services.db.probes.liveness: does not say how often it is asked; for example period: ` +
				`10s`,
		},
		"else-amplification": {
			`:5:10: expect[0]: "amplification(b) < 2" compares with the requests that need b, and it is ` +
				`only called when another fails; expect attempts(b) instead`,
		},
		"else-circle": {
			`:7:15: services.c.calls[0].to: the calls go in a circle: a -> c -> a; remove one of them`,
		},
		"else-itself": {
			`:3:43: clients.shop.calls[0].else[0].to: "db" is called a second time; write one call with ` +
				`times: 2, or with the sum of the times`,
		},
		"else-of-consumer": {
			`:3:66: clients.shop.calls[0].else: a message is handled by one call, which decides whether ` +
				`it failed; call a service that has the fallback`,
		},
		"else-unknown": {
			`:3:43: clients.shop.calls[0].else[0].to: no such service "bd"; did you mean db?`,
		},
		"else-word": {
			`:3:56: clients.shop.calls[0].else[0].on[0]: "timeouts" is not known; did you mean timeout? ` +
				`allowed: miss, timeout, connection, overload, error, guard; for example [miss, timeout]`,
		},
		"lives-not": {
			`:5:10: expect[0]: "replicas(db) > 3" needs replicas that come and go, and those of db stay ` +
				`as they are; set its crash, probes or autoscale`,
			`:5:28: expect[1]: "restarts(db) < 3" needs replicas that come and go, and those of db stay ` +
				`as they are; set its crash, probes or autoscale`,
		},
		"probe-slow": {
			`:4:37: services.db.probes.readiness.timeout: 1s is longer than the period, 500ms; lower it, ` +
				`or raise period`,
		},
		"start-alone": {
			`:4:24: services.db.start: has no effect, because no replica ever starts; set crash, probes ` +
				`or autoscale, or a fault restart`,
		},
		"start-halves": {
			`:4:52: services.db.start.slower: has no effect without warmUp; for example warmUp: 60s`,
			`:4:67: services.db.start.maxBackoff: has no effect without backoff; remove it`,
		},
		"start-warm": {
			`:4:52: services.db.start.warmUp: has no effect without slower; for example slower: 5`,
		},
	})
}
