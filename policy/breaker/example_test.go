package breaker_test

import (
	"fmt"
	"time"

	"github.com/abate-go/abate/policy/breaker"
)

// A dependency is down from 1s to 7s; somebody calls it four times a second.
func Example() {
	down := func(now time.Duration) bool { return now >= 1*time.Second && now < 7*time.Second }

	b := breaker.New(breaker.Config{
		FailureRateThreshold:    0.5,
		MinimumNumberOfCalls:    6,
		SlidingWindow:           breaker.Window{Calls: 10},
		WaitDurationInOpenState: time.Second,
		RampUp:                  4 * time.Second,
	}, nil, func(c breaker.Change) {
		fmt.Printf("%.2fs %v -> %v: %s\n", c.At.Seconds(), c.From, c.To, c.Reason)
	})

	rejected := 0
	for now := time.Duration(0); now < 20*time.Second; now += 250 * time.Millisecond {
		permit, ok := b.Allow(now)
		if !ok {
			rejected++
			continue
		}
		result := breaker.Success // here the call would be made
		if down(now) {
			result = breaker.Failure
		}
		b.Record(now, permit, result)
	}
	fmt.Println("rejected:", rejected)
	// Output:
	// 1.75s closed -> open: failure rate
	// 3.00s open -> half-open: wait over
	// 3.00s half-open -> open: probe failed
	// 5.25s open -> half-open: wait over
	// 5.25s half-open -> open: probe failed
	// 9.50s open -> half-open: wait over
	// 10.00s half-open -> ramp-up: probes succeeded
	// 14.00s ramp-up -> closed: ramp-up over
	// rejected: 36
}
