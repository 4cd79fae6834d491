// Package h1 reads and writes HTTP/1.1 messages as bytes (RFC 9110, RFC 9112). It does
// no I/O and, on good input, allocates nothing: everything parsed points into the
// caller's buffer and is valid as long as the buffer is.
//
// A proxy that reads a message differently from the server behind it lets a client
// smuggle one request inside another. So whatever two implementations are known to
// read differently is refused, not repaired: see [Request.Parse]. After an error the
// end of the message is unknown, and the connection cannot be used again.
//
// Functions return *Error, nil when all is well; test that pointer before it becomes
// an error, which would not be nil.
package h1
