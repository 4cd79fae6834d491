package abateredis

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/policy/ratelimit"
)

const (
	leaseLife  = 500 * time.Millisecond // of a batch
	batchTime  = 200 * time.Millisecond // a batch is for so long
	batchShare = 4                      // all batches together are at most burst divided by this
	longPause  = 100 * time.Millisecond // after the bucket was found empty
	lookAgain  = time.Second            // whether others have brought something back
	least      = 10 * time.Millisecond  // that counts as passed between two questions
)

// bucket is what this instance knows and holds of one bucket in Redis. Losing it costs a round trip, and tokens until
// the bucket in Redis has filled up again, never a limit.
type bucket struct {
	id     identity
	redis  [16]byte     // its key in Redis, hashed
	taken  atomic.Int64 // of all batches so far, by requests or back to Redis
	known  atomic.Pointer[known]
	flight atomic.Pointer[flight]

	waiting atomic.Int64 // what requests that wait for a flight need
	nextAsk atomic.Int64 // the time before which nothing is fetched in the background

	// Only who has the flight uses these.
	leased  int64         // what was in hand when the last answer came
	arrived time.Duration // when that was
	perTime float64       // what is used, in millionths per nanosecond

	stray bool        // not in the table: of one request
	held  atomic.Bool // among the buckets whose leases and debts are looked after

	local localShare
}

// known is the last answer of Redis about a bucket. It is immutable.
type known struct {
	limiter *Limiter      // that asked
	left    int64         // in Redis
	granted int64         // of all batches so far, this one too: what is left and what is in hand become known in one step
	at      time.Duration // when
	low     int64         // the next batch is fetched when less is in hand
	expires time.Duration // the batch

	// Until pause nobody asks for pauseFor or more: the bucket was found too empty for it.
	pause    time.Duration
	pauseFor int64
}

// have is what is in Redis by now, as far as this instance can know: others may have taken some.
func (k *known) have(now time.Duration, s *limit) float64 {
	return min(float64(s.burst), float64(k.left)+float64(max(now-k.at, 0))*s.rate)
}

// inHand is what this instance holds: the batches so far without what was taken. Only who has the flight, which alone
// makes something else known, may rely on it being all.
func (b *bucket) inHand() int64 {
	if k := b.known.Load(); k != nil {
		return k.granted - b.taken.Load()
	}
	return 0
}

// surrender takes all that is in hand. Only who has the flight may ask.
func (b *bucket) surrender() int64 {
	if k := b.known.Load(); k != nil {
		return k.granted - b.taken.Swap(k.granted)
	}
	return 0
}

// decide decides a request by what is known here, if that is possible.
func (l *Limiter) decide(b *bucket, now time.Duration, need int64) (ratelimit.Decision, bool) {
	s, k := l.limit, b.known.Load()
	if k == nil {
		return ratelimit.Decision{}, false
	}
	taken := b.taken.Load()
	for now < k.expires && k.granted-taken >= need {
		if b.taken.CompareAndSwap(taken, taken+need) {
			held := k.granted - taken - need
			if held < k.low && int64(now) >= b.nextAsk.Load() {
				l.fetch(b, now)
			}
			return s.allowed(k.have(now, s) + float64(held)), true
		}
		taken = b.taken.Load()
	}
	if b.known.Load() != k { // more has come: taken may be of that
		return l.decide(b, now, need)
	}
	have := k.have(now, s) + float64(k.granted-taken)
	paused := now < k.pause && need >= k.pauseFor
	if lack := float64(need) - have; paused || lack > 0 && now < k.at+lookAgain {
		return s.refused(have, max(k.pause-now, s.wait(lack), 0)), true
	}
	return ratelimit.Decision{}, false
}

// fetch has the next batch fetched in the background, unless that is happening already.
func (l *Limiter) fetch(b *bucket, now time.Duration) {
	if b.flight.Load() != nil {
		return
	}
	f, mine := b.depart()
	if !mine {
		return
	}
	if !l.dispatch(b, f) { // whoever needs the tokens asks
		b.nextAsk.Store(int64(now + least))
		b.arrive(f, nil)
	}
}

