package postgres

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/abate-go/abate/internal/needs"
)

// What a server says of itself in its own folder.
const (
	isReady    = "ready"    // it takes connections
	isStandby  = "standby"  // it follows another one, and takes none
	isStarting = "starting" // it has not read what it starts from
	isStopping = "stopping" // it takes no more
)

// Own starts a server of the test's own with further settings, such as "max_connections=5". It costs some two seconds,
// and is gone after the test.
func Own(t testing.TB, settings ...string) *Server {
	t.Helper()
	s := begin(t, settings...)
	t.Cleanup(s.leave)
	return s
}

func (s *Server) leave() { s.Stop(); s.process.Release() }

// Standby makes a copy of the server that follows it, and returns when the copy takes statements that only read. Where
// hot_standby=off is among the settings it never takes any. It is gone after the test; until then the server has to
// stay at its port to be followed.
func (s *Server) Standby(t testing.TB, settings ...string) *Server {
	t.Helper()
	c := s.copied(t, settings)
	if slices.Contains(settings, "hot_standby=off") {
		c.becomes = isStandby
	}
	c.begin(t)
	return c
}

// Starting makes a Standby that is starting for as long as nobody calls proceed: what it starts from comes from an
// archive that does not answer.
func (s *Server) Starting(t testing.TB) (c *Server, proceed func()) {
	t.Helper()
	c = s.copied(t, nil)
	gate := c.process.File("proceed")
	c.settings = append(c.settings, "restore_command=until [ -e "+gate+" ]; do sleep 0.05; done; false")
	c.becomes = isStarting
	c.begin(t)
	return c, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.becomes = isReady
		if err := os.WriteFile(gate, nil, 0o644); err != nil {
			t.Error(err)
		}
	}
}

// copied is a server that was not started yet, on a copy of the data of s.
func (s *Server) copied(t testing.TB, settings []string) *Server {
	t.Helper()
	copies := needs.Program(t, "pg_basebackup")
	c := empty(t, s.program, settings)
	t.Cleanup(c.leave)
	cmd := c.command(copies, "-D", c.data(), "-d", s.DSN(), "-R", "-X", "stream", "-c", "fast", "--no-sync")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("pg_basebackup: %v\n%s", err, out)
	}
	return c
}

func (s *Server) begin(t testing.TB) {
	t.Helper()
	if err := s.Start(); err != nil {
		t.Fatalf("%v; its log:\n%s", err, s.Log())
	}
}

// Promote ends the following of another server: from here on this one takes writes. It returns when it does.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	cmd := s.command(needs.Program(t, "pg_ctl"), "promote", "-w", "-t", fmt.Sprint(int(limit.Seconds())), "-D", s.data())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("pg_ctl promote: %v\n%s", err, out)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.becomes = isReady
}

// Drain is "pg_ctl stop -m smart", and returns as soon as the server takes no more connections: it ends by itself when
// the last one that is open has been closed, or by Stop.
func (s *Server) Drain() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	err := s.process.Await(func() bool { return s.says() == isStopping }, limit)
	if errors.Is(err, needs.ErrEnded) { // nobody was connected
		return nil
	}
	return err
}

// says returns what the process says of itself in its own folder; nothing if it has not written there. An answer on the
// port may be somebody else's, who has got it meanwhile.
func (s *Server) says() string {
	text, err := os.ReadFile(s.data() + "/postmaster.pid")
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if err != nil || lines[0] != fmt.Sprint(s.process.PID()) {
		return ""
	}
	return strings.TrimSpace(lines[len(lines)-1])
}
