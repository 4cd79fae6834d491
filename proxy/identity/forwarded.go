package identity

import (
	"bytes"
	"net/netip"
	"unsafe"

	"github.com/abate-go/abate/proxy/h1"
)

// Client is the address of the client that a request began at, as far as it can be known: the peer's, or if the peer is
// trusted what X-Forwarded-For says, read from right to left. Every proxy adds the address it was called from at the
// right, so that what stands left of the first address that is not trusted was written by somebody who is not: it is
// not looked at. A word that is no address ends the walk too, at the last proxy that is known. It allocates nothing.
//
// Addresses may carry a port, "192.0.2.1:4711" and "[2001:db8::1]:4711", as some load balancers write them.
func Client(fields []h1.Field, peer netip.Addr, trusts func(netip.Addr) bool) netip.Addr {
	for i := len(fields) - 1; i >= 0; i-- {
		if !fields[i].Is("x-forwarded-for") {
			continue
		}
		for rest, more := fields[i].Value, true; more; {
			var word []byte
			rest, word, more = lastWord(rest)
			if len(word) == 0 { // as in "a,,b": an element of the list that says nothing
				continue
			}
			if !trusts(peer) {
				return peer
			}
			next, ok := parseHop(word)
			if !ok {
				return peer
			}
			peer = next
		}
	}
	return peer
}

// lastWord cuts the last element off a list.
func lastWord(list []byte) (rest, word []byte, more bool) {
	comma := bytes.LastIndexByte(list, ',')
	if comma < 0 {
		return nil, trim(list), false
	}
	return list[:comma], trim(list[comma+1:]), true
}

func trim(b []byte) []byte { return bytes.Trim(b, " \t") }

// maxHop is longer than any address with a port and a zone of reasonable length.
const maxHop = 64

// parseHop reads an address, with or without a port.
func parseHop(word []byte) (netip.Addr, bool) {
	if len(word) > maxHop || len(word) >= 2 && word[0] == '"' { // quotes are of Forwarded, RFC 7239
		return netip.Addr{}, false
	}
	switch {
	case word[0] == '[':
		end := bytes.IndexByte(word, ']')
		if end < 0 || !isPort(word[end+1:]) {
			return netip.Addr{}, false
		}
		word = word[1:end]
	case bytes.Count(word, []byte{':'}) == 1:
		colon := bytes.IndexByte(word, ':')
		if !isPort(word[colon:]) {
			return netip.Addr{}, false
		}
		word = word[:colon]
	}
	addr, err := netip.ParseAddr(unsafe.String(unsafe.SliceData(word), len(word)))
	if err != nil || addr.Zone() != "" { // a zone means something on one machine only, and would keep the memory of word
		return netip.Addr{}, false
	}
	return addr.Unmap(), true
}

// isPort reports whether b is nothing, or a colon and a port.
func isPort(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	if b[0] != ':' || len(b) < 2 || len(b) > 6 {
		return false
	}
	for _, c := range b[1:] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
