package core

import "time"

// repeat reports who has made a call before.
type repeat uint8

const (
	firstTime      repeat = iota
	repeatedHere          // a retrier in this process
	repeatedBefore        // another process
)

// Repeated says that this call has been made before, by somebody above who retries by himself: a client library around
// the guard. It is called before Begin. The first attempt of such a call is an extra one: it draws from the budget and
// from the call tree, as a retry does, deposits nothing, and is refused before it waits for anything if there is
// nothing left.
func (c *Call) Repeated() { c.repeat = repeatedHere }

// RepeatedBefore is Repeated for a repeat that came from another process, which says so by a number. If the call tree
// has an allowance, whoever gave it has taken that repeat from it already, and answers for it: here it draws from the
// budget what there is, and passes.
func (c *Call) RepeatedBefore() { c.repeat = repeatedBefore }

// repeated notes what an operation says of somebody above who has made the call before.
func (c *Call) repeated(op any) {
	switch o := op.(type) {
	case interface {
		Repeated() bool
		RepeatedBefore() bool
	}:
		c.repeat = repeatOf(o.Repeated(), o.RepeatedBefore())
	case interface{ Repeated() bool }:
		c.repeat = repeatOf(o.Repeated(), false)
	case interface{ RepeatedBefore() bool }:
		c.repeat = repeatOf(false, o.RepeatedBefore())
	}
}

func repeatOf(here, before bool) repeat {
	switch {
	case before:
		return repeatedBefore
	case here:
		return repeatedHere
	}
	return firstTime
}

// draw takes what the first attempt of a repeated call costs. While the circuit is open the call ends here and pays
// nothing: if it waited for a place first, the circuit might let it pass by then.
func (c *Call) draw(now time.Duration) error {
	s := c.s
	if s.breaker != nil && s.breaker.ClosedOff(now) && !mayHold(c) {
		return ErrCircuitOpen
	}
	if c.repeat == repeatedBefore && c.tree != nil && c.tree.limited {
		s.drain(now)
		return nil
	}
	if s.obeys && c.tree.take(1, true) == 0 {
		return ErrTreeExhausted
	}
	if !s.repeat(now) {
		c.returnToken()
		return ErrBudgetExhausted
	}
	c.token = true
	return nil
}
