package needs

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
)

// Guard ends a program that a test has started and removes its folder when this process ends, however that ends: a process of its own then
// reads the end of a pipe. Over the pipe it is told which process the program is.
type Guard struct {
	mu   sync.Mutex
	pipe io.WriteCloser
	cmd  *exec.Cmd
}

// guardian waits for the end of the pipe. Ctrl-C is not for it. A process that was ended may still be writing for a moment.
const guardian = `trap '' INT HUP TERM
pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then
	kill -"$1" "$pid"
	i=0
	while [ $i -lt 50 ] && kill -0 "$pid"; do sleep 0.1; i=$((i + 1)); done
fi 2>/dev/null
for i in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$0" && break; sleep 0.1; done`

// Watch starts the guard of a folder. signal is what ends the program without leaving anything behind: KILL, or as the program has it.
func Watch(folder, signal string) (*Guard, error) {
	cmd := exec.Command("sh", "-c", guardian, folder, signal)
	cmd.Dir = "/"
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &Guard{pipe: pipe, cmd: cmd}, cmd.Start()
}

// Of tells which process the program is now; 0 if it does not run.
func (g *Guard) Of(pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if pid == 0 {
		_, _ = fmt.Fprintln(g.pipe)
		return
	}
	_, _ = fmt.Fprintln(g.pipe, pid)
}

// Release has the guard do its work now, and waits for it.
func (g *Guard) Release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.pipe.Close()
	_ = g.cmd.Wait()
}
