package pacing_test

import (
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/pacing"
)

const (
	ms     = time.Millisecond
	s      = time.Second
	never  = time.Duration(math.MaxInt64)
	even   = uint64(1) << 63 // the draw in the middle: exactly one interval
	lowest = uint64(0)
	most   = uint64(math.MaxUint64)
)

// ask is one question and its answer.
type ask struct {
	at       time.Duration
	draw     uint64
	patience time.Duration
	wait     time.Duration
	ok       bool
}

// at asks with all the patience in the world.
func at(now time.Duration, draw uint64, wait time.Duration) ask {
	return ask{now, draw, never, wait, true}
}

func TestTurnsFollowThePace(t *testing.T) {
	for _, row := range []struct {
		name string
		c    pacing.Config
		asks []ask
	}{
		{"off: nobody waits", pacing.Config{Burst: 1, MaxWait: ms}, []ask{
			at(0, lowest, 0), at(0, most, 0), {0, even, -s, 0, true},
		}},
		{"disabled: nobody waits", pacing.Config{Disabled: true, PerSecond: 1}, []ask{at(0, lowest, 0), at(0, most, 0)}},
		{"one after the other", pacing.Config{PerSecond: 10}, []ask{
			at(s, even, 0), at(s, even, 100*ms), at(s, even, 200*ms), at(1250*ms, even, 50*ms), at(9*s, even, 0),
			at(9*s, even, 100*ms)}},
		{"jitter draws the time to the next turn, from half to one and a half by default",
			pacing.Config{PerSecond: 10}, []ask{
				at(0, lowest, 0), at(0, most, 50*ms), at(0, even, 200*ms), at(0, even, 300*ms)}},
		{"jitter 1 draws from nothing to twice", pacing.Config{PerSecond: 10, Jitter: 1}, []ask{
			at(0, lowest, 0), at(0, most, 0), at(0, even, 200*ms)}},
		{"hardly any jitter", pacing.Config{PerSecond: 10, Jitter: 0.001}, []ask{
			at(0, lowest, 0), at(0, most, 99900*time.Microsecond), at(0, even, 200*ms),
		}},
		{"a pause earns a burst, but none is there at first", pacing.Config{PerSecond: 10, Burst: 3}, []ask{
			at(0, even, 0), at(0, even, 100*ms), at(s, even, 0), at(s, even, 0), at(s, even, 0), at(s, even, 100*ms)}},
		{"a short pause earns a part of the burst", pacing.Config{PerSecond: 10, Burst: 3}, []ask{
			at(0, even, 0), at(250*ms, even, 0), at(250*ms, even, 0), at(250*ms, even, 50*ms)}},
		{"a hundred seconds apart", pacing.Config{PerSecond: 0.01, MaxWait: time.Hour}, []ask{
			at(0, even, 0), at(s, even, 99*s), at(s, even, 199*s),
		}},
		{"who would wait longer than maxWait is refused, and takes nothing", pacing.Config{
			PerSecond: 10, MaxWait: 100 * ms,
		}, []ask{
			at(0, even, 0), at(0, even, 100*ms), {0, even, never, 200 * ms, false}, {0, even, never, 200 * ms, false},
			at(100*ms, even, 100*ms)}},
		{"maxWait is 1 s by default", pacing.Config{PerSecond: 1}, []ask{
			at(0, even, 0), at(0, even, s), {0, even, never, 2 * s, false},
		}},
		{"who would wait longer than its patience is refused, and takes nothing", pacing.Config{PerSecond: 10}, []ask{
			at(0, even, 0), {0, even, 100*ms - 1, 100 * ms, false}, {0, even, 0, 100 * ms, false},
			{0, even, -never, 100 * ms, false}, {0, even, 100 * ms, 100 * ms, true}}},
		{"who need not wait needs no patience", pacing.Config{PerSecond: 10}, []ask{
			{0, even, -s, 0, true}, {s, even, math.MinInt64, 0, true},
		}},
		{"a clock that jumps back earns nothing", pacing.Config{PerSecond: 10, Burst: 2}, []ask{
			at(10*s, even, 0), at(9900*ms, even, 200*ms), {0, even, never, 10200 * ms, false}, at(10100*ms, even, 100*ms)}},
		{"times before the origin", pacing.Config{PerSecond: 10}, []ask{
			at(-10*s, even, 0), at(-10*s, even, 100*ms), at(-9950*ms, even, 150*ms), at(0, even, 0),
		}},
		{"the end of time", pacing.Config{PerSecond: 10, Burst: 5, RampUp: s}, []ask{
			at(0, even, 0), at(never, even, 0), at(never, even, 0),
		}},
		{"from one end of time to the other", pacing.Config{PerSecond: 0.01, Burst: 1_000_000, Jitter: 1}, []ask{
			at(math.MinInt64, most, 0), at(never, most, 0), {math.MinInt64, most, never, never, false}}},
	} {
		p := pacing.New(row.c)
		for i, a := range row.asks {
			if wait, ok := p.Take(a.at, a.draw, a.patience); !near(wait, a.wait) || ok != a.ok {
				t.Errorf("%s: question %d: %v, %v, want %v, %v", row.name, i, wait, ok, a.wait, a.ok)
			}
		}
	}
}

