//go:build !race

package abateredis_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abateredis"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/ratelimit"
)

// A simulated fleet shares its budget as one with a Redis does.
func TestTheScriptOfTheBudgetAndItsPoolAgree(t *testing.T) {
	for seed := range seeds() {
		random := rand.New(rand.NewPCG(seed, 1))
		l := newLedger(t, 10*time.Second)
		begin, pool := l.now, budget.Pool{}
		for step := range 300 {
			l.now = l.now.Add(time.Duration(random.ExpFloat64() * float64(300*time.Millisecond)))
			if random.IntN(40) == 0 { // an outage
				l.now = l.now.Add(time.Duration(random.IntN(20)) * time.Second)
			}
			o := budget.Offer{
				Earned: int64(random.IntN(3)) * 1_000_000, Back: int64(random.IntN(2)) * random.Int64N(1_000_000),
				Want: int64(random.IntN(2)) * random.Int64N(9_000_000), Reserve: 5_000_000, Floor: 5_000_000,
				Window: time.Duration(1+step/150) * 10 * time.Second,
			}
			begins := step < 3
			reserve := int64(0)
			if begins {
				reserve = o.Reserve
			}
			l.redis.SetTime(l.now)
			got, err := l.client.Eval(t.Context(), abateredis.BudgetText, []string{"k"}, o.Earned, o.Back, o.Want, reserve,
				o.Floor, o.Window.Microseconds()).Int64()
			if err != nil {
				t.Fatal(err)
			}
			now := l.now.Sub(begin) + time.Duration(begin.UnixMicro())*time.Microsecond
			if granted := pool.Exchange(now, o, begins); granted != got {
				t.Fatalf("seed %d, step %d, %+v: the pool grants %d, the script %d", seed, step, o, granted, got)
			}
		}
	}
}

// A simulated fleet shares a rate limit as one with a Redis does.
func TestTheScriptOfTheLimitAndItsPoolAgree(t *testing.T) {
	for seed := range seeds() {
		random := rand.New(rand.NewPCG(seed, 2))
		l := newLedger(t, time.Second)
		limit := ratelimit.NewTerms(ratelimit.Config{
			Limit: ratelimit.Rate{Tokens: float64(1 + random.IntN(200)), Per: time.Second}, Burst: 1 + random.IntN(100),
		})
		pool := new(ratelimit.Pool)
		tokens := func(most int64) int64 { return random.Int64N(most*ratelimit.Micro + 1) }
		for step := range 300 {
			l.now = l.now.Add(time.Duration(random.ExpFloat64() * float64(20*time.Millisecond)))
			q := ratelimit.Question{Most: float64(tokens(100))}
			switch random.IntN(4) {
			case 0:
				q.Back = tokens(3)
			case 1:
				q.Debt = float64(tokens(30)) + random.Float64()
			}
			if random.IntN(4) > 0 {
				q.Need = tokens(3) * random.Int64N(2)
				q.Want = min(q.Need+tokens(20), limit.Burst())
			}
			l.redis.SetTime(l.now)
			got, err := l.client.Eval(t.Context(), abateredis.TakeText, []string{"k"}, limit.Burst(), limit.Rate()*1000,
				q.Need, q.Want, q.Back, int64(math.Ceil(q.Debt)), int64(q.Most), limit.Deepest()).Int64Slice()
			if err != nil {
				t.Fatal(err)
			}
			given, left := pool.Take(time.Duration(l.now.UnixMicro())*time.Microsecond, limit, q)
			if given != got[0] || left != got[1] {
				t.Fatalf("seed %d, step %d, %+v: the pool gives %d and has %d, the script %d", seed, step, q, given, left, got)
			}
		}
	}
}

// seeds is how many random histories are played.
func seeds() uint64 {
	if testing.Short() {
		return 5
	}
	return 20
}
