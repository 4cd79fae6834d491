package retry_test

import (
	"fmt"
	"time"

	"github.com/abate-go/abate/policy/retry"
)

// A call that keeps failing, with the random number fixed in the middle.
func Example() {
	p := retry.New(retry.Config{MaxRetries: 3})

	q := retry.Question{Rand: 1 << 63}
	for {
		delay, verdict := p.Next(q)
		fmt.Println(verdict, delay.Round(time.Millisecond))
		if verdict != retry.Retry {
			return
		}
		q.Retries++
		q.Elapsed += delay
		q.Previous = delay
	}
	// Output:
	// retry 51ms
	// retry 101ms
	// retry 201ms
	// attempts exhausted 0s
}

// A server that asks for patience gets it, and a little more; within reason.
func ExamplePolicy_Next_retryAfter() {
	p := retry.New(retry.Config{MaxRetries: 3, RetryAfterJitter: 0.5})

	fmt.Println(p.Next(retry.Question{RetryAfter: 4 * time.Second, Rand: 1 << 63}))
	fmt.Println(p.Next(retry.Question{RetryAfter: time.Hour}))
	// Output:
	// 5s retry
	// 0s retry-after too long
}
