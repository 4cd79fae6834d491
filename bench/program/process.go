// Package program builds and starts the programs that the commands of this module measure, and sees that none is left.
package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Limits of starting and stopping, on a machine that may be busy.
const (
	startLimit = 15 * time.Second
	stopLimit  = 3 * time.Second
	someWords  = 600 // bytes of what a program wrote
)

// Process is a program that was started for the measurement, in a process group of its own: a Ctrl-C in the terminal
// reaches this command only, which then stops the others in order.
type Process struct {
	name string
	cmd  *exec.Cmd
	log  string        // file with everything it wrote
	done chan struct{} // closed when it has ended
}

// Start starts a program, with so many processors if it is one in Go. What it writes goes to a file in dir.
func Start(dir, name string, processors int, argv []string) (*Process, error) {
	p := &Process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, log, log
	p.cmd.Env = environment(processors)
	isolate(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s does not start: %w", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in its log
		close(p.done)
	}()
	return p, nil
}

// environment is ours, without what would tune the Go programs among the targets.
func environment(processors int) []string {
	env := []string{fmt.Sprintf("GOMAXPROCS=%d", processors)}
	for _, v := range os.Environ() {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "GOTRACEBACK":
		default:
			env = append(env, v)
		}
	}
	return env
}

// PID is the number of its process, and of its process group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended reports whether the program runs no more.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Await waits until the program answers requests at addr as the upstream does, which probe finds out.
func (p *Process) Await(ctx context.Context, addr string, probe func(context.Context, string) error) error {
	deadline := time.NewTimer(startLimit)
	defer deadline.Stop()
	for {
		err := probe(ctx, addr)
		if err == nil && !p.Ended() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.done:
			return fmt.Errorf("%s ended at once: %s", p.name, p.LastWords(someWords))
		case <-deadline.C:
			return fmt.Errorf("%s does not answer at %s after %v: %w; it says: %s", p.name, addr, startLimit, err,
				p.LastWords(someWords))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// LastWords are the last bytes of what the program wrote, so many at most.
func (p *Process) LastWords(most int) string {
	text, err := os.ReadFile(p.log)
	text = bytes.TrimSpace(text)
	if err != nil || len(text) == 0 {
		return "(nothing)"
	}
	if n := len(text); n > most {
		text = append([]byte("... "), text[n-most:]...)
	}
	return string(text)
}

// Stop ends the program and all its children: politely first, then for good.
func (p *Process) Stop() error {
	if p.Ended() {
		return nil
	}
	terminate(p.PID())
	select {
	case <-p.done:
		return nil
	case <-time.After(stopLimit):
	}
	kill(p.PID())
	select {
	case <-p.done:
		return nil
	case <-time.After(stopLimit):
		return errors.New(p.name + " does not end, not even when killed")
	}
}
