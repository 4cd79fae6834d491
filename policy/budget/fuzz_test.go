package budget_test

import (
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/budget"
)

// FuzzBound runs random operations and holds the trace against the bound. Two bytes are
// one operation. The trace has the times that the budget has seen: time that runs
// backwards stands still.
func FuzzBound(f *testing.F) {
	f.Add([]byte{1, 1}, []byte{0, 40, 1, 3, 2, 200, 0, 10, 1, 9})
	f.Add([]byte{7, 30}, []byte{0, 255, 0, 255, 2, 255, 1, 255, 2, 255, 1, 255})
	f.Add([]byte{15, 0}, []byte{0, 20, 3, 99, 4, 7, 1, 5, 0, 9, 5, 0, 1, 200})
	f.Fuzz(func(t *testing.T, cfg, ops []byte) {
		if len(cfg) != 2 || len(ops) > 4000 {
			return
		}
		c := budget.Config{
			Kind:    []budget.Kind{budget.Ratio, budget.Adaptive}[cfg[0]&1],
			Window:  time.Duration(1+cfg[0]>>4) * time.Second,
			Reserve: float64(cfg[1]) / 8,
			Clients: 1 + int(cfg[0]>>1&7)*3,
			Ratio:   float64(1+int(cfg[1])) / 256, MaxRatio: float64(1+int(cfg[1])) / 256, MinRatio: 0.001,
			OverloadCost: 1 + float64(cfg[0]>>6),
		}
		b, tr := budget.New(c), trace{}
		now, seen := time.Duration(0), time.Duration(math.MinInt64)
		for ; len(ops) >= 2; ops = ops[2:] {
			n := max(1, int(ops[1]))
			op := ops[0] % 7
			if op < 2 || op > 4 || op == 4 && c.Kind == budget.Adaptive {
				seen = max(seen, now)
			}
			switch op {
			case 0:
				deposit(b, now, n)
				tr.add(seen, int64(n), 0)
			case 1:
				tr.add(seen, 0, int64(take(b, now, budget.Cost(n%4), n)))
			case 2:
				now += time.Duration(n*n) * time.Millisecond
			case 3:
				now -= time.Duration(n) * 10 * time.Millisecond
			case 4:
				b.Result(now, n%3 == 0)
			case 5:
				b.Reconfigure(now, c)
			case 6:
				if got := b.Balance(now); got < 0 || math.IsNaN(got) {
					t.Fatalf("balance %v", got)
				}
			}
		}
		reserve := c.Reserve / float64(c.Clients)
		ratio := c.Ratio
		tr.check(t, ratio, reserve, c.Window, max(reserve, c.OverloadCost))
	})
}

// FuzzReload changes the policy at random. Over its life the budget may hand out no more
// than the best of these policies earned, and it starts with one reserve.
func FuzzReload(f *testing.F) {
	f.Add([]byte{0, 40, 1, 3, 3, 1, 2, 200, 0, 10, 3, 2, 1, 9, 3, 0, 1, 90})
	f.Fuzz(func(t *testing.T, ops []byte) {
		configs := []budget.Config{
			{Ratio: 0.1, Reserve: 5},
			{Ratio: 0.25, Reserve: 100, Window: time.Minute},
			{Kind: budget.Tokens, MaxTokens: 50, DepositPerSuccess: 0.25, RefillPerSecond: 0.5},
			{Kind: budget.Adaptive, MaxRatio: 0.25, Window: time.Second},
			{Disabled: true, Ratio: 0.1},
		}
		b, now, off := budget.New(configs[0]), time.Duration(0), false
		earned, extra := 5.0, 0
		for ; len(ops) >= 2; ops = ops[2:] {
			n := int(ops[1])
			switch ops[0] % 5 {
			case 0:
				deposit(b, now, n)
				earned += 0.25 * float64(n)
			case 1:
				if !off {
					extra += take(b, now, budget.Transient, n)
				}
			case 2:
				now += time.Duration(n) * 50 * time.Millisecond
				earned += 0.5 * float64(n) * 0.05
			case 3:
				i := n % len(configs)
				b.Reconfigure(now, configs[i])
				off = configs[i].Disabled
			case 4:
				b.Result(now, n%2 == 0)
				earned += 0.25
			}
			if float64(extra) > earned+1e-6 {
				t.Fatalf("%d extra attempts, %v earned", extra, earned)
			}
			if got := b.Balance(now); got < 0 {
				t.Fatalf("balance %v", got)
			}
		}
	})
}
