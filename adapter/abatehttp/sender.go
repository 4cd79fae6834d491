package abatehttp

import (
	"crypto/tls"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/internal/serving"
	"github.com/abate-go/abate/policy/idempotency"
)

// heard are the headers in which a request says how long its caller waits, and behind those which attempt it is. Only
// of trusted peers the latter matter.
var heard = [...]string{hops.TimeLeft, hops.GRPCTimeout, hops.AttemptCount, hops.GRPCAttempts, hops.RestLiAttempts}

// hear has s hear what the request says.
func (x *exchange) hear(s *serving.Sender) {
	h := x.handler
	s.Host, s.Forwarded, s.Own = x.request.Host, true, h.Caller != nil || h.Key != nil || h.Cost != nil
	names := heard[:2]
	if s.Trusted {
		names = heard[:]
	}
	for _, name := range names {
		for _, value := range x.request.Header[name] {
			s.Hear(name, value)
		}
	}
	x.asked, x.envoy = x.request.Header[hops.Allowance] != nil, s.Envoy
}

// numbered reports whether the request says which attempt it is.
func (x *exchange) numbered() bool {
	for _, name := range heard[2:] {
		if x.request.Header[name] != nil {
			return true
		}
	}
	return false
}

// keyed reports whether the request is one of those that are done once.
func (x *exchange) keyed(c *idempotency.Config) bool {
	r := x.request
	return slices.Contains(c.Methods, r.Method) &&
		(c.Required || len(r.Header[keyHeader]) > 0 || len(r.Header[xKeyHeader]) > 0)
}

// source is an exchange as the serving.Source of its request.
type source exchange

func (f *source) Last(name string) (string, bool) {
	values := f.request.Header.Values(name)
	if len(values) == 0 {
		return "", false
	}
	return values[len(values)-1], true
}

func (f *source) Joined(name, sep string) string {
	return strings.Join(f.request.Header.Values(name), sep)
}

func (f *source) Fields() iter.Seq2[string, string] { return eachValue(f.request.Header) }

func eachValue(fields map[string][]string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for name, values := range fields {
			for _, value := range values {
				if !yield(name, value) {
					return
				}
			}
		}
	}
}

func (f *source) Peer() netip.Addr { return hops.Address(f.request.RemoteAddr) }

func (f *source) Certificate() string { return certificateName(f.request.TLS) }

func (f *source) Named() (name string, ok bool) {
	if f.handler.Caller == nil {
		return "", false
	}
	return f.handler.Caller(f.request), true
}

func (f *source) Bucket() (key string, ok bool, cost float64) {
	h := f.handler
	if h.Key != nil {
		key, ok = h.Key(f.request), true
	}
	if h.Cost != nil {
		cost = h.Cost(f.request)
	}
	return key, ok, cost
}

func (f *source) Address(trusted bool) string {
	remote := f.request.RemoteAddr
	peer := hops.Address(remote)
	a := peer
	if forwarded := f.request.Header[forwardedHeader]; trusted && len(forwarded) > 0 {
		a = hops.ForwardedFor(f.Gate, peer, forwarded)
	}
	if !a.IsValid() { // as at a Unix socket
		return remote
	}
	if host, _, ok := strings.Cut(remote, ":"); ok && a == peer && a.Is4() && host != "" && host[0] != '[' {
		return host // the same text, without a copy
	}
	var room [64]byte
	return string(hops.AppendCaller(room[:0], a))
}

const forwardedHeader = "X-Forwarded-For"

// certificateName returns the name in the client's certificate. It is empty without a certificate that was verified.
func certificateName(state *tls.ConnectionState) string {
	if state == nil || len(state.VerifiedChains) == 0 {
		return ""
	}
	return hops.CertificateName(state.VerifiedChains[0][0])
}
