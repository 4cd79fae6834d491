package abatekafka

import (
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/redelivery"
)

// service is what the handlers of one Run call: its guard, how messages are redelivered, and the state that all
// partitions share.
type service struct {
	guard *abate.Guard
	asked func() *redelivery.Config // what is in force, see Consumer.Redelivery
	log   *slog.Logger
	names redelivery.Config // as they were when Run began: what topics are called does not change after that
	pace  *redelivery.Pace
	flood *redelivery.FloodGuard

	current atomic.Pointer[view]
	reload  sync.Mutex

	// Wall time and the guards' clock at the same moment, so that a deadline costs no second clock read.
	wall   time.Time
	origin time.Duration
}

// newService takes the configuration that is in force now. A nil pace makes one.
func newService(guard *abate.Guard, asked func() *redelivery.Config, pace *redelivery.Pace, log *slog.Logger) *service {
	written := asked()
	names := written.WithDefaults()
	if pace == nil {
		pace = redelivery.NewPace(names.Drain)
	}
	s := &service{
		guard: guard, asked: asked, log: log, names: names, pace: pace, flood: redelivery.NewFloodGuard(names.Flood),
		wall: time.Now(), origin: core.Now(),
	}
	s.current.Store(&view{written: written, c: names, plan: redelivery.NewPlan(names)})
	return s
}

// view is the configuration in force, and what follows from it.
type view struct {
	written *redelivery.Config
	c       redelivery.Config // its defaults written out, with the names that Run began with
	plan    *redelivery.Plan
}

// view returns the configuration in force. It costs one comparison as long as nothing was reloaded.
func (s *service) view() *view {
	if v := s.current.Load(); v.written == s.asked() {
		return v
	}
	return s.reloaded()
}

// reloaded takes over a configuration that was reloaded, but for what names topics: those were checked when Run began.
func (s *service) reloaded() *view {
	s.reload.Lock()
	defer s.reload.Unlock()
	written := s.asked()
	before := s.current.Load()
	if before.written == written {
		return before
	}
	c := written.WithDefaults()
	if kept := keepNames(c, s.names); !reflect.DeepEqual(kept, c) {
		s.log.Warn("the policy file changes the retry topics or what is fixed while a consumer runs; "+
			"those stay as they were until the consumer is restarted",
			"keys", "kafka.tiers, delay, naming, suffixes, groupInNames, order, exactlyOnce, dltStrategy from or to dead-letter")
		c = kept.WithDefaults() // a section that was taken away had none
	}
	v := &view{written: written, c: c, plan: redelivery.NewPlan(c)}
	s.pace.Reconfigure(c.Drain)
	s.flood.Reconfigure(c.Flood)
	s.current.Store(v)
	return v
}

// keepNames returns c with everything of names on which topics, groups, clients and lanes depend.
func keepNames(c, names redelivery.Config) redelivery.Config {
	c.Disabled = names.Disabled
	c.Tiers, c.Delay, c.Multiplier = names.Tiers, names.Delay, names.Multiplier
	c.MaxDelay, c.Attempts = names.MaxDelay, names.Attempts
	c.Naming, c.GroupInNames = names.Naming, names.GroupInNames
	c.RetrySuffix, c.DLTSuffix = names.RetrySuffix, names.DLTSuffix
	c.Order, c.ExactlyOnce = names.Order, names.ExactlyOnce
	if (c.DLTStrategy == redelivery.DeadLetters) != (names.DLTStrategy == redelivery.DeadLetters) {
		c.DLTStrategy = names.DLTStrategy
	}
	return c
}

// closedOff reports whether the circuit of the service is open, and for how long. During the ramp-up after that it is
// not: what may pass is the breaker's to say then.
func (s *service) closedOff(now time.Duration) (wait time.Duration, open bool) {
	b := s.guard.Breaker()
	if b == nil || !b.ClosedOff(now) {
		return 0, false
	}
	return b.RetryIn(now), true
}

// trouble notes that the circuit of the service is open.
func (s *service) trouble(now time.Duration) {
	s.pace.Trouble(now)
	s.flood.Trouble(now)
}

// date is when a time of the guards' clock is in wall time.
func (s *service) date(at time.Duration) time.Time { return s.wall.Add(at - s.origin) }
