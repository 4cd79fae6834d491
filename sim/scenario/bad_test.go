package scenario_test

// mistakes is the whole message of every testdata/*.bad.yaml, without the name of the file in front of each line. A
// line that does not begin with a colon names its own file.
var mistakes = map[string][]string{
	"action-of-outage": {
		`:5:45: faults[0].action: does not belong to outage; remove it; allowed: at, for, mode, share, zone`,
	},
	"arrivals-closed": {
		`:3:41: clients.shop.arrivals: has no effect without rate or curve; remove it`,
	},
	"between-alone": {
		`:3:28: clients.shop.between: has no effect without curve; remove it`,
	},
	"call-fleet": {
		`:3:27: clients.shop.calls[0].to: "shop" is a fleet, not a service; only services are called`,
	},
	"call-nameless": {
		`:3:31: clients.shop.calls[1]: the call names no service; for example {to: payment-db, times: 2}`,
	},
	"call-share-above-one": {
		`:3:43: clients.shop.calls[0].share: 130% is out of range; allowed: 0.000001 to 1; for example 30%`,
	},
	"call-twice": {
		`:3:36: clients.shop.calls[1].to: "db" is called a second time; write one call with times: 2, or with the sum of ` +
			`the times`,
	},
	"call-unknown": {
		`:3:27: clients.shop.calls[0].to: no such service "bd"; did you mean db?`,
	},
	"capacity-gain": {
		`:5:47: faults[0].factor: 2 is no loss of capacity; allowed: above 0 and below 1; for example 0.5`,
	},
	"capacity-without-factor": {
		`:5:5: faults[0].factor: is missing; for example factor: 0.5`,
	},
	"capacity-without-workers": {
		`:4:40: faults[0].capacity: "db" has no workers to change; set its workers`,
	},
	"codel-settings-alone": {
		`:4:55: services.db.queue.target: has no effect without order: codel; remove it`,
		`:4:70: services.db.queue.interval: has no effect without order: codel; remove it`,
	},
	"connect-not-listed": {
		`:2:64: clients.shop.calls[0].connect: no variant's policy lists "connection"; for example policy: {services: ` +
			`{connection: {preset: connections}}}`,
		`:4:39: variants.only.policy.services: no such service "connections"; allowed: db`,
	},
	"connect-with-bulkhead": {
		`:4:39: variants.only.policy.services: the policy for connections "connections" has a bulkhead, which the ` +
			`simulator does not give them; the pool bounds how many are opened at once: remove the bulkhead`,
		`:5:30: expect[1]: "shop" is a fleet, but connectPeak is about a service; there are: db`,
	},
	"connect-without-pool": {
		`:2:55: clients.shop.calls[0].connect: has no effect without a pool; set pool, for example pool: 20`,
	},
	"connections-without-pool": {
		`:4:21: services.db.connections: has no effect, because no caller has a pool, and no users hold ` +
			`sessions; write the call as {to: db, pool: 20}`,
	},
	"cores-without-cost": {
		`:3:38: services.db.connections.cores: has no effect without a cost; remove it`,
	},
	"population-beside-others": {
		`:2:11: clients.phones: stands beside other fleets; a fleet this large runs by itself: it has no room for ` +
			`guards`,
		`:2:56: clients.phones.calls[0]: a very large fleet makes plain calls; write only the name of the service`,
		`:3:11: services: there are 2 services; a very large fleet calls one service; a fleet this large runs by ` +
			`itself: it has no room for guards`,
		`:3:62: services.api.retryAfter: a very large fleet knows nothing of it; remove it; allowed: replicas, workers, ` +
			`serviceTime, queue.limit and queue.none`,
		`:3:73: services.api.queue: a very large fleet knows nothing of it; remove it; allowed: replicas, workers, ` +
			`serviceTime, queue.limit and queue.none`,
		`:3:95: services.api.calls: a very large fleet knows nothing of it; remove it; allowed: replicas, workers, ` +
			`serviceTime, queue.limit and queue.none`,
		`:4:37: faults[0].errors: a very large fleet knows no fault but an outage; write outage, with mode hang or refuse`,
	},
	"population-gated": {
		`:4:10: expect[0]: a very large fleet has no yield; allowed: goodput, recovery, collapse, served, userVisible, ` +
			`failures, offered, attempts, retries, amplification and peak`,
		`:5:24: variants.x.policy: a very large fleet knows no gates; remove protect`,
	},
	"population-naive": {
		`:4:23: variants.x.naive: a very large fleet has nobody behind it whom it could tell something; remove it`,
	},
	"population-think": {
		`:2:43: clients.phones.think: a very large fleet thinks exponentially; for example think: exponential 60s`,
		`:2:58: clients.phones.instances: has no effect on a very large fleet; remove it`,
	},
	"population-topic": {
		`:2:54: clients.orders.topic: a very large fleet does not consume; allowed: at most 500000 messages at once`,
	},
	"population-with-guards": {
		`:1:1: variants: of the policy of "api", retryBudget is state that each client would keep for itself, which a ` +
			`population has no room for; set retryBudget.disabled: true, or make the fleet small enough to have guards (rate ` +
			`and ` +
			`instances)`,
		`:1:1: variants: of the policy of "api", circuitBreaker is state that each client would keep for itself, which a ` +
			`population has no room for; set circuitBreaker.disabled: true, or make the fleet small enough to have guards ` +
			`(rate ` +
			`and instances)`,
	},
	"curve-flat-zero": {
		`:3:17: clients.shop.curve: no point has a rate above 0; for example curve: [{at: 0s, rate: 500}]`,
	},
	"curve-order": {
		`:3:43: clients.shop.curve[1].at: 10s is not after the point before it, 10s; put the points in order of time`,
	},
	"curve-past-end": {
		`:3:42: clients.shop.curve[1].at: 4m is past the end of the run, 3m; remove the point or raise duration`,
	},
	"cycle": {
		`:6:15: services.c.calls[0].to: the calls go in a circle: a -> b -> c -> a; remove one of them`,
	},
	"cycle-in-variant": {
		`:5:30: variants.x.services.b.calls[0].to: the calls go in a circle: a -> b -> a; remove one of them`,
	},
	"cycle-itself": {
		`:4:16: services.db.calls[0].to: the calls go in a circle: db -> db; remove one of them`,
	},
	"daily-without-rate": {
		`:3:38: clients.shop.daily: has no effect without rate, the mean of the day; remove it`,
	},
	"daily-without-swing": {
		`:3:26: clients.shop.daily: has no effect without a swing; for example daily: {swing: 40%}`,
	},
	"deploy-of-nothing": {
		`:5:5: faults[0]: the deploy does not say what is bad about it; write factor: 3 or rate: 30%`,
	},
	"duration-word": {
		`:1:11: duration: the text "long" is not a duration; units are ms, s, m and h; allowed: 1s to 168h; for example 3m`,
	},
	"duration-zero": {
		`:1:11: duration: 0s is out of range; allowed: 1s to 168h; for example 3m`,
	},
	"empty": {
		`:1:1: the file is empty; it needs duration, clients and services; for example "{duration: 1m, clients: {shop: ` +
			`{rate: 100, calls: [db]}}, services: {db: {}}}"`,
	},
	"endless-capacity": {
		`:4:3: services.db.serviceTime: workers that need no time have endless capacity; for example serviceTime: ` +
			`exponential 50ms, or remove workers`,
	},
	"expect-after-without-fault": {
		`:4:10: expect[0]: "goodput(after) > 95%" needs a fault, and there is none; add one to faults, or remove this`,
	},
	"expect-before-at-start": {
		`:5:10: expect[0]: "goodput(before) > 95%" needs some time before the first fault, which begins at 0s; let it ` +
			`begin later`,
	},
	"expect-connections-without-pool": {
		`:4:10: expect[0]: "connections(db) < 10" needs connections, and no caller of db has a pool, or ` +
			`sessions; write the call as {to: db, pool: 20}`,
	},
	"expect-connects-without-pool": {
		`:4:10: expect[0]: "connects(db) < 5/s" needs connections, and no caller of db has a pool, or ` +
			`sessions; write the call as {to: db, pool: 20}`,
		`:4:30: expect[1]: "connectPeak(db) < 5" needs connections, and no caller of db has a pool, or ` +
			`sessions; write the call as {to: db, pool: 20}`,
		`:4:51: expect[2]: "unopened(db) < 1" needs connections, and no caller of db has a pool, or ` +
			`sessions; write the call as {to: db, pool: 20}`,
	},
	"expect-dead-letters-of-callers": {
		`:5:10: expect[0]: "deadLetters(shop) < 1" needs a fleet that consumes; write topic: {partitions: 10} in the ` +
			`fleet, or remove this`,
		`:5:35: expect[1]: "lateness(p99, orders) < 1s" needs retry topics, and no variant has any; write kafka: {tiers: ` +
			`[30s, 5m]} in the policy of the service that is called`,
		`:5:65: expect[2]: "load(db, after) < 2" compares with the time before the first fault, which begins at 0s; let it ` +
			`begin later`,
	},
	"expect-fleet-for-service": {
		`:5:10: expect[0]: "shop" is a fleet, but amplification is about a service; there are: db`,
	},
	"expect-in-variant": {
		`:5:16: variants.x.expect[0]: "collapse < 1%" needs a fault, and there is none; add one to faults, or remove this`,
	},
	"expect-recovery-without-fault": {
		`:4:10: expect[0]: "recovery < 10s" needs a fault, and there is none; add one to faults, or remove this`,
	},
	"expect-collapse-of-nobody": {
		`:5:10: expect[0]: "bach" is not a fleet or service; did you mean batch? fleets: shop, batch; services: db`,
		`:5:33: expect[1]: column 13: recovery has no window; write recovery([fleet or service])`,
		`:5:60: expect[2]: "nobody" is not a fleet or service; fleets: shop, batch; services: db`,
		`:5:85: expect[3]: "db" is a service, but goodput is about a fleet; there are: shop, batch; what a service does ` +
			`for its callers is its yield: yield(db)`,
	},
	"population-of-a-service": {
		`:4:35: expect[1]: a very large fleet has one service, and no recovery of it alone; leave the name away`,
		`:4:57: expect[2]: a very large fleet has one service, and no collapse of it alone; leave the name away`,
	},
	"expect-unknown-service": {
		`:5:10: expect[0]: "bd" is not a service; did you mean db?`,
	},
	"expect-wait-without-workers": {
		`:4:10: expect[0]: "queueWait(db) < 1s" needs a service with workers, and db has none; set its workers`,
	},
	"fault-ends-past-end": {
		`:5:21: faults[0].for: 30s from 2m50s on ends after the run of 3m; lower it or raise duration`,
	},
	"fault-for-negative": {
		`:5:20: faults[0].for: -5s is out of range; allowed: 0s to 168h; for example 30s`,
	},
	"fault-for-zero": {
		`:5:20: faults[0].for: 0s is no time; for example for: 30s`,
	},
	"fault-nothing": {
		`:5:5: faults[0]: the fault does not say what goes wrong; write one of outage, slowdown, errors, capacity, loss, ` +
			`restart, deploy, surge, flush, redis, operator; for example outage: payment-db`,
	},
	"fault-on-fleet": {
		`:5:33: faults[0].outage: "shop" is a fleet, but outage hits a service; allowed: db`,
	},
	"fault-past-end": {
		`:5:10: faults[0].at: 3m is past the end of the run, 3m; lower it or raise duration`,
	},
	"fault-two-kinds": {
		`:5:45: faults[0].errors: errors excludes outage; write two faults`,
	},
	"fault-unknown-service": {
		`:5:33: faults[0].outage: no such service "bd"; did you mean db?`,
	},
	"fault-without-after": {
		`:5:21: faults[0].for: the last fault ends 0s before the end of the run of 3m; leave at least 1s to see what comes ` +
			`after it: raise duration`,
	},
	"fault-without-for": {
		`:5:5: faults[0].for: is missing; for example for: 30s`,
	},
	"fleet-no-load": {
		`:3:3: clients.shop: the fleet offers no load; write rate, curve, users or once; for example rate: 100`,
	},
	"fleet-rate-and-curve": {
		`:3:16: clients.shop.rate: has no effect beside curve; keep one of the two`,
	},
	"fleet-two-loads": {
		`:3:28: clients.shop.users: users excludes rate; keep one of the two, or make two fleets`,
	},
	"gate-few-keys": {
		`:4:12: variants.x: of the gate of "db", rateLimit.maxKeys 20 is below the 51 callers of the scenario: a run could ` +
			`not be repeated; raise it`,
	},
	"gate-of-nothing": {
		`:3:61: services.db.refusalCost: has no effect, because no variant has a gate in front of db; write protect: {db: ` +
			`{}} in the policy of a variant, or remove it`,
		`:4:10: expect[0]: "shed(db) < 1%" needs a gate in front of db, and no variant has one; write protect: {db: {}} in ` +
			`the policy of a variant`,
		`:5:35: variants.x.policy.protect: no such service "dc"; did you mean db?`,
		`:5:43: variants.x.policy.protect: "shop" is a fleet, not a service; a gate stands in front of a service`,
	},
	"gate-too-wide": {
		`:2:8: scale: 5 leaves the rate limit of variant x as high as in full size, for the one instance of clients.one; ` +
			`allowed: 1`,
		`:2:8: scale: 5 leaves the gate of a in variant x as wide as in full size, for replicas with fewer workers; ` +
			`allowed: 1`,
		`:2:8: scale: 5 leaves the fleet's rate limit of b in variant x as high as in full size; allowed: 1`,
		`:2:8: scale: 5 leaves the gate of c in variant x fewer callers to tell apart; allowed: 1`,
	},
	"method-open": {
		`:3:27: clients.shop.method: has no effect without users or once; remove it`,
	},
	"mode-of-slowdown": {
		`:5:56: faults[0].mode: does not belong to slowdown; remove it; allowed: at, for, factor, add, requests, share, zone`,
	},
	"mode-unknown": {
		`:5:43: faults[0].mode: "refused" is not known; did you mean refuse? allowed: hang, blackhole, refuse, fail; for ` +
			`example refuse`,
	},
	"model-word": {
		`:4:15: model.ties: "answer" is not known; allowed: answer-first, timeout-first; for example answer-first`,
	},
	"name-like-a-call": {
		`:2:11: clients.a->b: "a->b" cannot stand in an expectation; allowed: one word of at most 100 bytes without ` +
			`brackets, commas and comparisons, other than all, before, during, after and p99`,
	},
	"name-reserved": {
		`:2:11: clients.after: "after" cannot stand in an expectation; allowed: one word of at most 100 bytes without ` +
			`brackets, commas and comparisons, other than all, before, during, after and p99`,
	},
	"name-with-space": {
		`:2:11: clients.my shop: "my shop" cannot stand in an expectation; allowed: one word of at most 100 bytes without ` +
			`brackets, commas and comparisons, other than all, before, during, after and p99`,
	},
	"no-calls": {
		`:2:36: clients.shop.calls: the fleet calls no service; for example calls: [payment-service]`,
	},
	"no-clients": {
		`:2:10: clients: no fleet offers load; for example clients: {shop: {rate: 100, calls: [payment]}}`,
	},
	"no-duration": {
		`:1:1: duration: is missing; for example duration: 3m`,
	},
	"no-services": {
		`:3:11: services: there is no service to call; for example services: {payment: {workers: 50, serviceTime: ` +
			`exponential 50ms}}`,
	},
	"nobody-calls": {
		`:3:50: services.mail: nobody calls it; add it to the calls of a fleet or service, or remove it`,
	},
	"not-a-mapping": {
		`:1:1: a list is not a mapping; it needs duration, clients and services; for example "{duration: 1m, clients: ` +
			`{shop: {rate: 100, calls: [db]}}, services: {db: {}}}"`,
	},
	"nothing-else": {
		`:1:1: clients: no fleet offers load; for example clients: {shop: {rate: 100, calls: [payment]}}`,
		`:1:1: services: there is no service to call; for example services: {payment: {workers: 50, serviceTime: ` +
			`exponential 50ms}}`,
	},
	"operator-restart-for": {
		`:5:20: faults[0].for: does not belong to the action restart; remove it; allowed: at, action, share`,
	},
	"operator-scale-without-factor": {
		`:5:5: faults[0].factor: is missing; for example factor: 0.5`,
	},
	"operator-shed-service": {
		`:5:25: faults[0].operator: "db" is a service, but the action shed hits a fleet; allowed: shop`,
	},
	"operator-without-action": {
		`:5:5: faults[0].action: is missing; allowed: restart, shed, scale, stop-retries, empty-queue`,
	},
	"parallel-alone": {
		`:4:18: services.db.parallel: has no effect without calls; remove it`,
		`:4:36: services.db.callsFirst: has no effect without calls; remove it`,
	},
	"policy-and-file": {
		`:7:17: variants.x.policyFile: excludes policy; keep one of the two`,
	},
	"policy-empty": {
		`:5:15: the file has no policy; it needs at least one of defaults, services, gatewayRetries and protect; for ` +
			`example "defaults: {maxRetries: 3}"`,
	},
	"policy-file-folder": {
		`:5:19: variants.x.policyFile: "good" cannot be read: it is not a regular file; the path is relative to the folder ` +
			`of the scenario`,
	},
	"policy-file-missing": {
		`:5:19: variants.x.policyFile: "nowhere.yaml" cannot be read: no such file or directory; the path is relative to ` +
			`the folder of the scenario`,
	},
	"policy-file-wrong": {
		`wrong-policy.yaml:2:15: defaults.maxRetries: 1000 is out of range; allowed: 0 to 100; for example 3`,
	},
	"policy-mistake": {
		`:7:18: defaults: unknown key "maxRetrys"; did you mean maxRetries?`,
	},
	"policy-of-fleet": {
		`:6:25: variants.x.policy.services: "shop" is a fleet, not a service; a policy is about the service that is ` +
			`called, or about one call, such as "shop -> payment"`,
	},
	"policy-unknown-call": {
		`:6:25: variants.x.policy.services: no call goes "shop -> bd"; did you mean shop -> db?`,
	},
	"policy-unknown-service": {
		`:8:9: variants.x.policy.services: no such service "bd"; did you mean db?`,
	},
	"priority-unknown": {
		`:3:71: clients.shop.calls[0].priority: "URGENT" is not known; allowed: CRITICAL_PLUS, CRITICAL, SHEDDABLE_PLUS, ` +
			`SHEDDABLE; for example SHEDDABLE`,
	},
	"queue-limit-and-none": {
		`:4:63: services.db.queue.none: excludes limit; keep one of the two`,
	},
	"queue-limit-and-work": {
		`:4:63: services.db.queue.work: excludes limit; keep one of the two`,
	},
	"queue-none-and-work": {
		`:4:53: services.db.queue.none: excludes work; keep one of the two`,
	},
	"queue-work-without-time": {
		`:3:43: services.db.queue.work: has no effect without a serviceTime; bound the queue with limit`,
	},
	"queue-when-full-unbounded": {
		`:4:57: services.db.queue.whenFull: has no effect on a queue without bound; set limit, work or none, or remove it`,
	},
	"queue-without-workers": {
		`:4:34: services.db.queue: has no effect without workers: nobody waits; remove it or set workers`,
	},
	"rate-negative": {
		`:3:16: clients.shop.rate: -5 is out of range; allowed: 0.000001 to 100000000; for example 10000`,
	},
	"rate-of-outage": {
		`:5:43: faults[0].rate: does not belong to outage; remove it; allowed: at, for, mode, share, zone`,
	},
	"rate-zero": {
		`:3:16: clients.shop.rate: 0 is out of range; allowed: 0.000001 to 100000000; for example 10000`,
	},
	"replicas-zero": {
		`:4:18: services.db.replicas: 0 is out of range; allowed: 1 to 100000; for example 20`,
	},
	"requests-of-errors": {
		`:5:47: faults[0].requests: does not belong to errors; remove it; allowed: at, for, rate, share, zone`,
	},
	"restart-unknown": {
		`:5:34: faults[0].restart: no such service or fleet "shp"; did you mean shop?`,
	},
	"rollout-of-outage": {
		`:5:46: faults[0].rollout: does not belong to outage; remove it; allowed: at, for, mode, share, zone`,
	},
	"rollout-too-long": {
		`:5:57: faults[0].rollout: 1m is longer than the fault, for 30s; lower it or raise for`,
	},
	"same-name": {
		`:3:12: services.db: "db" is the name of a fleet too; give one of them another name`,
	},
	"scale-does-not-divide": {
		`:2:8: scale: 50 does not divide services.db.workers (1230); allowed: a common divisor such as 30, 41, 82`,
	},
	"scale-instances": {
		`:2:8: scale: 4 does not divide clients.shop.instances (10); allowed: a common divisor such as 2, 5, 10`,
		`:2:8: scale: 4 does not divide clients.people.users (30); allowed: a common divisor such as 2, 5, 10`,
	},
	"scale-lock": {
		`:2:8: scale: 10 leaves services.db fewer requests that collide (optimisticLock); allowed: 1`,
	},
	"scale-pool": {
		`:2:8: scale: 10 does not divide clients.shop.calls[0].pool (5); allowed: 1`,
		`:2:8: scale: 10 does not divide services.db.connections.cores (1, the default); allowed: 1`,
	},
	"scale-share": {
		`:2:8: scale: 10 leaves too few replicas in services.db for the share of faults[0]; allowed: a common divisor such ` +
			`as 2, 4`,
	},
	"scale-share-of-fleet": {
		`:2:8: scale: 10 leaves too few instances in clients.shop for the share of faults[0]; allowed: a common divisor ` +
			`such as 2`,
	},
	"scale-variant": {
		`:2:8: scale: 50 does not divide variants.x.services.db.workers (1230); allowed: a common divisor such as 2, 5, 10`,
	},
	"share-of-surge": {
		`:5:56: faults[0].share: does not belong to surge; remove it; allowed: at, for, factor`,
	},
	"slowdown-by-nothing": {
		`:5:5: faults[0]: the slowdown does not say how much slower; write factor: 10 or add: 2s`,
	},
	"slows-queued-max-alone": {
		`:4:55: services.db.slowsQueuedMax: has no effect without slowsQueued; remove it`,
	},
	"slows-queued-without-workers": {
		`:4:40: services.db.slowsQueued: has no effect without workers: nobody waits; remove it or set workers`,
	},
	"surge-on-service": {
		`:5:32: faults[0].surge: "db" is a service, but surge hits a fleet; allowed: shop`,
	},
	"surge-without-factor": {
		`:5:5: faults[0].factor: is missing; for example factor: 0.5`,
	},
	"syntax": {
		`:2:1: not valid YAML: did not find expected ',' or '}'; check indentation, quotes and brackets`,
	},
	"ten-mistakes": {
		`:1:1: duration: is missing; for example duration: 3m`,
		`:2:16: clients.shop.rate: -1 is out of range; allowed: 0.000001 to 100000000; for example 10000`,
		`:2:42: clients.shop.calls[0].to: no such service "payment"; did you mean payments?`,
		`:3:3: clients.users: users need a think time; for example think: exponential 5s`,
		`:6:62: services.db.queue.none: excludes limit; keep one of the two`,
		`:8:5: faults[0].for: is missing; for example for: 30s`,
		`:8:35: faults[0].factor: does not belong to outage; remove it; allowed: at, for, mode, share, zone`,
		`:9:10: expect[0]: "bd" is not a service; did you mean db?`,
		`:11:27: defaults: unknown key "maxRetrys"; did you mean maxRetries?`,
		`:12:18: variants.y.services: no such service "mail"; allowed: payments, db`,
	},
	"think-alone": {
		`:3:26: clients.shop.think: has no effect without users; remove it`,
	},
	"think-missing": {
		`:3:3: clients.shop: users need a think time; for example think: exponential 5s`,
	},
	"think-too-short": {
		`:3:27: clients.shop.think: a mean of 10µs makes users ask without end at one moment; allowed: a mean of at least ` +
			`1ms; for example exponential 5s`,
	},
	"too-many-events": {
		`:1:11: duration: one run of variant "default" would need up to 371.5 billion events and 20.8 GiB of memory; ` +
			`allowed: 20 billion events and 16 GiB; write scale: 20, or a shorter duration, or a queue.limit and an ` +
			`attemptTimeout`,
	},
	"too-much-memory": {
		`:1:11: duration: one run of variant "default" would need up to 3.7 billion events and 536.1 GiB of memory; ` +
			`allowed: 20 billion events and 16 GiB; write scale: 50, or a shorter duration, or a queue.limit and an ` +
			`attemptTimeout`,
	},
	"topic-calls-in-part": {
		`:3:70: clients.orders.calls[0].share: a message is handled by one call; remove it`,
		`:3:82: clients.orders.calls[0].times: a message is handled by one call; remove it`,
		`:3:95: clients.orders.calls[0].optional: a message is handled by one call, which decides whether it failed; ` +
			`remove it`,
	},
	"topic-of-users": {
		`:3:19: clients.orders.users: users wait for answers, and a topic has none; write rate, curve or once: the ` +
			`messages that are written to the topic`,
		`:3:44: clients.orders.patience: has no effect on a fleet that consumes; expect latency(p99, orders), or set ` +
			`kafka.timeout in the policy`,
		`:3:58: clients.orders.parallel: has no effect on a fleet that consumes; remove it`,
		`:3:75: clients.orders.instances: 20 instances share 4 partitions, so that some have none; lower it, or raise ` +
			`topic.partitions`,
		`:3:110: clients.orders.calls: a consumer has one guard, that of the service it calls; name one service here; it ` +
			`may call the others`,
	},
	"topic-order-without-keys": {
		`:2:37: clients.orders.topic: a variant keeps the order of each key, and there are no keys; for example keys: 1000`,
	},
	"topic-restart": {
		`:5:34: faults[0].restart: "orders" consumes, and partitions that change hands are not modelled; allowed for ` +
			`consumers: surge, and the action stop-retries`,
		`:6:41: faults[1].action: "orders" consumes, and partitions that change hands are not modelled; allowed for ` +
			`consumers: surge, and the action stop-retries`,
	},
	"topic-scale": {
		`:2:8: scale: 10 does not divide clients.orders.topic.partitions (25); allowed: a common divisor such as 5`,
	},
	"topic-without-partitions": {
		`:2:38: clients.orders.topic: needs partitions; for example topic: {partitions: 10}`,
	},
	"unknown-key": {
		`:4:1: unknown key "fault"; did you mean faults?`,
	},
	"users-zero": {
		`:3:17: clients.shop.users: 0 is out of range; allowed: 1 to 20000000; for example 1000`,
	},
	"variant-naive": {
		`:5:21: variants.x.naive[1]: no such fleet or service "aip"; did you mean api?`,
		`:5:26: variants.x.naive[2]: "db" calls nobody, so that there is nothing it could be naive about; remove it`,
		`:5:30: variants.x.naive[3]: "shop" is listed a second time; remove it`,
	},
	"variant-queue": {
		`:5:37: variants.x.services.db.queue.none: excludes limit; keep one of the two`,
	},
	"variant-repeats-nothing": {
		`:3:65: services.db.slowsQueuedMax: has no effect without slowsQueued; remove it`,
	},
	"variant-unknown-service": {
		`:5:18: variants.x.services: no such service "bd"; did you mean db?`,
	},
	"within-alone": {
		`:3:27: clients.shop.within: has no effect without once; remove it`,
	},
	"within-too-long": {
		`:3:27: clients.shop.within: 4m is longer than the run of 3m; lower it or raise duration`,
	},
}
