// Package startup waits for what a program needs when it starts, and answers the readiness probe of an orchestrator.
package startup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/clock"
	"github.com/abate-go/abate/policy/retry"
)

// Reasons why the wait for a dependency ended without it, for errors.Is. Like those of a call, they are found on an
// *Error.
var (
	// ErrGaveUp: the time that a program waits for a dependency at its start, maxElapsed, is over.
	ErrGaveUp = core.ErrGaveUp
	// ErrPermanent: waiting cannot fix the failure, such as a wrong password.
	ErrPermanent = core.ErrPermanent
	// ErrNotReady: a dependency that is waited for in the background is not there yet.
	ErrNotReady = core.ErrNotReady
)

// Policy is for waiting until a dependency is there when a program starts: an attempt may take 5 s, the back-off grows
// from 100 ms to 5 s, of which the upper half is drawn at random, and after 60 s the wait is given up.
func Policy() core.Policy {
	return core.Policy{
		AttemptTimeout: 5 * time.Second,
		Retry: core.Retry{
			InitialDelay: 100 * time.Millisecond, MaxDelay: 5 * time.Second, Multiplier: 2,
			Jitter: retry.EqualJitter, MaxElapsed: core.StartupPatience,
		},
	}
}

// Connect waits until fn succeeds, and returns what it returned: for what a program cannot do without when it starts.
// name is what logs and errors call the dependency; Policy is a policy for it. What of the policy counts, and when the
// wait ends, is described at Startup.
//
//	pool, err := startup.Connect(ctx, "postgres", startup.Policy(), func(ctx context.Context) (*sql.DB, error) {
//		return db, db.PingContext(ctx)
//	})
//
// fn runs on the caller's goroutine. Its context ends with the attempt: connect with it and do not keep it. It has to
// return when the context is done. What fn opened it has to close again when it returns an error: its value is dropped.
// A panic of fn is an error that another attempt may fix. The end of ctx ends the wait at once.
//
// Failures are logged as warnings, one line for each attempt, and the end of a wait that had failures as information,
// to slog.Default or to the logger of ContextWithLogger. When the wait is over without the dependency, the error is an
// *Error with the number of attempts, the time and the last cause, and one of the reasons ErrGaveUp, ErrPermanent,
// ErrOverloaded, ErrDeadline (that of ctx) and context.Canceled. It is not logged: end the program with it, so that the
// orchestrator starts it again. An invalid policy is an error before any attempt.
func Connect[T any](ctx context.Context, name string, p core.Policy, fn func(context.Context) (T, error)) (T, error) {
	var v, none T
	g, err := core.New(name, p)
	if err != nil {
		return none, err
	}
	c := connector{guard: g, log: loggerOf(ctx), fn: func(ctx context.Context) (err error) {
		v, err = fn(ctx)
		return err
	}}
	if err := c.run(ctx); err != nil {
		return none, err
	}
	return v, nil
}

// Connecting is a dependency that is waited for in the background. It is safe for concurrent use.
type Connecting[T any] struct {
	name  string
	state *Awaited
	done  chan struct{}
	value T // written before done is closed, as err is
	err   error
}

// ConnectInBackground is Connect on a goroutine of its own, for a program that can start without the dependency: it
// goes on until fn succeeds or ctx ends. Permanent failures too are tried again, once a minute at most: somebody may
// fix a wrong password. Until fn has succeeded r is not ready, and says why; r may be nil. After the first failure,
// what is logged is every new cause, and the same one once a minute. The error is one of the policy or the name: then
// nothing was started.
//
// Nothing is left running when ctx has ended and fn has returned. A value that was there before stays the caller's to
// close.
func ConnectInBackground[T any](ctx context.Context, r *Readiness, name string, p core.Policy,
	fn func(context.Context) (T, error)) (*Connecting[T], error) {
	g, err := core.New(name, p)
	if err != nil {
		return nil, err
	}
	if r == nil {
		r = new(Readiness)
	}
	h := &Connecting[T]{name: name, state: r.Await(name), done: make(chan struct{})}
	c := connector{guard: g, log: loggerOf(ctx), sameAgain: time.Minute, state: h.state, wait: core.Startup{Forever: true}}
	c.fn = func(ctx context.Context) (err error) {
		h.value, err = fn(ctx)
		return err
	}
	go func() {
		defer close(h.done)
		h.err = errors.New("abate: the function that connects to " + name + " has ended its goroutine")
		h.err = c.run(ctx)
	}()
	return h, nil
}

// Done is closed when Get has its last answer: the dependency is there, or the context has ended.
func (h *Connecting[T]) Done() <-chan struct{} { return h.done }

// Get returns at once: what fn returned, or an *Error with what is known so far and the reason ErrNotReady, or the end
// of the context if that has ended before.
func (h *Connecting[T]) Get() (T, error) {
	var none T
	select {
	case <-h.done:
		if h.err != nil {
			return none, h.err
		}
		return h.value, nil
	default:
		now := h.state.state(clock.Now())
		return none, &core.Error{Guard: h.name, Reason: core.ErrNotReady, Attempts: now.Attempts, Elapsed: now.Elapsed,
			Err: now.Err}
	}
}

// loggerKey is the key of a logger in a context.
type loggerKey struct{}

// ContextWithLogger returns a context whose Connect and ConnectInBackground write to log instead of slog.Default.
func ContextWithLogger(ctx context.Context, log *slog.Logger) context.Context {
	return context.WithValue(ctx, loggerKey{}, log)
}

