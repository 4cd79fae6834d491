// Package abatepgx opens the connections of a pgx pool under a guard: every one of them, and all of it, from the
// look-up of the name to the end of the authentication.
//
//	config, err := pgxpool.ParseConfig(dsn)
//	g, err := abate.New("orders-db", abate.ConnectionPolicy())
//	abatepgx.Guard(config, g)
//	pool, err := pgxpool.NewWithConfig(ctx, config)
//
// What the pool then does about a server that is away:
//
//   - Acquire, and Query and the like which call it, wait for a free connection or open one. Opening waits for
//     its turn, at most the maxWait of the pace, and gives the guard's error if that is over.
//   - An opening is not repeated: the pool has no place for it. The retries of the guard's policy are for Do; here the
//     next Acquire is the next attempt, and while the circuit is open only its probes are sent.
//   - A caller who leaves does not end the opening that he began. It goes on, and the connection goes to the pool;
//     closing the pool ends it.
//   - MinConns and MinIdleConns are filled up again at HealthCheckPeriod, one minute unless the pool is configured
//     otherwise, each connection under the guard.
//   - Who waits for his own opening does not get a connection that becomes free meanwhile. That is why maxWait is
//     short.
//
// Errors are judged as docs/connections.md lists them: a wrong password opens the circuit, so that it is asked again
// only as often as the breaker probes, and a server that is full counts as overload. A Classify in the guard's policy
// goes before.
//
// A pool of database/sql over pgx is guarded with abatesql instead.
package abatepgx
