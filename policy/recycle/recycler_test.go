package recycle_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/recycle"
)

const (
	ms = time.Millisecond
	s  = time.Second
	// middle draws what jitter neither shortens nor stretches.
	middle = 1 << 63
)

// refusal is a write that was refused on a connection, and what becomes of the connection.
type refusal struct {
	at, born time.Duration
	opened   bool // the pool has opened a connection before
	want     bool
}

func TestConnectionsAreGivenUpOneAtATime(t *testing.T) {
	for name, story := range map[string][]refusal{
		"the next one when the first has been replaced": {{s, 0, false, true}, {s + ms, 0, false, false},
			{s + 2*ms, 0, true, true}, {s + 3*ms, 0, false, false}},
		"with growing pauses once a new one was no better": {{s, 0, false, true}, {s + 10*ms, s + 5*ms, true, true},
			{s + 50*ms, 0, true, false}, {s + 120*ms, s + 20*ms, true, true}, {s + 300*ms, 0, true, false},
			{s + 350*ms, s + 130*ms, true, true}},
		"old ones without a pause, since they lead to the old primary": {{s, 0, false, true}, {s + ms, 0, true, true},
			{s + 2*ms, 0, true, true}},
		"also if the pool needs none in its place": {{s, 0, false, true}, {4 * s, 0, false, false}, {7 * s, 0, false, true}},
		"long after, it is a new story": {{s, 0, false, true}, {s + ms, s, true, true}, {s + 2*ms, s, true, true},
			{30 * s, s, true, true}, {30*s + ms, 0, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			var r recycle.Recycler
			for i, w := range story {
				if w.opened {
					r.Opened()
				}
				if got := r.GiveUp(w.at, w.born, middle); got != w.want {
					t.Errorf("%d: at %v, of one born at %v: given up %v", i, w.at, w.born, got)
				}
			}
		})
	}
}

// FuzzRecycler: between two connections that are given up the pool has opened one, or the longest pause has passed; and
// no pool loses more than a connection a write.
func FuzzRecycler(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5})
	f.Fuzz(func(t *testing.T, ops []byte) {
		var r recycle.Recycler
		now, opened, last := time.Duration(0), true, -time.Hour
		for i, op := range ops {
			now += time.Duration(op>>2) * time.Duration(op>>2) * ms
			if op&1 == 0 {
				r.Opened()
				opened = true
			}
			born := time.Duration(0)
			if op&2 == 0 {
				born = now - ms
			}
			if r.GiveUp(now, born, uint64(op)<<56) {
				if !opened && now-last < 5*s {
					t.Fatalf("%d: given up at %v and %v, and none opened between", i, last, now)
				}
				opened, last = false, now
			}
		}
	})
}
