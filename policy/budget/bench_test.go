package budget_test

import (
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/budget"
)

func BenchmarkDeposit(b *testing.B) {
	run(b, budget.Config{Ratio: 0.1}, func(x *budget.Budget, now time.Duration) { x.Deposit(now) })
}

func BenchmarkDepositAndResult(b *testing.B) {
	for _, kind := range []budget.Kind{budget.Ratio, budget.Adaptive, budget.Tokens} {
		b.Run(string(kind), func(b *testing.B) {
			run(b, budget.Config{Kind: kind}, func(x *budget.Budget, now time.Duration) {
				x.Deposit(now)
				x.Result(now, true)
			})
		})
	}
}

func BenchmarkWithdraw(b *testing.B) {
	b.Run("allowed", func(b *testing.B) {
		run(b, budget.Config{Ratio: 1}, func(x *budget.Budget, now time.Duration) {
			x.Deposit(now)
			x.Withdraw(now, budget.Transient)
		})
	})
	b.Run("denied", func(b *testing.B) {
		run(b, budget.Config{Ratio: 1}, func(x *budget.Budget, now time.Duration) { x.Withdraw(now, budget.Transient) })
	})
}

// BenchmarkMutex is the yardstick for the ratios in the package comment.
func BenchmarkMutex(b *testing.B) {
	var mu sync.Mutex
	n := 0
	for b.Loop() {
		mu.Lock()
		n++
		mu.Unlock()
	}
}

// run steps the clock by a microsecond a call, so that the rolls are in the figure.
func run(b *testing.B, c budget.Config, f func(*budget.Budget, time.Duration)) {
	b.Run("seq", func(b *testing.B) {
		b.ReportAllocs()
		x, now := budget.New(c), time.Duration(0)
		for b.Loop() {
			now += time.Microsecond
			f(x, now)
		}
	})
	b.Run("par", func(b *testing.B) {
		b.ReportAllocs()
		x := budget.New(c)
		b.RunParallel(func(pb *testing.PB) {
			now := time.Duration(0)
			for pb.Next() {
				now += time.Microsecond
				f(x, now)
			}
		})
	})
}
