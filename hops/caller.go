package hops

import (
	"crypto/x509"
	"net/netip"
	"strings"

	"github.com/abate-go/abate/inbound"
)

// AppendCaller appends how an address is called where it stands for a caller: an IPv6 address by its first 64 bits,
// such as 2001:db8::/64. That is what one customer has, and whoever had a bucket for each of the 2^64 addresses in it
// would have no limit. An IPv4 address stands for itself. It allocates nothing if dst has room for 43 bytes.
func AppendCaller(dst []byte, a netip.Addr) []byte {
	if a = a.Unmap(); !a.Is6() {
		return a.AppendTo(dst)
	}
	network, err := a.WithZone("").Prefix(64)
	if err != nil { // cannot be: there are 128 bits
		return a.AppendTo(dst)
	}
	return network.AppendTo(dst)
}

// CertificateName is the name in a client's certificate: its first URI, as in SPIFFE, else its first DNS name, else the
// common name of its subject. Whether the certificate is to be believed has been decided before.
func CertificateName(c *x509.Certificate) string {
	switch {
	case len(c.URIs) > 0:
		return c.URIs[0].String()
	case len(c.DNSNames) > 0:
		return c.DNSNames[0]
	}
	return c.Subject.CommonName
}

// Address reads an address, with or without a port: the zero Addr if it is none. Zones are left out, and an IPv4
// address in an IPv6 one is that.
func Address(text string) netip.Addr {
	if len(text) > 64 { // longer than any address
		return netip.Addr{}
	}
	if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
		text = inner[:len(inner)-1]
	}
	p, err := netip.ParseAddrPort(text)
	a := p.Addr()
	if err != nil {
		if a, err = netip.ParseAddr(text); err != nil {
			return netip.Addr{}
		}
	}
	return a.Unmap().WithZone("")
}

// ForwardedFor returns the address of the client behind a peer that g trusts, from the values of X-Forwarded-For: read
// from the right, where the nearest hop wrote, the first address that is not that of a trusted hop. What is left of it
// may be anybody's invention. If all are trusted it is the leftmost; an entry that is no address ends the search, at
// the hop that wrote it.
func ForwardedFor(g *inbound.Gate, peer netip.Addr, values []string) netip.Addr {
	for i := len(values) - 1; i >= 0; i-- {
		for rest, more := values[i], true; more; {
			entry := rest
			var comma int
			if comma, more = strings.LastIndexByte(rest, ','), false; comma >= 0 {
				rest, entry, more = rest[:comma], rest[comma+1:], true
			}
			if entry = strings.Trim(entry, " \t"); entry == "" { // an element of the list that says nothing
				continue
			}
			a := Address(entry)
			if !a.IsValid() {
				return peer
			}
			if peer = a; !g.Trusts(a) {
				return peer
			}
		}
	}
	return peer
}
