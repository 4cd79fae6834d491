//go:build !unix

package proxy

import (
	"errors"
	"syscall"
)

// rawSockets reports that sockets can be read as they are.
const rawSockets = false

var errWouldBlock = errors.New("would block")

func openFiles() int { return 0 }

func readSocket(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }

func writeSocket(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }

func hungUp(syscall.RawConn) bool { return false }

func silent(syscall.RawConn) bool { return true }

func saidGoodbye(syscall.RawConn) bool { return false }
