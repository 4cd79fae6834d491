package redis

// AwaitEnd waits until the server has ended by itself.
func (s *Server) AwaitEnd() { <-s.process.Ended() }
