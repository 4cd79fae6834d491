package proxyproto

import (
	"encoding/binary"
	"net/netip"
	"strconv"
)

// Append appends h as a header of version 1 or 2. Addresses of two kinds are both written as those of IPv6. Version 1
// has no word for the proxy's own connections: they are those of somebody unknown.
func Append(dst []byte, h Header, version int) []byte {
	src, to := plain(h.Source), plain(h.Destination)
	known := src.IsValid() && !h.Local
	if !to.IsValid() {
		to = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
		if src.Addr().Is6() {
			to = netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
		}
	}
	four := src.Addr().Is4() && to.Addr().Is4()
	if version == 1 {
		return appendText(dst, src, to, known, four)
	}
	dst = append(dst, signature...)
	switch {
	case h.Local:
		return append(dst, 0x20, 0, 0, 0)
	case !known:
		return append(dst, 0x21, 0, 0, 0)
	case four:
		dst = append(dst, 0x21, 0x11, 0, 12)
		one, two := src.Addr().As4(), to.Addr().As4()
		dst = append(append(dst, one[:]...), two[:]...)
	default:
		dst = append(dst, 0x21, 0x21, 0, 36)
		one, two := src.Addr().As16(), to.Addr().As16()
		dst = append(append(dst, one[:]...), two[:]...)
	}
	dst = binary.BigEndian.AppendUint16(dst, src.Port())
	return binary.BigEndian.AppendUint16(dst, to.Port())
}

// plain is an address without a zone, which means something on one machine only.
func plain(a netip.AddrPort) netip.AddrPort {
	if !a.IsValid() {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

func appendText(dst []byte, src, to netip.AddrPort, known, four bool) []byte {
	dst = append(dst, word...)
	switch {
	case !known:
		return append(dst, "UNKNOWN\r\n"...)
	case four:
		dst = append(dst, "TCP4"...)
	default:
		dst = append(dst, "TCP6"...)
	}
	for _, a := range []netip.Addr{src.Addr(), to.Addr()} {
		if a.Is4() && !four {
			a = netip.AddrFrom16(a.As16())
		}
		dst = a.AppendTo(append(dst, ' '))
	}
	for _, a := range []netip.AddrPort{src, to} {
		dst = strconv.AppendUint(append(dst, ' '), uint64(a.Port()), 10)
	}
	return append(dst, "\r\n"...)
}
