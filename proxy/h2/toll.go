package h2

import (
	"time"

	"github.com/abate-go/abate"
)

// toll is how much of a peer's frames is put up with that bring nothing: they cost it little and us more. The mutex of the
// connection guards it.
type toll struct {
	calm     int // such frames that may still come
	calmAt   time.Duration
	resets   int // streams that may still be reset right after they were opened
	resetsAt time.Duration
}

const (
	// patience is how many frames that bring nothing may come at once; a tenth of that may come in each second.
	patience = 10000
	// rash is how soon after its head a reset costs a server more than the client.
	rash = 100 * time.Millisecond
)

// bother counts a frame that brings nothing. mu is held.
func (c *Conn) bother(cost int) error {
	if c.calm -= cost; c.calm >= 0 {
		if c.out != nil && len(c.out.b) > maxOut+maxOwed {
			return &ConnError{Code: EnhanceYourCalm, Problem: "the peer asks for more than it reads"}
		}
		return nil
	}
	now := abate.Now()
	if c.calm += refill(&c.calmAt, now, patience/10); c.calm < 0 {
		return &ConnError{Code: EnhanceYourCalm, Problem: "too many frames that bring nothing"}
	}
	c.calm = min(c.calm, patience)
	return nil
}

// rashReset counts a stream that was reset right after it was opened. mu is held.
func (c *Conn) rashReset(now time.Duration) error {
	if c.resets--; c.resets >= 0 {
		return nil
	}
	if c.resets += refill(&c.resetsAt, now, c.config.MaxResets/10); c.resets < 0 {
		return &ConnError{Code: EnhanceYourCalm, Problem: "too many streams were opened and reset at once"}
	}
	c.resets = min(c.resets, c.config.MaxResets)
	return nil
}

// refill is what has come together since the last time, at so many a second.
func refill(since *time.Duration, now time.Duration, each int) int {
	seconds := min(max(now-*since, 0), time.Minute).Seconds()
	n := int(seconds * float64(each))
	if n > 0 {
		*since = now
	}
	return n
}
