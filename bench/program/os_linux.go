package program

import (
	"fmt"
	"os/exec"
	"syscall"
)

// Supported is whether this system has what is measured.
const Supported = true

// isolate gives a command a process group of its own, and ends it when this command is killed.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// interrupt is to a process group what Ctrl-C is; an error means that it has ended.
func interrupt(group int) { _ = syscall.Kill(-group, syscall.SIGINT) }

// terminate asks a process group to end; an error means that it has.
func terminate(group int) { _ = syscall.Kill(-group, syscall.SIGTERM) }

// kill ends a process group; an error means that it has ended.
func kill(group int) { _ = syscall.Kill(-group, syscall.SIGKILL) }

// RaiseFileLimit lets this command and all it starts open as many files as the system allows, and returns how many.
func RaiseFileLimit() (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("the limit of open files: %w", err)
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("raising the limit of open files to %d: %w", limit.Max, err)
	}
	return int(min(limit.Cur, 1<<30)), nil
}
