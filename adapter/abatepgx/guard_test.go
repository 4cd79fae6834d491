package abatepgx_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatepgx"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/needs/postgres"
)

// events counts what a guard does.
type events struct {
	mu                  sync.Mutex
	began, ended, calls int
	classes             []abate.Class
}

func (e *events) Observe(ev abate.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch ev.Kind {
	case core.CallBegan:
		e.calls++
	case core.AttemptBegan:
		e.began++
	case core.AttemptEnded:
		e.ended++
		e.classes = append(e.classes, ev.Class)
	}
}

func (e *events) counts() (began, ended int, classes []abate.Class) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.began, e.ended, append([]abate.Class(nil), e.classes...)
}

func config(t testing.TB, dsn string) *pgxpool.Config {
	t.Helper()
	c, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	c.MinConns = 0
	return c
}

func guard(t testing.TB, change func(*abate.Policy)) (*abate.Guard, *events) {
	t.Helper()
	seen := new(events)
	p := abate.ConnectionPolicy()
	p.AttemptTimeout, p.Observer = time.Minute, seen // the machine may be busy
	p.Pacing.Disabled = true
	if change != nil {
		change(&p)
	}
	g, err := abate.New("postgres", p)
	if err != nil {
		t.Fatal(err)
	}
	return g, seen
}

func open(t testing.TB, c *pgxpool.Config) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.NewWithConfig(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// eventually asks until the answer is yes.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 6000 {
		if done() {
			return
		}
		<-tick.C
	}
	t.Fatalf("waited in vain for: %s", what)
}

func TestEveryConnectionIsOpenedUnderTheGuard(t *testing.T) {
	g, seen := guard(t, nil)
	c := config(t, postgres.Shared(t).DSN())
	c.MaxConns = 5
	abatepgx.Guard(c, g)
	pool := open(t, c)
	var held []*pgxpool.Conn
	for range 5 {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
	}
	if began, ended, _ := seen.counts(); began != 5 || ended != 5 {
		t.Errorf("%d attempts began and %d ended, want 5", began, ended)
	}
	for _, conn := range held {
		conn.Release()
	}
	for range 20 {
		if _, err := pool.Exec(t.Context(), "SELECT 1"); err != nil {
			t.Fatal(err)
		}
	}
	if began, _, classes := seen.counts(); began != 5 || classes[4] != abate.Success {
		t.Errorf("%d attempts after statements on open connections, %v", began, classes)
	}
}

func TestWhatTheServerRefusesOpensTheCircuit(t *testing.T) {
	dsn := strings.Replace(postgres.Shared(t).DSN(), "/postgres?", "/nowhere?", 1)
	g, seen := guard(t, nil)
	c := config(t, dsn)
	abatepgx.Guard(c, g)
	pool := open(t, c)
	var pg *pgconn.PgError
	if err := pool.Ping(t.Context()); !errors.As(err, &pg) || pg.Code != "3D000" {
		t.Fatalf("error %v", err)
	}
	open := 0
	for range 2000 {
		if errors.Is(pool.Ping(t.Context()), abate.ErrCircuitOpen) {
			open++
		}
	}
	began, ended, _ := seen.counts()
	if began > 30 || began != ended || open < 1900 {
		t.Errorf("2000 callers: %d attempts began, %d ended, %d refusals", began, ended, open)
	}
}

