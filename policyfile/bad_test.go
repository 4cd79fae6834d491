package policyfile_test

// mistakes is the whole message of every testdata/*.bad.yaml, without the name of the file in front of each line.
var mistakes = map[string][]string{
	"absurd-duration": {
		`:2:23: service "payments", timeout: 999999h is out of range; allowed: 0s to 24h; for example 2s`,
		`:2:42: service "payments", maxDelay: 99999999999999h is out of range; allowed: 1ms to 24h; for example 10s`,
	},
	"attempt-timeout-above-timeout": {
		`:4:21: service "payments", attemptTimeout: 2s is above timeout 1s; an attempt cannot last longer than its call: ` +
			`lower it or raise timeout`,
	},
	"bad-word": {
		`:3:14: service "payments", backoff: "exponentiel" is not known; did you mean exponential? allowed: exponential, ` +
			`linear, fixed, none; for example exponential`,
		`:4:13: service "payments", jitter: "random" is not known; allowed: full, equal, decorrelated, factor, none; for ` +
			`example full`,
		`:5:25: service "payments", retryBudget.kind: "Ratio" is not known; did you mean ratio? allowed: ratio, adaptive, ` +
			`tokens; for example ratio`,
	},
	"bomb-of-lists": {
		`:9:6: defaults.retryOn[0]: a list is not text; for example [gateway-error, connect-failure]`,
		`:9:6: defaults.retryOn[1]: a list is not text; for example [gateway-error, connect-failure]`,
		`:9:6: defaults.retryOn[2]: a list is not text; for example [gateway-error, connect-failure]`,
		`:9:6: defaults.retryOn[3]: a list is not text; for example [gateway-error, connect-failure]`,
		`:9:6: defaults.retryOn[4]: a list is not text; for example [gateway-error, connect-failure]`,
		`:9:6: defaults.retryOn[5]: a list is not text; for example [gateway-error, connect-failure]`,
		`:9:6: defaults.retryOn[6]: a list is not text; for example [gateway-error, connect-failure]`,
		`:9:6: defaults.retryOn[7]: a list is not text; for example [gateway-error, connect-failure]`,
		`:9:6: defaults.retryOn[8]: a list is not text; for example [gateway-error, connect-failure]`,
		`:10:6: services: a list is not a mapping; for example {payment-service: {maxRetries: 3}}`,
	},
	"bracket-open": {
		`:3:3: not valid YAML: did not find expected ',' or '}'; look at what begins on line 1: a bracket, a quote or an ` +
			`indentation may be wrong`,
	},
	"breaker-wait-above-max": {
		`:3:47: service "payments", circuitBreaker.waitDurationInOpenState: 30s is above maxWaitDurationInOpenState 10s; ` +
			`lower it or raise the maximum`,
	},
	"budget-ratios-crossed": {
		`:3:45: service "payments", retryBudget.minRatio: 0.5 is above maxRatio 0.1; lower it or raise maxRatio`,
	},
	"condition-unknown": {
		`:3:30: service "payments", retryOn[1]: "600" is not known; allowed: a status such as "503", "4xx", "5xx", ` +
			`gateway-error, connect-failure, reset, timeout, error, or a gRPC code such as UNAVAILABLE`,
		`:5:9: service "payments", neverRetryOn[0]: "retriable-4xx" is not known; allowed: a status such as "503", "4xx", ` +
			`"5xx", gateway-error, connect-failure, reset, timeout, error, or a gRPC code such as UNAVAILABLE`,
	},
	"configmap-empty-data": {
		`:3:7: data: no key holds a policy; for example "policy.yaml: |" and the policy below it`,
	},
	"configmap-empty-text": {
		`:4:16: the file is empty; it needs at least one of defaults, services, gatewayRetries and protect; for example ` +
			`"defaults: {maxRetries: 3}"`,
	},
	"configmap-kind": {
		`:2:7: kind: "Deployment" holds no policy; allowed: ConfigMap, or a plain policy without apiVersion and kind`,
	},
	"configmap-no-data": {
		`:1:1: the ConfigMap has no data; put the policy under data, for example "policy.yaml: |"`,
	},
	"configmap-no-kind": {
		`:1:1: apiVersion without kind; write kind: ConfigMap, or a plain policy without apiVersion`,
	},
	"configmap-not-text": {
		`:5:5: data: a mapping is not the text of a policy; write "|" after the key and the policy below it, indented`,
	},
	"configmap-positions": {
		`:11:21: service "payments", multiplier: 0.5 is out of range; allowed: 1 to 100; for example 2.0`,
		`:12:15: service "stock": unknown key "maxRetrys"; did you mean maxRetries?`,
	},
	"configmap-protect": {
		`:11:17: protect.orders.listen: has no upstreams behind it; for example upstreams: ["http://127.0.0.1:9000"]`,
		`:12:41: protect.orders.rateLimit.fleet: needs a Redis; add redis: {addresses: ["redis:6379"]} at the top level of ` +
			`the file, or redis: {embedded: true} for trying`,
	},
	"configmap-quoted": {
		`:4:16: defaults.multiplier: 0.5 is out of range; allowed: 1 to 100; for example 2.0`,
		`:4:16: service "a": unknown key "x"; allowed: preset, timeout, attemptTimeout, maxRetries, backoff, initialDelay, ` +
			`maxDelay, multiplier, jitter, jitterFactor, maxElapsed, maxRetryAfter, retryAfterJitter, retryOwner, ` +
			`internalHeaders, retryOn, neverRetryOn, retryMethods, retryBudget, circuitBreaker, bulkhead, rateLimit, pacing, ` +
			`throttle, hedge, fallback, outlierDetection, healthCheck, kafka, ignoreZones, upstreams, discovery, weights, ` +
			`routes, tls, sendProxyProtocol`,
	},
	"configmap-syntax": {
		`:7:9: not valid YAML: found character that cannot start any token; a tab cannot indent: use spaces`,
	},
	"configmap-two-policies": {
		`:8:3: data: more than one key holds a policy: "a.yaml", "b.yaml"; keep one of them`,
	},
	"discovery": {
		`:4:14: service "a", weights: are those of upstreams, and the addresses are found by discovery; ` +
			`remove them; files and SRV records have weights of their own`,
		`:5:16: service "a", discovery: needs one upstream, which says how the addresses are spoken to; for ` +
			`example upstreams: ["http://orders:8080"]`,
		`:5:16: service "a", discovery.path: is missing; write the path of the file, for example path: ` +
			`/etc/abate/orders.json`,
		`:5:37: service "a", discovery.server: is not used by type file; remove it, or write type: dns or srv`,
		`:8:16: service "b", discovery.type: is missing; write type: dns, srv, file or kubernetes beside name`,
		`:11:16: service "c", discovery.name: is missing; write the name of the SRV record, for example name: ` +
			`_http._tcp.orders.shop`,
		`:11:36: service "c", discovery.server: "localhost" is not an address; allowed: host:port, for ` +
			`example "127.0.0.1:8600"`,
		`:14:23: service "d", discovery.type: "consul" is not known; allowed: dns, srv, file, kubernetes; for ` +
			`example dns`,
		`:16:16: service "e", discovery: needs one upstream, which says how the addresses are spoken to; for ` +
			`example upstreams: ["http://orders:8080"]`,
		`:16:34: service "e", discovery.port: is not used by type dns; remove it, or write type: kubernetes`,
		`:19:16: service "f", discovery: is for an upstream that is reached over TCP, and this one is a Unix socket; ` +
			`remove discovery`,
		`:24:41: protect.p.discovery.path: is not used by type kubernetes; remove it, or write type: file`,
	},
	"discovery-default": {
		`:2:14: defaults.discovery: cannot have a default; it is about one service: write it there`,
	},
	"control-character": {
		`:3:3: not valid YAML: control characters are not allowed; remove them`,
	},
	"cut-off": {
		`:1:10: defaults: has no value; write {} or remove the key`,
		`:2:10: services: has no value; write {} or remove the key`,
	},
	"duplicate-key": {
		`:4:3: defaults: duplicate key "maxRetries"; it stands on line 2 already: remove one of the two`,
	},
	"duplicate-section-key": {
		`:3:26: service "payments", hedge: duplicate key "delay"; it stands on line 3 already: remove one of the two`,
	},
	"duplicate-service": {
		`:4:3: services: duplicate service "payments"; it stands on line 2 already: remove one of the two`,
	},
	"duplicate-top-key": {
		`:3:1: duplicate key "services"; it stands on line 1 already: remove one of the two`,
	},
	"duration-without-unit": {
		`:1:26: defaults.initialDelay: 100 has no unit; write "100s" for seconds or "100ms" for milliseconds; allowed: 1ms ` +
			`to 1h; for example 100ms`,
		`:3:23: service "payments", timeout: 1.5 has no unit; write "1.5s" for seconds or "1.5ms" for milliseconds; ` +
			`allowed: 0s to 24h; for example 2s`,
		`:3:38: service "payments", maxDelay: 5 has no unit; write "5s" for seconds or "5ms" for milliseconds; allowed: ` +
			`1ms to 24h; for example 10s`,
		`:3:59: service "payments", attemptTimeout: 1e3 has no unit; units are ms, s, m and h; allowed: 0s to 24h; for ` +
			`example 500ms`,
	},
	"duration-word": {
		`:1:21: defaults.timeout: the text "soon" is not a duration; units are ms, s, m and h; allowed: 0s to 24h; for ` +
			`example 2s`,
		`:1:41: defaults.initialDelay: the text "1d" is not a duration; units are ms, s, m and h; allowed: 1ms to 1h; for ` +
			`example 100ms`,
		`:1:55: defaults.maxDelay: true is not a duration; allowed: 1ms to 24h; for example 10s`,
	},
	"empty": {
		`:1:1: the file is empty; it needs at least one of defaults, services, gatewayRetries and protect; for example ` +
			`"defaults: {maxRetries: 3}"`,
	},
	"empty-list": {
		`:1:26: defaults.retryMethods: an empty list would mean the default; remove the key, or write maxRetries: 0 to ` +
			`retry nothing`,
		`:3:23: service "payments", retryOn: an empty list would mean the default; remove the key, or write maxRetries: 0 ` +
			`to retry nothing`,
	},
	"everything": {
		`:2:15: defaults.maxRetries: 101 is out of range; allowed: 0 to 100; for example 3`,
		`:3:17: defaults.jitterFactor: 2 is out of range; allowed: 0 to 1; for example 0.5`,
		`:6:19: service "payments", initialDelay: 5 has no unit; write "5s" for seconds or "5ms" for milliseconds; ` +
			`allowed: 1ms to 1h; for example 100ms`,
		`:8:15: service "payments", circuitBreaker.rampUp: the text "3x" is not a duration; units are ms, s, m and h; ` +
			`allowed: 0s to 1h; for example 5s`,
		`:9:22: service "payments", circuitBreaker.slidingWindow: window "none": write 100 for the last 100 calls or 10s ` +
			`for the last ten seconds; for example 10s`,
		`:10:11: service "stock": unknown key "maxRetrys"; did you mean maxRetries?`,
		`:10:54: service "stock", attemptTimeout: 5s is above timeout 1s; an attempt cannot last longer than its call: ` +
			`lower it or raise timeout`,
		`:11:3: services: duplicate service "stock"; it stands on line 10 already: remove one of the two`,
		`:12:17: gatewayRetries: the number 1 is not true or false; allowed: true or false`,
		`:13:1: unknown key "gateway"; allowed: defaults, services, gatewayRetries, ambiguousPaths, protect, redis, outside`,
	},
	"explicit-zero": {
		`:3:19: service "payments", initialDelay: 0s is out of range; allowed: 1ms to 1h; for example 100ms`,
		`:4:17: service "payments", multiplier: 0 is out of range; allowed: 1 to 100; for example 2.0`,
		`:5:44: service "payments", circuitBreaker.minimumNumberOfCalls: 0 is out of range; allowed: 1 to 1000000; for ` +
			`example 20`,
	},
	"fallback-status": {
		`:2:33: service "payments", fallback.status: 199 is out of range; allowed: 200 to 599; for example 200`,
	},
	"fleet-without-redis": {
		`:2:24: defaults.retryBudget.fleet: needs a Redis; add redis: {addresses: ["redis:6379"]} at the top level of the ` +
			`file, or redis: {embedded: true} for trying`,
		`:4:38: service "payments", circuitBreaker.fleet: needs a Redis; add redis: {addresses: ["redis:6379"]} at the top ` +
			`level of the file, or redis: {embedded: true} for trying`,
		`:5:47: service "tokens", retryBudget.fleet: has no effect; remove it, or choose the kind ratio or adaptive: a ` +
			`bucket of tokens is each instance's own`,
		`:9:37: protect.orders.rateLimit.fleet: needs a Redis; add redis: {addresses: ["redis:6379"]} at the top level of ` +
			`the file, or redis: {embedded: true} for trying`,
		`:10:43: protect.orders.idempotency.fleet: needs a Redis; add redis: {addresses: ["redis:6379"]} at the top level ` +
			`of the file, or redis: {embedded: true} for trying`,
	},
	"gateway-retries": {
		`:1:17: gatewayRetries: the text "maybe" is not true or false; allowed: true or false`,
	},
	"hedge-above-attempt-timeout": {
		`:4:20: service "payments", hedge.delay: 200ms is above attemptTimeout 100ms; the hedge would never be sent: lower ` +
			`it or raise attemptTimeout`,
	},
	"indentation": {
		`:4:4: not valid YAML: did not find expected key; check indentation, quotes and brackets`,
	},
	"inherited-once": {
		`:1:26: defaults.initialDelay: 30s is above maxDelay 10s; lower it or raise maxDelay`,
	},
	"initial-delay-above-max": {
		`:2:28: service "payments", initialDelay: 30s is above maxDelay 10s; lower it or raise maxDelay`,
	},
	"initial-delay-inherited": {
		`:4:3: service "payments", initialDelay: 2s is above maxDelay 500ms (inherited); lower it or raise maxDelay`,
	},
	"jitter-factor-outside": {
		`:2:28: service "payments", jitterFactor: 1.5 is out of range; allowed: 0 to 1; for example 0.5`,
		`:3:25: service "stock", jitterFactor: -0.1 is out of range; allowed: 0 to 1; for example 0.5`,
	},
	"key-not-a-word": {
		`:2:3: services: a list cannot be a key; keys are plain words, for example maxRetries`,
	},
	"kafka-empty-tiers": {
		`:2:29: service "payments", kafka.tiers: an empty list would mean the default; remove the key, or write disabled: ` +
			`true for no retry topics`,
	},
	"kafka-tiers": {
		`:6:24: service "payments", kafka.tiers[2]: 5m0s does not come after 5m0s; let them ascend, for example [30s, 5m, ` +
			`30m]; for several deliveries with one delay write delay, multiplier: 1 and attempts`,
		`:6:28: service "payments", kafka.tiers[3]: 25h is out of range; allowed: 100ms to 24h; for example [30s, 5m, 30m]`,
		`:7:20: service "payments", kafka.retrySuffix: "-r/" cannot stand in the name of a topic; allowed: at most 100 ` +
			`letters, digits, dots, underscores and hyphens, for example "-retry"`,
		`:8:26: service "payments", kafka.neverRetryErrors[0]: "" is no class of errors; without spaces around, * stands ` +
			`for anything, for example "*json.SyntaxError"`,
		`:9:26: service "stock", kafka.delay: stands beside tiers, which say all delays; remove it, or the tiers where ` +
			`they are set`,
		`:9:41: service "stock", kafka.attempts: stands beside tiers, which say all delays; remove it, or the tiers where ` +
			`they are set`,
		`:10:33: service "billing", kafka.tiers[1]: 500ms does not come after 1s; let them ascend, for example [30s, 5m, ` +
			`30m]; for several deliveries with one delay write delay, multiplier: 1 and attempts`,
	},
	"kafka-without-effect": {
		`:4:20: service "payments", kafka.concurrency: has no effect; set tiers, for example [30s, 5m, 30m]`,
		`:5:17: service "payments", kafka.attempts: has no effect; set delay, for example 30s`,
		`:6:24: service "payments", kafka.drain.maxRate: has no effect; set tiers, for example [30s, 5m, 30m]`,
		`:8:45: service "stock", kafka.timeout: 1m0s is over in delivery 3 of 4; no other would follow: raise it to 5m30s ` +
			`or more, or ask for fewer deliveries`,
		`:8:79: service "stock", kafka.dltSuffix: has no effect; remove it, or choose dltStrategy: dead-letter`,
		`:10:52: service "billing", kafka.attempts: 30 make 29 retry topics; at most 20: lower it, or raise the multiplier ` +
			`so that maxDelay is reached earlier`,
		`:10:64: service "billing", kafka.window: 0 is out of range; allowed: 1 to 100000; for example 10000`,
	},
	"kafka-words": {
		`:4:20: service "payments", kafka.tiers[1]: 5 has no unit; write "5s" for seconds or "5ms" for milliseconds; ` +
			`allowed: 100ms to 24h; for example [30s, 5m, 30m]`,
		`:5:20: service "payments", kafka.dltStrategy: "dead-leter" is not known; did you mean dead-letter? allowed: ` +
			`dead-letter, retry-last, drop; for example dead-letter`,
		`:6:14: service "payments", kafka.order: "keys" is not known; did you mean key? allowed: unordered, key, park-key; ` +
			`for example park-key`,
		`:7:7: service "payments", kafka: unknown key "retry"; allowed: disabled, tiers, delay, multiplier, maxDelay, ` +
			`attempts, timeout, dltStrategy, retryErrors, neverRetryErrors, naming, retrySuffix, dltSuffix, groupInNames, ` +
			`concurrency, window, order, handlerTimeout, exactlyOnce, poisonBatch, outage, dltRetention, maxTrace, flood, drain`,
		`:8:26: service "payments", kafka.neverRetryErrors[0]: the number 7 is not text; write it in quotes: "7"`,
		`:9:23: service "payments", kafka.drain.factor: 0.5 is out of range; allowed: 1 to 100; for example 1.2`,
		`:9:28: service "payments", kafka.drain: unknown key "rampup"; did you mean rampUp?`,
	},
	"leading-zero": {
		`:1:24: defaults.maxRetries: 010 could mean 8 or 10; write it without the leading zero`,
		`:1:41: defaults.multiplier: 02.5 has a leading zero; write it without the leading zero`,
		`:3:26: service "payments", maxRetries: 09 has a leading zero; write it without the leading zero`,
		`:3:42: service "payments", multiplier: 007 has a leading zero; write it without the leading zero`,
		`:3:70: service "payments", retryBudget.reserve: -010 could mean -8 or -10; write it without the leading zero`,
		`:3:109: service "payments", circuitBreaker.slidingWindow: 0100 could mean 64 or 100; write it without the leading ` +
			`zero`,
	},
	"limits-without-effect": {
		`:4:24: service "payments", rateLimit.burst: has no effect; set limit, for example limit: 1000/s`,
		`:4:35: service "payments", rateLimit.shadow: has no effect; set limit, for example limit: 1000/s`,
		`:4:50: service "payments", rateLimit.maxWait: has no effect; set limit, for example limit: 1000/s`,
		`:4:63: service "payments", rateLimit.maxKeys: has no effect; remove it: all attempts share one bucket`,
		`:5:24: service "payments", throttle.shadow: has no effect; set k, for example k: 2`,
		`:5:38: service "payments", throttle.window: has no effect; set k, for example k: 2`,
		`:5:57: service "payments", throttle.maxRejection: has no effect; set k, for example k: 2`,
		`:5:84: service "payments", throttle.minimumNumberOfCalls: has no effect; set k, for example k: 2`,
		`:6:45: service "stock", rateLimit.maxKeys: has no effect; remove it: all attempts share one bucket`,
		`:7:29: service "mail", rateLimit.limit: "10" is not a rate; write for example 1000/s, 50/m or 100/10s; for ` +
			`example 1000/s`,
		`:7:58: service "mail", throttle.k: 1 is out of range; allowed: 1.01 to 100; for example 2`,
	},
	"merge-itself": {
		`:1:19: defaults: this is merged into itself; remove this alias`,
	},
	"merge-of-a-word": {
		`:2:7: defaults: the text "common" cannot be merged; << takes an alias of a mapping, for example <<: *common`,
	},
	"merge-of-lists": {
		`:1:10: service "payments": the number 1 cannot be merged; << takes an alias of a mapping, for example <<: *common`,
	},
	"method-lower-case": {
		`:2:34: service "payments", retryMethods[1]: "put" is no method; allowed: upper-case HTTP methods, for example ` +
			`PUT, and full names of gRPC methods, for example "/shop.Payment/Get"`,
	},
	"misplaced-key": {
		`:3:5: service "payments": unknown key "failureThreshold"; failureThreshold belongs in the section circuitBreaker`,
		`:4:16: service "payments", bulkhead: unknown key "maxRetries"; maxRetries stands beside the sections, not in one`,
	},
	"missing-colon": {
		`:4:5: not valid YAML: mapping values are not allowed in this context; look at this line and the one before it: a ` +
			`colon, the space after it, or the indentation is wrong`,
	},
	"missing-colon-above-comment": {
		`:7:5: not valid YAML: could not find expected ':'; look at what begins on line 4: a colon, the space after it, or ` +
			`the indentation is wrong`,
	},
	"missing-colon-of-a-service": {
		`:3:3: not valid YAML: could not find expected ':'; look at this line and the one before it: a colon, the space ` +
			`after it, or the indentation is wrong`,
	},
	"missing-space": {
		`:5:5: not valid YAML: could not find expected ':'; look at this line and the one before it: a colon, the space ` +
			`after it, or the indentation is wrong`,
	},
	"multiplier-below-one": {
		`:2:15: defaults.multiplier: 0.5 is out of range; allowed: 1 to 100; for example 2.0`,
	},
	"negative-duration": {
		`:2:28: service "payments", initialDelay: -100ms is out of range; allowed: 1ms to 1h; for example 100ms`,
	},
	"no-policy": {
		`:1:1: the file has no policy; it needs at least one of defaults, services, gatewayRetries and protect; for ` +
			`example "defaults: {maxRetries: 3}"`,
	},
	"no-value": {
		`:3:16: service "payments", maxRetries: has no value; write a whole number or remove the key; allowed: 0 to 100; ` +
			`for example 3`,
		`:4:14: service "payments", retryOn: has no value; write a list or remove the key; for example [gateway-error, ` +
			`connect-failure]`,
		`:5:37: service "payments", circuitBreaker.slidingWindow: has no value; write text or remove the key; for example ` +
			`10s`,
	},
	"not-a-mapping": {
		`:1:1: a list is not a mapping; it needs at least one of defaults, services, gatewayRetries and protect; for ` +
			`example "defaults: {maxRetries: 3}"`,
	},
	"not-a-number": {
		`:2:26: service "payments", multiplier: .nan is not a finite number; allowed: 1 to 100; for example 2.0`,
		`:2:46: service "payments", jitterFactor: .inf is not a finite number; allowed: 0 to 1; for example 0.5`,
		`:3:23: service "stock", multiplier: nan is not a finite number; allowed: 1 to 100; for example 2.0`,
	},
	"not-utf8": {
		`:3:6: not valid YAML: the file is not UTF-8 text; save it as UTF-8`,
	},
	"null-member": {
		`:2:31: service "payments", retryOn[1]: has no value; write text or remove the key; for example [gateway-error, ` +
			`connect-failure]`,
	},
	"only-comments": {
		`:1:1: the file is empty; it needs at least one of defaults, services, gatewayRetries and protect; for example ` +
			`"defaults: {maxRetries: 3}"`,
	},
	"overflow": {
		`:2:26: service "payments", maxRetries: 99999999999999999999 is out of range; allowed: 0 to 100; for example 3`,
		`:2:60: service "payments", multiplier: 1e999 is out of range; allowed: 1 to 100; for example 2.0`,
	},
	"pacing": {
		`:2:26: service "idle", pacing.burst: has no effect; set perSecond, for example perSecond: 10`,
		`:2:37: service "idle", pacing.jitter: has no effect; set perSecond, for example perSecond: 10`,
		`:2:50: service "idle", pacing.rampUp: has no effect; set perSecond, for example perSecond: 10`,
		`:2:66: service "idle", pacing.rampUpFrom: has no effect; set perSecond, for example perSecond: 10`,
		`:2:80: service "idle", pacing.maxWait: has no effect; set perSecond, for example perSecond: 10`,
		`:4:45: service "ramp", pacing.rampUpFrom: has no effect; set rampUp, for example rampUp: 5s`,
		`:5:31: service "range", pacing.perSecond: 0.001 is out of range; allowed: 0.01 to 1000000; for example 10`,
		`:5:45: service "range", pacing.burst: 0 is out of range; allowed: 1 to 1000000; for example 2`,
		`:5:56: service "range", pacing.jitter: 2 is out of range; allowed: 0.001 to 1; for example 0.5`,
		`:5:67: service "range", pacing.rampUp: 2h is out of range; allowed: 0s to 1h; for example 5s`,
		`:5:83: service "range", pacing.rampUpFrom: 0 is out of range; allowed: 0.001 to 1; for example 0.1`,
		`:5:95: service "range", pacing.maxWait: 0s is out of range; allowed: 1ms to 1h; for example 1s`,
		`:6:30: service "rate", pacing.perSecond: the text "10/s" is not a number; allowed: 0.01 to 1000000; for example 10`,
		`:7:69: service "orders-db", pacing.rampUpFrom: has no effect; set rampUp, for example rampUp: 5s`,
	},
	"percent": {
		`:3:44: service "payments", circuitBreaker.failureRateThreshold: the text "50%" is not a number; write 0.5`,
	},
	"preset-contradicted": {
		`:3:3: service "orders-db", attemptTimeout: 5s is above timeout 2s (from the preset); an attempt cannot last ` +
			`longer than its call: lower it or raise timeout`,
		`:4:60: service "cache", initialDelay: 2s is above maxDelay 1s; lower it or raise maxDelay`,
	},
	"preset-in-defaults": {
		`:1:20: defaults.preset: cannot have a default; it says what one service begins with: write it there`,
	},
	"preset-misspelt": {
		`:2:23: service "orders-db", preset: "connection" is not known; did you mean connections? allowed: calls, ` +
			`connections; for example connections`,
		`:3:19: service "cache", preset: the number 5 is not text; write it in quotes: "5"`,
		`:4:19: service "queue", preset: "" is not known; allowed: calls, connections; for example connections`,
		`:5:12: service "search": unknown key "Preset"; did you mean preset?`,
	},
	"preset-of-requests": {
		`:4:16: service "orders-db", upstreams: leads requests to a policy for connections; remove it, or list the service ` +
			`that gets the requests under a name of its own, without preset`,
		`:5:13: service "orders-db", routes: leads requests to a policy for connections; remove it, or list the service ` +
			`that gets the requests under a name of its own, without preset`,
	},
	"protect-a-list": {
		`:2:3: protect: a list is not a mapping; for example {orders: {listen: "0.0.0.0:8080", upstreams: ` +
			`["http://127.0.0.1:9000"]}}`,
		`:3:8: redis: a list is not a mapping; write it as a mapping of: addresses, master, cluster, username, ` +
			`passwordFile, database, prefix, timeout, replicas, tls, embedded`,
	},
	"protect-listen-without-upstreams": {
		`:2:20: protect.orders.listen: has no upstreams behind it; for example upstreams: ["http://127.0.0.1:9000"]`,
		`:3:19: protect.stock.listen: has no upstreams behind it; for example upstreams: ["http://127.0.0.1:9000"]`,
		`:4:47: protect.mail.upstreams: the text "http" is not a list; for example ["http://127.0.0.1:9000"]`,
		`:5:20: protect.search.listen: the number 8083 is not text; write it in quotes: "8083"`,
	},
	"protect-misspelt": {
		`:2:38: protect.orders: unknown key "upstream"; did you mean upstreams?`,
		`:2:89: protect.orders.idempotency: unknown key "method"; did you mean methods?`,
		`:3:9: redis: unknown key "adresses"; did you mean addresses?`,
	},
	"protect-name": {
		`:2:3: protect: "" is no name; allowed: 1 to 253 printable characters without spaces around; for example ` +
			`payment-service`,
		`:3:11: protect.orders: the number 8080 is not a mapping; write it as a mapping of: listen, upstreams, ` +
			`discovery, outlierDetection, routes, ambiguousPaths, identityHeaders, tls, upstreamTLS, proxyProtocol, ` +
			`sendProxyProtocol, timeout, trustedPeers, caller, authentication, priority, rateLimit, shed, idempotency`,
		`:4:3: protect: duplicate protect "orders"; it stands on line 3 already: remove one of the two`,
	},
	"protect-numbers": {
		`:3:24: protect.orders.rateLimit.limit: "1e10/s" is out of range; allowed: 0 to 1000000000 in 1ms to 24h, for ` +
			`example 1000/s; for example 1000/s`,
		`:3:39: protect.orders.rateLimit.burst: 2000000000 is out of range; allowed: 1 to 1000000000; for example 100`,
		`:3:57: protect.orders.rateLimit.cost: -1 is out of range; allowed: 0.001 to 1000000; for example 1`,
		`:4:67: protect.orders.shed.minConcurrency: 20 is above maxConcurrency 10; lower it or raise maxConcurrency`,
		`:4:91: protect.orders.shed.initialConcurrency: 30 is not between minConcurrency 20 and maxConcurrency 10; bring ` +
			`it between the two`,
		`:5:47: protect.orders.idempotency.maxAnswer: 100000 is above maxMemory 65536: no such answer could be stored; ` +
			`lower it or raise maxMemory`,
		`:7:46: protect.stock.rateLimit.cost: 6 is above burst 5: no request would ever pass; lower it or raise burst`,
		`:8:32: protect.stock.shed.initialConcurrency: 2 is not between minConcurrency 4 and maxConcurrency 1000000; bring ` +
			`it between the two`,
		`:9:42: protect.mail.rateLimit.burst: the text "many" is not a whole number; allowed: 1 to 1000000000; for example ` +
			`100`,
	},
	"protect-scope": {
		`:5:43: protect.orders.idempotency.scope: an address does not say whose a key is: others behind the same one would ` +
			`get the answer, and the same user from another would be served twice; allowed: credential, everybody, ` +
			`"header:NAME" and "cookie:NAME", for example "header:X-Api-Key"; empty for what caller says, else the credential`,
		`:9:43: protect.stock.idempotency.scope: an address does not say whose a key is: others behind the same one would ` +
			`get the answer, and the same user from another would be served twice; allowed: credential, everybody, ` +
			`"header:NAME" and "cookie:NAME", for example "header:X-Api-Key"; empty for what caller says, else the credential`,
	},
	"protect-ports-clash": {
		`:3:19: protect.stock.listen: :8080 and 127.0.0.1:8080 cannot be listened on both; write one of them in both ` +
			`entries, or another port`,
		`:6:19: protect.admin.listen: 127.0.0.1:8081 and [::]:8081 cannot be listened on both; write one of them in both ` +
			`entries, or another port`,
	},
	"protect-route-taken": {
		`:3:52: protect.orders.routes[1]: "/orders/" is among the routes already; remove one of the two`,
		`:4:50: protect.stock.routes[1]: "/orders/" belongs to "orders" already; give them different routes, for example ` +
			`routes: [{path: /stock}]`,
		`:6:32: protect.mail.routes: every other request to 127.0.0.1:8080 belongs to "search" already; give them ` +
			`different routes, for example routes: [{path: /mail}]`,
		`:7:32: protect.all.routes[0]: "/" belongs to "search" already; give them different routes, for example routes: ` +
			`[{path: /all}]`,
	},
	"protect-tls-differs": {
		`:3:104: protect.stock.tls: is not that of "orders", which listens on 0.0.0.0:8443 too; write the same tls in both`,
		`:4:3: protect.mail.tls: is not that of "orders", which listens on 0.0.0.0:8443 too; write the same tls in both`,
	},
	"protect-identity": {
		`:2:86: protect.orders.proxyProtocol: has no effect; say who sends such headers in trustedPeers, for ` +
			`example trustedPeers: [10.0.0.0/8]`,
		`:3:101: protect.stock.tls.certificate: is missing; set certificate and key together`,
		`:3:101: protect.stock.tls: is not that of "orders", which listens on 0.0.0.0:8080 too; write the ` +
			`same tls in both`,
		`:4:18: protect.mail.listen: "unix:/run/mail.sock?mode=0999" is not an address; allowed: unix: with ` +
			`the path of a socket of at most 103 bytes, and perhaps ?mode=0660, for example ` +
			`"unix:/run/abate/orders.sock"`,
		`:4:104: protect.mail.upstreamTLS.ca: has no effect; write https:// in an upstream, or remove it`,
		`:6:3: protect.blog.proxyProtocol: is not that of "news", which listens on 0.0.0.0:8081 too; write ` +
			`the same proxyProtocol in both`,
	},
	"tls-upstream": {
		`:3:50: service "a", tls.serverName: has no effect; write https:// in an upstream, or remove it`,
		`:4:38: service "b", tls.key: is missing; set certificate and key together`,
		`:4:71: service "b", tls.minVersion: "TLSv1.1" is not known; did you mean TLSv1.2? allowed: TLSv1.2, ` +
			`TLSv1.3; for example TLSv1.3`,
		`:4:92: service "b", tls.serverName: "b:443" is not a host name; without scheme and port, for ` +
			`example "payments.internal"`,
		`:4:121: service "b", sendProxyProtocol: "v3" is not known; did you mean v1? allowed: v1, v2; for ` +
			`example v2`,
		`:5:43: service "c", tls.ca: is missing; set it to the trust bundle: the authorities of the system ` +
			`issue no SPIFFE IDs`,
		`:5:81: service "c", tls.peers[1]: "spiffe://Example.org/c" is no identity; allowed: a SPIFFE ID, ` +
			`for example "spiffe://example.org/payments" or "spiffe://example.org/*", or a DNS name`,
		`:5:107: service "c", tls.peers[2]: "https://c" is no identity; allowed: a SPIFFE ID, for example ` +
			`"spiffe://example.org/payments" or "spiffe://example.org/*", or a DNS name`,
		`:5:120: service "c", tls.peers[3]: "spiffe://c/*/d" is no identity; allowed: a SPIFFE ID, for ` +
			`example "spiffe://example.org/payments" or "spiffe://example.org/*", or a DNS name`,
		`:6:19: service "d", upstreams[0]: "https+unix:run/d.sock" is not a base URL; allowed: unix, ` +
			`http+unix, https+unix or h2c+unix with the path of a socket, of at most 103 bytes, and perhaps ?host=NAME, ` +
			`for example "unix:/run/payments.sock"`,
		`:6:50: service "d", tls.certificate: is missing; set certificate and key together`,
	},
	"protect-tls-half": {
		`:2:79: protect.orders.tls.key: is missing; set certificate and key together`,
		`:3:78: protect.stock.tls.certificate: is missing; set certificate and key together`,
		`:4:77: protect.mail.tls.certificate: is missing; set certificate and key together`,
		`:5:82: protect.search.caller: mtls needs client certificates; set tls.clientCA`,
		`:6:81: protect.admin.caller: token needs authentication; set authentication.bearerTokens`,
	},
	"protect-unknown-key": {
		`:3:5: protect.orders: unknown key "listens"; did you mean listen?`,
		`:4:5: protect.orders: unknown key "ratelimit"; did you mean rateLimit?`,
		`:5:17: protect.orders.rateLimit: unknown key "limt"; did you mean limit?`,
		`:6:12: protect.orders.shed: unknown key "methods"; methods belongs in the section idempotency`,
		`:7:5: protect.orders: unknown key "failureThreshold"; allowed: listen, upstreams, discovery, outlierDetection, ` +
			`routes, ambiguousPaths, identityHeaders, tls, upstreamTLS, proxyProtocol, ` +
			`sendProxyProtocol, timeout, trustedPeers, caller, authentication, priority, rateLimit, shed, idempotency`,
		`:8:11: protect.stock: unknown key "burst"; burst belongs in the section rateLimit`,
	},
	"protect-without-effect": {
		`:3:16: protect.orders.upstreams: has no effect; set listen, for example listen: 0.0.0.0:8080; in Go programs ` +
			`remove it`,
		`:4:13: protect.orders.routes: has no effect; set listen, for example listen: 0.0.0.0:8080; in Go programs remove it`,
		`:5:10: protect.orders.tls: has no effect; set listen, for example listen: 0.0.0.0:8080; in Go programs remove it`,
		`:6:13: protect.orders.caller: has no effect; say whose headers are believed in trustedPeers, for example ` +
			`trustedPeers: [10.0.0.0/8]`,
		`:7:24: protect.orders.priority.header: has no effect; say whose headers are believed in trustedPeers, for example ` +
			`trustedPeers: [10.0.0.0/8]`,
		`:8:24: protect.orders.rateLimit.burst: has no effect; set limit, for example limit: 1000/s`,
		`:8:36: protect.orders.rateLimit.maxKeys: has no effect; set limit, for example limit: 1000/s`,
		`:8:44: protect.orders.rateLimit.key: has no effect; set limit, for example limit: 1000/s`,
		`:8:58: protect.orders.rateLimit.cost: has no effect; set limit, for example limit: 1000/s`,
		`:8:71: protect.orders.rateLimit.whenAway: has no effect; set limit, for example limit: 1000/s`,
		`:8:84: protect.orders.rateLimit.reset: has no effect; set limit, for example limit: 1000/s`,
		`:8:99: protect.orders.rateLimit.shadow: has no effect; set limit, for example limit: 1000/s`,
		`:9:48: protect.orders.shed.minConcurrency: has no effect; remove it: the limit is maxConcurrency; or choose ` +
			`another concurrency, for example gradient`,
		`:9:71: protect.orders.shed.initialConcurrency: has no effect; remove it: the limit is maxConcurrency; or choose ` +
			`another concurrency, for example gradient`,
		`:9:99: protect.orders.shed.maxQueue: has no effect; remove noQueue: it lets nobody wait`,
		`:10:29: protect.orders.idempotency.required: has no effect; set methods, for example methods: [POST, PATCH]`,
		`:10:46: protect.orders.idempotency.retention: has no effect; set methods, for example methods: [POST, PATCH]`,
		`:10:57: protect.orders.idempotency.lease: has no effect; set methods, for example methods: [POST, PATCH]`,
		`:10:70: protect.orders.idempotency.maxBody: has no effect; set methods, for example methods: [POST, PATCH]`,
		`:10:86: protect.orders.idempotency.maxMemory: has no effect; set methods, for example methods: [POST, PATCH]`,
		`:10:104: protect.orders.idempotency.whenAway: has no effect; set methods, for example methods: [POST, PATCH]`,
		`:12:35: protect.stock.rateLimit.key: has no effect; say whose headers are believed in trustedPeers, for example ` +
			`trustedPeers: [10.0.0.0/8]`,
		`:12:62: protect.stock.rateLimit.whenAway: has no effect; set fleet: true, or remove it`,
		`:13:46: protect.stock.idempotency.whenAway: has no effect; set fleet: true, or remove it`,
		`:15:39: protect.mail.rateLimit.maxKeys: has no effect; set key, for example key: caller; without one there is one ` +
			`bucket`,
		`:16:60: protect.mail.idempotency.maxMemory: has no effect; remove it: with fleet the keys are in Redis`,
		`:18:24: protect.search.rateLimit.limit: "fast" is not a rate; write for example 1000/s, 50/m or 100/10s; for ` +
			`example 1000/s`,
		`:19:28: protect.search.idempotency.methods: the text "POST" is not a list; for example [POST, PATCH]`,
	},
	"protect-words": {
		`:3:13: protect.orders.listen: "127.0.0.1" is not an address; allowed: host:port, for example "0.0.0.0:8080"`,
		`:4:17: protect.orders.upstreams[0]: "127.0.0.1:9000" is not a base URL; allowed: http, https or h2c with a host, ` +
			`for example "http://payments:8080"`,
		`:5:14: protect.orders.routes[0]: matches every request; give it a host, a path or both`,
		`:5:25: protect.orders.routes[1].path: "orders" does not begin with /; for example "/payments"`,
		`:6:14: protect.orders.timeout: 2 has no unit; write "2s" for seconds or "2ms" for milliseconds; allowed: 0s to ` +
			`24h; for example 2s`,
		`:7:32: protect.orders.trustedPeers[1]: "10.0.0.0/33" is not an address; allowed: an IP address or a CIDR, for ` +
			`example 10.0.0.0/8`,
		`:7:45: protect.orders.trustedPeers[2]: "proxy" is not an address; allowed: an IP address or a CIDR, for example ` +
			`10.0.0.0/8`,
		`:8:13: protect.orders.caller: "user" is not known; allowed: ip, mtls, token, or "header:NAME", for example ` +
			`"header:X-Tenant"`,
		`:9:36: protect.orders.authentication.bearerTokens: the number 7 is not text; write it in quotes: "7"`,
		`:10:24: protect.orders.priority.header: "X Priority" is not the name of a header; for example Abate-Priority`,
		`:10:47: protect.orders.priority.default: "HIGH" is not a priority; allowed: CRITICAL_PLUS, CRITICAL, ` +
			`SHEDDABLE_PLUS, SHEDDABLE; for example SHEDDABLE_PLUS`,
		`:11:24: protect.orders.rateLimit.limit: "100" is not a rate; write for example 1000/s, 50/m or 100/10s; for ` +
			`example 1000/s`,
		`:11:34: protect.orders.rateLimit.key: "tenant" is not known; allowed: caller, ip, or "header:NAME", for example ` +
			`"header:X-Tenant"`,
		`:11:52: protect.orders.rateLimit.whenAway: "never" is not known; allowed: local, closed, open; for example local`,
		`:11:66: protect.orders.rateLimit.reset: "unix" is not known; allowed: seconds, epoch; for example epoch`,
		`:12:25: protect.orders.shed.concurrency: "gradiant" is not known; did you mean gradient? allowed: bbr, fixed, ` +
			`gradient, vegas, aimd, none; for example gradient`,
		`:12:40: protect.orders.shed.cpu: 90 is out of range; allowed: 0.05 to 0.99; for example 0.9`,
		`:13:29: protect.orders.idempotency.methods[0]: "post" is no method; allowed: upper-case HTTP methods, for example ` +
			`PUT, and full names of gRPC methods, for example "/shop.Payment/Get"`,
		`:13:43: protect.orders.idempotency.lease: 1ms is out of range; allowed: 100ms to 1h; for example 30s`,
		`:13:58: protect.orders.idempotency.whenAway: "local" is not known; allowed: closed, open; for example closed`,
	},
	"protect-zero": {
		`:3:36: protect.orders.rateLimit.burst: 0 is out of range; allowed: 1 to 1000000000; for example 100`,
		`:3:45: protect.orders.rateLimit.cost: 0 is out of range; allowed: 0.001 to 1000000; for example 1`,
		`:4:28: protect.orders.shed.maxConcurrency: 0 is out of range; allowed: 1 to 1000000; for example 200`,
		`:4:36: protect.orders.shed.cpu: 0 is out of range; allowed: 0.05 to 0.99; for example 0.9`,
		`:4:54: protect.orders.shed.maxRetryShare: 0 is out of range; allowed: 0.01 to 10; for example 0.1`,
		`:4:67: protect.orders.shed.maxQueue: 0 is out of range; allowed: 1 to 1000000; for example 50`,
		`:5:47: protect.orders.idempotency.retention: 0 is out of range; allowed: 1s to 720h; for example 24h`,
		`:5:59: protect.orders.idempotency.maxBody: 0 is out of range; allowed: 1 to 16777216; for example 65536`,
	},
	"quote-open": {
		`:3:3: not valid YAML: found unexpected end of stream; check indentation, quotes and brackets`,
	},
	"quoted": {
		`:1:24: defaults.maxRetries: the text "3" is not a whole number; remove the quotes: write 3`,
		`:1:41: defaults.multiplier: the text "2.5" is not a number; remove the quotes: write 2.5`,
		`:1:66: defaults.hedge.disabled: the text "true" is not true or false; remove the quotes: write true`,
		`:3:26: service "payments", maxRetries: the text "300" is not a whole number; allowed: 0 to 100; for example 3`,
		`:3:60: service "payments", circuitBreaker.disabled: the text "yes" is not true or false; allowed: true or false`,
		`:4:17: gatewayRetries: the text "false" is not true or false; remove the quotes: write false`,
	},
	"rate": {
		`:2:26: service "a", rateLimit.limit: "100" is not a rate; write for example 1000/s, 50/m or 100/10s; for example ` +
			`1000/s`,
		`:3:26: service "b", rateLimit.limit: "100/d" is not a rate; write for example 1000/s, 50/m or 100/10s; for ` +
			`example 1000/s`,
		`:4:26: service "c", rateLimit.limit: "-1/s" is out of range; allowed: 0 to 1000000000 in 1ms to 24h, for example ` +
			`1000/s; for example 1000/s`,
		`:5:26: service "d", rateLimit.limit: "2e9/s" is out of range; allowed: 0 to 1000000000 in 1ms to 24h, for example ` +
			`1000/s; for example 1000/s`,
		`:6:26: service "e", rateLimit.limit: "1/48h" is out of range; allowed: 0 to 1000000000 in 1ms to 24h, for example ` +
			`1000/s; for example 1000/s`,
		`:7:26: service "f", rateLimit.limit: "nan/s" is out of range; allowed: 0 to 1000000000 in 1ms to 24h, for example ` +
			`1000/s; for example 1000/s`,
		`:8:26: service "g", rateLimit.limit: has no value; write text or remove the key; for example 1000/s`,
		`:9:26: service "h", rateLimit.limit: a list is not text; for example 1000/s`,
		`:10:40: service "i", rateLimit.maxWait: 2h is out of range; allowed: 0s to 1h; for example 100ms`,
		`:11:18: service "j", rateLimit: the text "10/s" is not a mapping; write it as a mapping of: disabled, shadow, ` +
			`limit, burst, maxKeys, maxWait`,
	},
	"outside": {
		`:4:13: outside.connect[0]: "https://api.example" is no host; allowed: a host, "*.example.com", an ` +
			`address, a CIDR or "*", each with an optional port; for example "api.example.com:443" or "10.0.0.0/8:*"`,
		`:4:36: outside.connect[1]: "10.0.0.1/8" has bits behind its length; write "10.0.0.0/8"`,
		`:4:50: outside.connect[2]: "99999" is no port; write 1 to 65535, or * for any`,
		`:5:16: outside.passThrough: an empty list would mean the default; name at least one host, or remove ` +
			`passThrough`,
		`:6:3: outside: unknown key "allow"; allowed: connect, passThrough`,
	},
	"rewrite": {
		`:2:64: service "a", routes[0].rewrite: "v1" does not begin with /; write "/" to strip the prefix, ` +
			`or for example "/v2"`,
		`:2:96: service "a", routes[1].rewrite: there is no path whose prefix could be replaced; give the ` +
			`route a path, or remove rewrite`,
		`:3:64: service "b", routes[0].rewrite: "/v1/../v2" is not a path in its plain form; write it ` +
			`without a query, dots between slashes, doubled slashes, semicolons, and escapes that are not needed`,
		`:3:98: service "b", routes[1].rewrite: "/v%31" is not a path in its plain form; write it without a ` +
			`query, dots between slashes, doubled slashes, semicolons, and escapes that are not needed`,
		`:4:64: service "c", routes[0].rewrite: "/v1?x=1" is not a path in its plain form; write it without ` +
			`a query, dots between slashes, doubled slashes, semicolons, and escapes that are not needed`,
	},
	"rewrite-kept": {
		`:3:64: service "a", routes[0].rewrite: "/v1" has no sure meaning where paths are kept as they come; ` +
			`remove rewrite, or ambiguousPaths: keep`,
		`:9:34: protect.b.routes[0].rewrite: "/" has no sure meaning where paths are kept as they come; ` +
			`remove rewrite, or ambiguousPaths: keep`,
	},
	"redis-alone": {
		`:1:1: the file has no policy; it needs at least one of defaults, services, gatewayRetries and protect; for ` +
			`example "defaults: {maxRetries: 3}"`,
	},
	"redis-database-of-a-cluster": {
		`:2:52: redis.database: a cluster has no database 1; remove database`,
	},
	"redis-embedded-and-addresses": {
		`:2:46: redis.embedded: a Redis in this process has no addresses; remove embedded, or the addresses`,
	},
	"redis-embedded-with-more": {
		`:2:33: redis.master: has no effect; remove it: embedded is a Redis in this process`,
		`:2:45: redis.cluster: has no effect; remove it: embedded is a Redis in this process`,
		`:2:61: redis.username: has no effect; remove it: embedded is a Redis in this process`,
		`:2:78: redis.passwordFile: has no effect; remove it: embedded is a Redis in this process`,
		`:2:86: redis.tls: has no effect; remove it: embedded is a Redis in this process`,
	},
	"redis-username-alone": {
		`:2:42: redis.username: has no effect without a password; add passwordFile, or remove username`,
	},
	"redis-empty": {
		`:2:1: redis.addresses: is missing; for example addresses: ["redis:6379"], or embedded: true for trying`,
	},
	"redis-master-and-cluster": {
		`:2:50: redis.master: a cluster has no Sentinels; remove cluster, or the master`,
	},
	"redis-no-address": {
		`:2:20: redis.addresses: an empty list would mean the default; name at least one, or remove redis`,
	},
	"redis-no-value": {
		`:1:9: protect: has no value; write {} or remove the key`,
		`:2:7: redis: has no value; write {} or remove the key`,
	},
	"redis-several-addresses": {
		`:2:31: redis.addresses[1]: one Redis has one address; add cluster: true if they are nodes of a cluster, or master ` +
			`if they are Sentinels`,
	},
	"redis-words": {
		`:2:9: redis: unknown key "address"; did you mean addresses?`,
		`:2:37: redis.addresses[0]: "redis" is not an address; allowed: host:port, for example "redis:6379"`,
		`:2:44: redis.addresses[1]: one Redis has one address; add cluster: true if they are nodes of a cluster, or master ` +
			`if they are Sentinels`,
		`:2:58: redis.addresses[2]: ":6379" is not an address; allowed: host:port, for example "redis:6379"`,
		`:2:67: redis.addresses[3]: "redis:0" is not an address; allowed: host:port, for example "redis:6379"`,
		`:2:88: redis.timeout: 0 is out of range; allowed: 1ms to 10s; for example 20ms`,
		`:2:101: redis.database: -1 is out of range; allowed: 0 to 1000000; for example 1`,
		`:2:105: redis: unknown key "password"; allowed: addresses, master, cluster, username, passwordFile, database, ` +
			`prefix, timeout, replicas, tls, embedded`,
		`:2:131: redis.prefix: "{shop}" cannot begin a key; allowed: at most 100 bytes without braces, which choose the ` +
			`node of a cluster; for example "abate:"`,
	},
	"route-host": {
		`:3:21: service "payments", routes[0].host: "https://api.example.com" is not a host; without scheme and path, for ` +
			`example "api.example.com"`,
	},
	"route-matches-all": {
		`:4:9: service "payments", routes[0]: matches every request; give it a host, a path or both`,
	},
	"route-path": {
		`:4:39: service "payments", routes[0].path: "payments" does not begin with /; for example "/payments"`,
	},
	"route-taken": {
		`:3:39: service "refunds", routes[1]: "/pay/" belongs to service "payments" already; remove it here or there`,
	},
	"routes-in-defaults": {
		`:2:11: defaults.routes: cannot have a default; it is about one service: write it there`,
		`:3:14: defaults.upstreams: cannot have a default; it is about one service: write it there`,
	},
	"service-name": {
		`:2:3: services: "" is no name; allowed: 1 to 253 printable characters without spaces around; for example ` +
			`payment-service`,
		`:3:3: services: " payments" has characters that a name cannot have; allowed: 1 to 253 printable characters ` +
			`without spaces around; for example payment-service`,
		`:4:3: services: "a\x00b" has characters that a name cannot have; allowed: 1 to 253 printable characters without ` +
			`spaces around; for example payment-service`,
	},
	"service-not-a-mapping": {
		`:2:13: service "payments": the number 3 is not a mapping; write it as a mapping of: preset, timeout, ` +
			`attemptTimeout, maxRetries, backoff, initialDelay, maxDelay, multiplier, jitter, jitterFactor, maxElapsed, ` +
			`maxRetryAfter, retryAfterJitter, retryOwner, internalHeaders, retryOn, neverRetryOn, retryMethods, retryBudget, ` +
			`circuitBreaker, bulkhead, rateLimit, pacing, throttle, hedge, fallback, outlierDetection, healthCheck, ` +
			`kafka, ignoreZones, upstreams, discovery, weights, routes, tls, sendProxyProtocol`,
	},
	"services-a-list": {
		`:2:3: services: a list is not a mapping; for example {payment-service: {maxRetries: 3}}`,
	},
	"slow-call-above-attempt-timeout": {
		`:4:77: service "payments", circuitBreaker.slowCallDurationThreshold: 2s is above attemptTimeout 1s; no attempt ` +
			`can be that slow: lower it or raise attemptTimeout`,
	},
	"tab": {
		`:2:1: not valid YAML: found character that cannot start any token; a tab cannot indent: use spaces`,
	},
	"text-too-long": {
		`:2:24: service "payments", retryOn[0]: 2000 bytes are too long; allowed: at most 1024`,
	},
	"twice-on-the-page": {
		`:5:3: protect.payments: its calls to the service are called "payments (local)", and there is a service of that ` +
			`name; rename one of them`,
	},
	"two-documents": {
		`:3:1: a second YAML document begins here; one file holds one policy: remove what follows the ---`,
	},
	"unknown-anchor": {
		`:2:3: not valid YAML: unknown anchor 'common' referenced; an anchor must stand above its first alias, for example ` +
			`&common`,
	},
	"unknown-key": {
		`:3:5: service "payments": unknown key "maxRetrys"; did you mean maxRetries?`,
		`:4:5: service "payments": unknown key "max_delay"; did you mean maxDelay?`,
		`:5:5: service "payments": unknown key "colour"; allowed: preset, timeout, attemptTimeout, maxRetries, backoff, ` +
			`initialDelay, maxDelay, multiplier, jitter, jitterFactor, maxElapsed, maxRetryAfter, retryAfterJitter, ` +
			`retryOwner, internalHeaders, retryOn, neverRetryOn, retryMethods, retryBudget, circuitBreaker, bulkhead, ` +
			`rateLimit, pacing, throttle, hedge, fallback, outlierDetection, healthCheck, kafka, ignoreZones, upstreams, ` +
			`discovery, weights, routes, tls, sendProxyProtocol`,
	},
	"unknown-key-behind-aliases": {
		`:1:10: service "payments": unknown key "maxRetrys"; did you mean maxRetries?`,
		`:1:10: service "stock": unknown key "maxRetrys"; did you mean maxRetries?`,
	},
	"unknown-section-key": {
		`:3:22: service "payments", circuitBreaker: unknown key "ramp-up"; did you mean rampUp?`,
		`:3:35: service "payments", circuitBreaker: unknown key "slidingWindows"; did you mean slidingWindow?`,
	},
	"unknown-top-key": {
		`:1:1: unknown key "default"; did you mean defaults?`,
	},
	"upstream-not-url": {
		`:2:26: service "payments", upstreams[0]: "payments:8080" is not a base URL; allowed: http, https or h2c with a ` +
			`host, for example "http://payments:8080"`,
		`:2:43: service "payments", upstreams[1]: "http://" is not a base URL; allowed: http, https or h2c with a host, ` +
			`for example "http://payments:8080"`,
	},
	"upstream-taken": {
		`:3:25: service "refunds", upstreams[0]: "http://API/pay/" belongs to service "payments" already; remove it here ` +
			`or there, or give one of them routes`,
	},
	"window-below-minimum": {
		`:3:37: service "payments", circuitBreaker.slidingWindow: holds 10 calls, fewer than minimumNumberOfCalls 100; ` +
			`raise it or lower the minimum`,
	},
	"window-text": {
		`:3:37: service "payments", circuitBreaker.slidingWindow: window "10 calls": write 100 for the last 100 calls or ` +
			`10s for the last ten seconds; for example 10s`,
		`:5:37: service "stock", circuitBreaker.slidingWindow: window of 5000000 calls: allowed are 1 to 1000000 calls; ` +
			`for example 10s`,
	},
	"without-effect": {
		`:4:26: service "payments", bulkhead.maxQueue: has no effect; set maxConcurrentCalls, for example 100`,
		`:4:39: service "payments", bulkhead.maxWait: has no effect; set maxConcurrentCalls, for example 100`,
		`:4:50: service "payments", bulkhead.order: has no effect; set maxConcurrentCalls, for example 100`,
		`:5:24: service "payments", hedge.maxHedges: has no effect; set delay or quantile, for example delay: 200ms`,
		`:5:37: service "payments", hedge.minDelay: has no effect; set delay or quantile, for example delay: 200ms`,
		`:6:22: service "payments", fallback.body: has no effect; set status, for example 200`,
		`:6:41: service "payments", fallback.contentType: has no effect; set status, for example 200`,
		`:7:42: service "stock", bulkhead.maxConcurrentCalls: the text "ten" is not a whole number; allowed: 0 to 1000000; ` +
			`for example 25`,
		`:7:77: service "stock", hedge.delay: 1 has no unit; write "1s" for seconds or "1ms" for milliseconds; allowed: ` +
			`1ms to 1h; for example 50ms`,
		`:7:114: service "stock", fallback.status: 1 is out of range; allowed: 200 to 599; for example 200`,
	},
	"wrong-type": {
		`:2:15: defaults.maxRetries: the text "three" is not a whole number; allowed: 0 to 100; for example 3`,
		`:3:15: defaults.multiplier: a list is not a number; allowed: 1 to 100; for example 2.0`,
		`:4:12: defaults.retryOn: the text "gateway-error" is not a list; for example [gateway-error, connect-failure]`,
		`:5:10: defaults.hedge: the text "50ms" is not a mapping; write it as a mapping of: disabled, delay, quantile, ` +
			`minDelay, maxHedges`,
		`:6:24: defaults.fallback.disabled: the text "yes" is not true or false; allowed: true or false`,
		`:6:35: defaults.fallback.body: the number 7 is not text; write it in quotes: "7"`,
		`:8:26: service "payments", maxRetries: the number 2.5 is not a whole number; allowed: 0 to 100; for example 3`,
		`:8:44: service "payments", retryBudget: a list is not a mapping; write it as a mapping of: disabled, kind, ratio, ` +
			`minRatio, maxRatio, window, reserve, clients, fleet, maxTokens, refillPerSecond, costPerRetry, ` +
			`depositPerSuccess, transientCost, overloadCost`,
		`:8:58: service "payments", retryOn[0]: the number 503 is not text; write it in quotes: "503"`,
	},
	"zero-means-default": {
		`:2:21: defaults.retryAfterJitter: 0 would mean the default, 0.25; remove the key or write a value above 0; ` +
			`allowed: 0 to 1; for example 0.25`,
		`:6:19: service "payments", jitterFactor: 0 would mean the default, 0.5; remove the key or write a value above 0; ` +
			`allowed: 0 to 1; for example 0.5`,
		`:7:36: service "payments", hedge.minDelay: 0 would mean the default, 1ms; remove the key or write a value above ` +
			`0; allowed: 0s to 1h; for example 5ms`,
	},
}
