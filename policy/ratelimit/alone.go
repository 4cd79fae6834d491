package ratelimit

import "time"

// part is what an instance of n may hold of the bucket, and gets in a nanosecond.
func (t *Terms) part(n int64) (burst, rate float64) {
	return max(float64(t.burst/n/Micro*Micro), Micro), t.rate / float64(n)
}

// Unreachable decides a request while its bucket is out of reach, if whenAway does that by itself: "open" lets it pass,
// "closed" refuses it. With anything else the instance's share decides: see [Lease.Alone]. back is when the bucket may
// be reached again.
func (t *Terms) Unreachable(whenAway string, back time.Duration) (Decision, bool) {
	switch whenAway {
	case "open":
		return t.Allow(float64(t.burst)), true
	case "closed":
		return t.Refuse(0, max(back, time.Second)), true
	}
	return Decision{}, false
}

// Alone decides by this instance's share of the bucket, while that is out of reach: limit and burst divided by the
// instances, at least one token of burst. It begins with its share of what the bucket last held. What is spent is owed
// until the bucket can be asked again. back is when that is worth a try; a request that is too large for the share is
// told to come again then, or in a second.
func (l *Lease) Alone(now time.Duration, t *Terms, need, instances int64, back time.Duration) Decision {
	n := max(instances, 1)
	burst, rate := t.part(n)
	a := &l.alone
	a.used.Store(true)
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.share.Open() {
		have := burst
		if k := l.known.Load(); k != nil { // go on where the bucket was
			have = k.have(now, t) / float64(n)
		}
		a.share.Begin(now, burst, rate, have)
	} else {
		a.share.Adjust(now, burst, rate)
	}
	wait, ok := a.share.Take(now, float64(need))
	have := a.share.Have(now)
	d := Decision{
		Allowed: true, Limit: int64(burst / Micro), Remaining: int64(have / Micro), Reset: nanoseconds((burst - have) / rate),
	}
	if !ok {
		d.Allowed, d.Over, d.RetryAfter = t.config.Shadow, true, wait
		if wait == Never { // its share never has as much, the bucket will
			d.RetryAfter = max(back, time.Second)
		}
	}
	return d
}

// Owes reports whether something has to be paid, a millionth of a token at least.
func (l *Lease) Owes(now time.Duration) bool { return l.debt(now) >= 1 }

func (l *Lease) debt(now time.Duration) float64 {
	a := &l.alone
	if !a.used.Load() {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.share.Debt(now)
}

// paid takes in that the bucket has got what was owed. It ends the use of the share, if the outage is over.
func (l *Lease) paid(now time.Duration, debt float64, over bool) {
	a := &l.alone
	if !a.used.Load() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.share.Paid(now, debt); over {
		a.share.Close(now)
	}
}

// nanoseconds is so many, Never if that is too many.
func nanoseconds(n float64) time.Duration {
	if n < float64(Never) {
		return time.Duration(n)
	}
	return Never
}
