package scenario_test

import "maps"

// The mistakes of users who hold sessions, of limits on connections, and of what is shared.
func init() {
	maps.Copy(mistakes, map[string][]string{
		"connections-backlog": {
			`:4:49: services.db.connections.backlog: has no effect: nobody waits for a connection that costs nothing; ` +
				`set cost, or max with whenFull: wait`,
		},
		"connections-when": {
			`:4:41: services.db.connections.whenFull: has no effect without max; remove it`,
		},
		"redis-nobody": {
			`:2:8: redis: has no effect, because nobody shares anything; write fleet: true in the retryBudget of a policy, ` +
				`or remove it`,
			`:5:35: faults[0].redis: "shop" shares nothing in any variant; write fleet: true in the retryBudget or ` +
				`circuitBreaker of a service that it calls, or in the rateLimit of its gates`,
			`:5:67: faults[1].redis: no such service or fleet "sho"; did you mean shop?`,
			`:5:73: faults[2].for: is missing; for example for: 30s`,
			`:5:89: faults[2].redis: "db" shares nothing in any variant; write fleet: true in the retryBudget or ` +
				`circuitBreaker of a service that it calls, or in the rateLimit of its gates`,
			`:5:99: faults[2].rate: does not belong to redis; remove it; allowed: at, for, share, zone`,
		},
		"session-alone": {
			`:3:28: clients.apps.session: has no effect without users; for example users: 10000`,
			`:3:28: clients.apps.session: does not say when users come back; for example session: {returns: uniform 0s..10s}`,
			`:4:27: clients.more.think: has no effect beside session; keep one of the two`,
			`:4:50: clients.more.session.returns: a mean of 0s makes users ask without end at one moment; allowed: a mean ` +
				`of at least 1ms; for example uniform 0s..10s`,
			`:4:62: clients.more.calls: a session is opened by one call; keep the one that opens it`,
			`:5:50: clients.once.session.lasts: a mean of 1µs is no session; allowed: a mean of at least 1ms`,
			`:5:84: clients.once.calls[0].pool: has no effect: a session is a connection; remove it`,
			`:5:94: clients.once.calls[0].times: a user opens one session at a time; remove it`,
			`:5:104: clients.once.calls[0].share: every user opens a session; lower users`,
			`:5:119: clients.once.calls[0].optional: a call that may fail opens no session; remove it`,
			`:5:131: clients.once.calls[0].else: a session is with one service; remove it`,
		},
		"session-huge": {
			`:1:1: variants: of the policy of "gateway", retryBudget is state that each client would keep for itself, which ` +
				`a population has no room for; set retryBudget.disabled: true, or make the fleet small enough to have guards ` +
				`(rate and instances)`,
			`:1:1: variants: of the policy of "gateway", circuitBreaker is state that each client would keep for itself, ` +
				`which a population has no room for; set circuitBreaker.disabled: true, or make the fleet small enough to have ` +
				`guards (rate and instances)`,
			`:3:37: clients.apps.session: a very large fleet holds no sessions; allowed: at most 500000 users`,
		},
	})
}
