// Package abatesql is for programs that use database/sql. [OpenDB] opens the connections of a pool under a guard,
// [Read] carries out statements under another, and [Store] keeps the record of what was done, and under which key, in a
// PostgreSQL database.
//
// # Connections under a guard
//
//	g, err := abate.New("orders-db", abate.ConnectionPolicy())
//	db := abatesql.OpenDB(stdlib.GetConnector(*config), g)
//
// Every connection is opened under the guard, with any driver that has a driver.Connector: paced, tried again within a
// budget, and not tried while the server is away, but for one probe at a time. A wrong password, an unknown database, a
// certificate that is not trusted are not tried again, and open the circuit; too many connections is overload.
// docs/connections.md lists all of it.
//
// What database/sql makes of it:
//
//   - A caller that finds no free connection opens one, if the pool is below its maximum. Once an opening has failed he
//     waits for his turn, within his deadline and the maxWait of the pace, or for a connection that becomes free,
//     whichever is first. With a pace by number the pool looks once more after 20 ms for who is refused whether a
//     connection is free; if not, he gets the guard's error, after 60 ms in all.
//   - At its maximum the pool lets callers wait, and opens connections for them on one goroutine, one after the other.
//     When an opening fails, one of those who wait gets its error.
//   - A statement whose connection turns out to be bad before anything was done is repeated by database/sql itself, at
//     most twice. Nobody can refuse that; it is drawn from the budget of the guard, or of that of Read.
//   - SetMaxIdleConns is 2 unless set: more connections are closed after each burst and opened again, at the pace, at
//     the next. Set it to SetMaxOpenConns.
//
// The pool's connections are ours around the driver's: they look at errors, and take a connection out of the pool whose
// server goes down; of those whose server takes no writes any more one at a time, so that who only reads keeps his.
// A statement on an open connection costs no allocation more; [Unwrap]
// gives those who use sql.Conn.Raw the driver's.
//
// # Keys
//
// [Store] is an idempotency.Store: all instances of a service see the same keys, and a restart forgets none. Every
// method is one statement on the server's clock, so the clocks of the instances do not matter.
//
// [Store.Once] is for consumers of queues and for any work whose effect is in the same database: it records the key in
// the transaction of the effect. Either both are there or none, whenever and however the worker or the server dies, so
// the effect happens exactly once however often it is tried. It needs no lease, waits for no timeout, and is to be
// preferred wherever it is possible.
//
// # Setting up
//
// The table is made by [Store.CreateTable] when a service starts, or by whoever runs migrations, from [Store.Schema].
// Expired rows, and those of tries that failed, stay in the table until [Store.Clean] removes them: call it every
// minute, for example, from one instance or from all. For Begin they are as good as gone; Once goes on remembering its
// own.
//
// # Which databases
//
// PostgreSQL, through any driver for database/sql that takes $1 as a placeholder. It is tested with PostgreSQL 15 and
// github.com/jackc/pgx/v5/stdlib, and uses nothing newer than PostgreSQL 11. Other databases, and those that only speak
// its protocol, are not tested and not claimed. Give the store a server that confirms a commit when it is durable:
// after a failover to a replica that has not seen the last commits, those keys are forgotten.
//
// # Cost
//
// A first request costs two statements that write, about twice a round trip to the server each, a repeat one that
// reads. Once adds one statement to the transaction of the effect.
//
// # The store's connections
//
// A request holds no connection of the store while it runs. But a handler that holds the last connection of a pool
// while its lease is renewed makes the renewal wait: leave room in the pool, or give the store its own.
package abatesql
