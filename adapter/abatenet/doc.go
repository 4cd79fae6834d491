// Package abatenet opens network connections under a guard, so that every new connection, not only the first, is paced,
// tried again within a budget, and not tried while the other side is away.
//
//	g, err := abate.New("cache", abate.ConnectionPolicy())
//	dialer := &abatenet.Dialer{Guard: g}
//
// [Dialer.DialContext] is what drivers take: Dialer of go-redis's Options, kgo.Dialer of franz-go, DialFunc of a pgx
// ConnConfig, DialContext of an http.Transport. A pool of pgx and one of database/sql are better guarded with abatepgx
// and abatesql, which see the whole opening: here the guard sees a connection that was made, and not that the password
// was wrong after that, or that the server is still starting. A [Dialer.Greet] has it see more: [PingRedis] is one.
//
// # What is tried again
//
// A connection that is refused, reset or not answered, and a name that is not known yet. Not an address that is none, a
// certificate that is not trusted, a permission that is missing. When this machine is out of open files or ports, that
// is overload. docs/connections.md lists all of it. A Classify in the guard's policy goes before, and so do the marks
// of package abate on what Dial returns.
//
// # Hidden redials
//
// Drivers dial again by themselves. Under a guard that does no harm, as each dial is one guarded call, but the two
// multiply, and a caller waits for all of them. Where the guard's policy has retries, switch the driver's off:
//
//   - go-redis: DialerRetries (5 by default) to 1. MaxRetries (3 by default) repeats commands, and dials for it when
//     the connection is gone: -1 switches it off. After as many failed dials in a row as PoolSize says it dials once a
//     second to find out whether the server is back, and closes that connection: it comes back some seconds later than
//     the guard would let it.
//   - franz-go dials again for ever, with its own back-off: RetryBackoffFn and RequestRetries bound it. Its metadata
//     loop goes on in any case, at the guard's pace.
//   - net/http sends a request again when a connection that was kept died under it, and dials for that. It dials beside
//     the request and keeps what came too late. abatehttp counts what it repeats.
//   - pgx tries each address that a name has, and again without TLS under sslmode=prefer: several dials, each a guarded
//     call.
package abatenet
