package kafka

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
)

// guard is a process that ends a broker and removes its folder when the test's process ends, however that ends: it then reads the end of a
// pipe. Over the pipe it is told which process the broker is.
type guard struct {
	mu   sync.Mutex
	pipe io.WriteCloser
	cmd  *exec.Cmd
}

// script waits for the end of the pipe. Ctrl-C is not for it. A process that was killed may still be writing for a moment.
const script = `trap '' INT HUP TERM
pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then
	kill -KILL "$pid"
	for i in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$pid" || break; sleep 0.1; done
fi 2>/dev/null
rm -rf "$0"`

// watch starts the guard of a folder.
func watch(folder string) (*guard, error) {
	cmd := exec.Command("sh", "-c", script, folder)
	cmd.Dir = "/"
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &guard{pipe: pipe, cmd: cmd}, cmd.Start()
}

// of tells which process the broker is; 0 if it has none.
func (g *guard) of(pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if pid == 0 {
		_, _ = io.WriteString(g.pipe, "\n")
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