func TestTheUsersOwnHooksGoOnWorking(t *testing.T) {
	g, seen := guard(t, nil)
	c := config(t, postgres.Shared(t).DSN())
	var before, after atomic.Int32
	c.BeforeConnect = func(ctx context.Context, cc *pgx.ConnConfig) error {
		before.Add(1)
		cc.RuntimeParams["application_name"] = "hooked"
		return nil
	}
	c.AfterConnect = func(context.Context, *pgx.Conn) error { after.Add(1); return nil }
	trace := new(everything)
	c.ConnConfig.Tracer = trace
	abatepgx.Guard(c, g)
	pool := open(t, c)
	var name string
	if err := pool.QueryRow(t.Context(), "SELECT current_setting('application_name')").Scan(&name); err != nil ||
		name != "hooked" {
		t.Fatalf("%q, %v", name, err)
	}
	var batch pgx.Batch
	batch.Queue("SELECT 1")
	if err := pool.SendBatch(t.Context(), &batch).Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Conn().Prepare(t.Context(), "one", "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "CREATE TEMP TABLE copied (n int)"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.CopyFrom(t.Context(), pgx.Identifier{"copied"}, []string{"n"},
		pgx.CopyFromRows([][]any{{1}})); err != nil {
		t.Fatal(err)
	}
	own := conn.Conn().Config()
	conn.Release()
	trace.mu.Lock()
	defer trace.mu.Unlock()
	for _, what := range []string{"query", "query end", "batch", "batch query", "batch end", "copy", "copy end", "prepare",
		"prepare end",
		"connect in the caller's context", "connect end in its own", "acquire", "acquire end", "release"} {
		if trace.saw[what] == 0 {
			t.Errorf("the tracer has not seen: %s; only %v", what, trace.saw)
		}
	}
	if before.Load() != 1 || after.Load() != 1 {
		t.Errorf("BeforeConnect ran %d times, AfterConnect %d", before.Load(), after.Load())
	}
	trace.mu.Unlock()
	again, err := pgx.ConnectConfig(t.Context(), own) // is no concern of the guard
	trace.mu.Lock()
	if err != nil {
		t.Fatal(err)
	}
	again.Close(context.Background())
	if began, ended, _ := seen.counts(); began != 1 || ended != 1 {
		t.Errorf("%d attempts began, %d ended", began, ended)
	}
}

func TestABeforeConnectThatFailsIsAFailedOpening(t *testing.T) {
	g, seen := guard(t, nil)
	c := config(t, postgres.Shared(t).DSN())
	noSecret := errors.New("no secret")
	c.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { return abate.Permanent(noSecret) }
	abatepgx.Guard(c, g)
	if err := open(t, c).Ping(t.Context()); err != noSecret {
		t.Errorf("error %v", err)
	}
	if began, ended, classes := seen.counts(); began != 1 || ended != 1 || classes[0] != abate.Failure {
		t.Errorf("%d attempts began, %d ended, %v", began, ended, classes)
	}
}

func TestAHangingOpeningEndsAtTheAttemptTimeout(t *testing.T) {
	g, seen := guard(t, func(p *abate.Policy) { p.AttemptTimeout = 50 * time.Millisecond })
	c := config(t, "postgres://abate@"+silent(t)+"/postgres?sslmode=disable")
	abatepgx.Guard(c, g)
	if err := open(t, c).Ping(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if began, ended, classes := seen.counts(); began != 1 || ended != 1 || classes[0] != abate.Failure {
		t.Errorf("%d attempts began, %d ended, %v", began, ended, classes)
	}
}

// silent is the address of somebody who says nothing.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
		}
	}()
	return l.Addr().String()
}

func TestALeavingCallerAndAClosedPoolLeaveNothingBehind(t *testing.T) {
	postgres.Shared(t)
	address := silent(t)
	goroutines := runtime.NumGoroutine()
	g, seen := guard(t, nil)
	c := config(t, "postgres://abate@"+address+"/postgres?sslmode=disable")
	c.MaxConns = 20
	abatepgx.Guard(c, g)
	pool := open(t, c)
	for range 20 {
		ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
		if err := pool.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		leave()
	}
	pool.Close()
	eventually(t, "all openings and goroutines to end", func() bool {
		began, ended, _ := seen.counts()
		return began == ended && runtime.NumGoroutine() <= goroutines
	})
	if state := g.State(); state.Breaker.State.String() != "closed" {
		t.Errorf("callers who left and a pool that was closed have made the circuit %s", state.Breaker.State)
	}
}

func TestAfterACrashThePoolComesBack(t *testing.T) {
	s := postgres.Shared(t)
	g, seen := guard(t, func(p *abate.Policy) { p.CircuitBreaker.MaxWaitDurationInOpenState = 300 * time.Millisecond })
	c := config(t, s.DSN())
	abatepgx.Guard(c, g)
	pool := open(t, c)
	if err := pool.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Crash()
	eventually(t, "an open circuit", func() bool { return errors.Is(pool.Ping(t.Context()), abate.ErrCircuitOpen) })
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a connection", func() bool { return pool.Ping(t.Context()) == nil })
	if began, ended, _ := seen.counts(); began != ended {
		t.Errorf("%d attempts began, %d ended", began, ended)
	}
}

func TestWithoutAGuardEveryOpeningPasses(t *testing.T) {
	for name, g := range map[string]*abate.Guard{"nil": nil, "zero": new(abate.Guard)} {
		c := config(t, "postgres://abate@127.0.0.1:1/postgres")
		abatepgx.Guard(c, g)
		if err := open(t, c).Ping(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: error %v, want that of the connection", name, err)
		}
	}
}
