package budget_test

import (
	"fmt"
	"time"

	"github.com/abate-go/abate/policy/budget"
)

// A dependency fails every call for a minute. Each call would like three retries.
func Example() {
	b := budget.New(budget.Config{Ratio: 0.1, Reserve: 10})

	calls, attempts := 0, 0
	for now := time.Duration(0); now < time.Minute; now += 100 * time.Millisecond {
		b.Deposit(now)
		calls++
		attempts++
		for range 3 {
			if !b.Withdraw(now, budget.Transient) {
				break // the call returns its error now, without a delay
			}
			attempts++
		}
	}
	fmt.Printf("%d calls, %d attempts; without a budget %d\n", calls, attempts, 4*calls)
	// Output: 600 calls, 670 attempts; without a budget 2400
}
