package launch

import (
	"encoding/binary"
	"net/netip"
)

// What sock_diag(7) of Linux says: which sockets there are, and which has just ended. All numbers but addresses and
// ports are in the order of the machine.
const (
	netlinkHead = 16 // length of the head of each message
	diagHead    = 72 // length of a struct inet_diag_msg behind it
	diagDone    = 3  // NLMSG_DONE: the type of the message behind the last of a list
	diagFailed  = 2  // NLMSG_ERROR
	diagSocket  = 20 // SOCK_DIAG_BY_FAMILY
	diagInfo    = 2  // INET_DIAG_INFO: the attribute with a struct tcp_info
	diagPort    = netlinkHead + 6
	inet, inet6 = 2, 10
)

// question asks for all sockets of TCP of an address family that are connected, or were.
func question(family byte) []byte {
	const request, dump, tcp = 0x1, 0x300, 6
	const states = 0xfff &^ (1<<stateListen | 1<<stateClose | 1)
	b := make([]byte, netlinkHead+56)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], diagSocket)
	binary.NativeEndian.PutUint16(b[6:], request|dump)
	b[netlinkHead], b[netlinkHead+1] = family, tcp
	binary.NativeEndian.PutUint32(b[netlinkHead+4:], states)
	return b
}

// diagnosed reads what has come in one piece. last reports whether it ends a list, failed whether there is none.
func diagnosed(b []byte) (all []socket, last, failed bool) {
	for len(b) >= netlinkHead {
		n := int(binary.NativeEndian.Uint32(b))
		if n < netlinkHead || n > len(b) {
			return all, last, true
		}
		switch binary.NativeEndian.Uint16(b[4:]) {
		case diagDone:
			last = true
		case diagFailed:
			return all, true, true
		case diagSocket:
			if s, ok := inetSocket(b[netlinkHead:n]); ok {
				all = append(all, s)
			}
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return all, last, false
}

// inetSocket reads a struct inet_diag_msg and the attributes behind it.
func inetSocket(b []byte) (s socket, ok bool) {
	if len(b) < diagHead {
		return s, false
	}
	length := map[byte]int{inet: 4, inet6: 16}[b[0]]
	from, _ := netip.AddrFromSlice(b[8 : 8+length]) // as good as the other one
	addr, ok := netip.AddrFromSlice(b[24 : 24+length])
	s = socket{
		local:  netip.AddrPortFrom(from.Unmap(), binary.BigEndian.Uint16(b[4:])),
		remote: netip.AddrPortFrom(addr.Unmap(), binary.BigEndian.Uint16(b[6:])),
		cookie: uint64(binary.NativeEndian.Uint32(b[44:])) | uint64(binary.NativeEndian.Uint32(b[48:]))<<32,
		inode:  uint64(binary.NativeEndian.Uint32(b[68:])),
	}
	s.carried = carried(b[diagHead:])
	return s, ok
}

// carried reports whether content went over a connection, which the attributes of its end say. If they do not, it did.
func carried(attributes []byte) bool {
	const segsIn, segsOut, end = 152, 156, 160 // of a struct tcp_info, those with content
	for b := attributes; len(b) >= 4; {
		n := int(binary.NativeEndian.Uint16(b))
		if n < 4 || n > len(b) {
			break
		}
		if info := b[4:n]; binary.NativeEndian.Uint16(b[2:]) == diagInfo && len(info) >= end {
			return binary.NativeEndian.Uint32(info[segsIn:])|binary.NativeEndian.Uint32(info[segsOut:]) != 0
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return true
}
