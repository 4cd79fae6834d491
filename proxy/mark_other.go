//go:build !linux

package proxy

import (
	"errors"
	"net/netip"
	"syscall"
)

func setMark(syscall.RawConn, int) error { return errors.ErrUnsupported }

func originalOf(syscall.RawConn, bool) (netip.AddrPort, error) {
	return netip.AddrPort{}, errors.ErrUnsupported
}
