package budget

import "time"

// shared is where the last Offer stood, or the beginning of sharing. Guarded by the budget's lock.
type shared struct {
	at           time.Duration
	earned, used int64
}

// Offer is what a budget with Config.Fleet moves to and from the others, in millionths of a token.
type Offer struct {
	// Earned is what first attempts of this instance deposited since the last offer and it does not need. Back is what it
	// holds besides and does not need. Both have been taken out of the budget.
	Earned, Back int64
	// Want is what it lacks.
	Want int64
	// Reserve is what the fleet starts with, Floor how much of what it holds never expires, and Window how long the rest
	// stays valid.
	Reserve, Floor int64
	Window         time.Duration
}

// Offer takes out of the budget what this instance is not about to use, and says what it lacks. What it is about to use
// is twice what it used since the last offer, and one retry at least. Call it a few times per second while the others
// can be reached, and Settle with their answer; an offer that may or may not have arrived is lost. It returns false
// when there is nothing to share: Fleet is not set, or the kind is Tokens.
func (b *Budget) Offer(now time.Duration) (Offer, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.set.Load()
	if !s.fleet {
		return Offer{}, false
	}
	b.roll(now, s)
	is := b.sharedNow(now)
	if now-b.shared.at > s.slot*slots { // the others were away: what was used meanwhile does not say what will be
		b.shared.used = is.used
	}
	o := Offer{Reserve: s.reserve, Floor: max(s.reserve, s.least), Window: s.slot * slots}
	keep := max(s.least, 2*(is.used-b.shared.used))
	switch over := b.balance() - keep; {
	case over < 0:
		o.Want = -over
	case over > 0 && b.bank.take(over): // else somebody has just taken a part of it
		o.Earned = min(over, is.earned-b.shared.earned)
		o.Back = over - o.Earned
		b.expired += over // it was not used
	}
	b.shared = is
	return o, true
}

// sharedNow is what first attempts have earned here and extra ones have used, so far. The lock is held.
func (b *Budget) sharedNow(now time.Duration) shared {
	return shared{at: now, earned: b.deposited.Load() - b.given, used: b.spent.Load() - b.expired}
}

// Settle adds what the others gave, which is at most what was wanted. It stays valid for a window, like a deposit.
func (b *Budget) Settle(now time.Duration, granted int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.set.Load(); s.fleet && granted > 0 {
		b.roll(now, s)
		b.give(granted)
	}
}
