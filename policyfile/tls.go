package policyfile

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/abate-go/abate/internal/check"
	"github.com/abate-go/abate/internal/upstream"
)

// UpstreamTLS is a client's side of TLS. The files are read again when they change: new connections then use what they
// say, and those that there are end after the request under way, or when they have been replaced.
type UpstreamTLS struct {
	// CA is the path of a PEM file with the authorities that issue the certificates of the upstreams; a trust bundle of
	// SPIFFE is one. Empty: those of the system.
	CA string `yaml:"ca" example:"/etc/abate/upstream-ca.crt"`
	// Certificate is the path of a PEM file with the certificate chain to show when an upstream asks for one, for example
	// an SVID as spiffe-helper writes it. Empty: none.
	Certificate string `yaml:"certificate" example:"/etc/abate/client.crt"`
	// Key is the path of the PEM file with its private key.
	Key string `yaml:"key" example:"/etc/abate/client.key"`
	// ServerName is the host name to ask for (SNI), and that the certificate of the upstream must be for. Empty: the host
	// of the upstream's URL.
	ServerName string `yaml:"serverName" example:"payments.internal"`
	// MinVersion is the oldest version of TLS that is spoken. Empty means TLSv1.2.
	MinVersion string `yaml:"minVersion" enum:"TLSv1.2|TLSv1.3" example:"TLSv1.3"`
	// Peers are the identities of which the certificate of the upstream must have one, instead of the host name: SPIFFE
	// IDs, all below one with /* at its end, and DNS names. Empty: the certificate must be for the host name.
	Peers []string `yaml:"peers" example:"[\"spiffe://example.org/ns/shop/sa/payments\"]"`
}

// Enabled reports whether anything is other than usual.
func (t UpstreamTLS) Enabled() bool {
	return t.CA != "" || t.Certificate != "" || t.Key != "" || t.ServerName != "" || t.MinVersion != "" || len(t.Peers) > 0
}

func (t *UpstreamTLS) validate(v *check.Errors, at string) {
	switch {
	case t.Certificate == "" && t.Key != "":
		v.Add(at+".certificate", "is missing", "set certificate and key together")
	case t.Certificate != "" && t.Key == "":
		v.Add(at+".key", "is missing", "set certificate and key together")
	}
	if strings.ContainsAny(t.ServerName, ":/ *@") {
		v.Add(at+".serverName", strconv.Quote(t.ServerName)+" is not a host name",
			`without scheme and port, for example "payments.internal"`)
	}
	for i, p := range t.Peers {
		if !isPeer(p) {
			v.Add(fmt.Sprintf("%s.peers[%d]", at, i), strconv.Quote(p)+" is no identity",
				`allowed: a SPIFFE ID, for example "spiffe://example.org/payments" or "spiffe://example.org/*", or a DNS name`)
		}
	}
	if slices.ContainsFunc(t.Peers, func(p string) bool { return strings.HasPrefix(p, "spiffe:") }) && t.CA == "" {
		v.Add(at+".ca", "is missing", "set it to the trust bundle: the authorities of the system issue no SPIFFE IDs")
	}
}

// isPeer reports whether a text is a SPIFFE ID, perhaps with /* at its end, or a DNS name.
func isPeer(text string) bool {
	id, spiffe := strings.CutPrefix(text, "spiffe://")
	if !spiffe {
		return text != "" && !strings.ContainsAny(text, ":/ *@")
	}
	domain, path, _ := strings.Cut(strings.TrimSuffix(id, "/*"), "/")
	u, err := url.Parse(text)
	return err == nil && u.Host == domain && domain != "" && domain == strings.ToLower(domain) &&
		u.Port() == "" && u.User == nil && !strings.ContainsAny(text, "?#%") && !strings.Contains(path, "*") &&
		!strings.HasSuffix(text, "/") && !strings.Contains(path, "//")
}

// ineffective reports settings for upstreams that speak no TLS.
func (t *UpstreamTLS) ineffective(v *check.Errors, at string, upstreams []string) {
	if len(upstreams) == 0 {
		return
	}
	for _, raw := range upstreams {
		if u, ok := upstream.Parse(raw); !ok || u.Scheme == "https" {
			return
		}
	}
	const fix = "write https:// in an upstream, or remove it"
	for key, set := range map[string]bool{"ca": t.CA != "", "certificate": t.Certificate != "", "key": t.Key != "",
		"serverName": t.ServerName != "", "minVersion": t.MinVersion != "", "peers": len(t.Peers) > 0} {
		v.Idle(at+"."+key, set, fix)
	}
}

// Version is a name of minVersion as package crypto/tls numbers it.
func Version(name string) uint16 {
	if name == "TLSv1.3" {
		return 0x0304
	}
	return 0x0303
}