// near allows for rounding: some microseconds in the end of time, a few nanoseconds in everyday ones.
func near(got, want time.Duration) bool {
	return math.Abs(float64(got)-float64(want)) <= 20+float64(want)/1e12
}

// turns asks n times at now and returns when the turns are.
func turns(t *testing.T, p *pacing.Pacer, now time.Duration, n int) (at []time.Duration) {
	t.Helper()
	for range n {
		wait, ok := p.Take(now, even, never)
		if !ok {
			t.Fatalf("refused at %v, %v away", now, wait)
		}
		at = append(at, now+wait)
	}
	return at
}

func TestAnInstanceThatHasSeenNoOutageBeginsWithTheFullPace(t *testing.T) {
	p := pacing.New(pacing.Config{PerSecond: 10, RampUp: time.Minute, MaxWait: time.Hour})
	for i, due := range turns(t, p, 7*s, 5) {
		if want := 7*s + time.Duration(i)*100*ms; due != want {
			t.Errorf("turn %d comes at %v, want %v", i, due, want)
		}
	}
}

// area is how many turns a linear ramp has up to d after its beginning: the plain integral, step by step.
func area(c pacing.Config, d time.Duration) (sum float64) {
	const steps = 100_000
	for i := range steps {
		u := d.Seconds() * (float64(i) + 0.5) / steps
		sum += c.PerSecond * min(1, c.RampUpFrom+(1-c.RampUpFrom)*u/c.RampUp.Seconds()) * d.Seconds() / steps
	}
	return sum
}

func TestThePaceGrowsLinearlyAfterAnOutage(t *testing.T) {
	for _, c := range []pacing.Config{
		{PerSecond: 10, RampUp: 5 * s, MaxWait: time.Hour},
		{PerSecond: 10, RampUp: 5 * s, RampUpFrom: 1, MaxWait: time.Hour},
		{PerSecond: 10, RampUp: 5 * s, RampUpFrom: 0.999, MaxWait: time.Hour},
		{PerSecond: 1000, RampUp: 100 * ms, RampUpFrom: 0.001, MaxWait: time.Hour},
		{PerSecond: 0.1, RampUp: 5 * s, MaxWait: time.Hour}, // slower than its ramp-up, which must not make it slower still
	} {
		c = c.WithDefaults()
		p := pacing.New(c)
		p.Restart(7*s, 0)
		for i, due := range turns(t, p, 7*s, 40) {
			if got := area(c, due-7*s); math.Abs(got-float64(i)) > 0.001 {
				t.Errorf("%+v: turn %d comes %v after the first, where the pace has granted %.4f", c, i, due-7*s, got)
			}
		}
	}
}

func TestAfterARestartThePaceBeginsAnew(t *testing.T) {
	c := pacing.Config{PerSecond: 10, RampUp: 5 * s, Burst: 5}.WithDefaults()
	for draw, first := range map[uint64]float64{lowest: 0, even: 0.5, most: 1} {
		p := pacing.New(c)
		turns(t, p, 0, 1)
		const back = time.Minute // by then the burst is full
		p.Restart(back, draw)
		if got := p.State(back).PerSecond; got != 1 {
			t.Errorf("the pace is %v, want 1", got)
		}
		for i := range 3 {
			now := back + p.State(back).Wait
			if got := area(c, now-back); math.Abs(got-first-float64(i)) > 0.001 {
				t.Errorf("draw %d: turn %d comes %v after the restart, where the pace has granted %.4f, want %.1f", draw,
					i, now-back, got, first+float64(i))
			}
			turns(t, p, now, 1)
		}
	}
}

func TestARestartLeavesTheTurnsOfThoseWhoWaitAlone(t *testing.T) {
	p := pacing.New(pacing.Config{PerSecond: 10, RampUp: 5 * s, RampUpFrom: 1})
	at := turns(t, p, time.Minute, 5)
	p.Restart(time.Minute+50*ms, lowest)
	next := turns(t, p, time.Minute+50*ms, 1)[0]
	if last := at[4]; !near(next, last+100*ms) {
		t.Errorf("the last of those who wait has its turn at %v, whoever came after the restart at %v", last, next)
	}
}

