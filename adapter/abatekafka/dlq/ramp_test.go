package dlq_test

import (
	"slices"
	"testing"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
)

func TestRampGrowsToTenThousand(t *testing.T) {
	r := dlq.NewRamp(0.1)
	var sizes []int
	for range 15 {
		sizes = append(sizes, r.Begin())
		r.Count(sizes[len(sizes)-1])
	}
	if want := []int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 10000, 10000}; !slices.Equal(
		sizes, want) {
		t.Error(sizes)
	}
}

func TestRampStopsAtTheShareOfTheBatch(t *testing.T) {
	for _, test := range []struct {
		limit      float64
		batches    int // before
		sent, back int
		hopeless   bool
		stop       bool
	}{
		{0.1, 0, 1, 0, false, false},
		{0.1, 0, 1, 1, true, true},
		{0.1, 3, 10, 1, false, false},
		{0.1, 3, 10, 2, true, true},
		{0.1, 3, 3, 1, false, true}, // the last, which is not full
		{0, 3, 10, 1, true, true},
		{1, 0, 1, 1, false, false},
	} {
		r := dlq.NewRamp(test.limit)
		for range test.batches {
			r.Count(r.Begin())
		}
		size := r.Begin()
		if full := r.Count(test.sent); full != (test.sent >= size) {
			t.Errorf("%+v: full %v", test, full)
		}
		for range test.back {
			r.Again(true)
		}
		if _, stop := r.Hopeless(); stop != test.hopeless {
			t.Errorf("%+v: hopeless %v", test, stop)
		}
		if why, stop := r.Verdict(); stop != test.stop || stop == (why == "") {
			t.Errorf("%+v: stop %v %q", test, stop, why)
		}
	}
}

func TestRampCountsThoseOfEarlierBatchesAgainstAll(t *testing.T) {
	r := dlq.NewRamp(0.1)
	for range 4 {
		r.Count(r.Begin()) // 18
	}
	r.Begin()
	r.Count(2) // the last ones
	r.Again(false)
	r.Again(false)
	if why, stop := r.Verdict(); stop {
		t.Errorf("two of 20 are not too many: %s", why)
	}
	r.Again(false)
	if why, stop := r.Verdict(); !stop || why != "3 of 20 of all that were sent failed again, more than 10 %" {
		t.Error(why)
	}
}

func FuzzRamp(f *testing.F) {
	f.Add(0.1, []byte{1, 0, 2, 3, 1, 0, 200})
	f.Fuzz(func(t *testing.T, limit float64, steps []byte) {
		if !(limit >= 0 && limit <= 1) {
			return
		}
		r := dlq.NewRamp(limit)
		last, size, sent, back, all, allBack := 0, r.Begin(), 0, 0, 0, 0
		for _, step := range steps {
			switch {
			case step < 100: // letters sent
				n := min(int(step), size-sent)
				sent, all = sent+n, all+n
				if r.Count(n) != (sent == size) {
					t.Fatalf("%d of %d sent", sent, size)
				}
			case step < 200 && allBack < all:
				now := step%2 == 0 && back < sent
				if allBack++; now {
					back++
				}
				r.Again(now)
			}
			_, stop := r.Verdict()
			if want := back > 0 && float64(back) > limit*float64(sent) ||
				allBack > 0 && float64(allBack) > limit*float64(all); stop != want {
				t.Fatalf("stop %v with %d of %d, %d of %d, limit %v", stop, back, sent, allBack, all, limit)
			}
			if _, hopeless := r.Hopeless(); hopeless && !stop {
				t.Fatal("hopeless, and not stopped at the end")
			}
			if sent == size {
				last, size, sent, back = size, r.Begin(), 0, 0
				if size < last || size > 10_000 || size > 3*last && last > 0 {
					t.Fatalf("%d after %d", size, last)
				}
			}
		}
	})
}
