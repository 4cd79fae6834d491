package launch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"time"
)

// child is the program that was started.
type child struct {
	cmd   *exec.Cmd
	alone bool          // it has a process group of its own
	ended chan struct{} // closed when it has ended, and code is set
	code  int
}

// begin starts a program. Where there is a terminal, the program stays in the process group of this process: it may
// read there, and Ctrl-C, Ctrl-Z and fg mean both. Else it gets a group of its own, so that a signal reaches whatever
// it has started.
func begin(argv, env []string, stdout, stderr io.Writer) (*child, error) {
	c := &child{cmd: exec.Command(argv[0], argv[1:]...), alone: !hasTerminal(), ended: make(chan struct{})}
	c.cmd.Env, c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = env, os.Stdin, stdout, stderr
	c.cmd.WaitDelay = time.Second // what it has started may keep its output open, when that is no file
	if c.alone {
		ownGroup(c.cmd)
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(c.ended)
		_ = c.cmd.Wait() // the state says all
		c.code = codeOf(c.cmd.ProcessState)
	}()
	return c, nil
}

// startCode is the exit code for a program that could not be started, as shells have it.
func startCode(err error) int {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		return 127
	}
	return 126
}

// pass hands a signal on. What the terminal sends, it sends to the group in front: in the background such a signal has
// come from somebody else.
func (c *child) pass(s os.Signal) {
	if !c.alone && fromTerminal(s) && inFront() {
		return // it has got it already
	}
	_ = c.signal(s) // it may have ended
}

// kill ends a program that was told to end, grace ago, and has not.
func (c *child) kill(grace time.Duration, stderr io.Writer) {
	fmt.Fprintf(stderr, "abate run: %s (process %d) has not ended within %v of SIGTERM (--grace): killed\n", c.cmd.Args[0],
		c.cmd.Process.Pid, grace)
	_ = c.signal(os.Kill)
}
