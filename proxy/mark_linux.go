package proxy

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"syscall"
)

// setMark marks a socket for the rules of a firewall. It needs CAP_NET_ADMIN.
func setMark(raw syscall.RawConn, mark int) (err error) {
	failed := raw.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_MARK, mark)
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return fmt.Errorf("mark %d of a connection (it needs CAP_NET_ADMIN): %w", mark, err)
	}
	return nil
}

// soOriginalDst is SO_ORIGINAL_DST of IPv4 and IP6T_SO_ORIGINAL_DST of IPv6.
const soOriginalDst = 80

// originalOf returns where a connection was meant for that a rule of the firewall, REDIRECT, has sent here.
func originalOf(raw syscall.RawConn, six bool) (to netip.AddrPort, err error) {
	failed := raw.Control(func(fd uintptr) {
		if six {
			to, err = original6(int(fd))
		} else {
			to, err = original4(int(fd))
		}
	})
	if failed != nil {
		err = failed
	}
	return to, err
}

// original4 reads a sockaddr_in into what has its size: family, port and address.
func original4(fd int) (netip.AddrPort, error) {
	got, err := syscall.GetsockoptIPv6Mreq(fd, syscall.IPPROTO_IP, soOriginalDst)
	if err != nil {
		return netip.AddrPort{}, os.NewSyscallError("getsockopt SO_ORIGINAL_DST", err)
	}
	b := got.Multiaddr
	port := uint16(b[2])<<8 | uint16(b[3])
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), port), nil
}

// original6 reads a sockaddr_in6, into what begins with one.
func original6(fd int) (netip.AddrPort, error) {
	got, err := syscall.GetsockoptIPv6MTUInfo(fd, syscall.IPPROTO_IPV6, soOriginalDst)
	if err != nil {
		return netip.AddrPort{}, os.NewSyscallError("getsockopt IP6T_SO_ORIGINAL_DST", err)
	}
	var port [2]byte // as on the wire
	binary.NativeEndian.PutUint16(port[:], got.Addr.Port)
	return netip.AddrPortFrom(netip.AddrFrom16(got.Addr.Addr), binary.BigEndian.Uint16(port[:])), nil
}
