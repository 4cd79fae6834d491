package identity_test

import (
	"crypto/x509"
	"net/url"
	"testing"

	"github.com/abate-go/abate/proxy/identity"
)

func TestACertificateShowsWhatItIsIssuedFor(t *testing.T) {
	uri := func(texts ...string) *x509.Certificate {
		c := &x509.Certificate{DNSNames: []string{"payments.internal", "*.shop.internal"}}
		for _, text := range texts {
			u, err := url.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			c.URIs = append(c.URIs, u)
		}
		return c
	}
	authority := uri("spiffe://example.org/payments")
	authority.IsCA = true
	for _, tt := range []struct {
		name string
		of   *x509.Certificate
		want string
		ok   bool
	}{
		{"the same ID", uri("spiffe://example.org/payments"), "spiffe://example.org/payments", true},
		{"a longer one", uri("spiffe://example.org/payments/x"), "spiffe://example.org/payments", false},
		{"another case", uri("spiffe://example.org/Payments"), "spiffe://example.org/payments", false},
		{"all of a domain", uri("spiffe://example.org/ns/a"), "spiffe://example.org/*", true},
		{"a domain that begins like it", uri("spiffe://example.org.evil/ns/a"), "spiffe://example.org/*", false},
		{"all below a path", uri("spiffe://example.org/ns/a"), "spiffe://example.org/ns/*", true},
		{"a path that begins like it", uri("spiffe://example.org/nsx/a"), "spiffe://example.org/ns/*", false},
		{"the path itself", uri("spiffe://example.org/ns"), "spiffe://example.org/ns/*", false},
		{"nothing below", uri("spiffe://example.org/"), "spiffe://example.org/*", false},
		{"two URIs", uri("spiffe://example.org/payments", "spiffe://example.org/b"), "spiffe://example.org/payments", false},
		{"an authority's", authority, "spiffe://example.org/payments", false},
		{"another scheme", uri("https://example.org/payments"), "spiffe://example.org/*", false},
		{"none", uri(), "spiffe://example.org/*", false},
		{"a DNS name", uri(), "payments.internal", true},
		{"in upper case", uri(), "PAYMENTS.internal", true},
		{"of a wildcard", uri(), "a.shop.internal", true},
		{"another name", uri(), "orders.internal", false},
	} {
		if got := identity.Shows(tt.of, []string{"spiffe://other.org/x", tt.want}); got != tt.ok {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
