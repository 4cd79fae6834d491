package h2

import (
	"time"

	"github.com/abate-go/abate/core"
)

// pending is what the peer has begun and has to complete in time. The mutex of the connection guards it.
type pending struct {
	what  expectation
	since time.Duration // when it began
	due   time.Duration // of settings and of a head
}

// expectation is a kind of what is pending.
type expectation uint8

const (
	nothing expectation = iota
	settings
	aHead
	aFrame // each part of which has its own time
)

// check returns when to check again; an error if the time is up. heard is when something was read last, pause how long
// a frame may pause.
func (p *pending) check(now, heard, pause time.Duration) (next time.Duration, err error) {
	due := p.due
	if p.what == aFrame {
		due = later(heard, pause)
	}
	switch {
	case p.what == nothing:
		return core.NoDeadline, nil
	case now < due:
		return due, nil
	case p.what == settings:
		return 0, &ConnError{Code: SettingsTimeout, Problem: "the first SETTINGS frame did not come in time"}
	case p.what == aHead:
		return 0, &ConnError{Code: EnhanceYourCalm, Problem: "a head was begun and did not end in time"}
	}
	return 0, &ConnError{Code: EnhanceYourCalm, Problem: "a frame was begun and not continued in time"}
}
