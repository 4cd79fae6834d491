package shed

import (
	"sync/atomic"
	"time"
)

const (
	slots  = 20
	slot   = 500 * time.Millisecond // slots of them are the window: 10 s
	fewest = 20                     // first attempts and retries in the window below which their shares say nothing
)

// arrivals counts what came in the last ten seconds: attempts by their number, and refusals.
type arrivals struct {
	turnedAway atomic.Uint64                    // arrivals refused at once; the others are counted in the shedder's word
	later      [laterAttempts - 1]atomic.Uint64 // second, third, and later attempts
	tooMany    atomic.Bool
	each       atomic.Int64 // how long the service needs for one request, in places: see Backlog

	// Guarded by the shedder's lock.
	counted uint64 // what the word's counter stood at, extended to 64 bits
	givenUp uint64 // refused after a wait
	current time.Duration
	began   bool
	marks   [slots]counts // the counters when the last slots began
}

// counts is what the counters stood at, or by how much they grew.
type counts struct {
	attempts [laterAttempts]uint64
	refused  uint64
}

// retry counts a retry. The first attempts are what is left of all arrivals.
func (a *arrivals) retry(attempt int) { a.later[min(attempt, laterAttempts)-2].Add(1) }

// counts returns the counters. The word's is of arrivalBits; nobody has seen it wrap more than once, because every slot
// reads it.
func (a *arrivals) counts(word uint64) counts {
	a.counted += (word>>arrivalShift - a.counted) & (1<<arrivalBits - 1)
	away := a.turnedAway.Load()
	c := counts{refused: away + a.givenUp}
	c.attempts[0] = a.counted + away
	for i := range a.later {
		n := a.later[i].Load()
		c.attempts[i+1] = n
		c.attempts[0] -= min(n, c.attempts[0])
	}
	return c
}

// roll begins the slot of now and returns what came in the window before.
func (a *arrivals) roll(now time.Duration, word uint64) counts {
	c := a.counts(word)
	steps := slots
	if a.began && now-a.current < slots*slot {
		steps = max(int((now-a.current)/slot), 0)
	} else {
		a.began, a.current = true, now
	}
	if steps < slots {
		a.current += time.Duration(steps) * slot
	}
	keep := slots - steps
	copy(a.marks[:keep], a.marks[steps:])
	for i := keep; i < slots; i++ {
		a.marks[i] = c
	}
	return a.lately(c)
}

// lately is what came since the window began.
func (a *arrivals) lately(c counts) counts {
	c.refused -= min(a.marks[0].refused, c.refused)
	for i := range c.attempts {
		c.attempts[i] -= min(a.marks[0].attempts[i], c.attempts[i])
	}
	return c
}

// retryShare is the number of retries for each first attempt. Retries without any first attempt count as if one had
// come.
func (c counts) retryShare() float64 {
	retries := uint64(0)
	for _, n := range c.attempts[1:] {
		retries += n
	}
	return float64(retries) / float64(max(c.attempts[0], 1))
}

func (c counts) total() (n uint64) {
	for _, k := range c.attempts {
		n += k
	}
	return n
}
