package drill

import (
	"context"
	"strconv"
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

// crowd is all clients of an act.
type crowd struct {
	record   *Recorder
	since    func() time.Duration // the time of the act
	from, to time.Duration        // no request is due before or after
	patience time.Duration        // 0 for ever
	arrival  sync.WaitGroup       // clients that still send
	calls    sync.WaitGroup       // calls that have not ended
}

// start lets client number n send on schedule until the act is over or ctx is done. Each request runs on a goroutine of
// its own: a slow answer holds no later request back. Calls run under callCtx, which may outlive ctx.
func (c *crowd) start(ctx, callCtx context.Context, n int, s *schedule, send func(ctx context.Context, key string) error) {
	c.arrival.Go(func() {
		for i := 0; ; i++ {
			due := c.from + s.next()
			if due >= c.to || !sleep(due-c.since(), ctx.Done()) {
				return
			}
			key := strconv.Itoa(n) + "-" + strconv.Itoa(i)
			c.calls.Go(func() { c.one(callCtx, due, key, send) })
		}
	})
}

// one makes and records one call.
func (c *crowd) one(ctx context.Context, due time.Duration, key string, send func(ctx context.Context, key string) error) {
	began := c.since()
	c.record.Offered(due, began)
	waiting := ctx
	if c.patience > 0 {
		var end context.CancelFunc
		waiting, end = context.WithTimeout(ctx, c.patience)
		defer end()
	}
	end := endOf(send(waiting, key))
	if end != engine.Answered && ctx.Err() != nil {
		end = engine.Unanswered
	}
	c.record.Ended(began, c.since(), end)
}