func loggerOf(ctx context.Context) *slog.Logger {
	if log, ok := ctx.Value(loggerKey{}).(*slog.Logger); ok && log != nil {
		return log
	}
	return slog.Default()
}

// connector drives one Startup.
type connector struct {
	guard *core.Guard
	fn    func(context.Context) error
	wait  core.Startup
	state *Awaited // told of every step; nil for nobody
	log   *slog.Logger

	sameAgain time.Duration // how long a cause that was logged is not logged again
	logged    string        // the cause logged last, see heart
	loggedAt  time.Duration
}

// run returns nil when the dependency is there.
func (c *connector) run(ctx context.Context) error {
	if ctx.Err() != nil {
		reason, cause := whyLeft(ctx)
		return &core.Error{Guard: c.guard.Name(), Reason: reason, Err: cause}
	}
	deadline := core.NoDeadline
	if t, ok := ctx.Deadline(); ok {
		deadline = clock.At(t)
	}
	step := c.wait.Begin(c.guard, clock.Now(), deadline)
	for {
		now := clock.Now()
		if c.state != nil {
			c.state.follow(&c.wait, now, step)
		}
		switch step.Action {
		case core.Attempt:
			step = c.attempt(ctx, step.Until)
		case core.Sleep:
			c.say(now, step.Until-now)
			step = c.sleep(ctx, step.Until)
		default:
			if attempts := c.wait.Attempts(); step.Err == nil && attempts > 1 {
				c.log.InfoContext(ctx, "abate: dependency is there", "dependency", c.guard.Name(), "attempts", attempts, "elapsed",
					(now - c.wait.Began()).Round(time.Millisecond))
			}
			return step.Err
		}
	}
}

func (c *connector) attempt(ctx context.Context, until time.Duration) core.Step {
	began := clock.Now()
	limit, end := core.LimitAttempt(ctx, began, until)
	defer end() // whatever ends the function
	err := c.call(limit)
	said := err
	if err != nil && until != core.NoDeadline && limit.Err() == context.DeadlineExceeded &&
		errors.Is(err, context.DeadlineExceeded) {
		said = fmt.Errorf("no answer within %v: %w", (until - began).Round(time.Millisecond), err)
	}
	o := c.wait.Judge(ctx, said)
	if err != nil && ctx.Err() != nil { // asked after Judge, which asks too: its caller may leave at any moment
		reason, _ := whyLeft(ctx)
		return c.wait.Cancel(clock.Now(), reason, err)
	}
	return c.wait.AttemptDone(clock.Now(), o)
}

// call makes an error of a panic.
func (c *connector) call(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p, string(debug.Stack()))
		}
	}()
	return c.fn(ctx)
}

// panicked is the error for a panic: its value, and the innermost functions of the stack.
func panicked(value any, stack string) error {
	const frames = 4 // of two lines each
	if _, after, ok := strings.Cut(stack, "\npanic("); ok {
		_, stack, _ = strings.Cut(after, "\n") // the place of panic itself
		_, stack, _ = strings.Cut(stack, "\n")
	}
	lines := strings.Split(strings.TrimSpace(stack), "\n")
	where := strings.Join(lines[:min(len(lines), 2*frames)], "\n")
	if err, ok := value.(error); ok {
		return fmt.Errorf("panic: %w\n%s", err, where)
	}
	return fmt.Errorf("panic: %v\n%s", value, where)
}

func (c *connector) sleep(ctx context.Context, until time.Duration) core.Step {
	timer := time.NewTimer(until - clock.Now())
	defer timer.Stop()
	select {
	case <-timer.C:
		if ctx.Err() == nil { // both at once: nothing is tried for a caller that has left
			return c.wait.Resume(clock.Now())
		}
	case <-ctx.Done():
	}
	reason, _ := whyLeft(ctx) // what is wrong with the dependency says more than the cause
	return c.wait.Cancel(clock.Now(), reason, nil)
}

// say logs a failure that another attempt follows.
func (c *connector) say(now, delay time.Duration) {
	cause := "no error"
	if c.wait.Last() != nil {
		cause = c.wait.Last().Error()
	}
	same := heart(c.wait.Last())
	if same == c.logged && now-c.loggedAt < c.sameAgain {
		return
	}
	c.logged, c.loggedAt = same, now
	c.log.Warn("abate: dependency is not there", "dependency", c.guard.Name(), "attempt", c.wait.Attempts(),
		"elapsed", (now - c.wait.Began()).Round(time.Millisecond), "retry_in", delay.Round(time.Millisecond), "error", cause)
}

// heart is what stays the same of a cause that comes again: of what a guard inside says it leaves out how often it
// tried and how long that took.
func heart(err error) string {
	var inner *core.Error
	for errors.As(err, &inner) {
		if _, far := inner.Err.(core.TooFar); far || inner.Err == nil {
			return inner.Guard + ": " + inner.Reason.Error()
		}
		err = inner.Err
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// whyLeft names the end of a context, and its cause if that says more.
func whyLeft(ctx context.Context) (reason, cause error) {
	reason, cause = ctx.Err(), context.Cause(ctx)
	if cause == reason {
		cause = nil
	}
	if reason == context.DeadlineExceeded {
		reason = core.ErrDeadline
	}
	return reason, cause
}
