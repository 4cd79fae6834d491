package proxy_test

import (
	"fmt"
	"testing"
)

// Whatever a client says of its attempts, it gets no more than the bound; and what cannot be read, or is said of none,
// costs it nothing.
func TestNobodyGetsMoreByWhatHeSaysOfHisAttempts(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	const calls, reserve = 60, 5
	for _, field := range []string{"X-Envoy-Attempt-Count", "Grpc-Previous-Rpc-Attempts", "Amz-Sdk-Request",
		"X-Stainless-Retry-Count", "X-Retry-Attempty", "X-Number-Of-Retry-Attempts"} {
		for value, plain := range map[string]bool{
			"": true, "0": true, "-1": true, "1e3": true, "９": true, "9999999999": true, "0x9": true, "attempt=-3": true,
			"+2": true,
			"9":  false, "attempt=9; max=9": false, "999999": false,
		} {
			t.Run(fmt.Sprintf("%s: %s", field, value), func(t *testing.T) {
				for _, healthy := range []bool{false, true} {
					answer := status(503)
					if healthy {
						answer = ok("")
					}
					s := inTurn(t, answer)
					r := start(t, single([]string{s.url}, "maxRetries: 3", "initialDelay: 1ms",
						"retryBudget: {ratio: 0.1, reserve: 5, window: 1h}", "circuitBreaker: {disabled: true}"))
					c, good := r.dial(), 0
					for range calls {
						if a := c.send("GET / HTTP/1.1\r\nHost: s.test\r\n" + field + ": " + value + "\r\n\r\n").answer(); a.status ==
							200 {
							good++
						}
					}
					if n := len(s.seen()); n > calls+calls/10+reserve {
						t.Errorf("healthy %t: %d attempts of %d calls", healthy, n, calls)
					}
					if healthy && plain && good != calls {
						t.Errorf("%d of %d calls were good", good, calls)
					}
				}
			})
		}
	}
}
