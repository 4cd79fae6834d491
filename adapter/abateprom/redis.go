package abateprom

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// redis are the metrics of what instances share through Redis.
type redis struct {
	duration         *prometheus.HistogramVec
	errors, fallback *prometheus.CounterVec
	ops              handles[redisOp]
	whats            handles[prometheus.Counter]
}

// redisOp counts one kind of command.
type redisOp struct {
	took   prometheus.Observer
	failed prometheus.Counter
}

func newRedis() *redis {
	r := &redis{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "abate_redis_duration_seconds",
			Help:    "How long Redis took, failures included. If it comes near the timeout, requests wait for it: look at Redis, or the network to it.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .02, .05, .1, .5}}, []string{"op"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "abate_redis_errors_total",
			Help: "Commands that Redis did not answer, or refused. If it grows, limits and budgets are no longer shared: see abate_redis_fallback_total."}, []string{"op"}),
		fallback: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "abate_redis_fallback_total",
			Help: "Decisions that were made without Redis, as whenAway says. They are safe for a while; mend Redis."}, []string{"what"}),
	}
	r.ops.resolve = func(op string) *redisOp {
		return &redisOp{r.duration.WithLabelValues(op), r.errors.WithLabelValues(op)}
	}
	r.whats.resolve = func(what string) *prometheus.Counter {
		c := r.fallback.WithLabelValues(what)
		return &c
	}
	return r
}

// all lists them for the registry.
func (r *redis) all() []prometheus.Collector {
	return []prometheus.Collector{r.duration, r.errors, r.fallback}
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
func (m *Metrics) RedisFallback(what string) { (*m.redis.whats.of(what)).Inc() }

// maxHandles is how many names get a label of their own.
const maxHandles = 100

// handles are counters by a name that is one of a few. Finding one that is there takes no lock.
type handles[T any] struct {
	resolve func(name string) *T

	known atomic.Pointer[map[string]*T] // never changed, but replaced
	mu    sync.Mutex                    // of those who replace it
}

func (h *handles[T]) of(name string) *T {
	if known := h.known.Load(); known != nil {
		if t := (*known)[name]; t != nil {
			return t
		}
	}
	return h.first(name)
}

// first resolves a name that was not met before.
func (h *handles[T]) first(name string) *T {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := map[string]*T{}
	if known := h.known.Load(); known != nil {
		if len(*known) >= maxHandles {
			name = other
		}
		if t := (*known)[name]; t != nil {
			return t
		}
		for k, t := range *known {
			next[k] = t
		}
	}
	t := h.resolve(label(name))
	next[name] = t
	h.known.Store(&next)
	return t
}
