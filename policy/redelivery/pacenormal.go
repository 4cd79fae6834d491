package redelivery

import "time"

// What is normal is learnt in slots: how many messages were delivered in each second.
const (
	slot   = time.Second
	memory = 600 // slots: 10 min
	busy   = 10  // slots that are taken together
	unseen = -1  // a slot in which nothing is learnt: before the first message, of trouble, of a drain
)

// normal knows how busy the last ten minutes have been. It takes 2.4 KB.
type normal struct {
	slots [memory]int32
	at    int64 // the slot of now, counted from the origin of time
	bad   int32 // failures in it
	began bool
	once  float64 // the rate before the last pause of ten minutes
}

// count notes one delivery, or with 0 only that time has passed.
func (n *normal) count(now time.Duration, deliveries int32) {
	n.reach(now, 0)
	if c := &n.slots[n.at%memory]; *c >= 0 {
		*c += deliveries
	}
}

// fail notes one delivery that failed. Of a slot in which more failed than succeeded nothing is learnt: a service that
// begins to fail before its circuit opens is not one with little to do.
func (n *normal) fail(now time.Duration) {
	n.reach(now, 0)
	n.bad++
}

// miss notes that nothing is to be learnt of this time.
func (n *normal) miss(now time.Duration) {
	n.reach(now, unseen)
	n.slots[n.at%memory] = unseen
}

// reach goes on to the slot of now. Those between get what they came to.
func (n *normal) reach(now time.Duration, came int32) {
	at := int64(max(now, 0) / slot)
	if !n.began {
		for i := range n.slots {
			n.slots[i] = unseen
		}
		n.began, n.at = true, at // the first slot is a part of a second: nothing is learnt of it
		return
	}
	if at > n.at {
		if n.bad > n.slots[n.at%memory] {
			n.slots[n.at%memory] = unseen
		}
		n.bad = 0
	}
	if at-n.at >= memory && came == 0 { // a pause: what comes after it is a beginning, and not few
		n.once, came = n.busiest(), unseen
	}
	for i := max(n.at+1, at-memory+1); i <= at; i++ {
		n.slots[i%memory] = came
	}
	n.at = max(n.at, at)
}

// busiest is the rate, in deliveries per second, of the ten seconds that had the most, of those that are over. If there
// are no ten seconds in a row, the longest row counts, or what was known before a pause if that is more. 0 if nothing
// is known.
func (n *normal) busiest() float64 {
	if !n.began {
		return 0
	}
	var sum, row, longest int64
	var best float64
	for i := max(n.at-memory+1, 0); i < n.at; i++ {
		c := int64(n.slots[i%memory])
		if c < 0 {
			sum, row = 0, 0
			continue
		}
		sum, row = sum+c, row+1
		if row > busy {
			sum -= int64(n.slots[(i-busy)%memory])
			row = busy
		}
		if mean := float64(sum) / float64(row); row > longest || row == longest && mean > best {
			longest, best = row, mean
		}
	}
	if longest < busy {
		best = max(best, n.once)
	}
	return best
}
