package postgres

// Port is where it listens.
func (s *Server) Port() int { return s.port }

// Answers reports whether it lets us in.
func (s *Server) Answers() bool { return answers(s.port) }
