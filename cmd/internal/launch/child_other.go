//go:build !unix

package launch

import (
	"os"
	"os/exec"
)

var passed = []os.Signal{os.Interrupt}

var toEnd os.Signal = os.Kill

func fromTerminal(os.Signal) bool { return true }

func hasTerminal() bool { return true }

func inFront() bool { return true }

func outliveReaders() {}

func ownGroup(*exec.Cmd) {}

func (c *child) signal(s os.Signal) error { return c.cmd.Process.Signal(s) }

func codeOf(s *os.ProcessState) int { return s.ExitCode() }
