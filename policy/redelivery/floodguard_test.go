package redelivery_test

import (
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
)

// flooded is a guard before a plan of three retry topics, and a clock.
type flooded struct {
	*redelivery.FloodGuard
	plan *redelivery.Plan
	now  time.Duration
}

func newFlooded(c redelivery.Config) *flooded {
	c.Tiers = []time.Duration{30 * time.Second, 5 * time.Minute, 30 * time.Minute}
	return &flooded{FloodGuard: redelivery.NewFloodGuard(c.Flood), plan: redelivery.NewPlan(c)}
}

// ends ends n messages a second for a while, of which each so-manieth is given up, and returns how many of those were
// held and how many became letters.
func (f *flooded) ends(d time.Duration, perSecond, oneIn int, failure redelivery.Failure) (held, letters int) {
	for n := range perSecond * int(d/time.Second) {
		f.now += time.Second / time.Duration(perSecond)
		if (n+1)%oneIn != 0 {
			f.Handled(f.now)
			continue
		}
		switch v := f.Next(f.now, f.plan, failure); v.Action {
		case redelivery.Forward:
			held++
		default:
			letters++
		}
	}
	return held, letters
}

var exhausted = redelivery.Failure{Tier: 2, Delivery: 4, Class: "error"}

func TestSmallNumbersOfPoisonMessagesAreDeadLettersAtOnce(t *testing.T) {
	poison := redelivery.Failure{Tier: redelivery.Main, Delivery: 1, Permanent: true}
	for name, rate := range map[string]struct {
		perSecond, oneIn int
	}{"each message, one in ten seconds": {1, 10}, "one of a hundred": {100, 100}} {
		f := newFlooded(redelivery.Config{})
		if name == "each message, one in ten seconds" {
			for range 60 { // nothing but poison: six a minute
				f.now += 10 * time.Second
				if v := f.Next(f.now, f.plan, poison); v.Action != redelivery.DeadLetter {
					t.Fatalf("%s: %+v", name, v)
				}
			}
			continue
		}
		if held, letters := f.ends(10*time.Minute, rate.perSecond, rate.oneIn, poison); held != 0 || letters != 600 {
			t.Errorf("%s: %d held, %d letters", name, held, letters)
		}
	}
}

func TestFloodOfDeadLettersIsHeldInTheLastRetryTopic(t *testing.T) {
	f := newFlooded(redelivery.Config{})
	f.ends(5*time.Minute, 100, 1000, exhausted)
	held, letters := f.ends(time.Minute, 100, 24, exhausted) // what is left of four deliveries at 45 % errors
	if letters > 25 || held < 220 || !f.State(f.now).Holding {
		t.Errorf("%d held, %d letters, %+v", held, letters, f.State(f.now))
	}
	v := f.Next(f.now, f.plan, redelivery.Failure{Tier: redelivery.Main, Delivery: 1, Permanent: true})
	if want := (redelivery.Verdict{
		Action: redelivery.Forward, Tier: 2, Delay: 30 * time.Minute, Excused: true, Reason: "flood",
	}); v != want {
		t.Errorf("%+v, want %+v", v, want)
	}
	if v := f.Next(f.now, f.plan, redelivery.Failure{Tier: 0, Delivery: 2}); v.Action != redelivery.Forward || v.Excused ||
		v.Tier != 1 {
		t.Errorf("a message with deliveries left: %+v", v)
	}
}

func TestHoldEndsWhenTheShareHasFallen(t *testing.T) {
	f := newFlooded(redelivery.Config{})
	f.ends(2*time.Minute, 100, 10, exhausted)
	if !f.State(f.now).Holding {
		t.Fatal("it does not hold")
	}
	f.ends(2*time.Minute, 100, 80, exhausted) // 1.25 %: below the share, above its half
	if s := f.State(f.now); !s.Holding {
		t.Errorf("it lets go at 1.25 %%: %+v", s)
	}
	f.ends(2*time.Minute, 100, 200, exhausted)
	if s := f.State(f.now); s.Holding || s.Share > 0.006 {
		t.Errorf("it holds at 0.5 %%: %+v", s)
	}
	if v := f.Next(f.now, f.plan, exhausted); v.Action != redelivery.DeadLetter || v.Reason != "exhausted" {
		t.Errorf("%+v", v)
	}
	f = newFlooded(redelivery.Config{})
	f.ends(2*time.Minute, 100, 2, exhausted)
	f.now += 61 * time.Second // nothing comes any more
	if s := f.State(f.now); s.Holding || s.Letters != 0 {
		t.Errorf("it holds for ever when nothing comes: %+v", s)
	}
}

