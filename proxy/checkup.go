package proxy

import (
	"context"
	"log/slog"
	randv2 "math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/abate-go/abate/core"
	check "github.com/abate-go/abate/policy/health"
)

// mostQuestions is how many questions to the endpoints of one service are under way at once. Others wait.
const mostQuestions = 64

// checkup asks the endpoints of a service how they are, while its policy says so. When, and what answers mean, is
// check.Check's to decide.
type checkup struct {
	mu     sync.Mutex
	of     map[*endpoint]*examined // nil while nobody asks
	config check.Config
	asking int
	asked  [3]uint64 // questions with an outcome, by it
	wake   chan struct{}
	stop   context.CancelFunc
	idle   sync.WaitGroup // the loop, and all questions
}

// examined is an endpoint with its check.
type examined struct {
	check.Check
	why string // what the last question came to, where that was no yes
}

// follow goes over to the endpoints and the policy that there are now. It is called by one goroutine at a time.
func (u *checkup) follow(s *service, t *transport, log *slog.Logger) {
	f := s.fleet.Load()
	if f == nil || !f.policy.HealthCheck.Enabled() {
		u.end(s)
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.config = f.policy.HealthCheck.WithDefaults()
	now, there := core.Now(), make(map[*endpoint]*examined, len(f.endpoints))
	for _, e := range f.endpoints {
		if there[e] = u.of[e]; there[e] == nil {
			there[e] = &examined{Check: check.New(u.config, now, randv2.Uint64())}
		}
	}
	began := u.of == nil
	u.of = there
	if began {
		ctx, stop := context.WithCancel(t.life)
		u.stop, u.wake = stop, make(chan struct{}, 1)
		u.idle.Go(func() { u.loop(ctx, s, t, log) })
		return
	}
	u.poke()
}

func (u *checkup) poke() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// end stops asking. What was found out is forgotten.
func (u *checkup) end(s *service) {
	u.mu.Lock()
	of, stop := u.of, u.stop
	u.of, u.stop = nil, nil
	u.mu.Unlock()
	if stop == nil {
		return
	}
	stop()
	u.idle.Wait()
	f := s.fleet.Load()
	for e := range of {
		if i := slices.Index(f.endpoints, e); i >= 0 {
			f.balancer.Judge(i, core.Now(), true)
		}
	}
}

// loop sends each question when it is due.
func (u *checkup) loop(ctx context.Context, s *service, t *transport, log *slog.Logger) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(u.begin(ctx, s, t, log))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-u.wake:
		}
	}
}

// begin sends the questions that are due, and returns how long it is until the next is.
func (u *checkup) begin(ctx context.Context, s *service, t *transport, log *slog.Logger) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	now, next := core.Now(), time.Hour
	for e, x := range u.of {
		if due := x.Due(); due <= now && u.asking < mostQuestions { // else whoever is done wakes the loop
			if !x.Ask(u.config, now, s.callsAt(e), randv2.Uint64()) {
				next = min(next, x.Due()-now)
				continue
			}
			u.asking++
			config := u.config
			u.idle.Go(func() {
				r, why := e.examine(ctx, t, &config)
				u.take(ctx, s, e, r, why, log)
			})
		} else if due > now {
			next = min(next, due-now)
		}
	}
	return next
}

// callsAt is what became of the calls at an endpoint.
func (s *service) callsAt(e *endpoint) (c check.Calls) {
	f := s.fleet.Load()
	if i := slices.Index(f.endpoints, e); i >= 0 {
		c.Answered, c.Failed = f.balancer.Results(i)
	}
	return c
}

// take notes an outcome, and has the balancer know what follows from it.
func (u *checkup) take(ctx context.Context, s *service, e *endpoint, r check.Result, why string, log *slog.Logger) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asking--
	defer u.poke()
	x, f := u.of[e], s.fleet.Load()
	if x == nil || ctx.Err() != nil {
		return
	}
	u.asked[r]++
	i, now := slices.Index(f.endpoints, e), core.Now()
	x.why = why
	if !x.Take(u.config, now, r, s.callsAt(e), randv2.Uint64()) || i < 0 {
		return
	}
	f.balancer.Judge(i, now, x.Healthy())
	if x.Healthy() {
		log.Info("endpoint is healthy", "service", s.guard.Name(), "endpoint", e.url)
	} else {
		log.Warn("endpoint is not healthy", "service", s.guard.Name(), "endpoint", e.url, "check", why)
	}
}

// health is what is said of an endpoint: "" while nobody asks.
func (u *checkup) health(e *endpoint) (state, why string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch x := u.of[e]; {
	case x == nil:
		return "", ""
	case !x.Known():
		return "not asked yet", ""
	case x.Healthy():
		return "healthy", x.why
	default:
		return "not healthy", x.why
	}
}

// count is how many endpoints are not healthy, and how many questions had which outcome.
func (u *checkup) count() (unhealthy int, asked [3]uint64, on bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, x := range u.of {
		if !x.Healthy() {
			unhealthy++
		}
	}
	return unhealthy, u.asked, u.of != nil
}
