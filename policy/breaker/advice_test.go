package breaker_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/breaker"
)

var fleetConfig = breaker.Config{
	FailureThreshold:           5,
	WaitDurationInOpenState:    time.Second,
	MaxWaitDurationInOpenState: 10 * time.Second,
	SuccessThreshold:           1,
	PermittedCallsInHalfOpen:   1,
	Fleet:                      true,
}

func TestAdviceOpensABreakerThatHasSeenNothing(t *testing.T) {
	var changes []breaker.Change
	b := breaker.New(fleetConfig, nil, func(c breaker.Change) { changes = append(changes, c) })
	if !b.Advise(0, 700*time.Millisecond) || b.State() != breaker.Open || b.RetryIn(0) != 700*time.Millisecond {
		t.Fatalf("%v, for %v", b.State(), b.RetryIn(0))
	}
	if len(changes) != 1 || changes[0].Reason != "another instance" {
		t.Errorf("%+v", changes)
	}
	if _, ok := b.Finding(0); ok || b.Snapshot(0).Openings != 0 {
		t.Error("hearsay is told on as a finding")
	}
	if b.Advise(0, time.Minute); b.RetryIn(0) != 700*time.Millisecond {
		t.Error("an open breaker listens")
	}
}

func TestAdviceIsNoLongerThanTheLongestWait(t *testing.T) {
	b := breaker.New(fleetConfig, nil, nil)
	b.Advise(0, time.Hour)
	if got := b.RetryIn(0); got != 10*time.Second {
		t.Errorf("open for %v", got)
	}
}

func TestAdviceAgainstRecentSuccesses(t *testing.T) {
	b := breaker.New(fleetConfig, nil, nil)
	for now := time.Duration(0); now < 20*time.Second; now += 250 * time.Millisecond {
		if now%time.Second == 0 {
			call(t, b, now, breaker.Success) // one call per second is enough
		}
		if b.Advise(now, time.Second) {
			t.Fatalf("opened at %v", now)
		}
	}
}

func TestAdviceAfterTheSuccessesHaveEnded(t *testing.T) {
	b := breaker.New(fleetConfig, nil, nil)
	call(t, b, 0, breaker.Success)
	opened := time.Duration(0)
	for now := time.Hour; opened == 0 && now < 2*time.Hour; now += 250 * time.Millisecond {
		if b.Advise(now, time.Second) {
			opened = now - time.Hour
		}
	}
	if opened < time.Second || opened > 3*time.Second {
		t.Errorf("opened %v after the first advice", opened)
	}
}

func TestAdviceAndOwnFailuresAgree(t *testing.T) {
	rate := fleetConfig
	rate.FailureThreshold, rate.FailureRateThreshold = 0, 0.5
	for what, c := range map[string]breaker.Config{"consecutive": fleetConfig, "rate": rate} {
		b := breaker.New(c, nil, nil)
		call(t, b, 0, breaker.Success)
		call(t, b, 0, breaker.Failure)
		call(t, b, 0, breaker.Failure)
		if !b.Advise(0, time.Second) {
			t.Errorf("%s: the advice and two failures are not enough", what)
		}
	}
	b := breaker.New(fleetConfig, nil, nil)
	call(t, b, 0, breaker.Success)
	call(t, b, 0, breaker.Failure)
	if b.Advise(0, time.Second) {
		t.Error("a single failure among successes is enough")
	}
}

func TestAdviceIsNotHeardByOthers(t *testing.T) {
	without, forced, off := fleetConfig, fleetConfig, fleetConfig
	without.Fleet, forced.Mode, off.Disabled = false, breaker.ForcedOpen, true
	for _, c := range []breaker.Config{without, forced, off, {Fleet: true}} {
		b := breaker.New(c, nil, nil)
		before := b.State()
		if b.Advise(0, time.Second) || b.State() != before {
			t.Errorf("%+v followed advice", c)
		}
		if _, ok := b.Finding(0); ok {
			t.Errorf("%+v has a finding", c)
		}
	}
	if b := breaker.New(fleetConfig, nil, nil); b.Advise(0, 0) || b.Advise(0, -time.Second) {
		t.Error("opened for no time")
	}
}

func TestFindingIsWhatAnInstanceSawItself(t *testing.T) {
	b := breaker.New(fleetConfig, nil, nil)
	for range 5 {
		call(t, b, 0, breaker.Failure)
	}
	if wait, ok := b.Finding(0); !ok || wait < time.Second || wait > 1250*time.Millisecond {
		t.Errorf("%v %v", wait, ok)
	}
	if _, ok := b.Finding(time.Minute); ok {
		t.Error("a finding after the wait")
	}
	shadow := fleetConfig
	shadow.Mode = breaker.Shadow
	b = breaker.New(shadow, nil, nil)
	for range 5 {
		call(t, b, 0, breaker.Failure)
	}
	if _, ok := b.Finding(0); ok {
		t.Error("a shadow has a finding")
	}
}

func TestAProbeAfterAdviceDecides(t *testing.T) {
	b := breaker.New(fleetConfig, nil, nil)
	b.Advise(0, time.Second)
	call(t, b, time.Second, breaker.Failure)
	if _, ok := b.Finding(time.Second); !ok {
		t.Error("its own probe failed, and that is no finding")
	}
	if got := b.RetryIn(time.Second); got > 1250*time.Millisecond {
		t.Errorf("its first own opening is for %v", got)
	}

	b = breaker.New(fleetConfig, nil, nil)
	b.Advise(0, time.Second)
	call(t, b, time.Second, breaker.Success)
	if b.State() != breaker.Closed {
		t.Fatalf("%v after a probe that succeeded", b.State())
	}
	for now := time.Second; now < 11*time.Second; now += 250 * time.Millisecond {
		if b.Advise(now, time.Second) {
			t.Fatalf("believed the same one again at %v", now)
		}
	}
}

// Two instances that only listen to each other must not keep each other open.
func TestInstancesDoNotKeepEachOtherOpen(t *testing.T) {
	bs := []*breaker.Breaker{breaker.New(fleetConfig, nil, nil), breaker.New(fleetConfig, nil, nil)}
	for range 5 {
		call(t, bs[0], 0, breaker.Failure)
	}
	refused := [2]int{}
	for now := time.Duration(0); now < 30*time.Second; now += 50 * time.Millisecond { // the dependency is back already
		for i, b := range bs {
			if wait, ok := b.Finding(now); ok {
				bs[1-i].Advise(now, wait)
			}
			if p, ok := b.Allow(now); ok {
				b.Record(now, p, breaker.Success)
			} else {
				refused[i]++
			}
		}
	}
	if refused[0] > 26 || refused[1] > 26 {
		t.Errorf("%v calls were refused, in steps of 50 ms", refused)
	}
}

func TestRecordingForAdviceCostsNothing(t *testing.T) {
	b := breaker.New(fleetConfig, nil, nil)
	if n := testing.AllocsPerRun(100, func() {
		call(t, b, 0, breaker.Success)
		b.Advise(0, time.Second)
		b.Finding(0)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAdviceIsHeardBeforeTheOriginToo(t *testing.T) {
	if b := breaker.New(fleetConfig, nil, nil); !b.Advise(-time.Hour, time.Second) {
		t.Error("deaf on a clock that is before its origin, as under testing/synctest")
	}
}
