package main

import (
	"bufio"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/needs/postgres"
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
	server := postgres.Shared(t)
	server.Stop()
	program, lines := start(t, "DATABASE_URL="+server.DSN())
	await(t, lines, "refused") // nobody is there yet
	check(t, server.Start())
	await(t, lines, "INFO ok")
	server.Crash()
	await(t, lines, "WARN failed")
	check(t, server.Start())
	await(t, lines, "INFO ok")
	check(t, program.Process.Signal(os.Interrupt))
	if err := program.Wait(); err != nil {
		t.Errorf("interrupted, the program ended with %v", err)
	}
}

func TestAWrongPasswordEndsTheStartAtOnce(t *testing.T) {
	server := postgres.Shared(t)
	check(t, server.Start())
	address, err := url.Parse(server.DSN())
	check(t, err)
	address.User = url.UserPassword("nobody", "wrong")
	program, lines := start(t, "DATABASE_URL="+address.String())
	await(t, lines, "permanent failure after 1 attempt")
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
