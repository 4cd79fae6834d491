package core

import (
	"context"
	"errors"
	"time"

	"github.com/abate-go/abate/internal/clock"
	"github.com/abate-go/abate/policy/retry"
)

// Reasons why the wait for a dependency ended without it, for errors.Is. Like those of a call, they are found on an
// *Error.
var (
	// ErrGaveUp: the time that a program waits for a dependency at its start, maxElapsed, is over.
	ErrGaveUp = errors.New("gave up waiting")
	// ErrPermanent: waiting cannot fix the failure, such as a wrong password.
	ErrPermanent = errors.New("permanent failure")
	// ErrNotReady: a dependency that is waited for in the background is not there yet.
	ErrNotReady = errors.New("not ready yet")
)

const (
	// StartupPatience is how long a Startup waits under a policy without maxElapsed: a program that hangs at its start for
	// ever, and says nothing, is worse than one that is started again.
	StartupPatience = time.Minute
	// startupRetries is as many retries as a retry.Config may ask for: their number does not end the wait.
	startupRetries = 100
	// shortest is how much time has to be left for one more attempt.
	shortest = 100 * time.Millisecond
	// rarely is how often at most a permanent failure is tried again in the background: somebody may fix it, and a
	// server must not be asked the same wrong password more often than that.
	rarely = time.Minute
)

// Startup is the wait of a program for one dependency, as a state machine: the decisions of Connect without the
// waiting. It is told what happened and when, and answers what to do next. Of the policy it uses the retry fields,
// attemptTimeout, classify, retryOn and the observer. The zero Startup is ready to Begin, and is used once, by one
// goroutine at a time.
//
//   - maxRetries, budget, breaker and the other parts do not count: what ends the wait is maxElapsed, after which no
//     attempt begins and at which the last one ends. Without maxElapsed that is the caller's deadline, or else 60 s.
//   - A wait that would end too late is drawn anew from what is left, so that the time is used: that attempt is the
//     last.
//   - No wait is longer than maxDelay, unless the dependency asked for it (Retry-After): then that, and its jitter.
//     Above maxRetryAfter the wait for the dependency ends.
//   - Back-off "none" is "fixed" here: who does not count attempts must not make them without a pause.
//   - What another attempt cannot fix (Permanent, Ignore, Classify) ends it. What a guard inside has refused, or has
//     given up repeating, is judged by the error behind it: a circuit closes again.
type Startup struct {
	// Forever is for the background: no failure ends the wait, and maxElapsed does not count. After a permanent failure
	// the next attempt follows in 30 s to 60 s, or later if maxDelay is longer; of a Retry-After, maxRetryAfter is obeyed.
	Forever bool

	s        *settings
	retry    *retry.Policy
	began    time.Duration
	limit    time.Duration // when the last attempt has to have ended
	gaveUp   error         // why it ends then
	sent     time.Duration // when the attempt in the air was sent
	delay    time.Duration // the last back-off
	attempts int
	retries  int // scheduled
	inAir    bool
	last     error // of the last attempt that failed
	lastTry  bool
	over     bool
}

// Begin starts the wait under the guard's current policy. now is on any clock the caller likes; deadline is when the
// caller stops waiting, on that clock, or NoDeadline. The step is an Attempt, or Finish if the deadline has passed.
func (w *Startup) Begin(g *Guard, now, deadline time.Duration) Step {
	w.s, w.began = g.inForce(), now
	c := w.s.policy.Retry
	patience := c.MaxElapsed
	c.MaxRetries, c.MaxElapsed = startupRetries, 0
	if c.Backoff == retry.NoBackoff {
		c.Backoff = retry.FixedBackoff
	}
	w.retry = retry.New(c)
	w.limit, w.gaveUp = deadline, ErrDeadline
	if patience == 0 && deadline == NoDeadline {
		patience = StartupPatience
	}
	if end := clock.Later(now, patience); !w.Forever && patience > 0 && end < deadline {
		w.limit, w.gaveUp = end, ErrGaveUp
	}
	w.s.emit(Event{Kind: CallBegan, At: now})
	if now >= w.limit {
		return w.stop(now, ErrDeadline)
	}
	return w.attempt(now)
}

func (w *Startup) attempt(now time.Duration) Step {
	w.attempts++
	w.inAir, w.sent = true, now
	w.s.emit(Event{Kind: AttemptBegan, At: now, Attempt: w.attempts})
	until := w.limit
	if t := w.s.policy.AttemptTimeout; t > 0 {
		until = min(until, clock.Later(now, t))
	}
	return Step{Action: Attempt, Until: until}
}