// dispatch leaves a flight to the background, unless there are too many before it.
func (l *Limiter) dispatch(b *bucket, f *flight) bool {
	select {
	case l.fleet.refills <- refill{limiter: l, bucket: b, flight: f}:
		return true
	default:
		return false
	}
}

// flight is one round trip for a bucket, under way.
type flight struct {
	done chan struct{}
	err  error
}

// join waits until a flight has ended. The next one to begin counts in what is needed.
func (b *bucket) join(ctx context.Context, f *flight, need int64) error {
	b.waiting.Add(need)
	defer b.waiting.Add(-need)
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// depart begins a flight, or returns the one that is under way.
func (b *bucket) depart() (f *flight, mine bool) {
	for {
		if f = b.flight.Load(); f != nil {
			return f, false
		}
		if f = (&flight{done: make(chan struct{})}); b.flight.CompareAndSwap(nil, f) {
			return f, true
		}
	}
}

func (b *bucket) arrive(f *flight, err error) {
	f.err = err
	b.flight.Store(nil)
	close(f.done)
}

// question is what is asked about a bucket: what is needed at least, wanted at most, and brought back, in millionths.
type question struct {
	limiter          *Limiter
	bucket           *bucket
	need, want, back int64
	debt, most       float64 // what is paid; what the bucket can hold, if Redis has lost it
}

// question works out what to ask for: need for the request that asks, what those beside it need, and a batch. A request
// brings back what is left of the last batch; in the background need is 0, and the batch goes on.
func (l *Limiter) question(b *bucket, now time.Duration, need int64) question {
	s := l.limit
	q := question{limiter: l, bucket: b, need: need, want: need + b.waiting.Load()}
	q.settle(now)
	left := b.inHand()
	if need > 0 {
		left = b.surrender()
		q.back = left
	}
	if b.known.Load() != nil {
		rate := float64(max(b.leased-left, 0)+need) / float64(max(now-b.arrived, least))
		if b.perTime = max(rate, (b.perTime+rate)/2); now-b.arrived > leaseLife {
			b.perTime = rate
		}
	}
	batch := min(int64(b.perTime*float64(batchTime)), s.burst/batchShare/l.fleet.instances())
	if need == 0 {
		batch -= left
	}
	if batch >= need {
		q.want += batch
	}
	q.want = min(max(q.want, 0), s.burst)
	return q
}

// answer takes in what Redis said. It returns the decision about the request that asked.
func (l *Limiter) answer(now time.Duration, q question, reply taken) ratelimit.Decision {
	s, b := l.limit, q.bucket
	granted := reply.tokens >= q.need
	k := &known{limiter: l, left: reply.left, at: now, expires: now + leaseLife}
	if last := b.known.Load(); last != nil {
		k.granted = last.granted
	}
	if granted {
		k.granted += reply.tokens - q.need
	}
	lease := k.granted - b.taken.Load()
	b.leased, b.arrived, k.low = lease, now, lease/4
	if reply.tokens < q.want { // there is nothing more, or not as much as was needed
		k.pause = now + s.pause()
		if !granted {
			k.pauseFor = q.need
		}
		b.nextAsk.Store(int64(k.pause))
	}
	b.known.Store(k)
	b.local.paid(now, q.debt, l.fleet)
	if lease > 0 || b.local.owes(now) {
		l.watch(b)
	}
	if have := float64(reply.left + lease); granted {
		return s.allowed(have)
	} else {
		return s.refused(have, max(k.pause-now, s.wait(float64(q.need)-have)))
	}
}

// pause is how long not to ask for a bucket that was found empty. Meanwhile it fills up to a quarter at most, so that
// nothing runs over. It is drawn, so that instances do not come together.
func (s *limit) pause() time.Duration {
	longest := min(longPause, s.wait(float64(s.burst))/4)
	return longest/2 + rand.N(longest/2+1)
}
