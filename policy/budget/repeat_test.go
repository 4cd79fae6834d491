package budget_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/budget"
)

// A repeat earns nothing, and is paid for like a retry.
func TestARepeatDrawsAndDoesNotDeposit(t *testing.T) {
	b := budget.New(budget.Config{Ratio: 0.1, Reserve: 2})
	b.Deposit(0)
	for i := range 10 {
		if _, got := b.Repeat(time.Duration(i)); got != (i < 2) {
			t.Errorf("repeat %d of a reserve of 2: %v", i, got)
		}
	}
	if left := b.Balance(10); left > 0.11 {
		t.Errorf("%v left", left)
	}
}

// Where there are only repeats, one in a minute passes as a first attempt: nothing is refused for ever.
func TestOneRepeatInAMinutePassesWhereThereAreNoFirstAttempts(t *testing.T) {
	for _, c := range []budget.Config{{Ratio: 0.1}, {Kind: budget.Adaptive}} {
		b := budget.New(c)
		passed := 0
		for now := time.Duration(0); now < 100*time.Minute; now += 100 * time.Millisecond {
			if _, ok := b.Repeat(now); ok {
				passed++
			}
		}
		if passed < 90 || passed > 125 {
			t.Errorf("%v: %d repeats in 100 minutes, want about one in each and a tenth", c.Kind, passed)
		}
	}
}

// Beside first attempts, however few, a repeat gets what they have earned, and no more.
func TestRepeatsBesideFirstAttemptsGetWhatThoseEarn(t *testing.T) {
	b := budget.New(budget.Config{Ratio: 0.1, Reserve: 1})
	passed := 0
	for i := range 600 {
		now := time.Duration(i) * time.Second
		if i%15 == 0 {
			b.Deposit(now)
		} else if _, ok := b.Repeat(now); ok {
			passed++
		}
	}
	if passed > 1+40/10 {
		t.Errorf("%d repeats for 40 first attempts", passed)
	}
}

// Another budget, which has to agree, says no: then nothing has happened, whether the repeat was paid or counted as a
// first attempt.
func TestARepeatThatIsUndoneHasNeitherCostNorEarnedAnything(t *testing.T) {
	for _, c := range []budget.Config{
		{Ratio: 0.1, Reserve: 2}, {Ratio: 0.1}, {Kind: budget.Adaptive}, {Kind: budget.Tokens, MaxTokens: 3}, {},
	} {
		b, now, passed := budget.New(c), time.Hour, 0
		for range 200 {
			now += time.Second
			before := b.Balance(now)
			d, ok := b.Repeat(now)
			if !ok {
				continue
			}
			passed++
			if b.Undo(now, d); b.Balance(now) != before {
				t.Errorf("%+v: %v before, %v after", c, before, b.Balance(now))
			}
		}
		if passed < 100 { // after its minute it may go on asking
			t.Errorf("%+v: %d repeats of 200 passed", c, passed)
		}
	}
}

// A program whose calls all say that they are repeats, or that gets only what has failed elsewhere, is served by a
// dependency that is well.
func TestRepeatsWithoutFirstAttemptsPassWhileTheySucceed(t *testing.T) {
	for _, kind := range []budget.Kind{budget.Ratio, budget.Adaptive} {
		b := budget.New(budget.Config{Kind: kind, Ratio: 0.1, Reserve: 1})
		phase := func(from time.Duration, well bool) (passed int) {
			for i := range 6000 { // ten minutes
				now := from + time.Duration(i)*100*time.Millisecond
				if _, ok := b.Repeat(now); ok {
					passed++
					b.Result(now, well)
				}
			}
			return passed
		}
		if n := phase(0, true); n < 5300 { // nine minutes and a bit
			t.Errorf("%v: of 6000 repeats to a service that is well %d passed", kind, n)
		}
		if n := phase(10*time.Minute, false); n > 30 {
			t.Errorf("%v: of 6000 repeats to a service that fails %d passed", kind, n)
		}
		if n := phase(20*time.Minute, true); n < 5300 {
			t.Errorf("%v: of 6000 repeats to a service that is well again %d passed", kind, n)
		}
		b.Deposit(30 * time.Minute)
		for i := range 100 {
			b.Deposit(30*time.Minute + time.Duration(i))
		}
		passed := 0
		for i := range 6000 {
			now := 30*time.Minute + time.Duration(i)*100*time.Millisecond
			if i%100 == 0 {
				b.Deposit(now)
			}
			if _, ok := b.Repeat(now); ok {
				passed++
				b.Result(now, true)
			}
		}
		if passed > 16+1+6+64 {
			t.Errorf("%v: beside 160 first attempts %d repeats passed", kind, passed)
		}
	}
}

// What a service takes that hangs is bounded, too: those that pass for first attempts wait for those before them.
func TestRepeatsWithoutFirstAttemptsDoNotPileUpBeforeAServiceThatHangs(t *testing.T) {
	b := budget.New(budget.Config{Ratio: 0.1, Reserve: 1})
	for now := time.Duration(0); now < 5*time.Minute; now += 100 * time.Millisecond {
		if _, ok := b.Repeat(now); ok {
			b.Result(now, true)
		}
	}
	passed := 0
	for now := 5 * time.Minute; now < 6*time.Minute; now += 10 * time.Millisecond {
		if _, ok := b.Repeat(now); ok {
			passed++
		}
	}
	if passed > 64+7+2+1 { // those that may be under way, what they have earned, one in a minute, the reserve
		t.Errorf("%d passed and none has ended", passed)
	}
}
