package abateredis

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/policy/ratelimit"
)

// localShare is what this instance may spend of a bucket while it cannot reach Redis, and owes for it.
type localShare struct {
	by atomic.Pointer[Limiter] // that used it last; nil before

	mu    sync.Mutex // guards what follows
	share ratelimit.Share
}

// owes reports whether something has to be paid.
func (ls *localShare) owes(now time.Duration) bool {
	if ls.by.Load() == nil {
		return false
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.share.Debt(now) >= 1
}

// paid takes in that Redis has got what was owed. It ends the use of the share, if the outage is over.
func (ls *localShare) paid(now time.Duration, debt float64, f *Fleet) {
	if ls.by.Load() == nil {
		return
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.share.Paid(now, debt); !f.keepsToItsShare(now) {
		ls.share.Close(now)
	}
}

// part is what an instance of n may hold of the bucket, and gets in a nanosecond.
func (s *limit) part(n int64) (burst, rate float64) {
	return max(float64(s.burst/int64(n)/micro*micro), micro), s.rate / float64(n)
}

// takeLocally decides by this instance's share of the bucket. owes reports whether b, which others find too, owes
// something now.
func (l *Limiter) takeLocally(now time.Duration, b *bucket, need int64) (d ratelimit.Decision, owes bool) {
	s, n, ls := l.limit, l.fleet.instances(), &b.local
	if b.stray {
		ls = &l.rest
	}
	burst, rate := s.part(n)
	ls.by.Store(l)
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !ls.share.Open() {
		have := burst
		if k := b.known.Load(); k != nil { // go on where Redis was
			have = k.have(now, s) / float64(n)
		}
		ls.share.Begin(now, burst, rate, have)
	} else {
		ls.share.Adjust(now, burst, rate)
	}
	wait, ok := ls.share.Take(now, float64(need))
	have := ls.share.Have(now)
	d = ratelimit.Decision{
		Allowed: true, Limit: int64(burst / micro), Remaining: int64(have / micro), Reset: wait0((burst - have) / rate),
	}
	if !ok {
		d.Allowed, d.Over, d.RetryAfter = s.config.Shadow, true, wait
		if wait == ratelimit.Never { // its share never has as much, Redis will
			d.RetryAfter = max(l.fleet.retryIn(now), time.Second)
		}
	}
	return d, !b.stray && ls.share.Debt(now) >= 1
}

// wait0 is so many nanoseconds, Never if that is too many.
func wait0(ns float64) time.Duration {
	if ns < float64(ratelimit.Never) {
		return time.Duration(ns)
	}
	return ratelimit.Never
}

// settle adds to a question what this instance owes, and what the bucket can hold as far as it knows.
func (q *question) settle(now time.Duration) {
	l, ls := q.limiter, &q.bucket.local
	q.most = float64(l.limit.burst)
	if k := q.bucket.known.Load(); k != nil {
		q.most = max(k.have(now, l.limit), 0)
	}
	if ls.by.Load() != nil {
		ls.mu.Lock()
		q.debt = ls.share.Debt(now)
		ls.mu.Unlock()
	}
}

// outage is whether Redis is missed, and since when it is not any more.
type outage struct {
	missed atomic.Int32 // answers that did not come, in a row
	out    atomic.Bool
	backAt atomic.Int64 // 0 if there was no outage yet
}

// note remembers whether an answer came. Two in a row that did not are an outage, and so is one to a heartbeat, or
// while Redis is known to be away.
func (o *outage) note(now time.Duration, op string, closed bool, err error) {
	switch {
	case err == nil:
		if o.missed.Load() != 0 {
			o.missed.Store(0)
		}
		if o.out.Load() && o.out.CompareAndSwap(true, false) {
			o.backAt.Store(int64(now))
		}
	case o.missed.Add(1) > 1 || op == "heartbeat" || !closed:
		o.out.Store(true)
	}
}

// over reports whether everybody else has had the time to notice that Redis is back.
func (o *outage) over(now time.Duration) bool {
	back := o.backAt.Load()
	return back == 0 || now >= time.Duration(back)+ratelimit.ShareAfter
}

// keepsToItsShare reports whether limits are decided by this instance's share: Redis is away, or was just now.
func (f *Fleet) keepsToItsShare(now time.Duration) bool {
	return f.away(now) || !f.outage.over(now) && f.instances() > 1
}
