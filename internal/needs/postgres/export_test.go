//go:build unix

package postgres

import "testing"

// Begin starts a server of the test's own.
func Begin(t testing.TB) *Server {
	s := begin(t)
	t.Cleanup(func() { s.Stop(); _ = s.guard.Close() })
	return s
}

// Port is where it listens.
func (s *Server) Port() int { return s.port }
