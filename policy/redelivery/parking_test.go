package redelivery_test

import (
	"runtime"
	"testing"

	"github.com/abate-go/abate/policy/redelivery"
)

func TestAKeyIsAheadInLaterRetryTopicsOnly(t *testing.T) {
	p := redelivery.NewParking(3)
	p.Enter(1, 42)
	for tier, want := range map[int]bool{redelivery.Main: true, 0: true, 1: false, 2: false} {
		if p.Ahead(tier, 42) != want {
			t.Errorf("ahead of %d: %v", tier, !want)
		}
	}
	if p.Ahead(redelivery.Main, 43) || p.Len() != 1 {
		t.Errorf("another key is ahead, or %d keys are parked", p.Len())
	}
	p.Enter(1, 42)
	p.Leave(1, 42)
	if !p.Ahead(0, 42) {
		t.Error("of two messages one has left, and the key with it")
	}
	p.Leave(1, 42)
	if p.Ahead(0, 42) || p.Len() != 0 {
		t.Error("the key is still there")
	}
}

func TestAParkingForgivesWhatWasNeverEntered(t *testing.T) {
	p := redelivery.NewParking(2)
	p.Leave(0, 1)
	p.Enter(5, 1)
	p.Enter(redelivery.Main, 1)
	p.Leave(9, 1)
	if p.Len() != 0 || p.Ahead(redelivery.Main, 1) {
		t.Errorf("%d keys are parked", p.Len())
	}
	p.Enter(0, 1)
	p.Leave(1, 1)
	if !p.Ahead(redelivery.Main, 1) {
		t.Error("a message that was in no topic took another with it")
	}
	if p.Enter(1, 1); !p.Ahead(0, 1) {
		t.Error("a message was missed, because another left twice")
	}
}

func FuzzParkingCounts(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 128, 129, 130})
	f.Fuzz(func(t *testing.T, steps []byte) {
		const tiers = 3
		p, model := redelivery.NewParking(tiers), map[uint64]*[tiers]int{}
		for i, b := range steps {
			tier, key := int(b>>5)%tiers, uint64(b%16)
			if model[key] == nil {
				model[key] = new([tiers]int)
			}
			if b&16 == 0 {
				p.Enter(tier, key)
				model[key][tier]++
			} else {
				p.Leave(tier, key)
				model[key][tier] = max(model[key][tier]-1, 0)
			}
			parked := 0
			for key, counts := range model {
				if *counts != [tiers]int{} {
					parked++
				}
				ahead := false
				for tier := tiers - 1; tier >= redelivery.Main; tier-- {
					if p.Ahead(tier, key) != ahead {
						t.Fatalf("step %d: key %d ahead of %d is %v", i, key, tier, !ahead)
					}
					ahead = ahead || tier >= 0 && counts[tier] > 0
				}
			}
			if p.Len() != parked {
				t.Fatalf("step %d: %d keys, want %d", i, p.Len(), parked)
			}
		}
	})
}

func TestAParkingThatIsEmptyAgainHasForgottenEverything(t *testing.T) {
	p := redelivery.NewParking(3)
	for range 3 {
		for key := range uint64(5000) {
			p.Enter(int(key%3), key)
		}
		if p.Len() != 5000 {
			t.Fatalf("%d keys", p.Len())
		}
		for key := range uint64(5000) {
			p.Leave(int(key%3), key)
		}
		if p.Len() != 0 || p.Ahead(redelivery.Main, 1) {
			t.Fatalf("%d keys are left", p.Len())
		}
	}
}

func TestAParkingUsesPlacesAgain(t *testing.T) {
	p := redelivery.NewParking(20)
	p.Enter(0, 0) // it is never empty
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for key := range uint64(100_000) {
		p.Enter(3, key+1)
		p.Leave(3, key+1)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("one key at a time has taken %d bytes", grown)
	}
}

func BenchmarkParking(b *testing.B) {
	p := redelivery.NewParking(3)
	for key := range uint64(10_000) {
		p.Enter(0, key)
	}
	b.ReportAllocs()
	var key uint64
	for b.Loop() {
		key = (key + 7919) % 10_000
		p.Ahead(redelivery.Main, key)
		p.Leave(0, key)
		p.Enter(0, key)
	}
}
