package policyfile

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/check"
	"github.com/abate-go/abate/policy/balance"
)

// Protection is one entry of protect as the policy file has it, field for key: what the proxy needs to know of the
// server that it is for a service, and what the gate in front of the service does. A Go program has servers of its own.
type Protection struct {
	// Listen is the address on which the proxy takes the requests of this service: host:port, or unix:/PATH?mode=0660 for
	// a Unix socket. Several entries may share one: the routes then say which is meant. The Go library does not need it.
	Listen string `yaml:"listen" example:"0.0.0.0:8080"`
	// Upstreams are the base URLs of the service itself, to which the proxy hands what it admits: http, https, h2c or
	// unix:/PATH, one per endpoint.
	Upstreams []string `yaml:"upstreams" example:"[\"http://127.0.0.1:9000\"]"`
	// Discovery finds the addresses of the service, by DNS, in a file or in Kubernetes; not set, the upstreams are its
	// endpoints.
	Discovery Discovery `yaml:"discovery"`
	// OutlierDetection takes upstreams that fail out of the proxy's balancing for a while. With a single one it does
	// nothing.
	OutlierDetection balance.Config `yaml:"outlierDetection"`
	// Routes choose this entry among those with the same listen, by host and path prefix; the longest prefix wins. An
	// entry without routes takes what no other takes.
	Routes []Route `yaml:"routes"`
	// AmbiguousPaths says what the proxy does with a path that two servers may read in two ways: . and .. between slashes,
	// //, escaped slashes, backslashes, semicolons, control characters, escapes of escapes, bytes that are not UTF-8, and
	// upper case that decides between routes. refuse answers 400. normalize resolves dots and //, matches and sends that
	// form, and leaves the rest as it is. keep matches and sends what came. Empty means refuse where a caller at the same
	// listen has to prove who it is, else normalize; entries with the same listen share the strictest.
	AmbiguousPaths string `yaml:"ambiguousPaths" enum:"refuse|normalize|keep" example:"refuse"`
	// IdentityHeaders says what the proxy does with headers in which other proxies tell services who a user is
	// (Remote-User, X-Auth-Request-User, X-Client-Cert, X-SSL-Client-S-DN, X-Amzn-Oidc-Data and their like;
	// docs/headers.md lists them), when they come from a peer that is not in trustedPeers: remove takes them off, keep
	// passes them on. Headers X-Forwarded-... of such peers are taken off in any case. Empty means remove where a caller
	// at the same listen has to prove who it is, else keep.
	IdentityHeaders string `yaml:"identityHeaders" enum:"remove|keep" example:"remove"`
	// TLS is how the proxy speaks to callers on listen. Not set: without TLS. Entries with the same listen share it.
	TLS TLS `yaml:"tls"`
	// UpstreamTLS is how the proxy speaks to the https upstreams, as tls of a service says it.
	UpstreamTLS UpstreamTLS `yaml:"upstreamTLS"`
	// ProxyProtocol has connections of trustedPeers begin with a header of the PROXY protocol, version 1 or 2, which tells
	// the address of the client; one without is closed. Connections of others begin with the request. Entries with the
	// same listen share it, and whoever all of them trust is trusted.
	ProxyProtocol bool `yaml:"proxyProtocol"`
	// SendProxyProtocol has connections to the upstreams begin with such a header, as sendProxyProtocol of a service says
	// it. Empty: none is sent.
	SendProxyProtocol string `yaml:"sendProxyProtocol" enum:"v1|v2" example:"v2"`

	inbound.Protection `yaml:",inline"`
}

// TLS is a server's side of TLS.
type TLS struct {
	// Certificate is the path of a PEM file with the certificate chain. It is read again when it changes.
	Certificate string `yaml:"certificate" example:"/etc/abate/tls.crt"`
	// Key is the path of the PEM file with its private key.
	Key string `yaml:"key" example:"/etc/abate/tls.key"`
	// ClientCA is the path of a PEM file with the authorities whose client certificates are accepted. Set, every caller
	// needs one: mutual TLS.
	ClientCA string `yaml:"clientCA" example:"/etc/abate/ca.crt"`
	// MinVersion is the oldest version of TLS that is spoken. Empty means TLSv1.2.
	MinVersion string `yaml:"minVersion" enum:"TLSv1.2|TLSv1.3" example:"TLSv1.3"`
}

// Enabled reports whether there is a certificate to show.
func (t TLS) Enabled() bool { return t.Certificate != "" }

// Route says which requests belong to a service.
type Route struct {
	// Host to match, without scheme; the port counts when it is given. Empty matches every host.
	Host string `yaml:"host" example:"api.example.com"`
	// Path is the prefix to match, on whole segments. Empty matches every path.
	Path string `yaml:"path" example:"/payments"`
	// Rewrite is what the service gets in place of the prefix Path: "/" strips it, so that /payments/v1/x arrives as
	// /v1/x. A request that names an upstream itself is not rewritten. Empty: the service gets the path as it was sent.
	Rewrite string `yaml:"rewrite" example:"/"`
}

