package proxyproto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/netip"
)

// Header is what a proxy says of a connection.
type Header struct {
	// Local reports that the connection is the proxy's own, for example to see whether the receiver is well.
	Local bool
	// Source is the client's address, and Destination the one that it connected to. Both are zero if they are not known,
	// or no addresses of the internet: the client came over a Unix socket, for example.
	Source, Destination netip.AddrPort
}

// MaxLength bounds a header of version 2, in bytes. Those of version 1 have at most 107.
const MaxLength = 16 << 10

const (
	least   = 15 // "PROXY UNKNOWN\r\n"
	longest = 107
	fixed   = 16 // of version 2, before the addresses
)

var (
	signature = []byte("\r\n\r\n\x00\r\nQUIT\n")
	word      = []byte("PROXY ")
)

// errNone is a connection that does not begin with a header.
var errNone = errors.New("no PROXY header")

// Parse reads the beginning of a connection: b is exactly what it has asked for so far, at first nothing. more is how
// many further bytes to read at least; 0 with a nil error means that b is the whole header. After an error the
// connection is of no use.
func Parse(b []byte) (h Header, more int, err error) {
	n := min(len(b), len(signature))
	switch {
	case len(b) < least:
		if n > 0 && !bytes.Equal(b[:n], signature[:n]) && !bytes.HasPrefix(b, word[:min(len(b), len(word))]) {
			return h, 0, errNone
		}
		return h, least - len(b), nil
	case bytes.HasPrefix(b, signature):
		return parseBinary(b)
	case bytes.HasPrefix(b, word):
		return parseText(b)
	}
	return h, 0, errNone
}

// parseText is Parse for version 1.
func parseText(b []byte) (h Header, more int, err error) {
	line, ended := bytes.CutSuffix(b, []byte("\r\n"))
	switch {
	case !ended && len(b) >= longest:
		return h, 0, errors.New("a PROXY header of version 1 has no end")
	case !ended:
		return h, 1, nil
	}
	words := bytes.Split(line[len(word):], []byte(" "))
	if string(words[0]) == "UNKNOWN" {
		return h, 0, nil
	}
	six := string(words[0]) == "TCP6"
	if len(words) != 5 || !six && string(words[0]) != "TCP4" {
		return h, 0, fmt.Errorf("the PROXY header %q is none of version 1", b)
	}
	if h.Source, err = addrPort(words[1], words[3], six); err == nil {
		h.Destination, err = addrPort(words[2], words[4], six)
	}
	if err != nil {
		return Header{}, 0, fmt.Errorf("the PROXY header %q: %w", b, err)
	}
	return h, 0, nil
}

func addrPort(addr, port []byte, six bool) (netip.AddrPort, error) {
	a, err := netip.ParseAddr(string(addr))
	if err != nil || a.Zone() != "" || a.Is6() != six {
		return netip.AddrPort{}, fmt.Errorf("%q is not an address of that kind", addr)
	}
	n := 0
	for _, c := range port {
		if n = 10*n + int(c-'0'); c < '0' || c > '9' || n > 65535 {
			return netip.AddrPort{}, fmt.Errorf("%q is not a port", port)
		}
	}
	if len(port) == 0 || len(port) > 1 && port[0] == '0' {
		return netip.AddrPort{}, fmt.Errorf("%q is not a port", port)
	}
	return netip.AddrPortFrom(a.Unmap(), uint16(n)), nil
}

// How long the addresses of each family are, by the byte that says which it is; of others there are none.
var addresses = map[byte]int{0x00: 0, 0x11: 12, 0x12: 12, 0x21: 36, 0x22: 36, 0x31: 216, 0x32: 216}

// parseBinary is Parse for version 2.
func parseBinary(b []byte) (h Header, more int, err error) {
	if len(b) < fixed {
		return h, fixed - len(b), nil
	}
	command, family, length := b[12], b[13], int(binary.BigEndian.Uint16(b[14:]))
	size, known := addresses[family]
	h.Local = command == 0x20 // what follows is to be ignored then, the family too
	switch {
	case command != 0x20 && command != 0x21:
		return h, 0, fmt.Errorf("a PROXY header has version and command %#02x", command)
	case !known && !h.Local:
		return h, 0, fmt.Errorf("a PROXY header has family and protocol %#02x", family)
	case fixed+length > MaxLength:
		return h, 0, fmt.Errorf("a PROXY header has %d bytes, at most %d are read", fixed+length, MaxLength)
	case length < size && !h.Local:
		return h, 0, fmt.Errorf("a PROXY header has %d bytes of addresses, its family needs %d", length, size)
	case len(b) < fixed+length:
		return h, fixed + length - len(b), nil
	}
	if h.Local {
		return h, 0, nil
	}
	if err := extensions(b, fixed+size); err != nil {
		return Header{}, 0, err
	}
	at := b[fixed:]
	switch family {
	case 0x11:
		h.Source = netip.AddrPortFrom(netip.AddrFrom4([4]byte(at)), binary.BigEndian.Uint16(at[8:]))
		h.Destination = netip.AddrPortFrom(netip.AddrFrom4([4]byte(at[4:])), binary.BigEndian.Uint16(at[10:]))
	case 0x21:
		h.Source = netip.AddrPortFrom(netip.AddrFrom16([16]byte(at)).Unmap(), binary.BigEndian.Uint16(at[32:]))
		h.Destination = netip.AddrPortFrom(netip.AddrFrom16([16]byte(at[16:])).Unmap(), binary.BigEndian.Uint16(at[34:]))
	} // a datagram is no connection, and a path no address of the internet
	return h, 0, nil
}

const checksum = 0x03 // the type of the extension that has a CRC-32C of the header

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// extensions checks that what follows the addresses is what the specification calls TLVs, to the end, and the checksum
// if there is one. What others say is ignored.
func extensions(b []byte, at int) error {
	checked := false
	for at < len(b) {
		if len(b)-at < 3 || len(b)-at-3 < int(binary.BigEndian.Uint16(b[at+1:])) {
			return errors.New("an extension of a PROXY header does not end within it")
		}
		kind, value := b[at], b[at+3:][:binary.BigEndian.Uint16(b[at+1:])]
		at += 3 + len(value)
		if kind != checksum {
			continue
		}
		if checked || len(value) != 4 {
			return errors.New("a PROXY header has two checksums, or one that is not of 4 bytes")
		}
		checked = true
		sum := crc32.Update(0, castagnoli, b[:at-4])
		sum = crc32.Update(sum, castagnoli, make([]byte, 4))
		sum = crc32.Update(sum, castagnoli, b[at:])
		if sum != binary.BigEndian.Uint32(value) {
			return errors.New("the checksum of a PROXY header is wrong")
		}
	}
	return nil
}
