package embedded_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/abate-go/abate/adapter/abatekafka/embedded"
)

func start(t *testing.T, c embedded.Config) *embedded.Broker {
	t.Helper()
	b, err := embedded.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func TestBrokerListensOnLoopbackOnly(t *testing.T) {
	for _, addr := range start(t, embedded.Config{}).Addresses() {
		host, _, err := net.SplitHostPort(addr)
		if err != nil || !net.ParseIP(host).IsLoopback() {
			t.Errorf("it listens on %s (%v)", addr, err)
		}
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
}

func TestTakenPortIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	_, err = embedded.Start(embedded.Config{Port: port, Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "port "+strconv.Itoa(port)+" of 127.0.0.1 is taken") {
		t.Errorf("said %v", err)
	}
}

func TestFolderBelongsToOneBrokerAtATime(t *testing.T) {
	dir := t.TempDir()
	b, err := embedded.Start(embedded.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	_, err = embedded.Start(embedded.Config{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), dir+" is in use by another broker") {
		t.Errorf("the second on %s said %v", dir, err)
	}
	b.Close()
	start(t, embedded.Config{Dir: dir}) // free again
}

func TestFolderThatCannotBeUsedIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := embedded.Start(embedded.Config{Dir: filepath.Join(file, "data")})
	if err == nil || !strings.Contains(err.Error(), "folder "+file) ||
		!strings.Contains(err.Error(), "name one that can be written") {
		t.Errorf("said %v", err)
	}
}

func TestFailedStartLeavesTheFolderFree(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "meta.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := embedded.Start(embedded.Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "folder "+dir) ||
			strings.Contains(err.Error(), "in use") {
			t.Fatalf("said %v", err)
		}
	}
}
