package metrics

import (
	"time"

	"github.com/abate-go/abate/internal/series"
)

// redis are the metrics of what instances share through Redis.
type redis struct {
	duration         *series.Histograms
	errors, fallback *series.Counters
	ops              named[redisOp]
	whats            named[series.Counter]
}

// redisOp counts one kind of command.
type redisOp struct {
	took   *series.Histogram
	failed *series.Counter
}

func newRedis() *redis {
	r := &redis{
		duration: series.NewHistograms(series.NewDesc("abate_redis_duration_seconds",
			"How long Redis took, failures included. If it comes near the timeout, requests wait for it: look at "+
				"Redis, or the network to it.", "op"),
			[]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .02, .05, .1, .5}),
		errors: series.NewCounters(series.NewDesc("abate_redis_errors_total",
			"Commands that Redis did not answer, or refused. If it grows, limits and budgets are no longer shared: see "+
				"abate_redis_fallback_total.", "op")),
		fallback: series.NewCounters(series.NewDesc("abate_redis_fallback_total",
			"Decisions that were made without Redis, as whenAway says. They are safe for a while; fix Redis.", "what")),
	}
	r.ops.resolvedBy(func(op string) *redisOp {
		return &redisOp{r.duration.With(op), r.errors.With(op)}
	})
	r.whats.resolvedBy(func(what string) *series.Counter {
		return r.fallback.With(what)
	})
	return r
}

// all lists them for the registry.
func (r *redis) all() []series.Collector {
	return []series.Collector{r.duration, r.errors, r.fallback}
}

// ObserveRedis counts one command to Redis. op names its kind, one of a few.
func (m *Metrics) ObserveRedis(op string, took time.Duration, err error) {
	o := m.redis.ops.of(op)
	o.took.Observe(took.Seconds())
	if err != nil {
		o.failed.Inc()
	}
}

// RedisFallback counts a decision that was made without Redis. what names what was decided, one of a few.
func (m *Metrics) RedisFallback(what string) { m.redis.whats.of(what).Inc() }

// maxHandles is how many names get a label of their own.
const maxHandles = 100

// named are counters by a name that is one of a few.
type named[T any] struct{ handles[string, T] }

// resolvedBy sets how the counters of a name are made.
func (n *named[T]) resolvedBy(resolve func(name string) *T) {
	n.max, n.full = maxHandles, func(string) string { return other }
	n.resolve = func(name string) *T { return resolve(label(name)) }
}
