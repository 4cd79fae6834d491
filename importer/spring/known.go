package spring

import "strings"

// known are the keys of an instance, by module.
var known = map[string][]string{
	"retry": {"baseConfig", "maxAttempts", "waitDuration", "intervalBiFunction", "resultPredicate",
		"retryExceptionPredicate",
		"consumeResultBeforeRetryAttempt", "retryExceptions", "ignoreExceptions", "eventConsumerBufferSize",
		"enableExponentialBackoff", "exponentialBackoffMultiplier", "exponentialMaxWaitDuration", "enableRandomizedWait",
		"randomizedWaitFactor", "failAfterMaxAttempts"},
	"circuitbreaker": {"baseConfig", "waitDurationInOpenState", "slowCallDurationThreshold",
		"maxWaitDurationInHalfOpenState",
		"transitionToStateAfterWaitDuration", "failureRateThreshold", "slowCallRateThreshold", "slidingWindowType",
		"slidingWindowSize", "slidingWindowSynchronizationStrategy", "minimumNumberOfCalls",
		"permittedNumberOfCallsInHalfOpenState", "automaticTransitionFromOpenToHalfOpenEnabled", "initialState",
		"writableStackTraceEnabled", "allowHealthIndicatorToFail", "eventConsumerBufferSize", "registerHealthIndicator",
		"recordFailurePredicate", "recordResultPredicate", "recordExceptions", "ignoreExceptions", "ignoreExceptionPredicate",
		"ignoreClassBindingExceptions", "enableExponentialBackoff", "exponentialBackoffMultiplier",
		"exponentialMaxWaitDurationInOpenState", "enableRandomizedWait", "randomizedWaitFactor"},
	"bulkhead": {"baseConfig", "maxConcurrentCalls", "maxWaitDuration", "eventConsumerBufferSize",
		"writableStackTraceEnabled",
		"fairCallHandlingEnabled"},
	"thread-pool-bulkhead": {"baseConfig", "maxThreadPoolSize", "coreThreadPoolSize", "queueCapacity", "keepAliveDuration",
		"eventConsumerBufferSize", "writableStackTraceEnabled", "contextPropagators"},
	"timelimiter": {"baseConfig", "timeoutDuration", "cancelRunningFuture", "eventConsumerBufferSize"},
	"ratelimiter": {"baseConfig", "limitForPeriod", "limitRefreshPeriod", "timeoutDuration", "subscribeForEvents",
		"allowHealthIndicatorToFail", "registerHealthIndicator", "eventConsumerBufferSize", "writableStackTraceEnabled"},
}

// modules are those of resilience4j that are read, in a fixed order.
var modules = []string{"retry", "circuitbreaker", "bulkhead", "thread-pool-bulkhead", "timelimiter", "ratelimiter"}

// ofModule are the keys beside instances and configs.
var ofModule = []string{"instances", "configs", "tags", "enabled", "metrics", "retryAspectOrder",
	"circuitBreakerAspectOrder",
	"rateLimiterAspectOrder", "timeLimiterAspectOrder", "bulkheadAspectOrder"}

// backends are the modules whose instances may stand under backends too. The time limiter and the rate limiter drop
// that name.
var backends = []string{"retry", "circuitbreaker", "bulkhead", "thread-pool-bulkhead"}

// renamed are keys of resilience4j before 2.0, which later versions drop without a word.
var renamed = map[string]string{
	"backends":               "instances",
	"retry.maxretryattempts": "maxAttempts",
	"retry.waitinterval":     "waitDuration",
	"circuitbreaker.ringbuffersizeinclosedstate":   "slidingWindowSize",
	"circuitbreaker.ringbuffersizeinhalfopenstate": "permittedNumberOfCallsInHalfOpenState",
	"circuitbreaker.waitinterval":                  "waitDurationInOpenState",
	"bulkhead.maxconcurrentcall":                   "maxConcurrentCalls",
	"bulkhead.maxwaittime":                         "maxWaitDuration",
	"ratelimiter.limitrefreshperiodinnanos":        "limitRefreshPeriod",
	"ratelimiter.limitrefreshperiodinmillis":       "limitRefreshPeriod",
	"ratelimiter.timeoutinmillis":                  "timeoutDuration",
	"timelimiter.timeoutinmillis":                  "timeoutDuration",
}

// former returns the old name of a key, which versions before 2.0 read; "" for none.
func former(module, key string) string {
	for old, now := range renamed {
		if name, ok := strings.CutPrefix(old, same(module)+"."); ok && now == key {
			return name
		}
	}
	return ""
}
