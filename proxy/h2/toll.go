package h2

import "time"

// toll is how many frames without a use are still accepted from the peer: they cost it little and this side more. It
// never holds more than it began with. The mutex of the connection guards it.
type toll struct {
	frames    int // that may still come
	framesAt  time.Duration
	resets    int // streams that may still be reset right after they were opened
	resetsAt  time.Duration
	maxResets int
}

const (
	// patience is how many frames without a use may come at once; a tenth of that may come in each second.
	patience = 10000
	// rash is how soon after its head a reset costs a server more than the client.
	rash = 100 * time.Millisecond
)

func newToll(maxResets int, now time.Duration) toll {
	return toll{frames: patience, framesAt: now, resets: maxResets, resetsAt: now, maxResets: maxResets}
}

// charge counts a frame without a use. An error ends the connection.
func (t *toll) charge(cost int, now time.Duration) error {
	if t.frames -= cost; t.frames >= 0 {
		return nil
	}
	return t.refillFrames(now)
}

func (t *toll) refillFrames(now time.Duration) error {
	if t.frames += refill(&t.framesAt, now, patience/10); t.frames < 0 {
		return &ConnError{Code: EnhanceYourCalm, Problem: "too many frames that bring nothing"}
	}
	t.frames = min(t.frames, patience)
	return nil
}

// credit allows for the frames with which the peer answers what this side has sent.
func (t *toll) credit(frames int) { t.frames = min(t.frames+frames, patience) }

// debit counts work that the peer caused, without a limit of its own: the next charge has one.
func (t *toll) debit(work int) { t.frames -= work }

// chargeReset counts a stream that was reset right after it was opened. An error ends the connection.
func (t *toll) chargeReset(now time.Duration) error {
	if t.resets--; t.resets >= 0 {
		return nil
	}
	if t.resets += refill(&t.resetsAt, now, t.maxResets/10); t.resets < 0 {
		return &ConnError{Code: EnhanceYourCalm, Problem: "too many streams were opened and reset at once"}
	}
	t.resets = min(t.resets, t.maxResets)
	return nil
}

// creditReset allows for one more reset, because a stream was answered.
func (t *toll) creditReset() { t.resets = min(t.resets+1, t.maxResets) }

// refill returns what has accumulated since the last time, at a rate per second.
func refill(since *time.Duration, now time.Duration, rate int) int {
	seconds := min(max(now-*since, 0), time.Minute).Seconds()
	n := int(seconds * float64(rate))
	if n > 0 {
		*since = now
	}
	return n
}
