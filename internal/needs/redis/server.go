//go:build unix

package redis

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
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

// Server is a Redis, or a Sentinel, of one test. It keeps what it is told to SAVE, and else nothing. One goroutine at a time may use it.
type Server struct {
	t       testing.TB
	program string
	port    int
	config  []string

	folder string // data, configuration, socket and log; empty before the first start
	guard  *needs.Guard
	cmd    *exec.Cmd     // nil if it does not run
	ended  chan struct{} // closed at its end
}

// New finds a port for a server that does not run yet, and ends it with the test. config are lines of its configuration, such as
// "requirepass secret"; with a line that begins with "sentinel" it is a Sentinel. Without Redis the test is skipped, or fails where CI is true.
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

// Start starts a server that does not run, with what it has saved, and returns when it answers anything: an error such as LOADING, too.
func (s *Server) Start() error {
	if s.cmd != nil {
		select {
		case <-s.ended: // by itself
			s.Crash()
		default:
			return nil
		}
	}
	if err := s.prepare(); err != nil {
		return err
	}
	log, err := os.OpenFile(s.file("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(s.program, s.file("redis.conf"))
	if slices.ContainsFunc(s.config, func(line string) bool { return strings.HasPrefix(line, "sentinel ") }) {
		cmd.Args = append(cmd.Args, "--sentinel")
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	s.guard.Of(cmd.Process.Pid)
	s.cmd, s.ended = cmd, make(chan struct{})
	go func(ended chan struct{}) { _ = cmd.Wait(); close(ended) }(s.ended)
	return s.await()
}

// prepare writes the configuration. A Sentinel has changed its own.
func (s *Server) prepare() error {
	if s.folder == "" {
		folder, err := os.MkdirTemp("", "abate-redis-")
		if err != nil {
			return err
		}
		s.folder = folder
		if s.guard, err = needs.Watch(folder, "KILL"); err != nil {
			_ = os.RemoveAll(folder)
			return err
		}
	}
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\nunixsocket %q\nsave \"\"\nappendonly no\ndir %q\n%s\n",
		s.port, s.file("socket"), s.folder, strings.Join(s.config, "\n"))
	return os.WriteFile(s.file("redis.conf"), []byte(text), 0o600)
}

func (s *Server) file(name string) string { return filepath.Join(s.folder, name) }

// await waits until the server answers.
func (s *Server) await() error {
	over := time.After(limit)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !answers(s.file("socket")) {
		var what string
		select {
		case <-tick.C:
			continue
		case <-s.ended:
			what = "ended before it answered"
		case <-over:
			what = "did not answer within " + limit.String()
		}
		s.Crash()
		return fmt.Errorf("the Redis for %s %s; its log:\n%s", s.Addr(), what, s.Log())
	}
	return nil
}

// answers asks at the socket in the server's own folder: what listens on the port may be somebody else's. Redis opens it after the port.
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
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.ended
	s.guard.Of(0)
	s.cmd = nil
}

// Pause has the server stand still: the system still takes connections for it, and nobody answers.
func (s *Server) Pause() { s.t.Helper(); s.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (s *Server) Resume() { s.t.Helper(); s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if s.cmd == nil {
		s.t.Fatalf("the Redis for %s does not run, and cannot be sent %v", s.Addr(), sig)
	}
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Log returns what the server has logged.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.file("log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// remove ends the server for ever, and its folder.
func (s *Server) remove() {
	s.Crash()
	if s.guard != nil {
		s.guard.Release()
	}
}
