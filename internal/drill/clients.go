package drill

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// caller makes one charge, with whatever retries it believes in. It returns how long the attempt took that was answered.
type caller interface {
	charge(ctx context.Context, key string) (took time.Duration, err error)
	close() // hangs up idle connections
}

// schedule draws the arrival times of one client: one request per period, at a random moment within it. The load is
// even enough to measure goodput within seconds, and no two clients run in step.
type schedule struct {
	period time.Duration
	slot   int
	random *rand.Rand
}

// newSchedule returns the schedule of client number n, the same for the same seed.
func newSchedule(seed uint64, n int, period time.Duration) *schedule {
	return &schedule{period: period, random: rand.New(rand.NewPCG(seed, uint64(n)))}
}

// next returns when the next request is due.
func (s *schedule) next() time.Duration {
	begin := time.Duration(s.slot) * s.period
	s.slot++
	return begin + time.Duration(s.random.Int64N(int64(s.period)))
}

// crowd is all clients of an act.
type crowd struct {
	record  *Recorder
	since   func() time.Duration // the time of the act
	length  time.Duration        // no request is due after it
	limit   time.Duration        // an attempt that took longer was answered too late, whoever still waited for it
	arrival sync.WaitGroup       // clients that still send
	calls   sync.WaitGroup       // calls that have not ended
}

// start lets client number n send on schedule until the act is over or ctx is done. Each request runs on a goroutine of
// its own: a slow answer holds no later request back. Calls run under callCtx, which may outlive ctx.
func (c *crowd) start(ctx, callCtx context.Context, n int, s *schedule, by caller) {
	c.arrival.Add(1)
	go func() {
		defer c.arrival.Done()
		for i := 0; ; i++ {
			due := s.next()
			if due >= c.length || !sleep(due-c.since(), ctx.Done()) {
				return
			}
			key := strconv.Itoa(n) + "-" + strconv.Itoa(i)
			c.calls.Add(1)
			go func() {
				defer c.calls.Done()
				c.one(callCtx, due, key, by)
			}()
		}
	}()
}

// one makes and records one call.
func (c *crowd) one(ctx context.Context, due time.Duration, key string, by caller) {
	begin := c.since()
	c.record.Offered(due, begin)
	took, err := by.charge(ctx, key)
	now := c.since()
	ending := endingOf(err)
	switch {
	case err != nil && ctx.Err() != nil:
		ending = Unanswered
	case err == nil && took > c.limit:
		ending = AnsweredLate
	}
	c.record.Ended(now, now-begin, ending)
}