func TestWithoutARampUpARestartChangesNothing(t *testing.T) {
	p := pacing.New(pacing.Config{PerSecond: 10, Burst: 3})
	turns(t, p, 0, 1)
	p.Restart(s, most)
	if at := turns(t, p, s, 4); at[2] != s || !near(at[3], 1100*ms) {
		t.Errorf("turns at %v", at)
	}
	off := pacing.New(pacing.Config{RampUp: s})
	off.Restart(s, most)
	if at := turns(t, off, s, 2); at[1] != s {
		t.Errorf("off: turns at %v", at)
	}
}

func TestARestartBeforeAnyTurnBeginsTheRampUp(t *testing.T) {
	p := pacing.New(pacing.Config{PerSecond: 10, RampUp: 5 * s})
	p.Restart(time.Hour, even)
	if at := turns(t, p, time.Hour, 1); at[0] == time.Hour || at[0] > time.Hour+s {
		t.Errorf("the first turn comes %v after the restart", at[0]-time.Hour)
	}
}

func TestAReloadKeepsTheTurnsThatWereGiven(t *testing.T) {
	ten := pacing.Config{PerSecond: 10}
	for _, row := range []struct {
		name string
		next pacing.Config
		wait time.Duration // of whoever asks at once, after turns at 0, 100 and 200 ms
	}{
		{"the same", ten, 300 * ms},
		{"faster", pacing.Config{PerSecond: 100}, 210 * ms},
		{"slower", pacing.Config{PerSecond: 1, MaxWait: time.Minute}, 1200 * ms},
		{"with a ramp-up that would be over", pacing.Config{PerSecond: 10, RampUp: ms}, 300 * ms},
	} {
		p := pacing.New(ten)
		turns(t, p, 0, 3)
		p.Reconfigure(row.next)
		if got := p.State(0).Wait; !near(got, row.wait) {
			t.Errorf("%s: the next turn is %v away, want %v", row.name, got, row.wait)
		}
	}
}

func TestSwitchedOffAndOnAgainAPacerGoesOnFromWhereItWas(t *testing.T) {
	ten := pacing.Config{PerSecond: 10}
	p := pacing.New(ten)
	turns(t, p, 0, 3)
	for _, off := range []pacing.Config{{}, {Disabled: true, PerSecond: 5}} {
		p.Reconfigure(off)
		if at := turns(t, p, 0, 9); at[8] != 0 {
			t.Errorf("while it is off somebody waits until %v", at[8])
		}
		if got := p.State(0); got != (pacing.State{}) {
			t.Errorf("while it is off its state is %+v", got)
		}
	}
	p.Reconfigure(ten)
	if got := p.State(0).Wait; !near(got, 300*ms) {
		t.Errorf("the next turn is %v away, want 300 ms", got)
	}
	// One that was very slow must not hold up for minutes once it is quick again.
	p.Reconfigure(pacing.Config{PerSecond: 0.01})
	p.Reconfigure(pacing.Config{})
	p.Reconfigure(ten)
	if got := p.State(0).Wait; !near(got, 300*ms) {
		t.Errorf("the next turn is %v away, want 300 ms", got)
	}
}

func TestStateTellsThePaceAndTheWait(t *testing.T) {
	p := pacing.New(pacing.Config{PerSecond: 10, RampUp: 4 * s, RampUpFrom: 0.2})
	check := func(now time.Duration, pace float64, wait time.Duration) {
		t.Helper()
		if got := p.State(now); math.Abs(got.PerSecond-pace) > 1e-9 || !near(got.Wait, wait) {
			t.Errorf("at %v: %+v, want %v per second and %v", now, got, pace, wait)
		}
	}
	check(0, 10, 0)
	p.Restart(100*s, 0)
	turns(t, p, 100*s, 1)
	check(99*s, 2, 1414213563) // a clock that runs backwards: the second counts, too
	check(102*s, 6, 0)
	check(104*s, 10, 0)
	turns(t, p, 110*s, 3)
	check(110*s, 10, 300*ms)
	p = pacing.New(pacing.Config{PerSecond: 10})
	check(0, 10, 0)
	turns(t, p, 0, 1)
	check(-s, 10, 1100*ms)
}

func TestATurnAllocatesNothing(t *testing.T) {
	p, now := pacing.New(pacing.Config{PerSecond: 1000, Burst: 2, RampUp: 10 * s}), time.Duration(0)
	if n := testing.AllocsPerRun(1000, func() {
		now += 3 * ms
		p.Take(now, even, never)
		p.Take(now, even, 0)
		p.State(now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
