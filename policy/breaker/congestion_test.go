package breaker_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/breaker"
)

// A queue is a service of so many workers that serves first come, first served, and does not notice who has left.
type queue struct {
	workers []time.Duration // when each is free
	work    func(now time.Duration) time.Duration
}

// answered returns when a request that comes now is answered.
func (q *queue) answered(now time.Duration) time.Duration {
	first := 0
	for i, free := range q.workers {
		if free < q.workers[first] {
			first = i
		}
	}
	begin := max(now, q.workers[first])
	q.workers[first] = begin + q.work(begin)
	return q.workers[first]
}

// offer sends calls, gap apart, which are given up after a second, and returns how many that began within each second
// were answered by then, and how many were refused.
func (q *queue) offer(b *breaker.Breaker, to time.Duration,
	gap func(now time.Duration) time.Duration) (good, refused []int) {
	type end struct {
		at     time.Duration
		permit breaker.Permit
		r      breaker.Result
	}
	var ends []end
	good, refused = make([]int, to/s), make([]int, to/s)
	for now := time.Duration(0); now < to; now += gap(now) {
		left := ends[:0]
		for _, e := range ends {
			if e.at > now {
				left = append(left, e)
				continue
			}
			b.Record(e.at, e.permit, e.r)
		}
		ends = left
		p, ok := b.AllowFor(now, s)
		if !ok {
			refused[now/s]++
			continue
		}
		at := q.answered(now)
		if at > now+s {
			ends = append(ends, end{now + s, p, breaker.Failure})
			continue
		}
		good[now/s]++
		ends = append(ends, end{at, p, breaker.Success})
	}
	return good, refused
}

func every(gap time.Duration) func(time.Duration) time.Duration {
	return func(time.Duration) time.Duration { return gap }
}

// 20 workers answer 400 requests a second, or 80 while they are slow; 250 come. Without a limit hardly any would be
// answered within the second that callers wait.
func TestASlowDependencyGetsWhatItAnswersInTime(t *testing.T) {
	b := adaptive()
	q := queue{workers: make([]time.Duration, 20), work: func(now time.Duration) time.Duration {
		if now >= 10*s && now < 20*s {
			return 250 * ms
		}
		return 50 * ms
	}}
	good, refused := q.offer(b, 25*s, every(4*ms))
	for at := range 10 {
		if refused[at] > 0 {
			t.Errorf("%d are refused in second %d, when all is well", refused[at], at)
		}
	}
	for at := 13; at < 20; at++ {
		if good[at] < 64 {
			t.Errorf("%d are answered of those that come in second %d, want 64 of the 80 that can be", good[at], at)
		}
	}
	for at := 21; at < 25; at++ {
		if good[at] < 245 {
			t.Errorf("%d of 250 are answered in second %d, when all is well again", good[at], at)
		}
	}
	if st := b.Snapshot(25 * s); st.State != breaker.Closed || st.Openings > 2 {
		t.Errorf("%+v", st)
	}
}

// Three times as many requests for a fifth of a second stand in the queue for a while, and are answered in time.
func TestABurstIsNotLimited(t *testing.T) {
	b := adaptive()
	q := queue{workers: make([]time.Duration, 20), work: every(50 * ms)}
	_, refused := q.offer(b, 20*s, func(now time.Duration) time.Duration {
		if now%(2*s) < 200*ms {
			return 4 * ms / 3
		}
		return 4 * ms
	})
	for at, n := range refused {
		if n > 0 {
			t.Errorf("%d are refused in second %d", n, at)
		}
	}
}

// What is lost is not what comes too late: the others are answered as quickly as ever.
func TestLossIsNotLimited(t *testing.T) {
	b := adaptive()
	n := 0
	d := day{b: b, gap: 4 * ms, patience: s, latency: func(now time.Duration) time.Duration {
		if n++; now > 10*s && n%5 == 0 {
			return 0
		}
		return 50 * ms
	}}
	if refused, calls := d.play(0, 30*s, 10*s); refused > 0 {
		t.Errorf("%d of %d are refused while one in five is lost", refused, calls)
	}
}

// Places that are limited go to the oldest.
func TestWhoWaitsForAPlaceIsServedInOrder(t *testing.T) {
	b := adaptive()
	now := healthy(b, 0, 500, 20*ms, 20*ms)
	var out []breaker.Permit
	for b.State() == breaker.Closed {
		p, ok := b.AllowFor(now, s)
		if !ok {
			break
		}
		out = append(out, p)
		if now += 10 * ms; now/(10*ms)%2 == 0 { // half as many are answered as come
			b.Record(now, out[0], breaker.Success)
			out = out[1:]
		}
		if now > 20*s {
			t.Fatal("it is not limited")
		}
	}
	if st := b.State(); st != breaker.HalfOpen {
		t.Fatal(st)
	}
	waiters := make([]breaker.Waiter, 3)
	for i := range waiters {
		b.Hold(now, now+10*s, 10*s, &waiters[i])
	}
	for len(out) > 0 {
		b.Record(now, out[0], breaker.Neutral)
		out = out[1:]
		if _, v, _ := b.Look(now, &waiters[0]); v == breaker.Admitted {
			return
		}
		for i := range waiters[1:] {
			if _, v, _ := b.Look(now, &waiters[1+i]); v == breaker.Admitted {
				t.Fatalf("waiter %d is admitted before the first", 1+i)
			}
		}
	}
	t.Error("nobody is admitted")
}

func TestASlowAttemptThatNothingSpeaksForIsNotTriedAgain(t *testing.T) {
	b := adaptive()
	p, _ := b.AllowFor(0, s)
	b.Record(s, p, breaker.Failure)
	if b.Discourages(s, 0, false) == breaker.NoDoubt {
		t.Error("it has never answered, and a slow attempt is tried again")
	}
	now := healthy(b, 2*s, 3, 20*ms, 20*ms)
	p, _ = b.AllowFor(now, s)
	b.Record(now+s, p, breaker.Failure)
	if b.Discourages(now+s, now, false) == breaker.NoDoubt {
		t.Error("three answers do not make a slow attempt an exception")
	}
}
