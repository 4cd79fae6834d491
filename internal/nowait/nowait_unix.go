//go:build unix

package nowait

import "syscall"

// Possible reports whether sockets can be read and written so.
const Possible = true

// ErrWouldBlock is that there is nothing to read, or no room to write.
var ErrWouldBlock error = syscall.EAGAIN