func TestNothingIsHeldLongerThanMaxHoldOrPastItsTimeoutOrAgainstTheOperator(t *testing.T) {
	f := newFlooded(redelivery.Config{Timeout: time.Hour, Flood: redelivery.Flood{MaxHold: 2 * time.Hour}})
	f.ends(2*time.Minute, 100, 2, exhausted)
	for name, failure := range map[string]redelivery.Failure{
		"held for long": {Tier: 2, Delivery: 4, Since: 2 * time.Hour}, "past its timeout": {
			Tier: 2, Delivery: 4, Age: 61 * time.Minute,
		},
	} {
		if v := f.Next(f.now, f.plan, failure); v.Action != redelivery.DeadLetter {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if v := f.Next(f.now, f.plan, redelivery.Failure{Tier: 2, Delivery: 4, Since: 2*time.Hour - 1}); v.Reason != "flood" {
		t.Errorf("%+v", v)
	}
	f.Reconfigure(redelivery.Flood{Disabled: true})
	if v := f.Next(f.now, f.plan, exhausted); v.Action != redelivery.DeadLetter || f.State(f.now).Holding {
		t.Errorf("switched off: %+v", v)
	}
}

// TestNothingIsHeldLongerThanItsTopicKeepsIt: the last retry topic keeps a record for its delay and Outage.
func TestNothingIsHeldLongerThanItsTopicKeepsIt(t *testing.T) {
	for outage, want := range map[time.Duration]time.Duration{
		0: 24 * time.Hour, time.Hour: time.Hour, 48 * time.Hour: 24 * time.Hour,
	} {
		c := redelivery.Config{Delay: time.Second, Outage: outage}.WithDefaults()
		if c.Flood.MaxHold != want {
			t.Errorf("outage %v: a message is held for %v, want %v", outage, c.Flood.MaxHold, want)
		}
	}
}

// TestPoisonForGoodIsInTheDeadLetterTopicSoonAfterItsBatch: nobody has to do anything.
func TestPoisonForGoodIsInTheDeadLetterTopicSoonAfterItsBatch(t *testing.T) {
	poison := redelivery.Failure{Tier: redelivery.Main, Delivery: 1, Permanent: true}
	for name, oneIn := range map[string]int{"three of ten messages": 3, "all": 1} {
		f := newFlooded(redelivery.Config{})
		held, letters := f.ends(10*time.Second, 10, oneIn, poison)
		if held == 0 || letters == 0 || held+letters != 100/oneIn {
			t.Fatalf("%s: %d held, %d letters", name, held, letters)
		}
		f.now += 61 * time.Second // the batch is over
		if f.Waits(f.now, time.Minute) {
			t.Errorf("%s: held longer than a window", name)
		}
		again := redelivery.Failure{Tier: 2, Delivery: 2, Permanent: true, Flooded: true}
		for range held {
			if v := f.Next(f.now, f.plan, again); v.Action != redelivery.DeadLetter {
				t.Errorf("%s: delivered after the flood: %+v", name, v)
			}
		}
	}
	f := newFlooded(redelivery.Config{}) // and where it never ends, those of a day ago go
	f.ends(time.Minute, 10, 1, poison)
	if f.Waits(f.now, 24*time.Hour) {
		t.Error("it waits for ever")
	}
	late := poison
	late.Since = 24 * time.Hour
	if v := f.Next(f.now, f.plan, late); v.Action != redelivery.DeadLetter {
		t.Errorf("%+v", v)
	}
}

func TestMessagesThatAreHeldStayUndeliveredAndDoNotKeepTheHoldGoing(t *testing.T) {
	f := newFlooded(redelivery.Config{})
	f.ends(61*time.Second, 100, 1_000_000, exhausted) // it was started a window ago
	if f.Waits(f.now, time.Hour) {
		t.Error("it waits without a flood")
	}
	f.ends(2*time.Minute, 100, 20, exhausted)
	if !f.Waits(f.now, time.Hour) || f.Waits(f.now, 24*time.Hour) {
		t.Error("it does not wait in a flood, or for longer than MaxHold")
	}
	f.now += 2 * time.Minute
	again := exhausted
	again.Flooded = true
	if held, letters := f.ends(time.Minute, 10, 1, again); held != 0 || letters != 600 {
		t.Errorf("after the flood %d are held again, %d are dead letters", held, letters)
	}
	f.ends(time.Minute, 100, 20, exhausted)
	if v := f.Next(f.now, f.plan, again); v.Reason != "flood" {
		t.Errorf("in a flood that goes on: %+v", v)
	}
}

func TestFloodOfMessagesThatWouldBeForgottenIsHeldToo(t *testing.T) {
	f := newFlooded(redelivery.Config{DLTStrategy: redelivery.DropLast})
	f.ends(2*time.Minute, 100, 2, exhausted)
	if v := f.Next(f.now, f.plan, exhausted); v.Action != redelivery.Forward {
		t.Errorf("%+v", v)
	}
	none := redelivery.NewPlan(redelivery.Config{})
	if v := f.Next(f.now, none, exhausted); v.Action != redelivery.DeadLetter {
		t.Errorf("without a retry topic: %+v", v)
	}
}

func TestCountingDeliveriesAllocatesNothingAndLosesNone(t *testing.T) {
	g := redelivery.NewFloodGuard(redelivery.Flood{})
	var now time.Duration
	if n := testing.AllocsPerRun(1000, func() { now += time.Millisecond; g.Handled(now) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	f := newFlooded(redelivery.Config{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 1000 {
				f.Handled(time.Second + time.Duration(i)*time.Millisecond)
			}
		})
	}
	all.Wait()
	f.Next(2*time.Second, f.plan, exhausted)
	if s := f.State(2 * time.Second); s.Share != 1.0/8001 {
		t.Errorf("%+v", s)
	}
}

// FuzzFloodGuard: whatever comes in whatever order, the share is one, few letters are never held, and nothing is after
// MaxHold.
func FuzzFloodGuard(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 255, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7})
	f.Fuzz(func(t *testing.T, steps []byte) {
		g := newFlooded(redelivery.Config{})
		given := []time.Duration{}
		for _, step := range steps {
			g.now += time.Duration(step>>3) * time.Second
			switch step & 3 {
			case 0, 1:
				g.Handled(g.now - time.Duration(step&4)*time.Second)
				continue
			case 2:
				if s := g.State(g.now); s.Share < 0 || s.Share > 1 || s.Letters < 0 || s.Held < 0 {
					t.Fatalf("%+v", s)
				}
				continue
			}
			given = append(given, g.now)
			late := step&4 > 0
			failure := exhausted
			if late {
				failure.Since = 24 * time.Hour
			}
			recent := 0
			for _, at := range given {
				if g.now-at <= time.Minute {
					recent++
				}
			}
			if v := g.Next(g.now, g.plan, failure); v.Action == redelivery.Forward && (recent < 10 || late) {
				t.Fatalf("held with %d letters in the last minute, late %v", recent, late)
			}
		}
	})
}

// While the circuit is open nothing is delivered, so that nothing is given up: that is no reason to let thousands go
// that would be dead letters a moment later.
func TestFloodDoesNotEndBecauseTheCircuitIsOpen(t *testing.T) {
	f := newFlooded(redelivery.Config{})
	f.ends(time.Minute, 100, 10, exhausted)
	if !f.State(f.now).Holding {
		t.Fatal("no flood")
	}
	for range 600 { // ten minutes
		f.now += time.Second
		f.Trouble(f.now)
		if !f.Waits(f.now, time.Minute) {
			t.Fatalf("it ended after %v of an open circuit", f.now-time.Minute)
		}
	}
	if f.Waits(f.now, 24*time.Hour) {
		t.Error("a message is held for longer than MaxHold")
	}
	// It closes, and nothing has changed; then the service is well.
	f.ends(2*time.Minute, 100, 10, exhausted)
	if !f.State(f.now).Holding {
		t.Error("it ended though as many fail as before")
	}
	f.ends(2*time.Minute, 100, 1_000_000, exhausted)
	if f.State(f.now).Holding {
		t.Error("it does not end when all is well")
	}
}

// An operator who changes the window in the middle of a flood, of an open circuit or of quiet times does not end it,
// nor begin one.
func TestReloadOfTheWindowNeitherEndsNorBeginsAFlood(t *testing.T) {
	for _, window := range []time.Duration{time.Second, 30 * time.Second, 61 * time.Second, time.Hour} {
		f := newFlooded(redelivery.Config{})
		f.ends(time.Minute, 100, 10, exhausted)
		f.Reconfigure(redelivery.Flood{Window: window})
		if s := f.State(f.now); !s.Holding || !f.Waits(f.now, time.Minute) {
			t.Errorf("window %v: the flood ended with the reload: %+v", window, s)
		}
		f.ends(10*window/9+2*time.Second, 100, 1_000_000, exhausted)
		if s := f.State(f.now); s.Holding && window < time.Hour {
			t.Errorf("window %v: it does not end: %+v", window, s)
		}
		calm := newFlooded(redelivery.Config{})
		calm.ends(time.Minute, 100, 200, exhausted)
		before := calm.State(calm.now).Letters
		calm.Reconfigure(redelivery.Flood{Window: window})
		if s := calm.State(calm.now); s.Holding || s.Letters != before {
			t.Errorf("window %v: a flood began with the reload: %+v", window, s)
		}
	}
}

func TestFloodGuardIsAsSmallWithManyMessagesHeldAsWithNone(t *testing.T) {
	f := newFlooded(redelivery.Config{})
	f.ends(time.Minute, 100, 2, exhausted)
	failure := exhausted
	if n := testing.AllocsPerRun(100_000, func() {
		f.now += time.Millisecond
		if v := f.Next(f.now, f.plan, failure); v.Action != redelivery.Forward || !f.Waits(f.now, time.Second) {
			t.Fatalf("it is not held: %+v", v)
		}
	}); n != 0 {
		t.Errorf("%v allocations for each message that is held", n)
	}
}

// A consumer that is started again in the middle of a flood knows nothing of it, and finds thousands of messages that
// were held.
func TestRestartDoesNotEndAFlood(t *testing.T) {
	f := newFlooded(redelivery.Config{})
	f.now = time.Hour               // of the guards' clock
	f.State(f.now - 10*time.Minute) // somebody has looked, and the group took its time
	for range 59 {
		if !f.Waits(f.now, time.Minute) {
			t.Fatalf("they are delivered %v after the start", f.now-time.Hour)
		}
		f.ends(time.Second, 100, 10, exhausted)
	}
	f.ends(time.Minute, 100, 10, exhausted)
	if !f.Waits(f.now, time.Minute) {
		t.Error("the flood lasts, and they do not wait")
	}
	calm := newFlooded(redelivery.Config{})
	if !calm.Waits(0, time.Minute) || calm.Waits(0, 24*time.Hour) {
		t.Error("at the start a message waits if MaxHold has not passed")
	}
	calm.ends(time.Minute, 100, 1_000_000, exhausted)
	if calm.Waits(calm.now, time.Minute) {
		t.Error("a window later all is well, and it waits")
	}
	off := newFlooded(redelivery.Config{Flood: redelivery.Flood{Disabled: true}})
	if off.Waits(0, time.Minute) {
		t.Error("it is off, and a message waits")
	}
}
