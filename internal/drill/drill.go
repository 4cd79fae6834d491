package drill

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Run plays the acts of c one after the other, each against a service and a database of its own, and returns what came
// of them. When ctx is done it stops at once and returns what is known so far, with Interrupted set. An error means that
// the drill could not be played; then nothing was measured. Every goroutine and socket of the drill is gone when Run
// returns.
func Run(ctx context.Context, c Config) (Result, error) {
	if found := c.Problems(); len(found) > 0 {
		return Result{}, errors.New(strings.Join(found, "\n"))
	}
	result := Result{Version: Version, Setup: c.setup()}
	for _, name := range c.Acts {
		a, err := c.play(ctx, name)
		if err != nil {
			return Result{}, fmt.Errorf("act %q: %w", name, err)
		}
		result.Acts = append(result.Acts, a)
		if ctx.Err() != nil {
			result.Interrupted = true
			break
		}
	}
	result.Passed = result.passed(c)
	result.Verdict = result.verdict()
	return result, nil
}

// passed tells whether the guarded act, where there was to be one, recovered in time.
func (r *Result) passed(c Config) bool {
	if r.Interrupted {
		return false
	}
	a := r.act(Guarded)
	if a == nil {
		return !slices.Contains(c.Acts, Guarded)
	}
	return a.Recovered() && *a.RecoverySeconds <= c.Within.Seconds() && a.healthy()
}

// play gives one act.
func (c Config) play(ctx context.Context, name string) (ActResult, error) {
	database := &Database{serviceTime: c.Service.ServiceTime}
	service, err := StartService(c.Service, database)
	if err != nil {
		return ActResult{}, err
	}
	defer service.Close()

	var begin time.Time
	since := func() time.Duration { return time.Since(begin) }
	record := NewRecorder(c.Length())
	callers, err := c.callers(name, service.URL(), record, since)
	if err != nil {
		return ActResult{}, err
	}
	callCtx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	begin = time.Now()
	cpu := cpuTime()
	clients := &crowd{record: record, since: since, length: c.Length(), limit: c.AttemptTimeout}
	period := time.Duration(float64(c.Clients) / c.Rate * float64(time.Second))
	for n, by := range callers {
		defer by.close()
		clients.start(ctx, callCtx, n, newSchedule(c.Seed, n, period), by)
	}
	c.watch(ctx, name, database, service, record, since)
	played := min(since(), c.Length())
	clients.arrival.Wait()
	// Whoever is still waiting gets as long as one attempt may take; then the act is over for all.
	last := time.AfterFunc(c.AttemptTimeout, hangUp)
	clients.calls.Wait()
	last.Stop()

	a := c.actResult(name, record, played)
	a.Service = service.Counts()
	a.CPU = (cpuTime() - cpu).Seconds() / since().Seconds()
	return a, nil
}

// watch lets the time of an act pass: it breaks and mends the database, and reports progress once a second.
func (c Config) watch(ctx context.Context, name string, d *Database, s *Service, r *Recorder, since func() time.Duration) {
	next := func(at, unit time.Duration) time.Duration { return (at/unit + 1) * unit }
	breakAt, mendAt := c.Before, c.Before+c.Outage
	for at := since(); at < c.Length(); at = since() {
		wake := min(next(at, time.Second), c.Length())
		for _, turn := range [...]time.Duration{breakAt, mendAt} {
			if turn > at {
				wake = min(wake, turn)
			}
		}
		if !sleep(wake-at, ctx.Done()) {
			return
		}
		if now := since(); now >= mendAt {
			d.Mend()
		} else if now >= breakAt {
			d.Break()
		}
		if c.Progress != nil && wake%time.Second == 0 {
			seen := r.Sum(wake-time.Second, wake)
			c.Progress(Progress{
				Act: name, Elapsed: wake, Phase: c.PhaseAt(wake - 1), Offered: seen.Offered, Attempts: seen.Attempts,
				Answered: seen.Answered, Refused: seen.Refused, Waiting: s.Waiting(),
			})
		}
	}
}

// callers returns the clients of an act, each with connections of its own, and in the guarded act with a guard of its
// own: they are as many programs, which know nothing of each other.
func (c Config) callers(name, url string, r *Recorder, since func() time.Duration) ([]caller, error) {
	all := make([]caller, c.Clients)
	for n := range all {
		base := newTransport(r, since)
		if name == Unguarded {
			client := &http.Client{Transport: base, Timeout: c.AttemptTimeout}
			all[n] = &stubborn{httpCaller{client, url}, c.Retries, c.RetryDelay}
			continue
		}
		transport, err := c.Policy.guard(base, r)
		if err != nil {
			return nil, err
		}
		all[n] = &httpCaller{&http.Client{Transport: transport}, url}
	}
	return all, nil
}
