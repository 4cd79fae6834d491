package breaker

import "time"

// The mark of an answered permit is the bucket that its success was counted in, and slowAlready if the call has been
// counted as slow.
const slowAlready = 1 << 31

// Answered is Record for a call whose answer has begun well and is still coming, such as the body of an HTTP response.
// It returns a permit for the rest, for one call of Ended.
//
// While closed and ramping up the call counts as a success at once, and is slow or not by now: how long somebody reads
// says nothing about the dependency. A probe counts when its answer has ended, or when its lease is over: a stream that
// lasts for hours proves enough by then.
func (b *Breaker) Answered(now time.Duration, permit Permit) Permit {
	if permit.gen&adaptiveMark != 0 {
		b.Record(now, permit, Success)
		return Permit{start: min(permit.start, now), gen: adaptiveMark}
	}
	p := b.cur.Load()
	if permit.gen != p.gen {
		return Permit{}
	}
	if p.state == HalfOpen {
		b.mu.Lock()
		b.probes.answered(permit.mark)
		b.mu.Unlock()
		return permit
	}
	rest := Permit{start: min(permit.start, now), gen: permit.gen}
	if p.ev.hanging != nil && now-permit.start >= p.cfg.SlowCallDurationThreshold {
		rest.mark = slowAlready
	}
	b.record(now, permit, Success, true)
	if w := p.ev.byTime; w != nil {
		rest.mark |= w.head.Load() &^ slowAlready
	}
	return rest
}

// Ended takes the end of an answer, with the permit that Answered returned. A Failure makes of the call's success a
// failure, and of the call a slow one if it has been running for so long: the call counts once. It lengthens the row of
// failures, unless the answer has flowed for twice as long as a probe may take: streams that somebody cuts every hour
// are no outage. Anything else ends the row also of answers that broke off, which the beginning of an answer has not
// done, and makes a probe a success. An answer that has begun in an earlier state counts for nothing. An Ended that
// never comes leaves a success.
func (b *Breaker) Ended(now time.Duration, permit Permit, r Result) {
	p := b.cur.Load()
	switch {
	case permit.gen&adaptiveMark != 0:
		if r == Failure {
			b.notify(b.loop.brokeOff(now, permit.start))
		}
	case permit.gen == 0 || permit.gen != p.gen:
	case p.state == HalfOpen:
		if r != Failure {
			r = Success
		}
		b.report(now, permit, r)
	case r == Failure:
		slow := p.ev.hanging != nil && permit.mark&slowAlready == 0 && now-permit.start >= p.cfg.SlowCallDurationThreshold
		b.recount(p.ev, now, permit.mark&^slowAlready, slow)
		if now-permit.start < 2*p.cfg.HalfOpenPermitLease {
			p.ev.row.brokeOff()
		}
		b.judge(p, now)
	default:
		p.ev.row.end(true)
	}
}

// recount makes of a success in the evidence a failure.
func (b *Breaker) recount(ev *evidence, now time.Duration, bucket uint32, slow bool) {
	switch {
	case ev.byTime != nil:
		if ev.byTime.due(now) {
			b.mu.Lock()
			ev.byTime.rotate(now)
			b.mu.Unlock()
		}
		ev.byTime.takeBack(bucket, slow)
	case ev.byCount != nil:
		ev.byCount.takeBack(slow)
	}
}

// takeBack makes of a success that was counted in a bucket a failure of now. A bucket that has left the window has
// taken the success with it.
func (w *timeWindow) takeBack(bucket uint32, slow bool) {
	head := w.head.Load()
	if age := (head&^slowAlready)>>placeBits - bucket>>placeBits; age&(slowAlready>>placeBits-1) < buckets {
		w.ring[place(bucket)].ok.Add(-1)
	}
	w.ring[place(head)].failed.Add(1)
	if slow {
		w.ring[place(head)].slow.Add(1)
	}
}

// takeBack makes of the latest success a failure: whose it was makes no difference to the sums. In a window without any
// the failure is a call of its own.
func (w *countWindow) takeBack(slow bool) {
	next := w.next.Load()
	for back := uint64(1); back <= min(next, w.size); back++ {
		i := (next - back) % w.size
		if w.failedBits[i/64].Load()&(1<<(i%64)) == 0 {
			put(&w.failed, &w.failedBits[i/64], 1<<(i%64), true)
			if slow {
				put(&w.slow, &w.slowBits[i/64], 1<<(i%64), true)
			}
			return
		}
	}
	w.add(true, slow)
}
