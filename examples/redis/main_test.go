package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/needs"
)

// TestMain runs the program instead of the tests where a test asks for that.
func TestMain(m *testing.M) {
	if os.Getenv("ABATE_EXAMPLE") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestTheServiceWaitsForItsServerAndSurvivesARestart(t *testing.T) {
	server := newServer(t)
	program, lines := start(t, "REDIS_URL=redis://127.0.0.1:"+server.port)
	await(t, lines, "refused") // nobody is there yet
	server.start(t)
	await(t, lines, "INFO ok")
	server.crash()
	await(t, lines, "WARN failed")
	server.start(t)
	await(t, lines, "INFO ok")
	check(t, program.Process.Signal(os.Interrupt))
	if err := program.Wait(); err != nil {
		t.Errorf("interrupted, the program ended with %v", err)
	}
}

// server is a redis-server that keeps nothing.
type server struct {
	program, port, folder string
	cmd                   *exec.Cmd
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{program: needs.Program(t, "redis-server"), port: freePort(t), folder: t.TempDir()}
	t.Cleanup(s.crash)
	return s
}

func (s *server) start(t *testing.T) {
	t.Helper()
	s.cmd = exec.Command(s.program, "--port", s.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", s.folder)
	check(t, s.cmd.Start())
}

func (s *server) crash() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// freePort finds a port of loopback. It lies below those that systems give to outgoing connections, so that nobody has got it
// by accident when a server that was killed comes back.
func freePort(t *testing.T) string {
	t.Helper()
	for port := 20000 + os.Getpid()%10000; port < 32000; port++ {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			return strconv.Itoa(port)
		}
	}
	t.Fatal("no free port below 32000 on 127.0.0.1")
	return ""
}

func TestAWrongPasswordEndsTheStartAtOnce(t *testing.T) {
	server := newServer(t)
	server.start(t)
	program, lines := start(t, "REDIS_URL=redis://nobody:wrong@127.0.0.1:"+server.port)
	await(t, lines, "permanent failure")
	if err := program.Wait(); err == nil {
		t.Error("the program has ended without an error")
	}
}

// What the reader has to read: the lines from main on that are neither blank nor a comment of their own.
func TestTheProgramIsShort(t *testing.T) {
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

// start runs the program and returns the lines that it logs, the channel closed at its end.
func start(t *testing.T, env string) (*exec.Cmd, <-chan string) {
	t.Helper()
	program, lines := exec.Command(os.Args[0]), make(chan string, 1000)
	program.Env = append(os.Environ(), "ABATE_EXAMPLE=1", env)
	said, end := io.Pipe()
	program.Stdout, program.Stderr = end, end
	check(t, program.Start())
	t.Cleanup(func() { _ = program.Process.Kill(); _ = end.Close() })
	go func() {
		for text := bufio.NewScanner(said); text.Scan(); {
			lines <- text.Text()
		}
	}()
	return program, lines
}

// await reads lines until one says what.
func await(t *testing.T, lines <-chan string, what string) {
	t.Helper()
	over := time.NewTimer(time.Minute)
	defer over.Stop()
	for {
		select {
		case line := <-lines:
			t.Log(line)
			if strings.Contains(line, what) {
				return
			}
		case <-over.C:
			t.Fatalf("waited a minute in vain for %q", what)
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
