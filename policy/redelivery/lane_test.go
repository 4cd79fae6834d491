package redelivery_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
)

func lane(concurrency, window int, order redelivery.Order) *redelivery.Lane {
	return redelivery.NewLane(redelivery.LaneConfig{Concurrency: concurrency, Window: window, Order: order})
}

// push adds records with offsets from 100 on, one for each key; "" is a record without a key.
func push(l *redelivery.Lane, keys ...string) {
	for i, k := range keys {
		it := redelivery.Item{Offset: int64(100 + i), Keyed: k != ""}
		for _, c := range k {
			it.Key = it.Key*31 + uint64(c)
		}
		l.Push(it)
	}
}

// start starts all that may start now.
func start(l *redelivery.Lane, now time.Duration) (seqs []uint64) {
	for {
		seq, ok, _ := l.Next(now)
		if !ok {
			return seqs
		}
		seqs = append(seqs, seq)
	}
}

func committable(t *testing.T, l *redelivery.Lane, want int64) {
	t.Helper()
	if at, ok := l.Committable(); !ok || at != want {
		t.Errorf("committable is %d, %v; want %d", at, ok, want)
	}
}

func wants(t *testing.T, got []uint64, want ...uint64) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("started %v, want %v", got, want)
	}
}

func TestOnlyTheOldestUnfinishedOffsetMayBeCommitted(t *testing.T) {
	l := lane(10, 10, redelivery.Unordered)
	if at, ok := l.Committable(); ok {
		t.Errorf("%d may be committed, though nothing was read", at)
	}
	push(l, "", "", "")
	wants(t, start(l, 0), 0, 1, 2)
	l.Finish(1)
	l.Finish(2)
	committable(t, l, 100)
	if l.First() != 0 {
		t.Errorf("the first is %d", l.First())
	}
	l.Finish(0)
	committable(t, l, 103)
	l.Push(redelivery.Item{Offset: 200}) // 103 to 199 were of a transaction
	committable(t, l, 200)
}

func TestNoMoreThanTheConcurrencyAreInFlight(t *testing.T) {
	l := lane(2, 10, redelivery.Unordered)
	push(l, "", "", "", "", "")
	wants(t, start(l, 0), 0, 1)
	l.Finish(0)
	wants(t, start(l, 0), 2)
	l.Release(1) // it is being forwarded: its place is free, its offset is not
	wants(t, start(l, 0), 3)
	committable(t, l, 101)
	if s := l.State(); s.InFlight != 2 || s.Released != 1 || s.Unfinished != 4 || s.Oldest != 101 || s.Ahead != 3 {
		t.Errorf("%+v", s)
	}
	l.Finish(1)
	committable(t, l, 102)
}

func TestAWindowIsNotExceeded(t *testing.T) {
	l := lane(10, 3, redelivery.Unordered)
	push(l, "", "", "")
	if l.Room() != 0 {
		t.Errorf("room for %d", l.Room())
	}
	start(l, 0)
	l.Finish(1)
	l.Finish(2)
	if l.Room() != 0 {
		t.Errorf("room for %d behind an unfinished record", l.Room())
	}
	l.Finish(0)
	if l.Room() != 3 {
		t.Errorf("room for %d", l.Room())
	}
	push(l, "", "", "", "", "") // more than there is room for: taken, and nothing is lost
	if wants(t, start(l, 0), 3, 4, 5, 6, 7); l.Room() != 0 {
		t.Errorf("room for %d", l.Room())
	}
}

func TestAHeldRecordLetsOthersPassAndComesBack(t *testing.T) {
	l := lane(1, 10, redelivery.Unordered)
	push(l, "", "", "")
	wants(t, start(l, 0), 0)
	l.Hold(0, 5*time.Second)
	wants(t, start(l, time.Second), 1)
	l.Finish(1)
	wants(t, start(l, 6*time.Second), 0) // before 2: it is the older
	committable(t, l, 100)
	l.Finish(0)
	wants(t, start(l, 6*time.Second), 2)
}

func TestNextSaysWhenToAskAgain(t *testing.T) {
	l := lane(1, 10, redelivery.Unordered)
	ask := func(now, want time.Duration) {
		t.Helper()
		if seq, ok, wait := l.Next(now); ok || wait != want {
			t.Errorf("at %v: %d, %v, %v; want a wait of %v", now, seq, ok, wait, want)
		}
	}
	ask(0, redelivery.Forever)
	l.Push(redelivery.Item{Offset: 1, Ready: 10 * time.Second})
	l.Push(redelivery.Item{Offset: 2, Ready: 8 * time.Second})
	l.Push(redelivery.Item{Offset: 3, Ready: 20 * time.Second})
	ask(3*time.Second, 5*time.Second)
	l.Stop(9 * time.Second)
	ask(3*time.Second, 6*time.Second)
	l.Stop(0)
	wants(t, start(l, 8*time.Second), 1) // not ready does not block ready
	ask(8*time.Second, redelivery.Forever)
	l.Finish(1)
	ask(8*time.Second, 2*time.Second)
	l.Stop(30 * time.Second)
	if s := l.State(); s.Stopped != 30*time.Second || s.HeadReady != 10*time.Second {
		t.Errorf("%+v", s)
	}
	ask(12*time.Second, 18*time.Second)
	wants(t, start(l, 30*time.Second), 0)
	if s := l.State(); s.Stopped != 0 {
		t.Errorf("stopped until %v, which is over", s.Stopped)
	}
}