// DefaultProtection is what every entry of protect begins with.
func DefaultProtection() Protection {
	return Protection{Protection: inbound.DefaultProtection(), OutlierDetection: DefaultPolicy().OutlierDetection}
}

// Authenticates reports whether callers have to prove who they are.
func (p Protection) Authenticates() bool { return p.Protection.Authenticates() || p.TLS.ClientCA != "" }

// WithDefaults returns the protection with every default written out. It is idempotent.
func (p Protection) WithDefaults() Protection {
	p.Protection = p.Protection.WithDefaults()
	p.OutlierDetection = p.OutlierDetection.WithDefaults()
	switch {
	case p.AmbiguousPaths != "":
	case p.Authenticates():
		p.AmbiguousPaths = Refuse
	default:
		p.AmbiguousPaths = Normalize
	}
	switch {
	case p.IdentityHeaders != "":
	case p.Authenticates():
		p.IdentityHeaders = "remove"
	default:
		p.IdentityHeaders = "keep"
	}
	return p
}

// Validate returns everything that is wrong with the protection, joined: each part is an *abate.FieldError.
func (p Protection) Validate() error {
	var v check.Errors
	beside := p
	beside.Protection = inbound.Protection{} // it checks itself
	v.Walk("", reflect.ValueOf(beside))
	v.Upstreams(p.Upstreams)
	checkDiscovery(&v, p.Discovery, p.Upstreams, nil)
	checkOutliers(&v, p.OutlierDetection)
	for i, r := range p.Routes {
		checkRoute(&v, i, r)
	}
	if p.Listen != "" && !isListen(p.Listen) {
		fix := `allowed: host:port, for example "0.0.0.0:8080"`
		if strings.HasPrefix(p.Listen, "unix:") {
			fix = `allowed: unix: with the path of a socket of at most 103 bytes, and perhaps ?mode=0660, for example ` +
				`"unix:/run/abate/orders.sock"`
		}
		v.Add("listen", strconv.Quote(p.Listen)+" is not an address", fix)
	}
	if p.Listen != "" && len(p.Upstreams) == 0 {
		v.Add("listen", "has no upstreams behind it", `for example upstreams: ["http://127.0.0.1:9000"]`)
	}
	switch t := p.TLS; {
	case t.Certificate == "" && (t.Key != "" || t.ClientCA != "" || t.MinVersion != ""):
		v.Add("tls.certificate", "is missing", "set certificate and key together")
	case t.Certificate != "" && t.Key == "":
		v.Add("tls.key", "is missing", "set certificate and key together")
	}
	p.UpstreamTLS.validate(&v, "upstreamTLS")
	if p.Caller == "mtls" && p.Listen != "" && p.TLS.ClientCA == "" { // a Go service's server is its own
		v.Add("caller", "mtls needs client certificates", "set tls.clientCA")
	}
	return errors.Join(v.Join(), p.Protection.Validate())
}

// Ineffective returns the settings that do nothing because what they belong to is off, joined like Validate's mistakes.
func (p Protection) Ineffective() error {
	var v check.Errors
	if p.Listen == "" {
		const fix = "set listen, for example listen: 0.0.0.0:8080; in Go programs remove it"
		v.Idle("upstreams", len(p.Upstreams) > 0, fix)
		v.Idle("discovery.type", p.Discovery.Enabled(), fix)
		v.Idle("routes", len(p.Routes) > 0, fix)
		v.Idle("tls", p.TLS.Enabled(), fix)
		v.Idle("ambiguousPaths", p.AmbiguousPaths != "", fix)
		v.Idle("identityHeaders", p.IdentityHeaders != "", fix)
		v.Idle("upstreamTLS", p.UpstreamTLS.Enabled(), fix)
		v.Idle("proxyProtocol", p.ProxyProtocol, fix)
		v.Idle("sendProxyProtocol", p.SendProxyProtocol != "", fix)
	}
	p.UpstreamTLS.ineffective(&v, "upstreamTLS", p.Upstreams)
	v.Idle("proxyProtocol", p.ProxyProtocol && p.Listen != "" && len(p.TrustedPeers) == 0,
		"say who sends such headers in trustedPeers, for example trustedPeers: [10.0.0.0/8]")
	return errors.Join(v.Join(), p.Protection.Ineffective())
}

// own cuts the protection loose from the lists it shares.
func (p Protection) own() Protection {
	p.Upstreams, p.Routes = slices.Clone(p.Upstreams), slices.Clone(p.Routes)
	p.UpstreamTLS.Peers = slices.Clone(p.UpstreamTLS.Peers)
	p.TrustedPeers, p.Idempotency.Methods = slices.Clone(p.TrustedPeers), slices.Clone(p.Idempotency.Methods)
	return p
}
