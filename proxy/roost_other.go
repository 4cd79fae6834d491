//go:build !linux

package proxy

import "time"

// roost is for Linux.
type roost struct {
	goOn func(*door, *clientConn)
	idle time.Duration

	failed func(error)
}

func (*roost) take(*door, *clientConn) bool { return false }

func (*roost) wake(*clientConn) {}

func (*roost) close() {}