func TestOfOneKeyOneIsUnderWayAndOthersOvertake(t *testing.T) {
	for _, order := range []redelivery.Order{redelivery.ByKey, redelivery.ParkKey} {
		l := lane(10, 10, order)
		push(l, "a", "a", "b", "", "", "a", "b")
		wants(t, start(l, 0), 0, 2, 3, 4)
		l.Release(0)
		wants(t, start(l, 0)) // being forwarded is not finished
		l.Hold(2, 5*time.Second)
		l.Finish(0)
		wants(t, start(l, time.Second), 1)
		l.Finish(1)
		wants(t, start(l, time.Second), 5)
		l.Finish(5)
		wants(t, start(l, 5*time.Second), 2)
		wants(t, start(l, 5*time.Second))
		l.Finish(2)
		wants(t, start(l, 5*time.Second), 6)
		committable(t, l, 103)
	}
}

func TestWithOneAtATimeOtherKeysPassAHeldOne(t *testing.T) {
	l := lane(1, 10, redelivery.ByKey)
	push(l, "a", "a", "b")
	wants(t, start(l, 0), 0)
	l.Hold(0, time.Minute)
	wants(t, start(l, 0), 2)
	l.Finish(2)
	wants(t, start(l, 0))
	wants(t, start(l, time.Minute), 0)
}

func TestAKeyWaitsForTheTimeOfTheOneBeforeIt(t *testing.T) {
	l := lane(10, 10, redelivery.ByKey)
	l.Push(redelivery.Item{Offset: 1, Key: 7, Keyed: true, Ready: time.Minute})
	l.Push(redelivery.Item{Offset: 2, Key: 7, Keyed: true})
	l.Push(redelivery.Item{Offset: 3, Key: 8, Keyed: true})
	wants(t, start(l, 0), 2)
	wants(t, start(l, time.Minute), 0)
}

func TestATimeBeforeTheOriginMeansAtOnce(t *testing.T) {
	l := lane(1, 10, redelivery.Unordered)
	l.Push(redelivery.Item{Offset: 1, Ready: -5})
	if s := l.State(); s.HeadReady != 0 {
		t.Errorf("%+v", s)
	}
	wants(t, start(l, 0), 0)
	l.Hold(0, -5)
	if s := l.State(); s.HeadReady != 0 || s.Held != 1 {
		t.Errorf("%+v", s)
	}
	wants(t, start(l, 0), 0)
}

func TestCallsThatMakeNoSenseChangeNothing(t *testing.T) {
	l := lane(1, 10, redelivery.ByKey)
	l.Finish(0)
	l.Release(7)
	l.Hold(7, 0)
	push(l, "a", "a")
	l.Hold(0, time.Hour) // it has not started
	l.Release(0)
	wants(t, start(l, 0), 0)
	l.Finish(0)
	l.Finish(0)
	l.Release(0)
	l.Hold(0, 0)
	if s := l.State(); s != (redelivery.LaneState{Unfinished: 1, Oldest: 101}) {
		t.Errorf("%+v", s)
	}
	wants(t, start(l, 0), 1)
	l.Finish(1)
	if s := l.State(); s != (redelivery.LaneState{Oldest: -1}) {
		t.Errorf("%+v", s)
	}
}

func TestALaneAllocatesNothingInSteadyState(t *testing.T) {
	for name, turn := range map[string]*turn{
		"unordered": newTurn(redelivery.Unordered, 200), "by key": newTurn(redelivery.ByKey, 15),
		"a retry topic": newTurn(redelivery.Unordered, 15),
	} {
		turn.item.Keyed = name == "by key"
		if name == "a retry topic" {
			turn.gap = time.Millisecond
		}
		for range 5000 {
			turn.record()
		}
		if n := testing.AllocsPerRun(5000, turn.record); n != 0 {
			t.Errorf("%s: %v allocations for each record", name, n)
		}
		if s := turn.lane.State(); s.InFlight != turn.depth || s.Unfinished > turn.depth+101 {
			t.Errorf("%s: that was no steady state: %+v", name, s)
		}
	}
}

func TestTheKeyTableForgetsKeysThatAreDone(t *testing.T) {
	l := lane(1, 10, redelivery.ByKey)
	var offset int64
	step := func() {
		offset++
		l.Push(redelivery.Item{Offset: offset, Key: uint64(offset) * 0x9e3779b97f4a7c15, Keyed: true})
		seq, ok, _ := l.Next(0)
		if !ok || seq != uint64(offset-1) {
			t.Fatalf("record %d does not start", offset-1)
		}
		l.Finish(seq)
	}
	for range 100_000 {
		step()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100_000 {
		step()
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 { // what the runtime itself needs meanwhile is far less
		t.Errorf("%d bytes for 100,000 records: keys are kept that are done", n)
	}
}

func TestAStopWithoutAnEndSaysForever(t *testing.T) {
	l := lane(1, 10, redelivery.Unordered)
	l.Push(redelivery.Item{Offset: 1})
	l.Stop(redelivery.Forever)
	if _, ok, wait := l.Next(time.Second); ok || wait != redelivery.Forever {
		t.Errorf("%v, %v", ok, wait)
	}
	l.Stop(0)
	wants(t, start(l, time.Second), 0)
}
