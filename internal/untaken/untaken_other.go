//go:build !linux

// Package untaken bounds how long a peer may leave in a socket what was written to it.
package untaken

import (
	"net"
	"time"
)

// Bound can do nothing here: what fits into the socket is the kernel's.
func Bound(net.Conn, time.Duration) {}

// BoundAccepted can do nothing here either.
func BoundAccepted(net.Listener, time.Duration) bool { return false }
