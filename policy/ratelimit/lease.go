package ratelimit

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	leaseLife  = 500 * time.Millisecond // of a batch
	batchTime  = 200 * time.Millisecond // a batch is for so long
	batchShare = 4                      // all batches together are at most burst divided by this
	longPause  = 100 * time.Millisecond // after the bucket was found empty
	lookAgain  = time.Second            // whether others have brought something back
	least      = 10 * time.Millisecond  // that counts as passed between two questions
)

// Lease is what one instance knows and holds of one bucket that a fleet shares. The bucket itself is elsewhere, in
// Redis as a rule; a [Pool] is one in this process. Losing a lease costs a question, and tokens until the bucket has
// filled up again, never a limit.
//
// A key that is asked for now and then costs a question for each request. For a busy one the instance takes a batch of
// tokens out of the bucket, as many as it used in the last 200 ms and at most its part of a quarter of the burst, and
// decides by itself while they last, for 500 ms at most. A bucket that was found too empty is not asked about for up to
// 100 ms, or a quarter of the time in which it fills, whichever is less.
//
// How to drive it: ask Take first. If it cannot decide, make a question with Ask, carry it to the bucket, and give the
// answer to Answered; one question at a time. While the bucket is out of reach, Alone decides. The zero Lease holds
// nothing. Take is safe for concurrent use, takes no lock and allocates nothing; Ask, GiveBack, Unsent and Answered are
// for whoever asks, one at a time. A Lease reads no clock and does no I/O. Times may not go back.
type Lease struct {
	taken   atomic.Int64 // of all batches so far, by requests or back to the bucket
	known   atomic.Pointer[known]
	nextAsk atomic.Int64 // the time before which nothing is fetched in the background

	// Only who asks uses these.
	leased  int64         // what was in hand when the last answer came
	arrived time.Duration // when that was
	perTime float64       // what is used, per nanosecond

	alone alone
}

// alone is what the instance may spend by itself while the bucket is out of reach, and owes for it.
type alone struct {
	used  atomic.Bool // ever
	mu    sync.Mutex  // guards what follows
	share Share
}

// known is the last answer about a bucket. It is immutable.
type known struct {
	left    int64         // in the bucket
	granted int64         // of all batches so far, this one too: what is left and what is in hand become known in one step
	at      time.Duration // when
	low     int64         // the next batch is fetched when less is in hand
	expires time.Duration // the batch

	// Until pause nobody asks for pauseFor or more: the bucket was found too empty for it.
	pause    time.Duration
	pauseFor int64
}

// have is what is in the bucket by now, as far as this instance can know: others may have taken some.
func (k *known) have(now time.Duration, t *Terms) float64 {
	return min(float64(t.burst), float64(k.left)+float64(max(now-k.at, 0))*t.rate)
}

// Take decides a request by what is known here. If that is not possible ok is false: ask. low reports that the batch is
// nearly used up, and that it is time to ask for the next one in the background, with a need of 0.
func (l *Lease) Take(now time.Duration, t *Terms, need int64) (d Decision, ok, low bool) {
	k := l.known.Load()
	if k == nil {
		return Decision{}, false, false
	}
	taken := l.taken.Load()
	for now < k.expires && k.granted-taken >= need {
		if l.taken.CompareAndSwap(taken, taken+need) {
			held := k.granted - taken - need
			return t.Allow(k.have(now, t) + float64(held)), true, held < k.low && int64(now) >= l.nextAsk.Load()
		}
		taken = l.taken.Load()
	}
	if l.known.Load() != k { // more has come: taken may be of that
		return l.Take(now, t, need)
	}
	have := k.have(now, t) + float64(k.granted-taken)
	paused := now < k.pause && need >= k.pauseFor
	if lack := float64(need) - have; paused || lack > 0 && now < k.at+lookAgain {
		return t.Refuse(have, max(k.pause-now, t.wait(lack), 0)), true, false
	}
	return Decision{}, false, false
}

// InHand returns what the instance holds: the batches so far without what was taken. Only who asks may rely on it being
// all.
func (l *Lease) InHand() int64 {
	if k := l.known.Load(); k != nil {
		return k.granted - l.taken.Load()
	}
	return 0
}

// surrender takes all that is in hand.
func (l *Lease) surrender() int64 {
	if k := l.known.Load(); k != nil {
		return k.granted - l.taken.Swap(k.granted)
	}
	return 0
}

// AnsweredAt returns when the last answer came; false if none has.
func (l *Lease) AnsweredAt() (time.Duration, bool) {
	if k := l.known.Load(); k != nil {
		return k.at, true
	}
	return 0, false
}

// Overdue reports whether there is something to bring back or to pay, perhaps, and no batch whose time is not over.
func (l *Lease) Overdue(now time.Duration) bool {
	k := l.known.Load()
	return k == nil || now >= k.expires || l.Owes(now)
}

// Postpone has Take ask for nothing in the background before then.
func (l *Lease) Postpone(until time.Duration) { l.nextAsk.Store(int64(until)) }

// Failed notes that a question in the background came to nothing: the next one has time.
func (l *Lease) Failed(now time.Duration) { l.Postpone(now + longPause) }

// Busy notes that a question in the background could not be asked now.
func (l *Lease) Busy(now time.Duration) { l.Postpone(now + least) }
