package identity

import "crypto/x509"

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
