package redelivery_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
)

// A circuit needs some seconds to open. A consumer that had run for less than ten must not take them for a time of
// little load, else its drain is slower than what comes in.
func TestPaceLearnsNothingFromSecondsInWhichMostFail(t *testing.T) {
	p := redelivery.NewPace(redelivery.Drain{})
	now := serve(p, time.Second, 100, 7*time.Second)
	for range 3 {
		for range 150 {
			now += time.Second / 150
			p.Done(now, 1, false)
		}
		p.Done(now, 1, true)
	}
	p.Trouble(now)
	if s := p.State(now); !near(s.Normal, 100) {
		t.Errorf("normal is %v, want 100", s.Normal)
	}
}
