package redelivery_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
)

// catchUp works a backlog off, as fast as the pace lets it, while so many messages a second still come. It returns when
// the drain was over, and the most deliveries of one second until then.
func catchUp(p *redelivery.Pace, now time.Duration, backlog, live int, atMost time.Duration) (
	took time.Duration, most int) {
	begin := now
	for ; now < begin+atMost; now += time.Second {
		backlog += live
		started := 0
		for at := now; at < now+time.Second && backlog > 0; {
			if wait := p.Start(at); wait > 0 {
				at += wait
				continue
			}
			p.Done(at, 1, true)
			backlog--
			started++
		}
		most = max(most, started)
		p.Behind(now+time.Second-1, int64(backlog))
		if !p.State(now + time.Second).Draining {
			return now + time.Second - begin, most
		}
	}
	return atMost, most
}

// The backlog of an hour takes five hours at 1.2 times the normal load. That is no reason to give the service ten
// times.
func TestALongDrainThatGetsAnywhereKeepsToTheLimit(t *testing.T) {
	p, now := ill(redelivery.Drain{}, 100)
	took, most := catchUp(p, now+time.Hour, 360_000, 100, 6*time.Hour)
	if most > 121 { // the limit of a second
		t.Errorf("%d deliveries in a second, normal is 100", most)
	}
	if took > 5*time.Hour+50*time.Minute {
		t.Errorf("it took %v", took)
	}
}

// A night in which one message came a minute says little of the day.
func TestALimitThatIsBelowTheLiveLoadIsOutgrown(t *testing.T) {
	p, now := ill(redelivery.Drain{}, 10)
	took, most := catchUp(p, now, 0, 100, 12*time.Hour)
	if took == 12*time.Hour || most > 200 {
		t.Errorf("took %v, %d deliveries in a second", took, most)
	}
}

func TestADrainInWhichNobodyWaitsIsOver(t *testing.T) {
	p, now := ill(redelivery.Drain{}, 4)
	succeed(t, p, now)
	now += time.Minute // of which nothing is known
	p.Behind(now, 3)
	for i := range 120 { // handlers of 2 s: at any moment three messages are due
		now += time.Second
		if wait := p.Start(now); wait > 0 {
			t.Fatalf("second %d: waits %v", i, wait)
		}
		p.Done(now, 1, true)
		p.Behind(now, 3)
		if over := !p.State(now).Draining; over != (i >= 58) {
			t.Fatalf("second %d: over is %v", i, over)
		}
	}
}

func TestADrainIsNotOverBecauseNothingMoves(t *testing.T) {
	p, now := ill(redelivery.Drain{}, 100)
	succeed(t, p, now)
	for range 600 { // every partition is stopped
		now += time.Second
		p.Behind(now, 5000)
	}
	if s := p.State(now); !s.Draining {
		t.Errorf("%+v with 5000 messages behind", s)
	}
}

// Nothing may be left over: what is lost of 1.2 times the normal load is the part in which a backlog shrinks.
func TestADrainUsesItsLimit(t *testing.T) {
	for _, callers := range []int{1, 2, 5, 10, 100} {
		for _, normal := range []int{1, 5, 10, 100} {
			p, now := ill(redelivery.Drain{RampUp: time.Millisecond}, normal)
			succeed(t, p, now)
			now += time.Second
			asks, end, started := make([]time.Duration, callers), now+time.Minute, 0
			for i := range asks {
				asks[i] = now
			}
			for {
				i := earliest(asks)
				if asks[i] >= end {
					break
				}
				wait := p.Start(asks[i])
				if wait == 0 {
					wait = time.Millisecond // the delivery
					p.Done(asks[i], 1, true)
					started++
				}
				asks[i] += wait
			}
			if want := 1.2 * 60 * float64(normal); float64(started) < 0.97*want {
				t.Errorf("%d callers, normal %d: %d deliveries in a minute, the limit is %v", callers, normal, started, want)
			}
		}
	}
}

func earliest(at []time.Duration) (i int) {
	for j := range at {
		if at[j] < at[i] {
			i = j
		}
	}
	return i
}
