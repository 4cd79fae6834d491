package policyfile_test

// mistakes is the whole message of every testdata/*.bad.yaml, without the name of the file in front of each line.
var mistakes = map[string][]string{
	"absurd-duration": {
		`:2:23: service "payments", timeout: 999999h is out of range; allowed: 0s to 24h; for example 2s`,
		`:2:42: service "payments", maxDelay: 99999999999999h is out of range; allowed: 1ms to 24h; for example 10s`,
	},
	"attempt-timeout-above-timeout": {
		`:4:21: service "payments", attemptTimeout: 2s is above timeout 1s; an attempt cannot last longer than its call: lower it or raise timeout`,
	},
	"bad-word": {
		`:3:14: service "payments", backoff: "exponentiel" is not known; did you mean exponential? allowed: exponential, linear, fixed, none; for example exponential`,
		`:4:13: service "payments", jitter: "random" is not known; allowed: full, equal, decorrelated, factor, none; for example full`,
		`:5:25: service "payments", retryBudget.kind: "Ratio" is not known; did you mean ratio? allowed: ratio, adaptive, tokens; for example ratio`,
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
		`:3:3: not valid YAML: did not find expected ',' or '}'; look at what begins on line 1: a bracket, a quote or an indentation may be wrong`,
	},
	"breaker-wait-above-max": {
		`:3:47: service "payments", circuitBreaker.waitDurationInOpenState: 30s is above maxWaitDurationInOpenState 10s; lower it or raise the maximum`,
	},
	"budget-ratios-crossed": {
		`:3:45: service "payments", retryBudget.minRatio: 0.5 is above maxRatio 0.1; lower it or raise maxRatio`,
	},
	"condition-unknown": {
		`:3:30: service "payments", retryOn[1]: "600" is not known; allowed: a status such as "503", "4xx", "5xx", gateway-error, connect-failure, reset, timeout, error`,
		`:5:9: service "payments", neverRetryOn[0]: "retriable-4xx" is not known; allowed: a status such as "503", "4xx", "5xx", gateway-error, connect-failure, reset, timeout, error`,
	},
	"configmap-empty-data": {
		`:3:7: data: no key holds a policy; for example "policy.yaml: |" and the policy below it`,
	},
	"configmap-empty-text": {
		`:4:16: the file is empty; it needs at least one of defaults, services and gatewayRetries; for example "defaults: {maxRetries: 3}"`,
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
	"configmap-quoted": {
		`:4:16: defaults.multiplier: 0.5 is out of range; allowed: 1 to 100; for example 2.0`,
		`:4:16: service "a": unknown key "x"; allowed: timeout, attemptTimeout, maxRetries, backoff, initialDelay, maxDelay, multiplier, jitter, jitterFactor, maxElapsed, maxRetryAfter, retryAfterJitter, retryOn, neverRetryOn, retryMethods, retryBudget, circuitBreaker, bulkhead, hedge, fallback, outlierDetection, upstreams, routes`,
	},
	"configmap-syntax": {
		`:7:9: not valid YAML: found character that cannot start any token; a tab cannot indent: use spaces`,
	},
	"configmap-two-policies": {
		`:8:3: data: more than one key holds a policy: "a.yaml", "b.yaml"; keep one of them`,
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
		`:1:26: defaults.initialDelay: 100 has no unit; write "100s" for seconds or "100ms" for milliseconds; allowed: 1ms to 1h; for example 100ms`,
		`:3:23: service "payments", timeout: 1.5 has no unit; write "1.5s" for seconds or "1.5ms" for milliseconds; allowed: 0s to 24h; for example 2s`,
		`:3:38: service "payments", maxDelay: 5 has no unit; write "5s" for seconds or "5ms" for milliseconds; allowed: 1ms to 24h; for example 10s`,
		`:3:59: service "payments", attemptTimeout: 1e3 has no unit; units are ms, s, m and h; allowed: 0s to 24h; for example 500ms`,
	},
	"duration-word": {
		`:1:21: defaults.timeout: the text "soon" is not a duration; units are ms, s, m and h; allowed: 0s to 24h; for example 2s`,
		`:1:41: defaults.initialDelay: the text "1d" is not a duration; units are ms, s, m and h; allowed: 1ms to 1h; for example 100ms`,
		`:1:55: defaults.maxDelay: true is not a duration; allowed: 1ms to 24h; for example 10s`,
	},
	"empty": {
		`:1:1: the file is empty; it needs at least one of defaults, services and gatewayRetries; for example "defaults: {maxRetries: 3}"`,
	},
	"empty-list": {
		`:1:26: defaults.retryMethods: an empty list would mean the default; remove the key, or write maxRetries: 0 to retry nothing`,
		`:3:23: service "payments", retryOn: an empty list would mean the default; remove the key, or write maxRetries: 0 to retry nothing`,
	},
	"everything": {
		`:2:15: defaults.maxRetries: 101 is out of range; allowed: 0 to 100; for example 3`,
		`:3:17: defaults.jitterFactor: 2 is out of range; allowed: 0 to 1; for example 0.5`,
		`:6:19: service "payments", initialDelay: 5 has no unit; write "5s" for seconds or "5ms" for milliseconds; allowed: 1ms to 1h; for example 100ms`,
		`:8:15: service "payments", circuitBreaker.rampUp: the text "3x" is not a duration; units are ms, s, m and h; allowed: 0s to 1h; for example 5s`,
		`:9:22: service "payments", circuitBreaker.slidingWindow: window "none": write 100 for the last 100 calls or 10s for the last ten seconds; for example 10s`,
		`:10:11: service "stock": unknown key "maxRetrys"; did you mean maxRetries?`,
		`:10:54: service "stock", attemptTimeout: 5s is above timeout 1s; an attempt cannot last longer than its call: lower it or raise timeout`,
		`:11:3: services: duplicate service "stock"; it stands on line 10 already: remove one of the two`,
		`:12:17: gatewayRetries: the number 1 is not true or false; allowed: true or false`,
		`:13:1: unknown key "gateway"; allowed: defaults, services, gatewayRetries`,
	},
	"explicit-zero": {
		`:3:19: service "payments", initialDelay: 0s is out of range; allowed: 1ms to 1h; for example 100ms`,
		`:4:17: service "payments", multiplier: 0 is out of range; allowed: 1 to 100; for example 2.0`,
		`:5:44: service "payments", circuitBreaker.minimumNumberOfCalls: 0 is out of range; allowed: 1 to 1000000; for example 20`,
	},
	"fallback-status": {
		`:2:33: service "payments", fallback.status: 199 is out of range; allowed: 200 to 599; for example 200`,
	},
	"gateway-retries": {
		`:1:17: gatewayRetries: the text "maybe" is not true or false; allowed: true or false`,
	},
	"hedge-above-attempt-timeout": {
		`:4:20: service "payments", hedge.delay: 200ms is above attemptTimeout 100ms; the hedge would never be sent: lower it or raise attemptTimeout`,
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
	"leading-zero": {
		`:1:24: defaults.maxRetries: 010 could mean 8 or 10; write it without the leading zero`,
		`:1:41: defaults.multiplier: 02.5 has a leading zero; write it without the leading zero`,
		`:3:26: service "payments", maxRetries: 09 has a leading zero; write it without the leading zero`,
		`:3:42: service "payments", multiplier: 007 has a leading zero; write it without the leading zero`,
		`:3:70: service "payments", retryBudget.reserve: -010 could mean -8 or -10; write it without the leading zero`,
		`:3:109: service "payments", circuitBreaker.slidingWindow: 0100 could mean 64 or 100; write it without the leading zero`,
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
		`:2:34: service "payments", retryMethods[1]: "put" is not an HTTP method; allowed: upper-case method names, for example PUT`,
	},
	"misplaced-key": {
		`:3:5: service "payments": unknown key "failureThreshold"; failureThreshold belongs in the section circuitBreaker`,
		`:4:16: service "payments", bulkhead: unknown key "maxRetries"; maxRetries stands beside the sections, not in one`,
	},
	"missing-colon": {
		`:4:5: not valid YAML: mapping values are not allowed in this context; look at this line and the one before it: a colon, the space after it, or the indentation is wrong`,
	},
	"missing-colon-above-comment": {
		`:7:5: not valid YAML: could not find expected ':'; look at what begins on line 4: a colon, the space after it, or the indentation is wrong`,
	},
	"missing-colon-of-a-service": {
		`:3:3: not valid YAML: could not find expected ':'; look at this line and the one before it: a colon, the space after it, or the indentation is wrong`,
	},
	"missing-space": {
		`:5:5: not valid YAML: could not find expected ':'; look at this line and the one before it: a colon, the space after it, or the indentation is wrong`,
	},
	"multiplier-below-one": {
		`:2:15: defaults.multiplier: 0.5 is out of range; allowed: 1 to 100; for example 2.0`,
	},
	"negative-duration": {
		`:2:28: service "payments", initialDelay: -100ms is out of range; allowed: 1ms to 1h; for example 100ms`,
	},
	"no-policy": {
		`:1:1: the file has no policy; it needs at least one of defaults, services and gatewayRetries; for example "defaults: {maxRetries: 3}"`,
	},
	"no-value": {
		`:3:16: service "payments", maxRetries: has no value; write a whole number or remove the key; allowed: 0 to 100; for example 3`,
		`:4:14: service "payments", retryOn: has no value; write a list or remove the key; for example [gateway-error, connect-failure]`,
		`:5:37: service "payments", circuitBreaker.slidingWindow: has no value; write text or remove the key; for example 10s`,
	},
	"not-a-mapping": {
		`:1:1: a list is not a mapping; it needs at least one of defaults, services and gatewayRetries; for example "defaults: {maxRetries: 3}"`,
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
		`:2:31: service "payments", retryOn[1]: has no value; write text or remove the key; for example [gateway-error, connect-failure]`,
	},
	"only-comments": {
		`:1:1: the file is empty; it needs at least one of defaults, services and gatewayRetries; for example "defaults: {maxRetries: 3}"`,
	},
	"overflow": {
		`:2:26: service "payments", maxRetries: 99999999999999999999 is out of range; allowed: 0 to 100; for example 3`,
		`:2:60: service "payments", multiplier: 1e999 is out of range; allowed: 1 to 100; for example 2.0`,
	},
	"percent": {
		`:3:44: service "payments", circuitBreaker.failureRateThreshold: the text "50%" is not a number; write 0.5`,
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
	"route-host": {
		`:3:21: service "payments", routes[0].host: "https://api.example.com" is not a host; without scheme and path, for example "api.example.com"`,
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
		`:2:11: defaults.routes: cannot have a default; it says which requests belong to one service: write it there`,
		`:3:14: defaults.upstreams: cannot have a default; it says which requests belong to one service: write it there`,
	},
	"service-name": {
		`:2:3: services: "" is no name; allowed: 1 to 253 printable characters without spaces around; for example payment-service`,
		`:3:3: services: " payments" has characters that a name cannot have; allowed: 1 to 253 printable characters without spaces around; for example payment-service`,
		`:4:3: services: "a\x00b" has characters that a name cannot have; allowed: 1 to 253 printable characters without spaces around; for example payment-service`,
	},
	"service-not-a-mapping": {
		`:2:13: service "payments": the number 3 is not a mapping; write it as a mapping of: timeout, attemptTimeout, maxRetries, backoff, initialDelay, maxDelay, multiplier, jitter, jitterFactor, maxElapsed, maxRetryAfter, retryAfterJitter, retryOn, neverRetryOn, retryMethods, retryBudget, circuitBreaker, bulkhead, hedge, fallback, outlierDetection, upstreams, routes`,
	},
	"services-a-list": {
		`:2:3: services: a list is not a mapping; for example {payment-service: {maxRetries: 3}}`,
	},
	"slow-call-above-attempt-timeout": {
		`:4:77: service "payments", circuitBreaker.slowCallDurationThreshold: 2s is above attemptTimeout 1s; no attempt can be that slow: lower it or raise attemptTimeout`,
	},
	"tab": {
		`:2:1: not valid YAML: found character that cannot start any token; a tab cannot indent: use spaces`,
	},
	"text-too-long": {
		`:2:24: service "payments", retryOn[0]: 2000 bytes are too long; allowed: at most 1024`,
	},
	"two-documents": {
		`:3:1: a second YAML document begins here; one file holds one policy: remove what follows the ---`,
	},
	"unknown-anchor": {
		`:2:3: not valid YAML: unknown anchor 'common' referenced; an anchor must stand above its first alias, for example &common`,
	},
	"unknown-key-behind-aliases": {
		`:1:10: service "payments": unknown key "maxRetrys"; did you mean maxRetries?`,
		`:1:10: service "stock": unknown key "maxRetrys"; did you mean maxRetries?`,
	},
	"unknown-key": {
		`:3:5: service "payments": unknown key "maxRetrys"; did you mean maxRetries?`,
		`:4:5: service "payments": unknown key "max_delay"; did you mean maxDelay?`,
		`:5:5: service "payments": unknown key "colour"; allowed: timeout, attemptTimeout, maxRetries, backoff, initialDelay, maxDelay, multiplier, jitter, jitterFactor, maxElapsed, maxRetryAfter, retryAfterJitter, retryOn, neverRetryOn, retryMethods, retryBudget, circuitBreaker, bulkhead, hedge, fallback, outlierDetection, upstreams, routes`,
	},
	"unknown-section-key": {
		`:3:22: service "payments", circuitBreaker: unknown key "ramp-up"; did you mean rampUp?`,
		`:3:35: service "payments", circuitBreaker: unknown key "slidingWindows"; did you mean slidingWindow?`,
	},
	"unknown-top-key": {
		`:1:1: unknown key "default"; did you mean defaults?`,
	},
	"upstream-not-url": {
		`:2:26: service "payments", upstreams[0]: "payments:8080" is not a base URL; allowed: http, https or h2c with a host, for example "http://payments:8080"`,
		`:2:43: service "payments", upstreams[1]: "http://" is not a base URL; allowed: http, https or h2c with a host, for example "http://payments:8080"`,
	},
	"upstream-taken": {
		`:3:25: service "refunds", upstreams[0]: "http://API/pay/" belongs to service "payments" already; remove it here or there`,
	},
	"window-below-minimum": {
		`:3:37: service "payments", circuitBreaker.slidingWindow: holds 10 calls, fewer than minimumNumberOfCalls 100; raise it or lower the minimum`,
	},
	"window-text": {
		`:3:37: service "payments", circuitBreaker.slidingWindow: window "10 calls": write 100 for the last 100 calls or 10s for the last ten seconds; for example 10s`,
		`:5:37: service "stock", circuitBreaker.slidingWindow: window of 5000000 calls: allowed are 1 to 1000000 calls; for example 10s`,
	},
	"without-effect": {
		`:4:26: service "payments", bulkhead.maxQueue: has no effect; set maxConcurrentCalls, for example 100`,
		`:4:39: service "payments", bulkhead.maxWait: has no effect; set maxConcurrentCalls, for example 100`,
		`:4:50: service "payments", bulkhead.order: has no effect; set maxConcurrentCalls, for example 100`,
		`:5:24: service "payments", hedge.maxHedges: has no effect; set delay or quantile, for example delay: 200ms`,
		`:5:37: service "payments", hedge.minDelay: has no effect; set delay or quantile, for example delay: 200ms`,
		`:6:22: service "payments", fallback.body: has no effect; set status, for example 200`,
		`:6:41: service "payments", fallback.contentType: has no effect; set status, for example 200`,
		`:7:42: service "stock", bulkhead.maxConcurrentCalls: the text "ten" is not a whole number; allowed: 0 to 1000000; for example 25`,
		`:7:77: service "stock", hedge.delay: 1 has no unit; write "1s" for seconds or "1ms" for milliseconds; allowed: 1ms to 1h; for example 50ms`,
		`:7:114: service "stock", fallback.status: 1 is out of range; allowed: 200 to 599; for example 200`,
	},
	"wrong-type": {
		`:2:15: defaults.maxRetries: the text "three" is not a whole number; allowed: 0 to 100; for example 3`,
		`:3:15: defaults.multiplier: a list is not a number; allowed: 1 to 100; for example 2.0`,
		`:4:12: defaults.retryOn: the text "gateway-error" is not a list; for example [gateway-error, connect-failure]`,
		`:5:10: defaults.hedge: the text "50ms" is not a mapping; write it as a mapping of: disabled, delay, quantile, minDelay, maxHedges`,
		`:6:24: defaults.fallback.disabled: the text "yes" is not true or false; allowed: true or false`,
		`:6:35: defaults.fallback.body: the number 7 is not text; write it in quotes: "7"`,
		`:8:26: service "payments", maxRetries: the number 2.5 is not a whole number; allowed: 0 to 100; for example 3`,
		`:8:44: service "payments", retryBudget: a list is not a mapping; write it as a mapping of: disabled, kind, ratio, minRatio, maxRatio, window, reserve, clients, maxTokens, refillPerSecond, costPerRetry, depositPerSuccess, transientCost, overloadCost`,
		`:8:58: service "payments", retryOn[0]: the number 503 is not text; write it in quotes: "503"`,
	},
	"zero-means-default": {
		`:2:21: defaults.retryAfterJitter: 0 would mean the default, 0.25; remove the key or write a value above 0; allowed: 0 to 1; for example 0.25`,
		`:6:19: service "payments", jitterFactor: 0 would mean the default, 0.5; remove the key or write a value above 0; allowed: 0 to 1; for example 0.5`,
		`:7:36: service "payments", hedge.minDelay: 0 would mean the default, 1ms; remove the key or write a value above 0; allowed: 0s to 1h; for example 5ms`,
	},
}