// AttemptDone reports the outcome of the attempt in the air: see Judge. The step is a Sleep, or Finish: without an
// error if the attempt was a success, else with an *Error.
func (w *Startup) AttemptDone(now time.Duration, o Outcome) Step {
	if w.over || !w.inAir {
		return Step{Action: Await}
	}
	w.record(now, &o)
	final := o.NoRetry || o.Class == Ignored
	switch {
	case o.Class == Success:
		return w.finish(now, nil, nil)
	case final && !w.Forever:
		return w.stop(now, ErrPermanent)
	case w.lastTry:
		return w.stop(now, w.gaveUp)
	}
	delay, reason := w.pause(now, o.RetryAfter, final)
	if reason != nil {
		return w.stop(now, reason)
	}
	w.delay = delay
	w.retries = w.attempts
	w.s.emit(Event{Kind: RetryScheduled, At: now, Attempt: w.attempts, Retries: w.retries, Delay: delay, Err: o.Err})
	return Step{Action: Sleep, Until: clock.Later(now, delay)}
}

// pause is how long to wait before the next attempt, or the reason why there is none.
func (w *Startup) pause(now, asked time.Duration, final bool) (time.Duration, error) {
	c, rnd := w.retry.Config(), w.s.rnd()
	if w.Forever {
		asked = min(asked, c.MaxRetryAfter)
	}
	if final {
		return within(max(c.MaxDelay, rarely), rnd), nil
	}
	delay, verdict := w.retry.Next(retry.Question{
		Retries: min(w.attempts, startupRetries) - 1, Previous: w.delay, RetryAfter: asked, Rand: rnd,
	})
	left := w.limit - now
	switch {
	case verdict != retry.Retry: // the dependency asked for more than maxRetryAfter
		return 0, ErrOverloaded
	case w.limit == NoDeadline || delay < left:
		return delay, nil
	case left < shortest || asked >= left/5*2: // too short for an attempt, or earlier than the dependency asked for
		return 0, w.gaveUp
	}
	w.lastTry = true
	return within(left/5*4, rnd), nil // a fifth at least is for the attempt
}

// within draws a delay from the upper half of d, or of an hour if that is less.
func within(d time.Duration, rnd uint64) time.Duration {
	return retry.New(retry.Config{Backoff: retry.FixedBackoff, InitialDelay: d, MaxDelay: d,
		Jitter: retry.EqualJitter}).Delay(1, 0, rnd)
}

// Resume goes on after a Sleep.
func (w *Startup) Resume(now time.Duration) Step {
	switch {
	case w.over || w.inAir:
		return Step{Action: Await}
	case now >= w.limit:
		return w.stop(now, w.gaveUp)
	}
	return w.attempt(now)
}

// Cancel ends the wait because the caller has left: reason is ErrDeadline or the context's error, err the error of the
// attempt in the air, nil if there is none.
func (w *Startup) Cancel(now time.Duration, reason, err error) Step {
	if w.over {
		return Step{Action: Await}
	}
	if err != nil && (w.last == nil || !leaving(err)) { // that he left is known: what was wrong before says more
		w.last = err
	}
	if w.inAir {
		w.record(now, &Outcome{Class: Ignored, Err: w.last})
	}
	return w.stop(now, reason)
}

// leaving reports whether an error only says that somebody did not want to wait any longer.
func leaving(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Attempts returns how many attempts have been made so far.
func (w *Startup) Attempts() int { return w.attempts }

// Began returns when the wait began.
func (w *Startup) Began() time.Duration { return w.began }

// Last returns the error of the last attempt that failed; nil before there is one.
func (w *Startup) Last() error { return w.last }

// Judge reports what an attempt that ended with err came to, as the policy sees it.
func (w *Startup) Judge(ctx context.Context, err error) Outcome {
	o := w.s.classify(ctx, err)
	var inner *Error
	var m *marked
	if !errors.As(err, &inner) || errors.As(err, &m) && errors.Is(m, inner) {
		return o // no guard has had a say inside, or what it said has been marked anew
	}
	o = Outcome{Class: Failure}
	if inner.Err != nil {
		o = w.Judge(ctx, inner.Err)
	}
	o.Err = err
	return o
}

// record takes the attempt out of the air.
func (w *Startup) record(now time.Duration, o *Outcome) {
	w.inAir = false
	// what was wrong before says more than that the time is up
	if short := now >= w.limit && leaving(o.Err); o.Class != Success && !(short && w.last != nil) {
		w.last = o.Err
	}
	w.s.emit(Event{Kind: AttemptEnded, At: now, Attempt: w.attempts, Class: o.Class, Latency: now - w.sent, Err: o.Err})
}

// stop ends the wait without the dependency.
func (w *Startup) stop(now time.Duration, reason error) Step {
	return w.finish(now, reason, &Error{Guard: w.s.name, Reason: reason, Attempts: w.attempts, Elapsed: now - w.began,
		Err: w.last})
}

func (w *Startup) finish(now time.Duration, reason, err error) Step {
	w.over = true
	class := Success
	if err != nil {
		class = Failure
	}
	w.s.emit(Event{Kind: CallEnded, At: now, Attempt: w.attempts, Retries: w.retries, Class: class,
		Latency: now - w.began, Reason: reason, Err: err})
	return Step{Action: Finish, Err: err}
}
