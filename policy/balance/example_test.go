package balance_test

import (
	"fmt"
	"time"

	"github.com/abate-go/abate/policy/balance"
)

// The second of three endpoints is down. Retries go elsewhere at once, and after two failures in a row so does
// everything.
func Example() {
	b := balance.New(balance.Config{ConsecutiveFailures: 2, BaseEjectionTime: 10 * time.Second}, 3)
	const down = 1
	rnd, failures := uint64(0), 0
	for now := time.Duration(0); now < 5*time.Second; now += 100 * time.Millisecond {
		tried := -1
		for range 3 {
			rnd += 0x9e3779b97f4a7c15 // a driver takes rand.Uint64()
			tried = b.Pick(now, rnd, tried)
			if tried != down {
				b.Done(tried, now, balance.Success)
				break
			}
			b.Done(tried, now, balance.Failure)
			failures++
		}
	}
	fmt.Println(failures, "failed attempts")
	fmt.Printf("%+v\n", b.Endpoint(down, 5*time.Second))
	// Output:
	// 2 failed attempts
	// {Pending:0 ConsecutiveFailures:0 Ejected:true EjectedUntil:10.2s Ejections:1 Multiplier:1 Unhealthy:false}
}
