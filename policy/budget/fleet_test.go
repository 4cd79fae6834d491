package budget_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/budget"
)

var fleetConfig = budget.Config{Ratio: 0.1, Reserve: 10, Window: 10 * time.Second, Fleet: true}

// pool is a fleet's budget as simple as it can be: what there is, without expiry.
type pool int64

// exchange is what whoever connects the instances does.
func (p *pool) exchange(t testing.TB, b *budget.Budget, now time.Duration) {
	t.Helper()
	o, ok := b.Offer(now)
	if !ok || o.Earned < 0 || o.Back < 0 || o.Want < 0 || o.Want > 0 && o.Earned+o.Back > 0 {
		t.Fatalf("%+v %v", o, ok)
	}
	*p += pool(o.Earned + o.Back)
	granted := min(o.Want, int64(*p))
	*p -= pool(granted)
	b.Settle(now, granted)
}

func TestFleetBudgetHasNoReserveOfItsOwn(t *testing.T) {
	b := budget.New(fleetConfig)
	if b.Withdraw(0, budget.Transient) {
		t.Error("a retry that nobody earned and nobody granted")
	}
	for range 10 {
		b.Deposit(0)
	}
	if !b.Withdraw(0, budget.Transient) {
		t.Error("its own deposits do not count while nobody exchanges them")
	}
}

func TestOfferMovesWhatIsNotNeeded(t *testing.T) {
	b := budget.New(fleetConfig)
	o, ok := b.Offer(0)
	if want := (budget.Offer{Want: 1e6, Reserve: 10e6, Floor: 10e6, Window: 10 * time.Second}); !ok || o != want {
		t.Fatalf("at first %+v, want %+v", o, want)
	}
	b.Settle(0, 1e6)
	for range 100 {
		b.Deposit(time.Second)
	}
	if o, _ = b.Offer(time.Second); o.Earned != 10e6 || o.Back != 0 || o.Want != 0 {
		t.Errorf("after 100 calls: %+v", o)
	}
	if got := b.Balance(time.Second); got != 1 {
		t.Errorf("it keeps %v", got)
	}
	b.Withdraw(time.Second, budget.Transient)
	if o, _ = b.Offer(2 * time.Second); o.Want != 2e6 {
		t.Errorf("after one retry: %+v", o)
	}
	b.Settle(2*time.Second, 2e6)
	if o, _ = b.Offer(3 * time.Second); o.Back != 1e6 || o.Earned != 0 {
		t.Errorf("after a pause: %+v", o)
	}
}

func TestOfferIsForFleetsOnly(t *testing.T) {
	for _, c := range []budget.Config{
		{}, {Ratio: 0.1}, {Kind: budget.Tokens, Fleet: true}, {Disabled: true, Fleet: true},
	} {
		b := budget.New(c)
		before := b.Balance(0)
		if o, ok := b.Offer(0); ok {
			t.Errorf("%+v: %+v", c, o)
		}
		if b.Settle(0, 5e6); b.Balance(0) != before {
			t.Errorf("%+v: was given tokens", c)
		}
	}
}

func TestSwitchingToAFleetBringsNoReserveAlong(t *testing.T) {
	c := fleetConfig
	c.Fleet = false
	b := budget.New(c)
	b.Reconfigure(0, fleetConfig)
	if b.Withdraw(0, budget.Transient) {
		t.Error("the old reserve is still there")
	}
	b.Reconfigure(0, c)
	if b.Withdraw(0, budget.Transient) {
		t.Error("switching back filled the reserve again")
	}
}

func TestSwitchingToAFleetWantsNothingForThePast(t *testing.T) {
	c := fleetConfig
	c.Fleet = false
	b := budget.New(c)
	for range 1000 {
		b.Deposit(0)
	}
	for b.Withdraw(0, budget.Transient) {
	}
	b.Reconfigure(0, fleetConfig)
	if o, _ := b.Offer(0); o.Want != 1e6 {
		t.Errorf("it wants %v retries for itself", o.Want/1e6)
	}
}

func TestWhatWasUsedLongAgoIsNotWantedAgain(t *testing.T) {
	b := budget.New(fleetConfig)
	b.Offer(0)
	// those who have the rest cannot be reached
	for now := time.Duration(0); now < time.Minute; now += 10 * time.Millisecond {
		b.Deposit(now)
		b.Withdraw(now, budget.Transient)
	}
	if o, _ := b.Offer(time.Minute); o.Want > 1e6 {
		t.Errorf("it wants %v retries at once", o.Want/1e6)
	}
}

// The cap of the code this project started from shrank to zero on the first second in which all failed. Here it counts
// first attempts, whatever they come to.
func TestABadSecondTakesNothingAway(t *testing.T) {
	bs := []*budget.Budget{budget.New(fleetConfig), budget.New(fleetConfig)}
	held := pool(0)
	now := time.Duration(0)
	for range 50 { // 10 s of 100 good calls per second and instance
		for _, b := range bs {
			for range 20 {
				b.Deposit(now)
				b.Result(now, true)
			}
			held.exchange(t, b, now)
		}
		now += 200 * time.Millisecond
	}
	retries := 0
	for range 10 { // then one instance has 2 s in which all fail
		for range 100 {
			bs[0].Deposit(now)
			bs[0].Result(now, false)
			for bs[0].Withdraw(now, budget.Transient) {
				retries++
			}
		}
		held.exchange(t, bs[0], now)
		now += 200 * time.Millisecond
	}
	if retries < 200 || retries > 300 { // 200 earned before by both, 100 meanwhile
		t.Errorf("%d retries", retries)
	}
}

// Whatever the instances do, and whatever gets lost between them: extra ≤ ratio × first + one reserve.
func FuzzFleetBound(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, uint8(seed%7)+1, seed%3 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, instances uint8, lossy bool) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		bs := make([]*budget.Budget, instances%16+1)
		for i := range bs {
			bs[i] = budget.New(fleetConfig)
		}
		held := pool(10e6)
		first, extra := 0, 0
		now := time.Duration(0)
		for range 500 {
			b := bs[rnd.IntN(len(bs))]
			switch n := rnd.IntN(30); {
			case n == 0 && lossy:
				_, _ = b.Offer(now) // on its way when Redis went away
			case n < 5:
				held.exchange(t, b, now)
			case n < 6:
				b.Reconfigure(now, fleetConfig)
			case n < 15:
				if b.Withdraw(now, budget.Cost(rnd.IntN(3))) {
					extra++
				}
			default:
				b.Deposit(now)
				first++
			}
			now += time.Duration(rnd.Int64N(int64(400 * time.Millisecond)))
		}
		if float64(extra) > 0.1*float64(first)+10+1e-9 {
			t.Errorf("%d extra attempts for %d first ones", extra, first)
		}
	})
}
