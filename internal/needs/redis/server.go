package redis

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/loopback"
	"github.com/abate-go/abate/internal/needs"
)

// limit is how long a server may take to answer. Machines that test are busy.
const limit = time.Minute

// Server is a Redis, or a Sentinel, of one test. It keeps what it is told to SAVE, and else nothing. One goroutine at a
// time may use it.
type Server struct {
	t       testing.TB
	program string
	port    int
	config  []string

	process *needs.Process // nil before the first start; its folder has the socket, too
}

// New finds a port for a server that does not run yet, and ends it with the test. config are lines of its
// configuration, such as "requirepass secret"; with a line that begins with "sentinel" it is a Sentinel. Without Redis
// the test is skipped, or fails where CI is true.
func New(t testing.TB, config ...string) *Server {
	t.Helper()
	needs.Program(t, "sh")
	port, err := loopback.Port()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, program: needs.Program(t, "redis-server"), port: port, config: config}
	t.Cleanup(s.remove)
	return s
}

// Start is New for a server that answers already.
func Start(t testing.TB, config ...string) *Server {
	t.Helper()
	s := New(t, config...)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// Addr is where it listens, as host:port. It stays the same.
func (s *Server) Addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// Port is the port of Addr.
func (s *Server) Port() int { return s.port }

// Start starts a server that does not run, with what it has saved, and returns when it answers anything: an error such
// as LOADING, too.
func (s *Server) Start() error {
	if s.process != nil && s.process.Runs() {
		return nil
	}
	if err := s.prepare(); err != nil {
		return err
	}
	cmd := exec.Command(s.program, s.process.File("redis.conf"))
	if slices.ContainsFunc(s.config, func(line string) bool { return strings.HasPrefix(line, "sentinel ") }) {
		cmd.Args = append(cmd.Args, "--sentinel")
	}
	err := s.process.Start(cmd)
	if err == nil {
		err = s.process.Await(func() bool { return answers(s.process.File("socket")) }, limit)
	}
	if err != nil {
		s.Crash()
		return fmt.Errorf("the Redis for %s: %w; its log:\n%s", s.Addr(), err, s.Log())
	}
	return nil
}

// prepare writes the configuration. A Sentinel has changed its own.
func (s *Server) prepare() (err error) {
	if s.process == nil {
		if s.process, err = needs.NewProcess("redis", "KILL"); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\nunixsocket %q\nsave \"\"\nappendonly no\ndir %q\n%s\n",
		s.port, s.process.File("socket"), s.process.Folder, strings.Join(s.config, "\n"))
	return os.WriteFile(s.process.File("redis.conf"), []byte(text), 0o600)
}

// answers asks at the socket in the server's own folder: what listens on the port may be somebody else's. Redis opens
// it after the port.
func answers(socket string) bool {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second)) // or the answer does not come
	_, _ = conn.Write([]byte("PING\r\n"))             // a server that is full has said so without
	n, _ := conn.Read(make([]byte, 1))
	return n > 0
}

// Crash ends the server as kill -9 does: what it has not saved is lost.
func (s *Server) Crash() {
	if s.process != nil {
		s.process.End(os.Kill, limit)
	}
}

// Pause has the server stand still: the system still takes connections for it, and nobody answers.
func (s *Server) Pause() { s.t.Helper(); s.signal(pause) }

// Resume ends a Pause.
func (s *Server) Resume() { s.t.Helper(); s.signal(resume) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if s.process == nil {
		s.t.Fatalf("the Redis for %s was never started", s.Addr())
	}
	if err := s.process.Signal(sig); err != nil {
		s.t.Fatalf("the Redis for %s cannot be sent %v: %v", s.Addr(), sig, err)
	}
}

// Log returns the end of what the server has logged.
func (s *Server) Log() string {
	if s.process == nil {
		return ""
	}
	return s.process.Log()
}

// remove ends the server for ever, and its folder.
func (s *Server) remove() {
	s.Crash()
	if s.process != nil {
		s.process.Release()
	}
}
