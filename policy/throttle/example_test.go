package throttle_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/abate-go/abate/policy/throttle"
)

// A dependency gets a thousand requests a second and cannot do a fifth of them. The client comes down to two requests
// for each that is accepted.
func ExampleThrottle() {
	r := rand.New(rand.NewPCG(1, 2))
	t := throttle.New(throttle.Config{K: 2, Window: 10 * time.Second})
	sent, accepted, free := 0.0, 0.0, time.Duration(0)
	for n := range 60_000 {
		now := time.Duration(n) * time.Millisecond
		ok, over := t.Allow(now, r.Uint64())
		if !ok || over { // over alone in shadow mode: it is sent, but not recorded
			continue
		}
		sent++
		result := throttle.Rejected
		if now >= free { // the one before is done
			result, free = throttle.Accepted, now+5*time.Millisecond
			accepted++
		}
		t.Record(now, now, result)
	}
	fmt.Printf("%.1f requests were sent for each accept\n", sent/accepted)
	// Output: 2.0 requests were sent for each accept
}
