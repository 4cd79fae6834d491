//go:build !linux || (!amd64 && !arm64)

package proxy

import "net"

// backlog is how many clients wait at a listener for somebody to accept them, which this system does not tell.
func backlog(net.Listener) int { return 0 }
