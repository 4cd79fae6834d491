//go:build !unix

package redis

import "syscall"

// Nobody can be told to stand still here: whoever tries hears that.
const (
	pause  = syscall.SIGTERM
	resume = syscall.SIGTERM
)
