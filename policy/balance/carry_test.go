package balance_test

import (
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/balance"
)

// storied is a balancer of four endpoints with a past, at 60 s:
//
//	0  idle
//	1  two failures in a row, two attempts pending
//	2  ejected for the second time, until 75 s
//	3  ejected until 65 s
func storied(t *testing.T) *balance.Balancer {
	t.Helper()
	b := balance.New(three, 4)
	attempts(t, b, 40*s, 2, "FFF")
	attempts(t, b, 55*s, 2, "FFF")
	attempts(t, b, 55*s, 3, "FFF")
	begin(t, b, 60*s, 1)
	begin(t, b, 60*s, 1)
	attempts(t, b, 60*s, 1, "FF")
	for i, want := range []balance.EndpointState{
		{},
		{Pending: 2, ConsecutiveFailures: 2},
		{Ejected: true, EjectedUntil: 75 * s, Ejections: 2, Multiplier: 2},
		{Ejected: true, EjectedUntil: 65 * s, Ejections: 1, Multiplier: 1},
	} {
		if got := b.Endpoint(i, 60*s); got != want {
			t.Fatalf("endpoint %d: %+v, want %+v", i, got, want)
		}
	}
	return b
}

func TestAReloadCarriesEjectionsAndStreaks(t *testing.T) {
	off := balance.Config{Disabled: true, ConsecutiveFailures: 3}
	half, shorter := three, three
	half.MaxEjectionShare = 0.5
	shorter.BaseEjectionTime, shorter.MaxEjectionTime = 4*s, 7*s
	streak := balance.EndpointState{Pending: 2, ConsecutiveFailures: 2}
	long := balance.EndpointState{Ejected: true, EjectedUntil: 75 * s, Ejections: 2, Multiplier: 2}
	short := balance.EndpointState{Ejected: true, EjectedUntil: 65 * s, Ejections: 1, Multiplier: 1}
	none := balance.EndpointState{}
	for _, tt := range []struct {
		name  string
		to    balance.Config
		index []int
		want  []balance.EndpointState
	}{
		{"nothing changed", three, []int{0, 1, 2, 3}, []balance.EndpointState{none, streak, long, short}},
		{"in another order", three, []int{3, 2, 1, 0}, []balance.EndpointState{short, long, streak, none}},
		{"one new", three, []int{0, -1, 1, 2, 3}, []balance.EndpointState{none, none, streak, long, short}},
		{"one gone", three, []int{1, 2, 3}, []balance.EndpointState{streak, long, short}},
		{"all new", three, []int{-1, 4, 99}, []balance.EndpointState{none, none, none}},
		{"indexes missing", three, []int{2}, []balance.EndpointState{long, none, none}},
		{"no endpoints", three, []int{2, 3}, nil},
		{"no index", three, nil, []balance.EndpointState{none, none}},
		{"more indexes than endpoints", three, []int{2, 1, 0}, []balance.EndpointState{long, streak}},
		{"one endpoint twice", three, []int{2, 2, 0}, []balance.EndpointState{long, long, none}},
		{"a smaller share: what comes back last stays out", half, []int{0, 3, 2}, []balance.EndpointState{
			none, {Ejections: 1, Multiplier: 1}, long,
		}},
		{"only ejected ones are left", three, []int{2, 3}, []balance.EndpointState{long, {Ejections: 1, Multiplier: 1}}},
		{"only one is left, and it was ejected", three, []int{2}, []balance.EndpointState{{Ejections: 2, Multiplier: 2}}},
		{"a shorter maximum", shorter, []int{0, 1, 2, 3},
			[]balance.EndpointState{none, streak, {Ejected: true, EjectedUntil: 62 * s, Ejections: 2, Multiplier: 2},
				{Ejected: true, EjectedUntil: 62 * s, Ejections: 1, Multiplier: 1}}},
		{"disabled", off, []int{0, 1, 2, 3}, []balance.EndpointState{none, streak, {Ejections: 2}, {Ejections: 1}}},
		{"off", balance.Config{}, []int{0, 1, 2, 3}, []balance.EndpointState{none, streak, {Ejections: 2}, {Ejections: 1}}},
	} {
		from := storied(t)
		b := balance.New(tt.to, len(tt.want))
		b.Carry(from, tt.index)
		for i, want := range tt.want {
			if got := b.Endpoint(i, 60*s); got != want {
				t.Errorf("%s: endpoint %d: %+v, want %+v", tt.name, i, got, want)
			}
		}
		from.Done(1, 60*s, balance.Neutral) // so that all are equally busy
		from.Done(1, 60*s, balance.Neutral)
		var chosen, free []int
		if len(tt.want) == 0 {
			continue
		}
		for i, share := range shares(b, len(tt.want), 60*s, -1, 1) {
			if share > 0 {
				chosen = append(chosen, i)
			}
			if !tt.want[i].Ejected {
				free = append(free, i)
			}
		}
		if !slices.Equal(chosen, free) {
			t.Errorf("%s: %v are chosen, want %v", tt.name, chosen, free)
		}
	}
}

func TestCarryingStreaksLastUntilTheThreshold(t *testing.T) {
	b := balance.New(three, 2)
	b.Carry(storied(t), []int{0, 1})
	attempts(t, b, 60*s, 1, "F")
	wantEjected(t, b, 60*s, 1, 70*s)
}

