//go:build !linux

package main

import (
	"os/exec"
	"syscall"
)

// supported is whether this system has what is measured.
const supported = false

func isolate(*exec.Cmd)            {}
func interrupt(int)                {}
func terminate(int)                {}
func kill(int)                     {}
func raiseFileLimit() (int, error) { return 0, nil }

func portLater(_, _ string, _ syscall.RawConn) error { return nil }
