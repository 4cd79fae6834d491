package postgres_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/needs/postgres"
)

// abandons is the variable that makes the test binary one that leaves its server alone.
const abandons = "ABATE_POSTGRES_ABANDONS"

func TestAServerThatCrashedComesBackWhereItWas(t *testing.T) {
	s := postgres.Shared(t)
	before := s.DSN()
	if !listens(t, before) {
		t.Fatal("nobody listens")
	}
	s.Crash()
	if listens(t, before) {
		t.Error("somebody listens after the crash")
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if after := s.DSN(); !listens(t, after) || after != before {
		t.Errorf("it was at %s and is at %s", before, after)
	}
}

func TestNothingIsLeftOfAServerWhoseProcessIsKilled(t *testing.T) {
	if os.Getenv(abandons) != "" {
		fmt.Println(postgres.Shared(t).DSN())
		_ = os.Stdout.Close()
		select {} // to be killed
	}
	postgres.Shared(t) // or this test needs what the other one needs
	folder, err := os.MkdirTemp("", "abate-abandoned-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	if err := os.Chmod(folder, 0o755); err != nil { // the server may run as somebody else
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), abandons+"=1", "TMPDIR="+folder)
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var dsn string
	if _, err := fmt.Fscanln(out, &dsn); err != nil || !listens(t, dsn) {
		t.Errorf("the child's server at %q: %v", dsn, err)
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	over, tick := time.NewTimer(time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for {
		left, _ := filepath.Glob(filepath.Join(folder, "*"))
		if len(left) == 0 && !listens(t, dsn) {
			return
		}
		select {
		case <-tick.C:
		case <-over.C:
			t.Fatalf("%q is left, or the server at %s still listens", left, dsn)
		}
	}
}

func listens(t *testing.T, dsn string) bool {
	t.Helper()
	where, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialTimeout("tcp", where.Host, time.Second)
	if err == nil {
		conn.Close()
	}
	return err == nil
}
