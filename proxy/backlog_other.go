//go:build !linux || (!amd64 && !arm64)

package proxy

import "net"

const tellsBacklog = false

// backlog is how many clients wait at a listener for somebody to accept them, which this system does not tell.
func backlog(net.Listener) int { return 0 }

// awaited reports whether a client can be accepted at once.
func awaited(net.Listener) bool { return false }
