package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/internal/needs/example"
)

func TestMain(m *testing.M) { example.Main(m, main) }

func TestTheServiceWaitsForItsServerAndSurvivesARestart(t *testing.T) {
	server := newServer(t)
	example.SurvivesARestart(t, server, "REDIS_URL=redis://127.0.0.1:"+server.port)
}

func TestAWrongPasswordEndsTheStartAtOnce(t *testing.T) {
	server := newServer(t)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	example.Fails(t, "REDIS_URL=redis://nobody:wrong@127.0.0.1:"+server.port, "permanent failure")
}

func TestTheProgramIsShort(t *testing.T) { example.IsShort(t) }

// server is a redis-server that keeps nothing.
type server struct {
	program, port, folder string
	cmd                   *exec.Cmd
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{program: needs.Program(t, "redis-server"), port: freePort(t), folder: t.TempDir()}
	t.Cleanup(s.Crash)
	return s
}

// Start does not wait until it answers.
func (s *server) Start() error {
	s.cmd = exec.Command(s.program, "--port", s.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", s.folder)
	return s.cmd.Start()
}

func (s *server) Crash() {
	if s.cmd != nil && s.cmd.Process != nil {
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
