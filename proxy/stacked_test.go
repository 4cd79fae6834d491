package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abate-go/abate/proxy"
)

// A client of a sidecar that retries by itself and says so draws from the budget, and earns none. Strangers in front of
// a gateway, and callers of a protected service, draw from nobody's.
func TestRetriesOfTheProxysClientsStayWithinTheBudget(t *testing.T) {
	const users, tries = 60, 3
	for _, tt := range []struct {
		name, field string
		change      func(*proxy.Config)
		most, least int
	}{
		{"AWS SDK", "Amz-Sdk-Request: attempt=%d; max=3", func(*proxy.Config) {}, users * 12 / 10, users},
		{"Envoy", "X-Envoy-Attempt-Count: %d", func(*proxy.Config) {}, users * 12 / 10, users},
		{"Google", "X-Goog-Api-Client: gl-go/1 gccl-attempt-count/%d", func(*proxy.Config) {}, users * 12 / 10, users},
		{"strangers in front of a gateway", "X-Envoy-Attempt-Count: %d", asGateway, users * tries, users * tries},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := inTurn(t, status(503))
			r := start(t, single([]string{s.url}, "maxRetries: 1", "initialDelay: 1ms", "retryBudget: {ratio: 0.1, reserve: 5}",
				"circuitBreaker: {disabled: true}"), tt.change)
			for range users {
				for try := range tries {
					c := r.dial()
					c.send("GET / HTTP/1.1\r\nHost: s.test\r\n" + fmt.Sprintf(tt.field, try+1) + "\r\n\r\n").answer()
				}
			}
			if n := len(s.seen()); n < tt.least || n > tt.most {
				t.Errorf("%d attempts of %d calls, want %d to %d", n, users, tt.least, tt.most)
			}
		})
	}
}

// What is meant for services of one's own does not go to an upstream whose policy omits it.
func TestTheProxySendsNoInternalHeadersWhereThePolicyOmitsThem(t *testing.T) {
	for key, leave := range map[string]bool{"internalHeaders: omit": false, "internalHeaders: send": true} {
		s := inTurn(t, ok(""))
		r := start(t, single([]string{s.url}, key, "attemptTimeout: 5s"))
		r.dial().send("GET / HTTP/1.1\r\nHost: s.test\r\nAbate-Retry-Allowance: 1\r\nAbate-Priority: " +
			"CRITICAL\r\nX-Envoy-Max-Retries: 2\r\nX-Other: kept\r\n\r\n").answer()
		for _, req := range s.seen() {
			low := strings.ToLower(req)
			if got := strings.Contains(low, "\r\nabate-") || strings.Contains(low, "\r\nx-envoy-"); got != leave ||
				!strings.Contains(low, "\r\nx-other: kept") {
				t.Errorf("%s: %q", key, req)
			}
		}
		if len(s.seen()) != 1 {
			t.Errorf("%d requests", len(s.seen()))
		}
	}
}
