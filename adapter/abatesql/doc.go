// Package abatesql keeps the record of what was done, and under which key, in a PostgreSQL database.
//
// [Store] is an idempotency.Store: all instances of a service see the same keys, and a restart forgets none. Every method
// is one statement on the server's clock, so the clocks of the instances do not matter.
//
// [Store.Once] is for consumers of queues and for any work whose effect is in the same database: it records the key in the
// transaction of the effect. Either both are there or none, whenever and however the worker or the server dies, so the
// effect happens exactly once however often it is tried. It needs no lease, waits for no timeout, and is to be preferred
// wherever it is possible.
//
// # Setting up
//
// The table is made by [Store.CreateTable] when a service starts, or by whoever runs migrations, from [Store.Schema].
// Expired rows, and those of tries that failed, stay in the table until [Store.Clean] removes them: call it every minute,
// for example, from one instance or from all. For Begin they are as good as gone; Once goes on remembering its own.
//
// # Which databases
//
// PostgreSQL, through any driver for database/sql that takes $1 as a placeholder. It is tested with PostgreSQL 15 and
// github.com/jackc/pgx/v5/stdlib, and uses nothing newer than PostgreSQL 11. Other databases, and those that only speak its
// protocol, are not tested and not claimed. Give the store a server that confirms a commit when it is durable: after a
// failover to a replica that has not seen the last commits, those keys are forgotten.
//
// # Cost
//
// A first request costs two statements that write, about twice a round trip to the server each, a repeat one that reads.
// Once adds one statement to the transaction of the effect.
//
// # Connections
//
// A request holds no connection of the store while it runs. But a handler that holds the last connection of a pool while
// its lease is renewed makes the renewal wait: leave room in the pool, or give the store its own.
package abatesql
