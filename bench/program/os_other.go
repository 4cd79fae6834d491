//go:build !linux

package program

import "os/exec"

// Supported is whether this system has what is measured.
const Supported = false

func isolate(*exec.Cmd) {}
func interrupt(int)     {}
func terminate(int)     {}
func kill(int)          {}

// RaiseFileLimit does nothing on this system.
func RaiseFileLimit() (int, error) { return 0, nil }
