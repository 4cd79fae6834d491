//go:build !unix

package h2

import "errors"

// rawSockets says whether sockets can be read and written without waiting.
const rawSockets = false

var errWouldBlock = errors.New("would block")

func readSocket(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }

func writeSocket(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }
