package h2

import (
	"math/rand/v2"
	"testing"
	"time"
)

// What the peer may send, what it has sent and nobody has read, and what is owed to it are the whole window at all
// times; and a peer whose content is all read can always go on.
func TestInflowLosesNoWindow(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		f := inflow{left: 65535, size: 65535}
		unread := 0
		for range 1000 {
			if n := random.IntN(f.left + 1); random.IntN(2) == 0 {
				if !f.take(n) {
					t.Fatal("the window refused what it allows")
				}
				unread += n
			} else if unread > 0 {
				n = 1 + random.IntN(unread)
				unread -= n
				if f.giveBack(n) > 0 && random.IntN(10) == 0 {
					f.grow(1 << 20)
				}
			}
			if f.left+f.owed+unread != f.size {
				t.Fatalf("%d left, %d owed and %d unread are not %d", f.left, f.owed, unread, f.size)
			}
		}
		if f.giveBack(unread); f.left == 0 {
			t.Fatal("all was read, and the peer has no window")
		}
		if f.take(f.left + 1) {
			t.Fatal("the window allowed too much")
		}
	}
}

// Heads are first, content is one frame each in the order of arrival, and one sender holds the slot.
func TestLineServesInOrder(t *testing.T) {
	t.Parallel()
	var out outbox
	l := line{out: &out, window: 0}
	senders := make([]sender, 4)
	for i := range senders {
		senders[i].window = 10
	}
	for i := range senders[:3] {
		if l.joinContent(&senders[i]) {
			t.Fatal("called without window")
		}
	}
	l.heads.join(&senders[3])
	l.widen(100)
	for i, want := range []*sender{&senders[3], &senders[0], &senders[1], &senders[2]} {
		if l.slot != want {
			t.Fatalf("step %d: the wrong sender holds the slot", i)
		}
		for j := range senders {
			if n := l.share(&senders[j], 50); n > 0 != (&senders[j] == want) {
				t.Fatalf("step %d: sender %d may send %d bytes", i, j, n)
			}
		}
		if want != &senders[3] {
			n := l.share(want, 50)
			if last := want == &senders[2]; n != 10 || l.spend(want, n) == last {
				t.Fatalf("step %d: %d bytes", i, n)
			}
		}
		l.leave(want)
	}
	if l.slot != nil || l.heads.first != nil || l.content.first != nil || l.window != 70 {
		t.Fatalf("%+v", l)
	}
	if l.widen(maxWindow) {
		t.Fatal("a window of more than 2^31-1")
	}
}

// A sender may leave the line from any place.
func TestQueueLeave(t *testing.T) {
	t.Parallel()
	for gone := range 3 {
		var q queue
		senders := make([]sender, 3)
		for i := range senders {
			q.join(&senders[i])
		}
		senders[gone].leave()
		senders[gone].leave()
		q.join(&senders[gone])
		for _, i := range []int{(gone + 1) % 3, (gone + 2) % 3} {
			senders[i].leave()
		}
		if q.first != &senders[gone] || q.last != &senders[gone] || senders[gone].behind != nil {
			t.Fatalf("after %d left and came back", gone)
		}
	}
}

// A tenth of the patience comes back each second, and never more than all of it.
func TestTollRefills(t *testing.T) {
	t.Parallel()
	toll := newToll(100, 0)
	spend := func(at time.Duration, charge func(time.Duration) error) (n int) {
		for charge(at) == nil {
			n++
		}
		return n
	}
	frame := func(now time.Duration) error { return toll.charge(1, now) }
	for _, step := range []struct {
		at             time.Duration
		frames, resets int
	}{
		{0, patience, 100}, {0, 0, 0}, {time.Second, patience/10 - 1, 9}, {time.Hour, patience, 100},
	} {
		toll.frames, toll.resets = max(toll.frames, 0), max(toll.resets, 0)
		if n := spend(step.at, frame); n < step.frames-2 || n > step.frames+2 {
			t.Errorf("at %v: %d frames, not about %d", step.at, n, step.frames)
		}
		if n := spend(step.at, toll.chargeReset); n < step.resets-2 || n > step.resets+2 {
			t.Errorf("at %v: %d resets, not about %d", step.at, n, step.resets)
		}
	}
}
