package redelivery_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
)

// At 1.2 times what is normal, with as much coming as always, a drain takes five times the outage. It says so at once,
// and then by what it measures.
func TestDrainSaysHowLongItWillTake(t *testing.T) {
	p := redelivery.NewPace(redelivery.Drain{})
	now := time.Duration(0)
	for range 30 * 100 { // 100 a second
		now += 10 * time.Millisecond
		p.Start(now)
		p.Done(now, 1, true)
	}
	if s := p.State(now); s.ETA != 0 || s.Behind != 0 {
		t.Errorf("outside a drain: %+v", s)
	}
	p.Trouble(now)
	now += 60 * time.Second
	due := int64(6000)
	p.Start(now)
	p.Done(now, 1, true)
	now += time.Second
	p.Behind(now, due)
	if s := p.State(now); s.Behind != due || s.ETA < 290*time.Second || s.ETA > 310*time.Second {
		t.Errorf("at the beginning: %+v", s)
	}
	for range 20 { // it goes twice as fast: nothing like as much comes
		now += time.Second
		due -= 40
		p.Behind(now, due)
	}
	if s := p.State(now); s.ETA < 125*time.Second || s.ETA > 135*time.Second {
		t.Errorf("as measured: %+v", s)
	}
	for range 20 { // and now it grows
		now += time.Second
		due += 5
		p.Behind(now, due)
	}
	if s := p.State(now); !s.Draining || s.ETA != 0 {
		t.Errorf("a backlog that grows has no end: %+v", s)
	}
}
