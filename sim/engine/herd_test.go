package engine_test

import (
	"testing"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/kernel"
)

func TestAHerdGivesNobodyOutTwiceAndWastesLittle(t *testing.T) {
	random := kernel.NewStream(1, 1)
	h := &engine.Herd{}
	for range 2 { // the second time with the memory of the first
		in := map[uint32]bool{}
		var list []uint32
		most := 0
		for step := range 60_000 {
			grows := step/20_000%2 == 0 // up, down, up again
			if share := random.IntN(10); len(list) == 0 || grows && share < 7 || !grows && share < 3 {
				i := h.Get()
				if in[i] {
					t.Fatalf("step %d: %d is given out while it is in use", step, i)
				}
				in[i], list = true, append(list, i)
				most = max(most, len(list))
				continue
			}
			at := random.IntN(len(list))
			i := list[at]
			list[at] = list[len(list)-1]
			list = list[:len(list)-1]
			delete(in, i)
			h.Put(i)
		}
		// 48 of 64 are in use in the worst of blocks, and one block is being given out.
		if room := h.Room(); 3*room > 4*(most+64) {
			t.Errorf("room for %d, %d were in use at once", room, most)
		}
		h.Empty()
	}
}

// Whatever the order in which they end, those that begin one after the other stand in one block for some time.
func TestAHerdGivesNeighboursOutOneAfterTheOther(t *testing.T) {
	random := kernel.NewStream(1, 2)
	h := &engine.Herd{}
	list := make([]uint32, 1024)
	for i := range list {
		list[i] = h.Get()
	}
	const steps, block, atLeast = 4000, 64, 16
	last, left := list[len(list)-1], 0
	for range steps {
		at := random.IntN(len(list))
		h.Put(list[at])
		i := h.Get()
		if i/block != last/block {
			left++
		} else if i <= last {
			t.Fatalf("%d comes after %d in their block", i, last)
		}
		list[at], last = i, i
	}
	if left > steps/atLeast+1 {
		t.Errorf("%d of %d stand in another block than the one before, at most %d expected", left, steps, steps/atLeast+1)
	}
}
