//go:build !unix

package nowait

import "errors"

// Possible reports whether sockets can be read and written so.
const Possible = false

// ErrWouldBlock is that there is nothing to read, or no room to write.
var ErrWouldBlock = errors.New("would block")

// Read is not possible.
func Read(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }

// Write is not possible.
func Write(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }

// Readable is not possible.
func Readable(uintptr) bool { return true }
