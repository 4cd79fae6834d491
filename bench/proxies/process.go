package main

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
)

// process is a program that was started for the measurement, in a process group of its own: a Ctrl-C in the terminal
// reaches this command only, which then stops the others in order.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string        // file with everything it wrote
	done chan struct{} // closed when it has ended
}

// startProcess starts a program. What it writes goes to a file in dir.
func startProcess(dir, name string, processors int, argv []string) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
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

func (p *process) pid() int { return p.cmd.Process.Pid }

// ended reports whether the program runs no more.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// awaitAnswers waits until the program answers requests at addr as the upstream does, which probe finds out.
func (p *process) awaitAnswers(ctx context.Context, addr string, probe func(context.Context, string) error) error {
	deadline := time.NewTimer(startLimit)
	defer deadline.Stop()
	for {
		err := probe(ctx, addr)
		if err == nil && !p.ended() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.done:
			return fmt.Errorf("%s ended at once: %s", p.name, p.lastWords())
		case <-deadline.C:
			return fmt.Errorf("%s does not answer at %s after %v: %w; it says: %s", p.name, addr, startLimit, err, p.lastWords())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// lastWords are the last lines of what the program wrote.
func (p *process) lastWords() string {
	text, err := os.ReadFile(p.log)
	text = bytes.TrimSpace(text)
	if err != nil || len(text) == 0 {
		return "(nothing)"
	}
	if n := len(text); n > 600 {
		text = append([]byte("... "), text[n-600:]...)
	}
	return string(text)
}

// stop ends the program and all its children: politely first, then for good.
func (p *process) stop() error {
	if p.ended() {
		return nil
	}
	terminate(p.pid())
	select {
	case <-p.done:
		return nil
	case <-time.After(stopLimit):
	}
	kill(p.pid())
	select {
	case <-p.done:
		return nil
	case <-time.After(stopLimit):
		return errors.New(p.name + " does not end, not even when killed")
	}
}
