package httpdrill // how circuits are counted is private

import (
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/drill"
	"github.com/abate-go/abate/policy/breaker"
)

func TestALineOfProgressSaysHowThingsStand(t *testing.T) {
	const at = 7 * time.Second
	fifty := func(open, half int) drill.Circuits { return drill.Circuits{All: 50, Open: open, HalfOpen: half} }
	for want, p := range map[string]Progress{
		"x           0 s  warming up": {Act: "x", Second: drill.Second{Offered: 9}},
		"unguarded   7 s  answered 100 %  extra load   +0 %  circuits none                  all is well": {
			Act: "unguarded", Elapsed: at, Second: drill.Second{Offered: 250, Answered: 251}},
		"guarded     7 s  answered  96 %  extra load  +10 %  circuits closed                all is well": {
			Act: "guarded", Elapsed: at, Trouble: true, Fault: "db is down", // and does not matter
			Second: drill.Second{Offered: 250, Answered: 240, Extra: 25, Circuits: fifty(0, 0)}},
		"x           7 s  answered     –  extra load      –  circuits none                  all is well": {
			Act: "x", Elapsed: at}, // nobody asked
		// The trouble is over, and nothing is answered: that all is well was said of this for fourteen seconds.
		"unguarded   7 s  answered   0 %  extra load +308 %  circuits none                  nothing is answered, " +
			"though the outage is over; 900 wait in the service's queue": {
			Act: "unguarded", Elapsed: at, Over: "outage", Waiting: 900, Second: drill.Second{Offered: 250, Extra: 770}},
		"guarded     7 s  answered   2 %  extra load   +4 %  circuits 37 open, 3 half-open  not all is answered: " +
			"db is down; 1,180 refused by the guard": {
			Act: "guarded", Elapsed: at, Trouble: true, Fault: "db is down",
			Second: drill.Second{Offered: 1250, Answered: 20, Extra: 50, Refused: 1180, Circuits: fifty(37, 3)}},
		"guarded     7 s  answered  94 %  extra load   +0 %  circuits closed                not all is answered": {
			Act: "guarded", Elapsed: at, Second: drill.Second{Offered: 250, Answered: 236, Circuits: fifty(0, 0)}},
		"guarded     7 s  answered  98 %  extra load  +20 %  circuits 1 half-open           requests are answered, and " +
			"not every circuit is closed, many attempts are extra ones": {
			Act: "guarded", Elapsed: at,
			Second: drill.Second{Offered: 250, Answered: 245, Extra: 50, Circuits: fifty(0, 1)}},
	} {
		if got := p.String(); got != want {
			t.Errorf("progress\n%q, want\n%q", got, want)
		}
	}
}

func TestTheRecorderKnowsHowTheCircuitsStand(t *testing.T) {
	_, by, r := quiet()
	change := func(from, to breaker.State) {
		r.Observe(abate.Event{Kind: core.BreakerChanged, From: from, To: to})
	}
	for _, c := range []struct {
		from, to breaker.State
		want     drill.Circuits
	}{
		{breaker.Closed, breaker.Open, drill.Circuits{Open: 1}},
		{breaker.Closed, breaker.Open, drill.Circuits{Open: 2}},
		{breaker.Open, breaker.HalfOpen, drill.Circuits{Open: 1, HalfOpen: 1}},
		{breaker.HalfOpen, breaker.RampUp, drill.Circuits{Open: 1, HalfOpen: 1}},
		{breaker.RampUp, breaker.Closed, drill.Circuits{Open: 1}},
		{breaker.Open, breaker.Closed, drill.Circuits{}},
	} {
		change(c.from, c.to)
		if got := r.Between(by.front, 0, time.Second).Circuits; got != c.want {
			t.Errorf("after %v to %v: %+v, want %+v", c.from, c.to, got, c.want)
		}
	}
}
