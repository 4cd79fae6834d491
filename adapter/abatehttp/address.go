package abatehttp

import (
	"crypto/x509"
	"net/netip"
)

// AppendCaller appends how an address is called where it stands for a caller: an IPv6 address by its first 64 bits, such as
// 2001:db8::/64. That is what one customer has, and whoever had a bucket for each of the 2^64 addresses in it would have no
// limit. An IPv4 address stands for itself. It allocates nothing if dst has room for 43 bytes.
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
