// Package abate keeps a short outage short: it stops retries from becoming the outage.
//
// A Guard is one named dependency under one Policy. Do calls a function under it:
//
//	g, err := abate.New("payment-service", abate.DefaultPolicy())
//	charge, err := abate.Do(ctx, g, func(ctx context.Context) (Charge, error) { return client.Charge(ctx, order) })
//
// Every call goes through one pipeline, always in this order:
//
//	deadline → bulkhead → retry loop { breaker → hedge { attempt timeout → the call } } → fallback
//
// The order is not for you to choose, because there is one that works: a retry asks the breaker before it sleeps, the
// bulkhead counts calls and not attempts, and what retries and hedges add together is bounded by one budget.
//
// What to call: Do for a function; DoHedged for one that may run beside itself; DoWithFallback when there is a
// degraded answer; AdmitOne where there is a hook before and one after instead of a function; Connect for what a program needs when it
// starts; Run for an adapter, such as package abatehttp's RoundTripper. Call is the decisions without the
// waiting, for those who bring their own clock: the simulator, and tests. Do works inside a testing/synctest bubble.
//
// The policies themselves are in the folders below policy, one decision each, and know nothing of each other or of this
// package. Package policyfile reads a Policy per service from YAML and swaps it while the program runs.
package abate
