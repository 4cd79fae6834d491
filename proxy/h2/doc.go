// Package h2 speaks HTTP/2 (RFC 9113) on bytes, both sides of it: as the server of clients ([NewServer]) and as the client of
// upstreams ([NewClient]). It hides nothing from a proxy that has to count its attempts: no request is ever sent twice, a
// stream that failed says whether the peer can have seen it ([StreamError.Refused]), and an answer is handed over with its
// head, content, trailer and informational heads as they came.
//
// One goroutine reads a connection. It handles all frames that one read brought, and only then starts the goroutines of new
// streams and wakes those that wait, so that a short message is complete when somebody looks at it. Writers put their frames
// together in one buffer of the connection; whoever finds nobody writing it out does that, and does not wait for the peer. So
// a short call costs one read and one write on each connection, and less than that when there are many at once.
//
// What a peer can make a connection hold is bounded: received content by the window of the connection
// ([Config.ConnWindow]), frames to be sent by 64 KiB (writers wait), heads by [Config.MaxHeadBytes] each, streams by
// [Config.MaxStreams]. A connection where nothing happens holds no buffers (over TLS, 4 KiB). An open stream with nothing to
// read takes 0.6 KiB, and the fields of its heads 0.5 to 1 KiB; on the server's side a goroutine comes to that.
//
// All times are on the guards' clock: a deadline is a time.Duration as from abate.Now, and abate.NoDeadline is none.
//
// A server:
//
//	c := h2.NewServer(nc, &h2.Config{}, func(s *h2.Stream) {
//		body, complete := s.Buffered()     // or s.Next, piece by piece
//		...
//		s.WriteHead(200, fields, -1, false)
//		s.Write(data, false, until)
//		s.WriteTrailer(trailer)            // sends all three, in one write
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
