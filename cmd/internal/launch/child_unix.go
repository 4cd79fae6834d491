//go:build unix

package launch

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"unsafe"
)

// passed are the signals that the program gets.
var passed = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
	syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT}

// outliveReaders has this process go on when nobody reads any more what it says: the program needs its proxy.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// toEnd is the signal that asks a program to end.
var toEnd os.Signal = syscall.SIGTERM

// fromTerminal reports whether a terminal sends a signal to all processes of the group that has it.
func fromTerminal(s os.Signal) bool {
	return s == os.Interrupt || s == syscall.SIGQUIT || s == syscall.SIGWINCH || s == syscall.SIGHUP
}

// hasTerminal reports whether this process has a terminal, wherever its standard input leads: a program may read from
// /dev/tty while that is a pipe, and a shell may bring it to the front later.
func hasTerminal() bool {
	_, ok := groupInFront()
	return ok
}

// inFront reports whether the terminal sends what is typed there to the group of this process.
func inFront() bool {
	group, ok := groupInFront()
	return ok && group == syscall.Getpgrp()
}

// groupInFront is the process group that has this process's terminal; false if there is no terminal.
func groupInFront() (int, bool) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return 0, false
	}
	defer tty.Close()
	var group int32
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, tty.Fd(), uintptr(syscall.TIOCGPGRP),
		uintptr(unsafe.Pointer(&group)))
	return int(group), errno == 0
}

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// signal sends a signal to the program, and to all that are in its group.
func (c *child) signal(s os.Signal) error {
	pid := c.cmd.Process.Pid
	if c.alone {
		return syscall.Kill(-pid, s.(syscall.Signal))
	}
	if s == os.Kill {
		for other := range tree(pid) {
			_ = syscall.Kill(other, syscall.SIGKILL) // it may have ended
		}
	}
	return c.cmd.Process.Signal(s)
}

// codeOf is the exit code of a program, as shells have it: 128 and the number of the signal that ended it.
func codeOf(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return s.ExitCode()
}
