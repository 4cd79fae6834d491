package drill_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/drill"
)

// act notes what the engine does with it.
type act struct {
	mu     sync.Mutex
	did    []string
	failAt string // what fails
	until  time.Duration
	events []time.Duration
	since  func() time.Duration
}

var errAct = errors.New("it failed")

func (a *act) note(what string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.did = append(a.did, what)
	if what == a.failAt {
		return errAct
	}
	return nil
}

func (a *act) SetUp(_ context.Context, since func() time.Duration) error {
	a.since = since
	return a.note("set up")
}

func (a *act) Events() (all []drill.Event) {
	for _, at := range a.events {
		all = append(all, drill.Event{At: at, Do: func() error { return a.note("event at " + at.String()) }})
	}
	return all
}

func (a *act) Load(ctx context.Context) error {
	if err := a.note("load"); err != nil {
		return err
	}
	step := time.Duration(0)
	next := func() time.Duration { step += 10 * time.Millisecond; return step }
	sent := 0
	drill.Send(ctx, a.since, next, a.until, func(int, time.Duration) { sent++ })
	if want := int(a.until/(10*time.Millisecond)) - 1; ctx.Err() == nil && sent != want {
		return errors.New("not all was sent")
	}
	return nil
}

func (a *act) Drain(ctx context.Context) {
	if _, ok := ctx.Deadline(); !ok {
		panic("for ever")
	}
	_ = a.note("drain")
}

func (a *act) TearDown() { _ = a.note("tear down") }

func TestAnActIsRunInOrder(t *testing.T) {
	a := &act{until: 200 * time.Millisecond, events: []time.Duration{100 * time.Millisecond, 0}}
	b := &act{until: 200 * time.Millisecond}
	d := drill.Drill{WarmUp: 50 * time.Millisecond, Length: 200 * time.Millisecond, Drain: time.Minute}
	if err := d.Run(t.Context(), a, b); err != nil {
		t.Fatal(err)
	}
	if want := []string{"set up", "load", "event at 0s", "event at 100ms", "drain", "tear down"}; !slices.Equal(
		a.did, want) {
		t.Errorf("it did %q, want %q", a.did, want)
	}
	if want := []string{"set up", "load", "drain", "tear down"}; !slices.Equal(b.did, want) {
		t.Errorf("the other did %q, want %q", b.did, want)
	}
}

func TestWhatFailsEndsAllActs(t *testing.T) {
	for _, what := range []string{"set up", "load", "event at 20ms"} {
		a := &act{until: time.Hour, failAt: what, events: []time.Duration{20 * time.Millisecond}}
		b := &act{until: time.Hour}
		err := drill.Drill{Length: time.Hour, Drain: time.Minute}.Run(t.Context(), a, b)
		if !errors.Is(err, errAct) {
			t.Errorf("%s: error %v", what, err)
		}
		for _, one := range []*act{a, b} {
			if one.did[len(one.did)-1] != "tear down" {
				t.Errorf("%s: it did %q", what, one.did)
			}
		}
	}
}

func TestAnInterruptedDrillIsNoError(t *testing.T) {
	for _, failAt := range []string{"", "set up", "event at 1h0m0s"} {
		a := &act{until: time.Hour, failAt: failAt, events: []time.Duration{time.Hour}}
		ctx, interrupt := context.WithCancel(t.Context())
		d := drill.Drill{WarmUp: 10 * time.Millisecond, Length: time.Hour, Drain: time.Minute}
		d.EachSecond = func(at time.Duration) {
			if at != 0 {
				t.Errorf("told of %v first, want 0s, the end of the warm-up", at)
			}
			interrupt()
		}
		if failAt == "set up" {
			interrupt()
		}
		if err := d.Run(ctx, a); err != nil {
			t.Errorf("failing at %q: %v", failAt, err)
		}
		interrupt()
	}
}
