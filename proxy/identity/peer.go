package identity

import (
	"cmp"
	"crypto/x509"
	"strings"
)

// Shows reports whether a certificate has one of these identities: SPIFFE IDs, all below one that ends with /*, and
// DNS names. Whether the certificate is to be believed is decided elsewhere. A certificate with several URIs, or that
// of an authority, has no SPIFFE ID, as the standard for X.509-SVIDs has it (§2, §4.1).
func Shows(c *x509.Certificate, identities []string) bool {
	id := ""
	if len(c.URIs) == 1 && c.URIs[0].Scheme == "spiffe" && !c.IsCA {
		id = c.URIs[0].String()
	}
	for _, want := range identities {
		if !strings.HasPrefix(want, "spiffe://") {
			if c.VerifyHostname(want) == nil {
				return true
			}
			continue
		}
		below, all := strings.CutSuffix(want, "*")
		if id == want || all && len(id) > len(below) && strings.HasPrefix(id, below) {
			return true
		}
	}
	return false
}

// Names lists the identities that a certificate has, for a message: its URIs and DNS names, else the common name.
func Names(c *x509.Certificate) string {
	var all []string
	for _, u := range c.URIs {
		all = append(all, u.String())
	}
	if all = append(all, c.DNSNames...); len(all) > 0 {
		return strings.Join(all, ", ")
	}
	return cmp.Or(c.Subject.CommonName, "one without a name")
}
