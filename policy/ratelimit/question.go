package ratelimit

import "time"

// Question is what an instance asks about a bucket that it shares. All amounts are in millionths of a token.
type Question struct {
	Need int64   // at least, or nothing
	Want int64   // at most
	Back int64   // is brought back
	Debt float64 // was spent without the bucket, and is paid now
	Most float64 // the bucket can hold, as far as the instance knows, if nobody knows the bucket any more
}

// Ask works out what to ask for: need for the request that asks, waiting for those beside it, and a batch, of which
// there are as many as instances. A request brings back what is left of the last batch; in the background need is 0,
// and the batch goes on.
func (l *Lease) Ask(now time.Duration, t *Terms, need, waiting, instances int64) Question {
	q := Question{Need: need, Want: need + waiting}
	l.settle(now, t, &q)
	left := l.InHand()
	if need > 0 {
		left = l.surrender()
		q.Back = left
	}
	if l.known.Load() != nil {
		rate := float64(max(l.leased-left, 0)+need) / float64(max(now-l.arrived, least))
		if l.perTime = max(rate, (l.perTime+rate)/2); now-l.arrived > leaseLife {
			l.perTime = rate
		}
	}
	batch := min(int64(l.perTime*float64(batchTime)), t.burst/batchShare/max(instances, 1))
	if need == 0 {
		batch -= left
	}
	if batch >= need {
		q.Want += batch
	}
	q.Want = min(max(q.Want, 0), t.burst)
	return q
}

// GiveBack brings back what is in hand and pays what is owed. It asks for nothing.
func (l *Lease) GiveBack(now time.Duration, t *Terms) Question {
	q := Question{Back: l.surrender()}
	l.settle(now, t, &q)
	return q
}

// Unsent takes back what a question was to bring that has certainly not reached the bucket. Of one that may have, it is
// lost.
func (l *Lease) Unsent(q Question) { l.taken.Add(-q.Back) }

// settle adds to a question what this instance owes, and what the bucket can hold as far as it knows.
func (l *Lease) settle(now time.Duration, t *Terms, q *Question) {
	q.Most = float64(t.burst)
	if k := l.known.Load(); k != nil {
		q.Most = max(k.have(now, t), 0)
	}
	q.Debt = l.debt(now)
}

// Answered takes in what the bucket gave, 0 or at least what was needed, and what it has left. over reports whether the
// fleet shares the bucket again, in which case the instance's own share ends. rnd are 64 uniform random bits. It
// returns the decision about the request that asked.
func (l *Lease) Answered(now time.Duration, t *Terms, q Question, given, left int64, over bool, rnd uint64) Decision {
	granted := given >= q.Need
	k := &known{left: left, at: now, expires: now + leaseLife}
	if last := l.known.Load(); last != nil {
		k.granted = last.granted
	}
	if granted {
		k.granted += given - q.Need
	}
	lease := k.granted - l.taken.Load()
	l.leased, l.arrived, k.low = lease, now, lease/4
	if given < q.Want { // there is nothing more, or not as much as was needed
		k.pause = now + t.pause(rnd)
		if !granted {
			k.pauseFor = q.Need
		}
		l.Postpone(k.pause)
	}
	l.known.Store(k)
	l.paid(now, q.Debt, over)
	if have := float64(left + lease); granted {
		return t.Allow(have)
	} else {
		return t.Refuse(have, max(k.pause-now, t.wait(float64(q.Need)-have)))
	}
}
