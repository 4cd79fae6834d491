// Package h2 speaks HTTP/2 (RFC 9113), both sides of it: as the server of clients ([NewServer]) and as the client of
// upstreams ([NewClient]). It hides nothing from a proxy that has to count its attempts: no request is ever sent twice,
// a stream that failed says whether the peer can have seen it ([StreamError.Refused]), and an answer keeps its head,
// content, trailer and informational heads as they came.
//
// One goroutine reads a connection. It handles all frames that one read brought, and only then starts the goroutines of
// new streams and wakes those that wait, so that a short message is complete when somebody looks at it. All streams
// append their frames to one buffer of the connection. Whoever finds that nobody writes that buffer out does so,
// without waiting for the peer. So a short call costs one read and one write on each connection, and less when there
// are many at once.
//
// What a peer can make a connection hold is bounded: received content by the window of the connection
// ([Config.ConnWindow]), frames to be sent by 64 KiB (writers wait), heads by [Config.MaxHeadBytes] each, streams by
// [Config.MaxStreams]. A connection where nothing happens holds no buffers (over TLS, 4 KiB). An open stream with
// nothing to read takes 0.6 KiB, the fields of its heads 0.5 to 1 KiB, and on the server's side there is its goroutine.
//
// All times are on the clock of the guards: a deadline is a time.Duration as from core.Now, and core.NoDeadline is
// none.
//
// The parts, bottom to top; each knows only those above it in this list:
//
//   - frames, table, encode, decode, head: frames, header compression, and the checks of heads;
//   - toll, inflow, pulse, pending: decisions without a clock or I/O, about a peer that sends frames without a use, the
//     windows of received content, a silent peer, and one that does not complete what it has begun;
//   - chunk, alarm, wait: memory, the timer of a connection, and the waits of its streams;
//   - outbox, line, writer: frames out, and who may send next; input: bytes in;
//   - [Stream] (stream, send) and [Conn] (conn, open, serve, tick, end), which know each other, with the table of
//     streams (streams) and the goroutines that handle them (workers) between them;
//   - reader, handle: the goroutine that reads, and what it does with each frame. [Conn.Serve] and [NewClient] start
//     it, and that is all that a Conn knows of it.
//
// A server:
//
//	c := h2.NewServer(nc, &h2.Config{}, func(s *h2.Stream) {
//		body, complete := s.Buffered()     // or s.Next, piece by piece
//		...
//		s.WriteHead(200, fields, -1, false)
//		s.Write(data, false, until)
//		s.WriteTrailer(trailer, until)     // sends all three, in one write
//	})
//	err := c.Serve(begun)                  // until the connection ends
//
// A client:
//
//	c, err := h2.NewClient(nc, &h2.Config{})
//	s, n, err := c.Open(&head, body, true, until) // head and content in one write; body[n:] is still to be written
//	answer, err := s.AwaitHead(until)
//	data, err := s.Next(until)             // io.EOF at the end, then s.Trailer()
//	s.Close()
package h2
