package launch

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strconv"
)

// socket is a TCP connection as the kernel has it.
type socket struct {
	local   netip.AddrPort // not from /proc
	remote  netip.AddrPort
	inode   uint64 // 0 if nobody has it open any more
	cookie  uint64 // its number, which no other gets; 0 if it is not known
	carried bool   // there was content; of one that has ended
}

// States of connections, as the kernel numbers them.
const (
	stateTimeWait = 6
	stateClose    = 7
	stateListen   = 10
)

// sockets reads /proc/net/tcp or tcp6. Lines that it cannot read are left out, and so are sockets that only listen or
// that nobody has any more.
func sockets(table []byte) (all []socket) {
	for line := range bytes.Lines(table) {
		f := bytes.Fields(line)
		if len(f) < 10 {
			continue
		}
		state, err := strconv.ParseUint(string(f[3]), 16, 8)
		if err != nil || state == stateTimeWait || state == stateListen {
			continue
		}
		remote, ok := address(f[2])
		inode, err := strconv.ParseUint(string(f[9]), 10, 64)
		if ok && err == nil && inode != 0 {
			all = append(all, socket{remote: remote, inode: inode})
		}
	}
	return all
}

// address reads an address such as 0100007F:1F91: words of 32 bits in the order of the machine, and a port.
func address(text []byte) (at netip.AddrPort, ok bool) {
	host, port, ok := bytes.Cut(text, []byte{':'})
	n, err := strconv.ParseUint(string(port), 16, 16)
	raw := make([]byte, hex.DecodedLen(len(host)))
	if _, bad := hex.Decode(raw, host); !ok || err != nil || bad != nil || len(raw) != 4 && len(raw) != 16 {
		return at, false
	}
	for i := 0; i < len(raw); i += 4 {
		word := binary.BigEndian.Uint32(raw[i:])
		binary.NativeEndian.PutUint32(raw[i:], word)
	}
	addr, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(addr.Unmap(), uint16(n)), ok
}

// inodeOf reads which socket an open file is, from its link such as socket:[1234].
func inodeOf(link string) (inode uint64, ok bool) {
	const before, after = "socket:[", "]"
	if len(link) < len(before)+len(after) || link[:len(before)] != before || link[len(link)-1:] != after {
		return 0, false
	}
	inode, err := strconv.ParseUint(link[len(before):len(link)-1], 10, 64)
	return inode, err == nil
}
