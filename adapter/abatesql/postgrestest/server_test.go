package postgrestest_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/abate-go/abate/adapter/abatesql"
	"github.com/abate-go/abate/internal/needs"
)

// server is a PostgreSQL of our own on a free port of the loopback interface.
type server struct {
	postgres, data, log string
	port                int
	as                  *syscall.Credential // it refuses to run as root
	running             *exec.Cmd
	guard               io.WriteCloser
}

// shared is started by the first test that asks and stopped by TestMain. Each test has tables of its own.
var shared struct {
	sync.Mutex
	*server
}

func TestMain(m *testing.M) {
	if os.Getenv(workerData) != "" {
		work()
		return
	}
	// Debian keeps the server's programs out of the path.
	folders, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	for _, folder := range folders {
		os.Setenv("PATH", os.Getenv("PATH")+string(os.PathListSeparator)+folder)
	}
	code := m.Run()
	if shared.server != nil {
		shared.stop(syscall.SIGINT)
		os.RemoveAll(filepath.Dir(shared.data))
	}
	os.Exit(code)
}

// running returns the server of all tests.
func running(t testing.TB) *server {
	t.Helper()
	initdb := needs.Program(t, "initdb")
	postgres := needs.Program(t, "postgres")
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		return shared.server
	}
	dir, err := os.MkdirTemp("", "abate-postgres-")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{postgres: postgres, data: filepath.Join(dir, "data"), log: filepath.Join(dir, "log")}
	shared.server = s // from here on TestMain cleans up
	s.as = credential(t)
	if s.as != nil {
		if err := os.Chown(dir, int(s.as.Uid), int(s.as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := s.command(initdb, "-D", s.data, "-U", "abate", "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	s.start(t)
	return s
}

// credential is that of a user who may run the server, nil if we may.
func credential(t testing.TB) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, _ := strconv.ParseUint(u.Uid, 10, 32)
			gid, _ := strconv.ParseUint(u.Gid, 10, 32)
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	t.Fatal("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody")
	return nil
}

// command is a program run as the server's user, in a folder it can enter.
func (s *server) command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Setpgid: true}
	return cmd
}

// start starts the server and waits until it answers. A port that somebody else took in the meantime is replaced.
func (s *server) start(t testing.TB) {
	t.Helper()
	for range 5 {
		if s.port == 0 {
			s.port = freePort(t)
		}
		log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		// Processes are killed here, machines are not, so the disk need not be waited for.
		cmd := s.command(s.postgres, "-D", s.data, "-p", strconv.Itoa(s.port), "-h", "127.0.0.1", "-k", "", "-F",
			"-c", "shared_buffers=16MB", "-c", "max_connections=200", "-c", "log_line_prefix=%m [%p] ")
		cmd.Stdout, cmd.Stderr = log, log
		err = cmd.Start()
		log.Close()
		if err != nil {
			t.Fatal(err)
		}
		s.running = cmd
		s.watch(t)
		ended := make(chan struct{})
		go func() { cmd.Wait(); close(ended) }()
		if s.answers(t, ended) {
			return
		}
		s.unwatch()
		s.port = 0
	}
	t.Fatalf("PostgreSQL does not start; its log:\n%s", s.readLog())
}

// watch starts a process that ends the server when this one ends without having done so, by a time limit for example: it
// then reads the end of a pipe instead of a line.
func (s *server) watch(t testing.TB) {
	t.Helper()
	const script = `read line || { kill -QUIT "$0"; sleep 2; rm -rf "$1"; }`
	cmd := exec.Command("sh", "-c", script, strconv.Itoa(s.running.Process.Pid), filepath.Dir(s.data))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is not for it
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	s.guard = in
	go func() { _ = cmd.Wait() }()
}

// unwatch tells that process that the server ends by itself.
func (s *server) unwatch() {
	if s.guard != nil {
		_, _ = s.guard.Write([]byte("ended\n"))
		_ = s.guard.Close()
		s.guard = nil
	}
}

// answers waits until the server takes statements. It returns false when the server has ended instead.
func (s *server) answers(t testing.TB, ended chan struct{}) bool {
	t.Helper()
	db := s.open(t)
	answered, gone := false, false
	eventually(t, "PostgreSQL to answer; its log is in "+s.log, func() bool {
		select {
		case <-ended:
			gone = true
		default:
			answered = db.PingContext(t.Context()) == nil
		}
		return gone || answered
	})
	return answered
}

func (s *server) readLog() []byte {
	f, err := os.Open(s.log)
	if err != nil {
		return []byte(err.Error())
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, 64<<10))
	return text
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// stop ends the server: SIGINT rolls back what is open, SIGQUIT leaves everything as a crash would.
func (s *server) stop(how syscall.Signal) {
	if s.running == nil || s.running.Process == nil {
		return
	}
	s.unwatch()
	_ = s.running.Process.Signal(how)
	gone := func() bool { return syscall.Kill(-s.running.Process.Pid, 0) == syscall.ESRCH }
	if !poll(gone) {
		_ = syscall.Kill(-s.running.Process.Pid, syscall.SIGKILL)
		poll(gone)
	}
	s.running = nil
}

// dsn is where the server is. extra are further settings of the connection.
func (s *server) dsn(extra string) string {
	return fmt.Sprintf("postgres://abate@127.0.0.1:%d/postgres?sslmode=disable&connect_timeout=10%s", s.port, extra)
}

// open returns a pool of connections that is closed at the end of the test.
func (s *server) open(t testing.TB, extra ...string) *sql.DB {
	t.Helper()
	settings := ""
	for _, e := range extra {
		settings += "&" + e
	}
	db, err := sql.Open("pgx", s.dsn(settings))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(20)
	db.SetMaxIdleConns(20)
	t.Cleanup(func() { db.Close() })
	return db
}

var tables atomic.Int64

// newStore returns a store on a table of its own.
func newStore(t testing.TB, db *sql.DB, c abatesql.Config) *abatesql.Store {
	t.Helper()
	if c.Table == "" {
		c.Table = fmt.Sprint("keys_", tables.Add(1))
	}
	c.Timeout = time.Minute // the machine may be busy
	s, err := abatesql.NewStore(db, c)
	if err == nil {
		err = s.CreateTable(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// eventually asks until the answer is yes.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	if !poll(done) {
		t.Fatalf("waited %v in vain for: %s", limit, what)
	}
}

const limit = 60 * time.Second

func poll(done func() bool) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	over := time.NewTimer(limit)
	defer over.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-over.C:
			return false
		}
	}
	return true
}

// count returns the number that a query selects.
func count(t testing.TB, db *sql.DB, query string, args ...any) (n int) {
	t.Helper()
	if err := db.QueryRowContext(context.Background(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// do runs a statement that must succeed.
func do(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(context.Background(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
