package inbound

import (
	"slices"
	"time"

	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/shed"
)

// Protection is everything one Gate needs to know: the twin of what the policy file says of it under protect, field for
// key. What the file says of an entry beside that is in package policyfile. The zero Protection lets everything pass;
// DefaultProtection is where the policy file starts from. A part is off while its Config is zero.
type Protection struct {
	// Timeout bounds how long a request may take, from its arrival. A caller's own deadline counts if it is earlier. 0
	// means that only the caller's counts.
	Timeout time.Duration `yaml:"timeout" range:"0s..24h" example:"2s"`

	// TrustedPeers are the addresses, single or CIDR, of peers whose headers are believed, and unix for all peers on Unix
	// sockets: X-Forwarded-For, caller
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

// DefaultProtection is safe against storms without knowing the service: nobody is held while it keeps up, and when it
// does not, as many requests run at once as it answers in time, and others wait within their deadlines. The package
// comment of policy/shed has the evidence. It sets no rate limit and no timeout: those only you know.
func DefaultProtection() Protection {
	return Protection{Shed: shed.Config{Concurrency: shed.BBR}}
}

// Authenticates reports whether callers have to prove who they are.
func (p Protection) Authenticates() bool {
	return p.Authentication.Enabled() || p.Caller == "mtls" || p.Caller == "token"
}

// WithDefaults returns the protection with every default written out, as a gate uses it. It is idempotent.
func (p Protection) WithDefaults() Protection {
	if p.Caller == "" {
		p.Caller = "ip"
	}
	if p.Priority.Header == "" {
		p.Priority.Header = "Abate-Priority"
	}
	p.RateLimit.Config = p.RateLimit.Config.WithDefaults()
	if p.RateLimit.Cost == 0 {
		p.RateLimit.Cost = 1
	}
	if p.RateLimit.WhenAway == "" {
		p.RateLimit.WhenAway = "local"
	}
	if p.RateLimit.Reset == "" {
		p.RateLimit.Reset = "seconds"
	}
	p.Shed = p.Shed.WithDefaults()
	p.Idempotency = p.Idempotency.WithDefaults()
	return p
}

// clone cuts the protection loose from the caller's slices.
func (p Protection) clone() Protection {
	p.TrustedPeers, p.Idempotency.Methods = slices.Clone(p.TrustedPeers), slices.Clone(p.Idempotency.Methods)
	return p
}
