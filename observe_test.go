package abate_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/retry"
)

// recording is an observer that keeps what it is told, with the guard's name.
type recording []string

func (r *recording) Observe(e abate.Event) { *r = append(*r, e.Guard+" "+e.Kind.String()) }

func (r *recording) want(t *testing.T, who string, want ...string) {
	t.Helper()
	if !slices.Equal(*r, want) {
		t.Errorf("%s was told %q\n     want %q", who, *r, want)
	}
}

func TestAnObserverInTheContextIsToldOfItsCallsAlone(t *testing.T) {
	var all, mine recording
	g := guard(t, abate.Policy{Retry: retry.Config{MaxRetries: 1, Backoff: retry.NoBackoff}, Observer: &all})
	ctx := abate.WithObserver(t.Context(), &mine)
	n := 0
	fn := func(context.Context) (int, error) {
		if n++; n%2 == 1 {
			return 0, errDown
		}
		return n, nil
	}
	for _, ctx := range []context.Context{t.Context(), ctx, abate.WithObserver(ctx, nil)} {
		if _, err := abate.Do(ctx, g, fn); err != nil {
			t.Fatal(err)
		}
	}
	name := g.Name()
	one := []string{name + " call-began", name + " attempt-began", name + " attempt-ended", name + " retry-scheduled",
		name + " attempt-began", name + " attempt-ended", name + " call-ended"}
	mine.want(t, "the context's observer", one...)
	all.want(t, "the policy's observer", slices.Concat(one, one, one)...)
}

func TestAnObserverInTheContextNeedsNoneInThePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mine recording
		latency := time.Duration(-1)
		ctx := abate.WithObserver(t.Context(), abate.ObserverFunc(func(e abate.Event) {
			mine.Observe(e)
			if e.Kind == core.CallEnded {
				latency = e.Latency
			}
		}))
		if _, err := abate.Do(ctx, guard(t, abate.Policy{}), func(context.Context) (int, error) {
			time.Sleep(2 * time.Second)
			return 0, nil
		}); err != nil || latency != 2*time.Second {
			t.Errorf("the call took %v, want 2 s, and ended with %v: an observer needs to know when attempts end", latency, err)
		}
		mine = nil
		g := guard(t, abate.Policy{Hedge: hedge.Config{Delay: time.Second}})
		if _, err := abate.DoHedged(ctx, g, func(ctx context.Context) (int, error) {
			time.Sleep(1500 * time.Millisecond)
			return 0, nil
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // for the copy that lost
		name := g.Name()
		mine.want(t, "the observer", name+" call-began", name+" attempt-began", name+" hedge-sent", name+" attempt-ended",
			name+" attempt-ended", name+" call-ended")
		if latency != 1500*time.Millisecond {
			t.Errorf("the call took %v, want 1.5 s", latency)
		}
	})
}

func TestAnObserverInTheContextIsToldOfACallThatNeverBegan(t *testing.T) {
	var mine recording
	ctx, leave := context.WithCancel(abate.WithObserver(t.Context(), &mine))
	leave()
	g := guard(t, abate.Policy{})
	if _, err := abate.Do(ctx, g, func(context.Context) (int, error) {
		return 0, nil
	}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	mine.want(t, "the observer", g.Name()+" call-began", g.Name()+" call-ended")
}

func TestADriverOfItsOwnCanHaveItsCallWatched(t *testing.T) {
	var mine recording
	g := guard(t, abate.Policy{})
	var c core.Call
	c.Watch(&mine)
	g.Begin(&c, 0, core.NoDeadline)
	c.AttemptDone(0, 0, abate.Outcome{})
	mine.want(t, "the observer", g.Name()+" call-began", g.Name()+" attempt-began", g.Name()+" attempt-ended",
		g.Name()+" call-ended")
}

func TestAnObserverInTheContextCostsTheOthersNothing(t *testing.T) {
	g := guard(t, fullPolicy())
	type other struct{}
	quiet := context.WithValue(t.Context(), other{}, 1)
	watched := abate.WithObserver(quiet, abate.ObserverFunc(func(abate.Event) {}))
	call := func(ctx context.Context) float64 {
		return testing.AllocsPerRun(200, func() {
			_, _ = abate.Do(ctx, g, func(context.Context) (int, error) { return 0, nil })
		})
	}
	if n := call(quiet); n != 0 {
		t.Errorf("a call that nobody watches allocates %v times", n)
	}
	if n := call(watched); n > 1 {
		t.Errorf("a call that somebody watches allocates %v times, want 1", n)
	}
}
