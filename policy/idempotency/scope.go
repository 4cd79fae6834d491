package idempotency

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
)

// The words of Config.Scope beside "header:NAME" and "cookie:NAME".
const (
	// ScopeCredential: who shows another credential is another principal.
	ScopeCredential = "credential"
	// ScopeEverybody: all are one.
	ScopeEverybody = "everybody"
)

// Sender is what a request shows of the one who sent it. An address is not part of it: others are behind the same one,
// and the same sender comes back from another.
type Sender struct {
	// Name is what he is called by something that he cannot choose: a certificate, the name of his token, a header of a
	// trusted peer, the program's own authentication. Empty if nobody says.
	Name string
	// Certificate is the name in his client certificate, which was verified; empty without one.
	Certificate string
	// Trusted reports whether the sender is a peer whose headers are believed.
	Trusted bool
	// Host is the authority that the request is for; empty if nobody says.
	Host string
	// Field returns the values of a header field or of metadata, joined with "; " as cookies are, or "". The name is in
	// lower case.
	Field func(name string) string
	// Identity is what the request's other fields say of whose it is and what it asks for, as one text in which equal
	// requests agree; empty if they say nothing.
	Identity string
}

// credentialFields are the fields that say to the service on whose behalf a request is. All of them count, those that
// the service does not look at too: else who adds one of those would become somebody else.
var credentialFields = [...]string{"authorization", "x-api-key", "api-key", "x-auth-token"}

// IsCredential reports whether the field of a request with this name, in any case, is one of those that say on whose
// behalf it is, so that Principal looks at them.
func IsCredential(name string) bool {
	return slices.ContainsFunc(credentialFields[:], func(f string) bool { return strings.EqualFold(f, name) })
}

// Principal returns whose the key of a request is, for StoreKey, and what the key's repeats must have in common beside
// that, for Fingerprint.With. Both are kept as hashes only.
//
// Senders without any credential are one principal, as they are to the service. Cookies may be credentials, and may be
// anything else, which changes from one attempt to the next: so they do not distinguish principals unless scope names
// one of them, but a key that comes back with other cookies is a mismatch, and neither answered nor done again. So is
// one that comes back with another Identity, unless scope names whose it is: a service may be told of its user in any
// field. So is one for another host: one service may serve many, each to its own tenant. An address is no host, but one
// of a service's instances.
func Principal(scope string, s Sender) (principal, compared string) {
	principal, compared, settled := s.principal(scope)
	if s.Identity != "" && !settled {
		compared = join("identity", s.Identity, compared)
	}
	if host := hostName(s.Host); host != "" {
		compared = join(host, compared)
	}
	return principal, compared
}

// hostName is the name in an authority: in lower case, without its port and the dot that may stand at its end; empty if
// it is an address.
func hostName(authority string) string {
	if strings.HasPrefix(authority, "[") {
		return ""
	}
	name, _, _ := strings.Cut(authority, ":")
	if _, err := netip.ParseAddr(name); err == nil {
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// principal is Principal without the host and the identity. settled reports whether scope says whose the request is, so
// that its identity does not matter.
func (s *Sender) principal(scope string) (principal, compared string, settled bool) {
	switch kind, name, _ := strings.Cut(scope, ":"); {
	case scope == ScopeEverybody:
		return join(scope), "", true
	case kind == "header":
		if shown := s.Field(strings.ToLower(name)); shown != "" {
			if s.Trusted {
				return join(kind, shown), "", true
			}
			own, compared := s.credential()
			return join("shown", shown, own), compared, false // what anybody can write narrows a scope, and opens none
		}
	case kind == "cookie":
		if value := cookies(s.Field("cookie"), name); value != "" {
			return join(kind, value), "", true
		}
	case scope == "" && s.Name != "":
		return join("name", s.Name), "", false
	}
	principal, compared = s.credential()
	return principal, compared, false
}

// credential is the principal of a sender whom nothing else names.
func (s *Sender) credential() (principal, compared string) {
	parts, shown := make([]string, 0, 1+len(credentialFields)), false
	parts = append(parts, "credential")
	for _, name := range credentialFields {
		value := s.Field(name)
		shown = shown || value != ""
		parts = append(parts, value)
	}
	switch {
	case shown:
		return join(parts...), ""
	case s.Certificate != "":
		return join("certificate", s.Certificate), ""
	}
	return join("nobody"), s.Field("cookie")
}

// join makes one text of several, so that no two lists look alike.
func join(parts ...string) string {
	var b []byte
	for _, part := range parts {
		b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
	}
	return string(b)
}

// cookies returns the values of the cookies of one name.
func cookies(header, name string) string {
	var values []string
	for pair := range strings.SplitSeq(header, ";") {
		if is, value, ok := strings.Cut(strings.Trim(pair, " \t"), "="); ok && is == name && value != "" {
			values = append(values, value)
		}
	}
	return strings.Join(values, ";")
}

// With returns the fingerprint of a request that has more to be compared than what FingerprintOf looks at. Nothing more
// leaves it as it is.
func (f Fingerprint) With(compared string) Fingerprint {
	if compared == "" {
		return f
	}
	return digest(f[:], compared)
}
