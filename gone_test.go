package abate_test

import (
	"errors"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
)

// TestSlowAnswersAreNoReasonNotToTryAnotherInstance when the one that was tried is gone. They are one for other
// failures: what has become slow gets no extra attempts.
func TestSlowAnswersAreNoReasonNotToTryAnotherInstance(t *testing.T) {
	for name, row := range map[string]struct {
		o    abate.Outcome
		want error // nil: it is tried again
	}{
		"a failure":    {abate.Outcome{Class: abate.Failure, Err: errDown}, abate.ErrSilent},
		"gone":         {abate.Outcome{Class: abate.Failure, Err: errDown, Gone: true}, nil},
		"not sent":     {abate.Outcome{Class: abate.Failure, Err: errDown, Unsent: true}, nil},
		"gone for all": {abate.Outcome{Class: abate.Failure, Err: errDown, Gone: true, NoRetry: true}, errDown},
	} {
		g, err := abate.New("payment-service", abate.DefaultPolicy())
		if err != nil {
			t.Fatal(err)
		}
		now := time.Duration(0)
		attempt := func(takes time.Duration, o abate.Outcome) core.Step {
			var c core.Call
			if s := g.Begin(&c, now, core.NoDeadline); s.Action != core.Attempt {
				t.Fatalf("%s: %+v", name, s)
			}
			now += takes
			s := c.AttemptDone(now, 0, o)
			c.Abort(now)
			return s
		}
		for i := range 400 {
			attempt(time.Millisecond+time.Duration(i%7)*100*time.Microsecond, abate.Outcome{Class: abate.Success})
		}
		for range 3 {
			attempt(20*time.Millisecond, abate.Outcome{Class: abate.Success})
		}
		s := attempt(time.Millisecond, row.o)
		if again := s.Action == core.Sleep || s.Action == core.Attempt; again != (row.want == nil) ||
			!again && !errors.Is(s.Err, row.want) {
			t.Errorf("%s: %+v, want %v", name, s, row.want)
		}
	}
}
