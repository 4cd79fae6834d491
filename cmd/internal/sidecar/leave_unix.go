//go:build unix

package sidecar

import (
	"os"
	"syscall"
)

// leaveSignals are what a proxy takes for the wish that it leave: one signal.
var leaveSignals = []os.Signal{syscall.SIGUSR1}
