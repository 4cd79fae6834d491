//go:build unix

package redis

import "syscall"

// What has a process stand still and go on.
const (
	pause  = syscall.SIGSTOP
	resume = syscall.SIGCONT
)
