//go:build unix

package pods_test

import (
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/loopback"
)

// process is a server on a port of its own.
type process struct {
	t       testing.TB
	port    int
	kill    syscall.Signal
	command func() *exec.Cmd
	up      func() bool // it takes queries
	cmd     *exec.Cmd   // nil while it does not run
}

// newProcess finds a port.
func newProcess(t testing.TB, kill syscall.Signal) *process {
	t.Helper()
	p := &process{t: t, kill: kill}
	var err error
	if p.port, err = loopback.Port(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.crash)
	return p
}

func (p *process) address() string { return "127.0.0.1:" + strconv.Itoa(p.port) }

// start returns when it took queries.
func (p *process) start() time.Time {
	p.t.Helper()
	p.cmd = p.command()
	if err := p.cmd.Start(); err != nil {
		p.cmd = nil
		p.t.Fatal(err)
	}
	over := time.NewTimer(limit)
	defer over.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !p.up() {
		select {
		case <-tick.C:
		case <-over.C:
			p.t.Fatalf("%s takes no queries after %v", p.cmd.Path, limit)
		}
	}
	return time.Now()
}

func (p *process) crash() {
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(p.kill)
		_ = p.cmd.Wait()
		p.cmd = nil
	}
}
