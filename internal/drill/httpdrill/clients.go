package httpdrill

import (
	"context"
	"sync"
	"time"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// schedule draws the arrival times of one client, from 0 up, as the simulator does: one request per period (even), one
// at a random moment of each period (jittered), or independent ones (poisson).
type schedule struct {
	arrivals string
	period   float64 // ns
	passed   float64 // periods
	stream   kernel.Stream
}

// newSchedule returns the schedule of client number n, the same for the same seed.
func newSchedule(seed uint64, n int, arrivals string, period float64) *schedule {
	s := &schedule{arrivals: arrivals, period: period, stream: kernel.NewStream(seed, uint64(n))}
	if arrivals == scenario.Even {
		s.passed = s.stream.Float64() // no two clients in step
	}
	return s
}

// next returns when the next request is due.
func (s *schedule) next() time.Duration {
	due := s.passed
	switch s.arrivals {
	case scenario.Even:
		s.passed++
	case scenario.Jittered:
		due += s.stream.Float64()
		s.passed++
	default:
		s.passed += s.stream.Exp()
		due = s.passed
	}
	return time.Duration(due * s.period)
}

// calls are the calls of all clients of an act.
type calls struct {
	record   *Recorder
	since    func() time.Duration
	patience time.Duration // 0 for ever
	ctx      context.Context
	hangUp   context.CancelFunc
	underway sync.WaitGroup
}

// newCalls returns calls that end with ctx.
func newCalls(ctx context.Context, record *Recorder, since func() time.Duration, patience time.Duration) *calls {
	c := &calls{record: record, since: since, patience: patience}
	c.ctx, c.hangUp = context.WithCancel(ctx)
	return c
}

// start begins a call that is due, on a goroutine of its own.
func (c *calls) start(due time.Duration, key string, send func(ctx context.Context, key string) error) {
	c.underway.Go(func() {
		began := c.since()
		c.record.Offered(due, began)
		waiting := c.ctx
		if c.patience > 0 {
			var end context.CancelFunc
			waiting, end = context.WithTimeout(c.ctx, c.patience)
			defer end()
		}
		end := endOf(send(waiting, key))
		if end != engine.Answered && c.ctx.Err() != nil {
			end = engine.Unanswered
		}
		c.record.Ended(began, c.since(), end)
	})
}

// end waits for the calls under way until ctx is done, and then cuts them short.
func (c *calls) end(ctx context.Context) {
	last := context.AfterFunc(ctx, c.hangUp)
	c.underway.Wait()
	last()
	c.hangUp()
}
