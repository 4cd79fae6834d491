package basics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/connfail"
)

// reportAgain is how long a cause that was reported is not reported again.
const reportAgain = 5 * time.Second

// waitTeller writes how the wait goes, one line at a time.
type waitTeller struct {
	mu    sync.Mutex
	out   io.Writer
	quiet bool
}

func (s *waitTeller) line(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "abate wait: "+format+"\n", args...)
}

// observer reports on one target: the first failure, every new cause, the same cause every five seconds, and the end.
func (s *waitTeller) observer(t *waitTarget) abate.Observer {
	var reported string
	var at time.Duration
	return abate.ObserverFunc(func(e abate.Event) {
		switch {
		case s.quiet:
		case e.Kind == core.RetryScheduled:
			cause := t.hide(e.Err.Error())
			if cause == reported && e.At-at < reportAgain {
				return
			}
			reported, at = cause, e.At
			s.line("%s is not there, attempt %d, next in %v: %s", t.shown, e.Attempt, e.Delay.Round(time.Millisecond), cause)
		case e.Kind == core.CallEnded && e.Err == nil:
			s.line("%s is there after %s in %v", t.shown, cli.Count(e.Attempt, "attempt"), e.Latency.Round(time.Millisecond))
		}
	})
}

// missing returns why a target was not there at the end.
func (s *waitTeller) missing(t *waitTarget, err error) {
	var e *abate.Error
	if !errors.As(err, &e) {
		s.line("%s: %s", t.shown, t.hide(err.Error()))
		return
	}
	if e.Reason == context.Canceled { // by somebody, or because of another target
		if e.Attempts > 0 && !errors.Is(e.Err, context.Canceled) {
			s.line("%s was not there yet: %s", t.shown, t.hide(e.Err.Error()))
		}
		return
	}
	short := *e
	short.Elapsed = e.Elapsed.Round(time.Millisecond)
	s.line("%s", t.hide(short.Error()))
	if hint := connfail.Explain(e.Err); hint != "" {
		s.line("%s: %s", t.shown, t.hide(hint))
	}
}
