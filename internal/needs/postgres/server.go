package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/loopback"
	"github.com/abate-go/abate/internal/needs"
)

// limit is how long a server may take to answer or to stop. Machines that test are busy.
const limit = time.Minute

// Server is a PostgreSQL with a database postgres and a user abate who may do everything without a password. Its
// methods are safe for concurrent use.
type Server struct {
	program  string
	settings []string
	becomes  string // what it says of itself once it is started
	as       runner

	mu      sync.Mutex
	port    int
	process *needs.Process
}

var shared struct {
	sync.Mutex
	*Server
}

// Shared returns the one server of this process, which lives as long. Tests have tables of their own. Without
// PostgreSQL the test is skipped, or fails where CI is true.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.Server == nil {
		shared.Server = begin(t)
	}
	return shared.Server
}

func begin(t testing.TB, settings ...string) *Server {
	t.Helper()
	initdb, program := needs.Program(t, "initdb"), needs.Program(t, "postgres")
	s := empty(t, program, settings)
	cmd := s.command(initdb, "-D", s.data(), "-U", "abate", "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
	if out, err := cmd.CombinedOutput(); err != nil {
		s.process.Release()
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	s.begin(t)
	return s
}

// empty is a server in a folder of its own that has no data yet.
func empty(t testing.TB, program string, settings []string) *Server {
	t.Helper()
	needs.Program(t, "sh")
	s := &Server{program: program, settings: settings, becomes: isReady, as: runnerFor(t)}
	var err error
	if s.process, err = needs.NewProcess("postgres", "QUIT"); err == nil {
		err = s.as.own(s.process.Folder)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// command is a program run as the server's user, in a folder it can enter.
func (s *Server) command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	s.as.run(cmd)
	return cmd
}

func (s *Server) data() string { return s.process.File("data") }

// Start starts a server that was stopped or is stopping, on the same data and, unless somebody else has got it
// meanwhile, the same port, and returns when it takes statements.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process.Runs() {
		if state := s.says(); state != "" && state != isStopping {
			return nil
		}
		s.process.End(syscall.SIGINT, limit) // one that was drained may take as long as somebody is connected
	}
	var err error
	for range 5 {
		if s.port == 0 {
			if s.port, err = loopback.Port(); err != nil {
				return err
			}
		}
		if err = s.launch(); !errors.Is(err, needs.ErrEnded) {
			return err
		}
		s.port = 0
	}
	return fmt.Errorf("PostgreSQL does not start: %w", err)
}

// launch starts the process and waits until it answers.
func (s *Server) launch() error {
	// Processes are killed here, machines are not, so the disk need not be waited for.
	args := []string{"-D", s.data(), "-p", strconv.Itoa(s.port), "-h", "127.0.0.1", "-k", "", "-F",
		"-c", "shared_buffers=16MB", "-c", "max_connections=200", "-c", "log_line_prefix=%m [%p] "}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	if err := s.process.Start(s.command(s.program, args...)); err != nil {
		return err
	}
	err := s.process.Await(func() bool {
		return s.says() == s.becomes && (s.becomes != isReady || answers(s.port))
	}, limit)
	if err != nil {
		s.process.End(syscall.SIGQUIT, limit)
	}
	return err
}

// Stop ends the server and rolls back what is open.
func (s *Server) Stop() { s.stop(syscall.SIGINT) }

// Crash ends the server as a crash would: it recovers when it is started again.
func (s *Server) Crash() { s.stop(syscall.SIGQUIT) }

func (s *Server) stop(how syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process.End(how, limit)
}

// Log returns the end of the server's log.
func (s *Server) Log() string { return s.process.Log() }

// DSN is where the server is. extra are further settings of the connection, such as "default_transaction_read_only=on".
func (s *Server) DSN(extra ...string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	dsn := fmt.Sprintf("postgres://abate@127.0.0.1:%d/postgres?sslmode=disable&connect_timeout=10", s.port)
	for _, e := range extra {
		dsn += "&" + e
	}
	return dsn
}
