package inbound

import (
	"cmp"
	"slices"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/shed"
)

// Protection is everything one Gate needs to know: the twin of one entry of protect in the policy file, field for key.
// The zero Protection lets everything pass; DefaultProtection is where the policy file starts from. A part is off while
// its Config is zero.
type Protection struct {
	// Listen is the address on which the proxy takes the requests of this service. Several entries may share one: the
	// routes then say which is meant. The Go library does not need it.
	Listen string `yaml:"listen" example:"0.0.0.0:8080"`
	// Upstreams are the base URLs of the service itself, to which the proxy hands what it admits: http, https or h2c, one
	// per endpoint.
	Upstreams []string `yaml:"upstreams" example:"[\"http://127.0.0.1:9000\"]"`
	// Routes choose this entry among those with the same listen, by host and path prefix; the longest prefix wins. An
	// entry without routes takes what no other takes.
	Routes []core.Route `yaml:"routes"`
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

	// Timeout bounds how long a request may take, from its arrival. A caller's own deadline counts if it is earlier. 0
	// means that only the caller's counts.
	Timeout time.Duration `yaml:"timeout" range:"0s..24h" example:"2s"`

	// TrustedPeers are the addresses, single or CIDR, of peers whose headers are believed: X-Forwarded-For, caller
	// headers, priority, attempt numbers. From everybody else such headers are ignored, and the proxy takes them off.
	// None: nobody is trusted.
	TrustedPeers []string `yaml:"trustedPeers" example:"[127.0.0.1, 10.0.0.0/8]"`
	// Caller is who a request is from, for keys and fairness: ip (the peer, or what a trusted peer says in
	// X-Forwarded-For), "header:NAME" (from trusted peers only, else the peer's address), mtls (the name in the client's
	// certificate) or token (the name of its bearer token). Empty means ip.
	Caller string `yaml:"caller" example:"'header:X-Tenant'"`
	// Authentication refuses callers that nobody knows, with 401.
	Authentication Authentication `yaml:"authentication"`

	// Priority says how much a request matters when not all can be done.
	Priority PriorityRule `yaml:"priority"`
	// RateLimit bounds how many requests may pass in how much time.
	RateLimit ArrivalLimit `yaml:"rateLimit"`
	// Shed refuses what the service cannot do, cheaply.
	Shed shed.Config `yaml:"shed"`
	// Idempotency answers repeats of a request from memory instead of doing it again.
	Idempotency idempotency.Config `yaml:"idempotency"`

	// Observer is told what the gate does; nil for none. Not in the policy file.
	Observer GateObserver `yaml:"-"`
	// Rand is the source of random numbers; nil takes math/rand/v2. Not in the policy file.
	Rand func() uint64 `yaml:"-"`
	// CPU reports which share of the processor time is used, 0 to 1; nil measures this process or its container. It is
	// asked a few times a second, on the way of a request. Not in the policy file.
	CPU func() float64 `yaml:"-"`
	// Fleet decides the rate limit for several instances together; nil for this one alone, also if RateLimit.Fleet is set:
	// then each instance has the whole limit. Not in the policy file.
	Fleet FleetLimiter `yaml:"-"`
	// Store keeps idempotency keys; nil takes a memory store of the gate's own, unless Idempotency.Fleet is set: then it
	// is as if the keys could not be reached. Not in the policy file.
	Store idempotency.Store `yaml:"-"`
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
}

// Enabled reports whether there is a certificate to show.
func (t TLS) Enabled() bool { return t.Certificate != "" }

// Authentication says which callers are known.
type Authentication struct {
	// Disabled lets everybody pass.
	Disabled bool `yaml:"disabled"`
	// BearerTokens is the path of a file with a caller on each line, a name and a token. A request needs one of these
	// tokens in "Authorization: Bearer". The file is read again when it changes. Empty: no tokens are asked for.
	BearerTokens string `yaml:"bearerTokens" example:"/etc/abate/tokens"`
}

