package budget

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Budget decides whether one more attempt may be sent. It is shared state: all calls to
// one dependency use the same Budget, and retries, hedges, redeliveries and reconnects
// draw from it alike. One built per call limits nothing.
//
// All methods are safe for concurrent use and none of them allocates, except
// Reconfigure. now is the time since a fixed origin; a now earlier than one already
// seen counts as no time having passed.
type Budget struct {
	set atomic.Pointer[settings]
	bank

	mu     sync.Mutex // guards the history of the bank, the bucket and changes of set
	bucket bucket
	begun  bool // the reserve has been handed out, which happens once
	shared shared
	lone   lone
}

// New returns a budget that holds its share of the reserve, or a full bucket. Values
// outside their range are moved to the nearest end.
func New(c Config) *Budget {
	b := &Budget{}
	b.init()
	s := newSettings(c)
	b.set.Store(s)
	b.begin(s)
	b.enter(0, s)
	if s.banked() {
		b.nextRoll.Store(never) // the first call sets the time
	}
	b.bucket.timed = false
	return b
}

// begin hands out the reserve, when the budget is on for the first time.
func (b *Budget) begin(s *settings) {
	if !b.begun && s.kind != "" {
		b.begun = true
		b.restart(s.start)
	}
}

// Deposit notes that a first attempt is being sent. Call it once per call, not for
// retries and hedges. Kind "tokens" ignores it.
func (b *Budget) Deposit(now time.Duration) {
	if int64(now) < b.nextRoll.Load() {
		b.deposited.Add(b.perFirst.Load())
		return
	}
	b.depositSlowly(now)
}

func (b *Budget) depositSlowly(now time.Duration) {
	if !b.set.Load().banked() {
		return
	}
	b.catchUp(now)
	b.deposited.Add(b.perFirst.Load())
}

func (b *Budget) catchUp(now time.Duration) {
	if int64(now) < b.nextRoll.Load() {
		return
	}
	b.mu.Lock()
	if s := b.set.Load(); s.banked() {
		b.roll(now, s)
	}
	b.mu.Unlock()
}

// Withdraw asks whether one more attempt may be sent, after what c says. True takes its
// cost out of the budget and nothing gives it back; false takes nothing. Ask before the
// delay of a retry, so that a call that may not retry fails at once. A budget that is
// off always says true.
func (b *Budget) Withdraw(now time.Duration, c Cost) bool {
	s := b.set.Load()
	switch {
	case s.banked():
		b.catchUp(now)
		return b.bank.take(s.cost(c))
	case s.kind == "":
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s = b.set.Load(); s.kind != Tokens {
		return s.kind == "" || b.bank.take(s.cost(c)) // reconfigured while we waited
	}
	b.bucket.refill(now, s)
	return b.bucket.take(s.cost(c))
}

// Return gives back what the last Withdraw of c took, for an attempt that is not made after all because another budget,
// which has to agree, has said no. Only who has just withdrawn may call it.
func (b *Budget) Return(now time.Duration, c Cost) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch s := b.set.Load(); {
	case s.banked():
		b.bank.spent.Add(-s.cost(c))
	case s.kind == Tokens:
		b.bucket.refill(now, s)
		b.bucket.put(s.cost(c), s)
	}
}

// Result notes that an attempt ended, be it the first, a retry or a hedge. Kind "adaptive" measures the success rate
// with it, kind "tokens" deposits for a success, kind "ratio" looks at it only where there are repeats and nothing
// else, see Repeat. Do not report attempts whose result says nothing about the dependency, such as those the caller
// cancelled.
func (b *Budget) Result(now time.Duration, success bool) {
	if b.lone.alone.Load() {
		b.lone.result(success)
	}
	switch b.set.Load().kind {
	case Adaptive:
		b.catchUp(now)
		if success {
			b.successes.Add(1)
		} else {
			b.failures.Add(1)
		}
	case Tokens:
		if success {
			b.fill(now)
		}
	}
}

func (b *Budget) fill(now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.set.Load(); s.kind == Tokens {
		b.bucket.refill(now, s)
		b.bucket.put(s.perSuccess, s)
	}
}

// Balance returns how many extra attempts could be sent now, at TransientCost each; the
// fraction is what the next one has earned so far. A budget that is off returns +Inf.
func (b *Budget) Balance(now time.Duration) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.set.Load()
	var n int64
	switch {
	case s.banked():
		b.roll(now, s)
		n = b.bank.balance()
	case s.kind == Tokens:
		b.bucket.refill(now, s)
		n = b.bucket.tokens
	default:
		return math.Inf(1)
	}
	return float64(max(n, 0)) / float64(s.costs[Transient])
}

// Reconfigure puts c into effect. The balance and the history survive, cut down to what
// c allows to hold; nothing is added, however often it is called and whatever c says. A
// budget that is switched off and on again goes on with what it held; one that was never
// on gets its reserve when it is switched on first.
func (b *Budget) Reconfigure(now time.Duration, c Config) {
	s := newSettings(c)
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.set.Load()
	b.leave(now, was)
	if s.fleet && !was.fleet {
		b.expired += b.drain() // the fleet has a reserve of its own
		b.shared = b.sharedNow(now)
	}
	b.set.Store(s)
	b.begin(s)
	b.enter(now, s)
}

// leave closes the state of the old settings so that the balance is in the bank.
func (b *Budget) leave(now time.Duration, s *settings) {
	switch {
	case s.banked():
		b.roll(now, s)
	case s.kind == Tokens:
		b.bucket.refill(now, s)
		b.restart(b.bucket.tokens)
	}
}

// enter opens the state of the new settings, from what is in the bank.
func (b *Budget) enter(now time.Duration, s *settings) {
	if s.banked() {
		b.resize(now, s.slot)
		b.apply(s)
		return
	}
	b.nextRoll.Store(never)
	if s.kind == Tokens {
		b.bucket = bucket{tokens: min(b.drain(), s.floor), last: now, timed: true}
	}
}
