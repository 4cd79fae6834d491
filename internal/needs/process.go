package needs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// ErrEnded is that a process ended before it answered: its port was taken, for example.
var ErrEnded = errors.New("it ended before it answered")

// Process is a server's process, which a test starts and ends as often as it wants. It and its folder are gone when
// this process has ended, however that ends. One goroutine at a time may use it.
type Process struct {
	Folder string // for its data, configuration and log
	guard  *guard
	cmd    *exec.Cmd     // nil if it does not run
	ended  chan struct{} // closed at its end
}

// NewProcess makes the folder of a server that does not run yet, and has a guard watch it. signal is what ends the
// server without leaving anything behind: KILL, or as the server has it.
func NewProcess(name, signal string) (*Process, error) {
	folder, err := os.MkdirTemp("", "abate-"+name+"-")
	if err != nil {
		return nil, err
	}
	p := &Process{Folder: folder}
	if p.guard, err = watch(folder, signal); err != nil {
		_ = os.RemoveAll(folder)
		return nil, err
	}
	return p, nil
}

// File returns the path of a file in the folder.
func (p *Process) File(name string) string { return filepath.Join(p.Folder, name) }

// Start starts the process, which does not run. What it says stands in Log.
func (p *Process) Start(cmd *exec.Cmd) error {
	log, err := os.OpenFile(p.File("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	p.guard.of(cmd.Process.Pid)
	ended := make(chan struct{})
	p.cmd, p.ended = cmd, ended
	go func() {
		_ = cmd.Wait()
		p.guard.of(0)
		close(ended)
	}()
	return nil
}

// Await waits until ok says that the process answers. The error is ErrEnded, or that it did not within the limit.
func (p *Process) Await(ok func() bool, limit time.Duration) error {
	over := time.After(limit)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-p.ended:
			p.cmd = nil
			return ErrEnded
		case <-over:
			return fmt.Errorf("it did not answer within %v", limit)
		}
	}
	return nil
}

// PID returns the number of the process; 0 if it was not started, or was ended.
func (p *Process) PID() int {
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// Runs reports whether the process was started and has not ended, by itself or otherwise.
func (p *Process) Runs() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Signal sends the process a signal.
func (p *Process) Signal(s os.Signal) error {
	if p.cmd == nil {
		return errors.New("it does not run")
	}
	return p.cmd.Process.Signal(s)
}

// End sends the process a signal that ends it, and returns when it has ended. One that has not within the limit is
// killed.
func (p *Process) End(how os.Signal, limit time.Duration) {
	if p.Signal(how) != nil && p.cmd == nil {
		return
	}
	select {
	case <-p.ended:
	case <-time.After(limit):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	p.cmd = nil
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Log returns the end of what the process has said.
func (p *Process) Log() string {
	const most = 64 << 10
	text, err := os.ReadFile(p.File("log"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}

// Release ends the process, if it runs, and removes its folder.
func (p *Process) Release() {
	p.guard.release()
	p.cmd = nil
}

// guard ends a program and removes its folder when this process ends, however that ends: a process of its own then
// reads the end of a pipe. Over the pipe it is told which process the program is.
type guard struct {
	mu   sync.Mutex
	pipe io.WriteCloser
	cmd  *exec.Cmd
}

// guardian waits for the end of the pipe. Ctrl-C is not for it. A process that was ended may still be writing for a
// moment.
const guardian = `trap '' INT HUP TERM
pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then
	kill -"$1" "$pid"
	i=0
	while [ $i -lt 50 ] && kill -0 "$pid"; do sleep 0.1; i=$((i + 1)); done
fi 2>/dev/null
for i in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$0" && break; sleep 0.1; done`

// watch starts the guard of a folder, which ends the program by a signal.
func watch(folder, signal string) (*guard, error) {
	cmd := exec.Command("sh", "-c", guardian, folder, signal)
	cmd.Dir = "/"
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &guard{pipe: pipe, cmd: cmd}, cmd.Start()
}

// of says which process the program is now; 0 if it does not run.
func (g *guard) of(pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if pid == 0 {
		_, _ = fmt.Fprintln(g.pipe)
		return
	}
	_, _ = fmt.Fprintln(g.pipe, pid)
}

// release has the guard do its work now, and waits for it.
func (g *guard) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.pipe.Close()
	_ = g.cmd.Wait()
}
