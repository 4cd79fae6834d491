package abateredis_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/abate-go/abate/adapter/abateredis"
	"github.com/abate-go/abate/adapter/abateredis/trial"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	needsredis "github.com/abate-go/abate/internal/needs/redis"
	"github.com/abate-go/abate/policy/ratelimit"
)

// patience is for machines under load.
const patience = time.Minute

// slack is a timeout that a busy test machine does not exceed; what needs the real one says so.
const slack = 8 * time.Second

// server is a Redis of a test's own.
type server struct {
	*needsredis.Server
	t testing.TB
}

// start starts a Redis without persistence.
func start(t testing.TB, config ...string) *server {
	t.Helper()
	return &server{needsredis.Start(t, config...), t}
}

// run starts it again, empty.
func (s *server) run() {
	s.t.Helper()
	if err := s.Start(); err != nil {
		s.t.Fatal(err)
	}
}

// freePort is one at which nobody listens.
func freePort(t testing.TB) int { t.Helper(); return needsredis.New(t).Port() }

// client speaks to the server directly.
func (s *server) client() *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr: s.Addr(), MaxRetries: -1, Protocol: 2, DisableIdentity: true, DialTimeout: patience, ReadTimeout: patience,
	})
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// calls is how often the server was asked to run a script.
func (s *server) calls(c *redis.Client) int {
	s.t.Helper()
	info, err := c.Info(s.t.Context(), "commandstats").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	total := 0
	for _, line := range strings.Split(info, "\r\n") {
		name, rest, _ := strings.Cut(line, ":calls=")
		if name == "cmdstat_evalsha" || name == "cmdstat_eval" {
			n, _, _ := strings.Cut(rest, ",")
			count, _ := strconv.Atoi(n)
			total += count
		}
	}
	return total
}

// watch is what a fleet tells its observer.
type watch struct {
	ops       sync.Map // op → *atomic.Int64, round trips
	errs      atomic.Int64
	fallbacks atomic.Int64
}

func (w *watch) count(op string) int64 {
	if n, ok := w.ops.Load(op); ok {
		return n.(*atomic.Int64).Load()
	}
	return 0
}

func (w *watch) into(c *abateredis.Config) {
	c.Observe = func(op string, _ time.Duration, err error) {
		n, _ := w.ops.LoadOrStore(op, new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		if err != nil {
			w.errs.Add(1)
		}
	}
	c.OnFallback = func(string) { w.fallbacks.Add(1) }
}

// open opens a fleet of one on addr.
func open(t testing.TB, addr string, change ...func(*abateredis.Config)) *abateredis.Fleet {
	t.Helper()
	c := abateredis.Config{Addresses: []string{addr}, Timeout: slack}
	for _, f := range change {
		f(&c)
	}
	f, err := abateredis.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// ready waits until a fleet has n instances.
func ready(t testing.TB, n int, fleets ...*abateredis.Fleet) {
	t.Helper()
	for _, f := range fleets {
		eventually(t, fmt.Sprintf("%d instances", n), func() bool { s := f.State(); return s.Instances == n && s.Err == nil })
	}
}

// per makes a limit of n per d with a burst.
func per(n float64, d time.Duration, burst int) inbound.ArrivalLimit {
	return inbound.ArrivalLimit{
		Config: ratelimit.Config{Limit: ratelimit.Rate{Tokens: n, Per: d}, Burst: burst}, Fleet: true,
	}
}

// take is what a gate does: try, then ask.
func take(l *abateredis.Limiter, key string, cost float64) ratelimit.Decision {
	if d, ok := l.TryTake(core.Now(), key, cost); ok {
		return d
	}
	return l.Take(context.Background(), key, cost)
}

// drain takes until it is refused, at most most times.
func drain(l *abateredis.Limiter, key string, most int) int {
	for n := range most {
		if !take(l, key, 1).Allowed {
			return n
		}
	}
	return most
}

// embedded starts the Redis of the trial package.
func embedded(t testing.TB) string {
	t.Helper()
	addr, stop, err := trial.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return addr
}

func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(patience); !cond(); <-tick.C {
		if time.Now().After(until) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("never: %s; goroutines:\n%s", what, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// during calls f again and again for d.
func during(d time.Duration, f func()) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(d); time.Now().Before(until); <-tick.C {
		f()
	}
}

// running counts the goroutines that run code of ours or of the client's.
func running() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	n := 0
	for _, g := range strings.Split(string(stacks), "\n\n") {
		if strings.Contains(g, "abateredis.(") || strings.Contains(g, "redis/go-redis") {
			n++
		}
	}
	return n
}
