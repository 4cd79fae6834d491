package budget

import (
	"math"
	"sync/atomic"
	"time"
)

// bank holds the tokens of the kinds "ratio" and "adaptive". The atomics are used by all
// callers at once; what follows them is guarded by the budget's lock.
//
// deposited and spent only grow and only their difference counts, so they may wrap. They
// are on cache lines of their own because every call writes the first and no call but a
// retry needs the second.
type bank struct {
	nextRoll  atomic.Int64 // from this time on the history is out of date
	perFirst  atomic.Int64 // what one first attempt deposits now
	_         [48]byte
	deposited atomic.Int64
	_         [56]byte
	spent     atomic.Int64
	_         [56]byte
	successes atomic.Int64 // adaptive only
	failures  atomic.Int64

	slot    time.Duration // the length of the slots below
	current int64         // the slot that is running: [current*slot, (current+1)*slot)
	marks   [slots]mark   // the counters at the start of the last ten slots; the last is current's
	rate    float64       // the success rate at the last roll
	expired int64         // of spent: what nobody used in time
	given   int64         // of deposited: what did not come from first attempts
}

// mark is what the counters stood at when a slot began.
type mark struct{ deposited, successes, failures int64 }

// never as nextRoll sends every call to the slow path.
const never = math.MinInt64

func (k *bank) init() {
	k.nextRoll.Store(never)
	k.rate = 1
}

func (k *bank) mark() mark {
	return mark{k.deposited.Load(), k.successes.Load(), k.failures.Load()}
}

func (k *bank) balance() int64 {
	spent := k.spent.Load()
	return k.deposited.Load() - spent
}

// take withdraws cost if it is there. The check and the withdrawal are one atomic step.
func (k *bank) take(cost int64) bool {
	for {
		spent := k.spent.Load()
		if k.deposited.Load()-spent < cost {
			return false
		}
		if k.spent.CompareAndSwap(spent, spent+cost) {
			return true
		}
	}
}

// drain takes everything at once, so that nobody else takes a part of it too.
func (k *bank) drain() int64 {
	for {
		n := k.balance()
		if n <= 0 {
			return 0
		}
		if k.take(n) {
			return n
		}
	}
}

// restart makes n the whole balance, of which nothing counts as deposited lately.
func (k *bank) restart(n int64) {
	k.drain()
	k.give(n)
	m := k.mark()
	for i := range k.marks {
		k.marks[i] = m
	}
}

// give adds what no first attempt earned.
func (k *bank) give(n int64) {
	k.given += n
	k.deposited.Add(n)
}

// roll brings the history up to now. Slots that passed without a call begin at what the
// counters stand at, as nothing moved them.
func (k *bank) roll(now time.Duration, s *settings) {
	if int64(now) < k.nextRoll.Load() {
		return
	}
	last := k.marks[0]
	n := slotOf(now, k.slot)
	k.shift(n - k.current)
	k.current = n
	k.measure(last)
	k.apply(s)
}

func (k *bank) shift(steps int64) {
	keep := slots - int(min(max(steps, 0), slots))
	copy(k.marks[:keep], k.marks[slots-keep:])
	m := k.mark()
	for i := keep; i < slots; i++ {
		k.marks[i] = m
	}
}

// measure updates the success rate. A window without a result says nothing, so the last
// one that had a result counts: last is where that one began.
func (k *bank) measure(last mark) {
	for _, since := range []mark{k.marks[0], last} {
		good := k.successes.Load() - since.successes
		bad := k.failures.Load() - since.failures
		if good+bad > 0 {
			k.rate = float64(good) / float64(good+bad)
			return
		}
	}
}

// apply puts the history and the settings into effect: the size of a deposit, the cap,
// the time of the next roll.
//
// The cap on the balance is floor + what was deposited since marks[0]. So whatever was
// deposited before marks[0], except floor, has been spent or is expired now.
func (k *bank) apply(s *settings) {
	k.perFirst.Store(s.minDeposit + int64(float64(s.maxDeposit-s.minDeposit)*k.rate))
	least := k.marks[0].deposited - s.floor
	for {
		spent := k.spent.Load()
		if least-spent <= 0 {
			break
		}
		if k.spent.CompareAndSwap(spent, least) {
			k.expired += least - spent
			break
		}
	}
	k.nextRoll.Store(int64(startOf(k.current+1, k.slot)))
}

// resize gives the history another slot length. A new slot's mark is the first old one
// at or after its start: what is not known exactly expires earlier, never later.
func (k *bank) resize(now, slot time.Duration) {
	if slot == k.slot {
		return
	}
	old, first, oldSlot := k.marks, k.current-slots+1, k.slot
	if oldSlot > 0 {
		now = max(now, startOf(k.current, oldSlot)) // time never runs backwards here
	}
	k.slot, k.current = slot, slotOf(now, slot)
	m := k.mark()
	for i := range k.marks {
		k.marks[i] = m
		begin := startOf(k.current-slots+1+int64(i), slot)
		for j := range old {
			if oldSlot > 0 && startOf(first+int64(j), oldSlot) >= begin {
				k.marks[i] = old[j]
				break
			}
		}
	}
}

// slotOf is t/slot rounded down, also before the origin.
func slotOf(t, slot time.Duration) int64 {
	n := int64(t / slot)
	if t%slot < 0 {
		n--
	}
	return n
}

// startOf is when slot n begins, or the nearest time that can be written.
func startOf(n int64, slot time.Duration) time.Duration {
	switch {
	case n > math.MaxInt64/int64(slot):
		return math.MaxInt64
	case n < math.MinInt64/int64(slot):
		return math.MinInt64
	}
	return time.Duration(n) * slot
}
