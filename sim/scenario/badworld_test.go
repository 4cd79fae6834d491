package scenario_test

import "maps"

// The mistakes of a world that reacts.
func init() {
	maps.Copy(mistakes, map[string][]string{
		"else-amplification": {
			`:5:10: expect[0]: "amplification(b) < 2" compares with the requests that need b, and it is ` +
				`only called when another fails; expect attempts(b) instead`,
		},
		"else-circle": {
			`:7:15: services.c.calls[0].to: the calls go in a circle: a -> c -> a; remove one of them`,
		},
		"else-itself": {
			`:3:43: clients.shop.calls[0].else[0].to: "db" is called a second time; write one call with ` +
				`times: 2, or with the sum of the times`,
		},
		"else-of-consumer": {
			`:3:66: clients.shop.calls[0].else: a message is handled by one call, which decides whether ` +
				`it failed; call a service that has the fallback`,
		},
		"else-unknown": {
			`:3:43: clients.shop.calls[0].else[0].to: no such service "bd"; did you mean db?`,
		},
		"else-word": {
			`:3:56: clients.shop.calls[0].else[0].on[0]: "timeouts" is not known; did you mean timeout? ` +
				`allowed: miss, timeout, connection, overload, error, guard; for example [miss, timeout]`,
		},
	})
}