// Enabled reports whether a token is asked for.
func (a Authentication) Enabled() bool { return !a.Disabled && a.BearerTokens != "" }

// PriorityRule says how much a request matters.
type PriorityRule struct {
	// Header names the request header in which trusted peers say the priority: CRITICAL_PLUS, CRITICAL, SHEDDABLE_PLUS or
	// SHEDDABLE. Empty means Abate-Priority.
	Header string `yaml:"header" example:"Abate-Priority"`
	// Default is the priority of requests that say none, or may not say one. Empty means CRITICAL.
	Default shed.Priority `yaml:"default" example:"SHEDDABLE_PLUS"`
}

// ArrivalLimit is a rate limit on arriving requests.
type ArrivalLimit struct {
	ratelimit.Config `yaml:",inline"`

	// Key is what has a bucket of its own: caller, ip, or "header:NAME" (from trusted peers only). Empty: one bucket for
	// all requests.
	Key string `yaml:"key" example:"caller"`
	// Cost is how many tokens a request takes. Range 0.001 to 1000000. Zero means the default, 1.
	Cost float64 `yaml:"cost" range:"0.001..1000000" example:"1"`
	// Fleet makes the limit one for all instances together, through the Redis of the policy file, instead of one for each.
	Fleet bool `yaml:"fleet"`
	// WhenAway says what holds while that Redis cannot be reached: local (the limit divided by the instances seen last),
	// closed (nothing passes) or open (everything does). Empty means local.
	WhenAway string `yaml:"whenAway" enum:"local|closed|open" example:"local"`
	// Reset is how X-RateLimit-Reset tells the time at which there is more: seconds (from now) or epoch (the Unix time in
	// seconds, as GitHub has it, for clients that expect that). RateLimit and Retry-After are seconds from now in any
	// case. Empty means seconds.
	Reset string `yaml:"reset" enum:"seconds|epoch" example:"epoch"`
}

// DefaultProtection is safe against storms without knowing the service: requests handled at once are bounded by a limit
// that is found out, few may wait, and not for long. It sets no rate limit and no timeout: those only you know.
func DefaultProtection() Protection {
	return Protection{Shed: shed.Config{Concurrency: shed.Gradient}}
}

// Authenticates reports whether callers have to prove who they are.
func (p Protection) Authenticates() bool {
	return p.Authentication.Enabled() || p.TLS.ClientCA != "" || p.Caller == "mtls" || p.Caller == "token"
}

// WithDefaults returns the protection with every default written out, as a gate uses it. It is idempotent.
func (p Protection) WithDefaults() Protection {
	p.Caller = cmp.Or(p.Caller, "ip")
	switch {
	case p.AmbiguousPaths != "":
	case p.Authenticates():
		p.AmbiguousPaths = "refuse"
	default:
		p.AmbiguousPaths = "normalize"
	}
	switch {
	case p.IdentityHeaders != "":
	case p.Authenticates():
		p.IdentityHeaders = "remove"
	default:
		p.IdentityHeaders = "keep"
	}
	p.Priority.Header = cmp.Or(p.Priority.Header, "Abate-Priority")
	p.RateLimit.Config = p.RateLimit.Config.WithDefaults()
	p.RateLimit.Cost = cmp.Or(p.RateLimit.Cost, 1)
	p.RateLimit.WhenAway = cmp.Or(p.RateLimit.WhenAway, "local")
	p.RateLimit.Reset = cmp.Or(p.RateLimit.Reset, "seconds")
	p.Shed = p.Shed.WithDefaults()
	p.Idempotency = p.Idempotency.WithDefaults()
	return p
}

// clone cuts the protection loose from the caller's slices.
func (p Protection) clone() Protection {
	p.Upstreams, p.Routes = slices.Clone(p.Upstreams), slices.Clone(p.Routes)
	p.TrustedPeers, p.Idempotency.Methods = slices.Clone(p.TrustedPeers), slices.Clone(p.Idempotency.Methods)
	return p
}
