package hedge_test

import (
	"fmt"
	"time"

	"github.com/abate-go/abate/policy/hedge"
)

// A policy that learns when an attempt is slow. Until it knows, it waits for
// the fixed delay.
func Example() {
	p := hedge.New(hedge.Config{Quantile: 0.95, Delay: 200 * time.Millisecond})
	fmt.Println(p.Delay(0))

	// 100 successes in 10 seconds, of 1 ms, 2 ms, ... 100 ms.
	now := time.Duration(0)
	for i := range 100 {
		p.Record(now, time.Duration(i+1)*time.Millisecond)
		now += 100 * time.Millisecond
	}
	delay, ok := p.Delay(now)
	fmt.Println(delay.Round(time.Millisecond), ok)
	// Output:
	// 200ms true
	// 96ms true
}
