package dlq_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
)

// Somebody resets the group's offsets by hand while a replay waits (kafka-consumer-groups --reset-offsets): it reads,
// so it moves, and its way is longer.
func TestCommitsThatGoBackAreAMoveAndAreMeasuredAnew(t *testing.T) {
	o := dlq.NewOutlook(999, at(0))
	o.Committed(500, at(0))
	if moved, waiting := o.Committed(600, at(10)); moved != at(10) || waiting != 1 {
		t.Fatalf("moved %v, %d waiting", moved, waiting)
	}
	if eta, ok := o.ETA(at(10)); !ok || eta != 40*time.Second {
		t.Errorf("400 at 10 a second: %v %v", eta, ok)
	}
	if moved, _ := o.Committed(100, at(20)); moved != at(20) {
		t.Errorf("commits that went back have moved at %v", moved)
	}
	if eta, ok := o.ETA(at(20)); ok {
		t.Errorf("nothing is known of its pace, not %v", eta)
	}
	if moved, _ := o.Committed(200, at(30)); moved != at(30) {
		t.Errorf("commits that go on after that have moved at %v", moved)
	}
	if eta, ok := o.ETA(at(30)); !ok || eta != 80*time.Second {
		t.Errorf("800 at 10 a second: %v %v", eta, ok)
	}
	if _, waiting := o.Committed(1000, at(110)); waiting != 0 {
		t.Errorf("%d waiting at the end", waiting)
	}
}

// A group that commits for the first time jumps from nothing to wherever it began: that is no pace.
func TestFirstCommitOfAGroupIsNoPace(t *testing.T) {
	o := dlq.NewOutlook(1_000_999, at(0))
	o.Committed(-1, at(0))
	if moved, _ := o.Committed(1_000_000, at(1)); moved != at(1) {
		t.Errorf("moved at %v", moved)
	}
	if eta, ok := o.ETA(at(1)); ok {
		t.Errorf("nothing is known of its pace, not %v", eta)
	}
	o.Committed(1_000_100, at(11))
	if eta, ok := o.ETA(at(11)); !ok || eta != 90*time.Second {
		t.Errorf("900 at 10 a second: %v %v", eta, ok)
	}
}

// A pace of nothing, and clocks that stand still or go back, tell no time at all instead of a wrong one.
func TestNoPaceIsNoETA(t *testing.T) {
	o := dlq.NewOutlook(999, at(100))
	o.Committed(500, at(100))
	for _, now := range []int{100, 101, 50} {
		o.Committed(500, at(now))
		if eta, ok := o.ETA(at(now)); ok || eta != 0 {
			t.Errorf("after %d s: %v", now-100, eta)
		}
	}
	o.Committed(600, at(50))
	if eta, ok := o.ETA(at(50)); ok || eta != 0 {
		t.Errorf("with a clock that went back: %v", eta)
	}
}
