//go:build unix

package pods_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatesql"
	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/internal/needs/postgres"
)

// openPostgres is a pod's pool of connections to PostgreSQL.
func openPostgres(o order, seen *tally) (query, error) {
	config, err := pgx.ParseConfig(o.Address)
	if err != nil {
		return nil, err
	}
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if ctx.Value(connecting{}) == nil {
			seen.cancels()
		} else {
			seen.dialled()
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	var base driver.Connector = witness{stdlib.GetConnector(*config), seen}
	db := sql.OpenDB(base)
	if o.Guarded {
		guard, err := abate.New("postgres", abate.ConnectionPolicy())
		if err != nil {
			return nil, err
		}
		db = abatesql.OpenDB(base, guard)
	}
	db.SetMaxOpenConns(pool)
	db.SetMaxIdleConns(pool)
	return func(ctx context.Context) error {
		_, err := db.ExecContext(ctx, "SELECT 1")
		return err
	}, nil
}

// connecting marks the context of a connection for the pool. pgx opens one more whenever one breaks in the middle of a
// query, to cancel it.
type connecting struct{}

// witness stands between guard and driver and counts what becomes of connections.
type witness struct {
	driver.Connector
	seen *tally
}

func (w witness) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := w.Connector.Connect(context.WithValue(ctx, connecting{}, true))
	if err != nil {
		w.seen.refused(err)
	}
	return conn, err
}

// startPostgres starts a PostgreSQL with so many connections, on the data of the one that tests share.
func startPostgres(t testing.TB, connections int) *process {
	t.Helper()
	program, shared := needs.Program(t, "postgres"), postgres.Shared(t)
	if err := shared.Start(); err != nil { // an earlier test took its data
		t.Fatal(err)
	}
	folder := dataFolder(t, shared.DSN())
	shared.Stop()
	about, err := os.Stat(folder)
	if err != nil {
		t.Fatal(err)
	}
	owner := about.Sys().(*syscall.Stat_t)
	p := newProcess(t, syscall.SIGQUIT) // kills its children, and recovers when it is started again
	p.command = func() *exec.Cmd {
		// Processes are killed here, machines are not, so the disk need not be waited for.
		cmd := exec.Command(program, "-D", folder, "-p", strconv.Itoa(p.port), "-h", "127.0.0.1", "-k", "", "-F",
			"-c", "shared_buffers=16MB", "-c", "max_connections="+strconv.Itoa(connections))
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if os.Getuid() == 0 { // it refuses to run as root
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
		}
		return cmd
	}
	// Asked in its folder, because it may have no connection left for us.
	p.up = func() bool {
		text, err := os.ReadFile(filepath.Join(folder, "postmaster.pid"))
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		return err == nil && lines[0] == strconv.Itoa(p.cmd.Process.Pid) && strings.TrimSpace(lines[len(lines)-1]) == "ready"
	}
	p.start()
	return p
}

func dataFolder(t testing.TB, dsn string) (folder string) {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow("SHOW data_directory").Scan(&folder); err != nil {
		t.Fatal(err)
	}
	return folder
}

func (p *process) dsn() string {
	return "postgres://abate@" + p.address() + "/postgres?sslmode=disable&connect_timeout=10"
}

func TestPodsComeBackGentlyToPostgreSQL(t *testing.T) {
	plan := thePlan(t)
	s := startPostgres(t, plan.slots)
	plan.compare(t, s, order{Kind: "postgres", Address: s.dsn()})
}