func TestALowerThresholdTakesEffectOnTheNextFailure(t *testing.T) {
	lower := three
	lower.ConsecutiveFailures = 1
	b := balance.New(lower, 2)
	b.Carry(storied(t), []int{0, 1})
	wantEjected(t, b, 60*s, 1, 0)
	attempts(t, b, 60*s, 1, "F")
	wantEjected(t, b, 60*s, 1, 70*s)
}

func TestACarriedEjectionEndsInTimeAndTheNextOneIsLonger(t *testing.T) {
	b := balance.New(three, 2)
	b.Carry(storied(t), []int{2, 0})
	wantEjected(t, b, 75*s-1, 0, 75*s)
	wantEjected(t, b, 75*s, 0, 0)
	attempts(t, b, 75*s, 0, "FFF")
	wantEjected(t, b, 75*s, 0, 105*s)
}

// A multiplier from a configuration with many short steps would keep one with few long steps at its maximum for hours.
func TestTheMultiplierIsCutToTheNewMaximum(t *testing.T) {
	steps := balance.Config{ConsecutiveFailures: 1, BaseEjectionTime: 10 * time.Millisecond, MaxEjectionTime: time.Minute}
	from, now := balance.New(steps, 2), time.Duration(0)
	for range 50 {
		attempts(t, from, now, 1, "F")
		now = from.Endpoint(1, now).EjectedUntil
	}
	b := balance.New(three, 2)
	b.Carry(from, []int{0, 1})
	if got := b.Endpoint(1, now); got.Multiplier != 4 || got.Ejections != 50 {
		t.Errorf("%+v, want multiplier 4, which is what 35 s need", got)
	}
}

func TestAttemptsUnderWayCountForTheNewBalancer(t *testing.T) {
	from := storied(t)
	b := balance.New(three, 3)
	b.Carry(from, []int{3, 1, 0})
	if got, want := b.Endpoint(1, 61*s), (balance.EndpointState{Pending: 2, ConsecutiveFailures: 2}); got != want {
		t.Errorf("before: %+v, want %+v", got, want)
	}
	from.Done(1, 61*s, balance.Failure) // the third in a row
	from.Done(1, 61*s, balance.Success)
	if got, want := b.Endpoint(1, 61*s), (balance.EndpointState{Ejected: true, EjectedUntil: 71 * s, Ejections: 1,
		Multiplier: 1}); got != want {
		t.Errorf("after: %+v, want %+v", got, want)
	}
	if got := b.Pick(61*s, 0, -1); got != 2 {
		t.Errorf("%d is chosen, which is out", got)
	}
}

func TestAttemptsAtAnEndpointThatIsGoneEndForThemselves(t *testing.T) {
	from := storied(t)
	b := balance.New(three, 2)
	b.Carry(from, []int{0, -1})
	for range 2 {
		from.Done(1, 61*s, balance.Failure)
	}
	for i := range 2 {
		if got := b.Endpoint(i, 61*s); got != (balance.EndpointState{}) {
			t.Errorf("endpoint %d: %+v", i, got)
		}
	}
	if got := from.Endpoint(1, 61*s); got.Pending != 0 || got.Ejected {
		t.Errorf("the one that is gone: %+v", got)
	}
}

// A request may have been routed just before the change, and its balancer goes on for it.
func TestABalancerThatWasReplacedGoesOnAsThingsStood(t *testing.T) {
	from := balance.New(three, 3)
	attempts(t, from, 0, 1, "FFF")
	b := balance.New(three, 3)
	b.Carry(from, []int{0, 1, 2})
	attempts(t, b, 0, 2, "FFF")
	for _, tt := range []struct {
		at   time.Duration
		want []float64
	}{{s, []float64{0.5, 0, 0.5}}, {10 * s, []float64{1. / 3, 1. / 3, 1. / 3}}} {
		wantShares(t, tt.at.String(), shares(from, 3, tt.at, -1, 1), tt.want)
	}
}

func TestOneEndpointTwiceIsTwoEndpoints(t *testing.T) {
	from := balance.New(three, 1)
	from.Pick(0, 0, -1)
	b := balance.New(three, 2)
	b.Carry(from, []int{0, 0})
	if one, two := b.Endpoint(0, 0).Pending, b.Endpoint(1, 0).Pending; one != 1 || two != 0 {
		t.Errorf("%d and %d pending", one, two)
	}
}

func TestLateFailuresAloneDoNotEjectAfterAReloadEither(t *testing.T) {
	from := balance.New(three, 2)
	for range 6 {
		begin(t, from, 0, 1)
	}
	for range 3 {
		from.Done(1, 0, balance.Failure)
	}
	for range 3 {
		from.Done(1, 10*s, balance.Failure) // late
	}
	attempts(t, from, 10*s, 1, "F") // new
	b := balance.New(three, 2)
	b.Carry(from, []int{0, 1})
	attempts(t, b, 10*s, 1, "F") // new
	wantEjected(t, b, 10*s, 1, 0)
	attempts(t, b, 10*s, 1, "F") // the third new one
	wantEjected(t, b, 10*s, 1, 30*s)
}

func TestReloadsWithoutEndDoNotWearAnythingOut(t *testing.T) {
	b := storied(t)
	for range 1000 {
		next := balance.New(three, 4)
		next.Carry(b, []int{0, 1, 2, 3})
		b = next
	}
	if got, want := b.Endpoint(2, 60*s),
		(balance.EndpointState{Ejected: true, EjectedUntil: 75 * s, Ejections: 2, Multiplier: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := b.Endpoint(1, 60*s); got.ConsecutiveFailures != 2 {
		t.Errorf("%+v", got)
	}
}
