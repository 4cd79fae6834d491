// Package example is for the tests of the examples that wait for a server: it runs the example's program as a process
// of its own, and follows what the program logs.
package example

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// limit bounds every wait for a line. It is long because the machine may be slow.
const limit = time.Minute

// asked is the variable of the environment that makes the tests' binary run the program.
const asked = "ABATE_EXAMPLE"

// Main is for TestMain: it runs the program where a test of this package's asks for that, else the tests.
func Main(m *testing.M, program func()) {
	if os.Getenv(asked) == "" {
		os.Exit(m.Run())
	}
	program()
}

// Server is what the program connects to: needs/postgres has one.
type Server interface {
	Start() error // starts it on the same address
	Crash()       // ends it as a crash would
}

// SurvivesARestart starts the program, told by env ("NAME=value") where its server will be, while the server does not
// run. It has to wait for the server, to log "ok", to log "failed" when the server crashes, "ok" again when it is back,
// and to end without an error when it is interrupted.
func SurvivesARestart(t *testing.T, server Server, env string) {
	t.Helper()
	p := start(t, env)
	p.await(t, "refused") // nobody is there yet
	check(t, server.Start())
	p.await(t, "INFO ok")
	server.Crash()
	p.await(t, "WARN failed")
	check(t, server.Start())
	p.await(t, "INFO ok")
	check(t, p.cmd.Process.Signal(os.Interrupt))
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("interrupted, the program ended with %v", err)
	}
}

// Fails starts the program, told by env something that will not do. It has to log what, and to end with an error.
func Fails(t *testing.T, env, what string) {
	t.Helper()
	p := start(t, env)
	p.await(t, what)
	if err := p.cmd.Wait(); err == nil {
		t.Error("the program has ended without an error")
	}
}

// IsShort holds what the reader of main.go has to read to 30 lines: those from main on that are neither blank nor a
// comment of their own.
func IsShort(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("main.go")
	check(t, err)
	_, code, found := strings.Cut(string(text), "\nfunc main")
	lines := 0
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			lines++
		}
	}
	if !found || lines > 30 {
		t.Errorf("main.go has %d lines of code, want at most 30", lines)
	}
}

type program struct {
	cmd   *exec.Cmd
	lines chan string // that it logs, closed at its end
}

// start runs the program with one more variable in its environment.
func start(t *testing.T, env string) *program {
	t.Helper()
	p := &program{cmd: exec.Command(os.Args[0]), lines: make(chan string, 1000)}
	p.cmd.Env = append(os.Environ(), asked+"=1", env)
	said, err := p.cmd.StdoutPipe()
	check(t, err)
	p.cmd.Stderr = p.cmd.Stdout
	check(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // one that has ended does not mind
	go func() {
		defer close(p.lines)
		for text := bufio.NewScanner(said); text.Scan(); {
			p.lines <- text.Text()
		}
	}()
	return p
}

// await reads lines until one says what.
func (p *program) await(t *testing.T, what string) {
	t.Helper()
	over := time.NewTimer(limit)
	defer over.Stop()
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				t.Fatalf("the program has ended without saying %q", what)
			}
			t.Log(line)
			if strings.Contains(line, what) {
				return
			}
		case <-over.C:
			t.Fatalf("waited %v in vain for %q", limit, what)
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
