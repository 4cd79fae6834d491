// Package clitest has what the tests of several packages of commands need.
package clitest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/loopback"
)

// Put writes a file into a folder of its own and returns its path.
func Put(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Buffer is an output that can be read while it is written.
type Buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// FreeAddress is one on which nobody listens.
func FreeAddress(t testing.TB) string {
	t.Helper()
	addr, err := loopback.Address()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// Eventually waits until ok, for half a minute at most: as long as a busy machine needs, and no longer than it takes.
func Eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); !ok(); <-tick.C {
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("half a minute on, still not: %s", what)
		}
	}
}

// Goroutines counts them, with the one that the first signal.Notify of a process starts for good.
func Goroutines() int {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	signal.Stop(c)
	return runtime.NumGoroutine()
}

var builds struct {
	mu   sync.Mutex
	dir  string
	made map[string]error
}

// Built returns the path of one of our programs under the name abate, built as a user builds it, once for all tests of
// a package. Main takes it away.
func Built(t *testing.T, program string) string {
	t.Helper()
	builds.mu.Lock()
	defer builds.mu.Unlock()
	if builds.dir == "" {
		t.Fatal("call clitest.Main in TestMain")
	}
	path := filepath.Join(builds.dir, program, "abate")
	err, done := builds.made[program]
	if !done {
		said, failed := exec.Command("go", "build", "-o", path, "github.com/abate-go/abate/cmd/"+program).CombinedOutput()
		if failed != nil {
			err = fmt.Errorf("go build: %w\n%s", failed, said)
		}
		builds.made[program] = err
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Main runs the tests of a package that uses Built, and returns the exit code.
func Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "abate-command-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	builds.dir, builds.made = dir, map[string]error{}
	return m.Run()
}

// FlagsIn are the flags that a help text names.
func FlagsIn(help string) []string {
	var names []string
	for _, m := range regexp.MustCompile(`(?m)(?:^|[ ,("])--?([a-z][a-z-]*)`).FindAllStringSubmatch(help, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// OnLoopback listens on a port of loopback until the test ends.
func OnLoopback(t *testing.T) net.Listener {
	t.Helper()
	l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// Ended is a context of a command that is told to end as soon as it runs.
func Ended(t *testing.T) context.Context {
	ctx, end := context.WithCancel(t.Context())
	end()
	return ctx
}
