package abatehttp

import (
	"crypto/tls"
	"hash/maphash"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/shed"
)

// sender is who a request is from, and what may be believed of it.
type sender struct {
	handler     *Handler
	gate        *abate.Gate
	protection  *abate.Protection
	request     *http.Request
	peer        netip.Addr // the zero Addr if there is none, as at a Unix socket
	trusted     bool
	contextEnds time.Duration // the deadline that the context has already, on the guards' clock
	priority    shed.Priority
	says        bool // the next hop should hear of the priority
}

func newSender(h *Handler, g *abate.Gate, r *http.Request) sender {
	s := sender{handler: h, gate: g, protection: g.Describe(), request: r}
	if len(s.protection.TrustedPeers) > 0 {
		s.peer = hops.Address(r.RemoteAddr)
		s.trusted = g.Trusts(s.peer)
	}
	return s
}

// unknown tells whether the request has to be refused because nobody knows who sent it.
func (s *sender) unknown() bool {
	return s.protection.Authentication.Enabled() && (s.handler.Caller == nil || s.handler.Caller(s.request) == "")
}

// arrives is what the gate is told of the request.
func (s *sender) arrives(now time.Duration) abate.Request {
	p, h := s.protection, s.handler
	q := abate.Request{Deadline: s.deadline(now), Attempt: 1}
	s.priority, s.says = p.Priority.Default, p.Priority.Default != shed.Critical
	if words := s.request.Header.Values(p.Priority.Header); len(words) > 0 {
		s.says = true // if it must not, the next hop has to hear something else
		nearest := words[len(words)-1]
		if got, ok := shed.ParsePriority([]byte(nearest)); ok && s.trusted {
			s.priority = got
		}
	}
	if s.trusted {
		q.Attempt = s.attempt()
	}
	q.Priority = s.priority
	if p.RateLimit.Enabled() {
		q.Key = s.bucket()
		if h.Cost != nil {
			if cost := h.Cost(s.request); cost > 0 {
				q.Cost = cost
			}
		}
	}
	if p.Shed.Enabled() && p.Shed.MaxCallerShare > 0 {
		q.Caller = max(maphash.String(callerSeed, s.caller()), 1) // 0 would be nobody in particular
	}
	return q
}

var callerSeed = maphash.MakeSeed()

// deadline is the least of the context's and those in headers.
func (s *sender) deadline(now time.Duration) time.Duration {
	s.contextEnds = abate.NoDeadline
	if t, ok := s.request.Context().Deadline(); ok {
		s.contextEnds = now + min(time.Until(t), abate.NoDeadline-max(now, 0))
	}
	ends := s.contextEnds
	for _, name := range [...]string{hops.TimeLeft, hops.GRPCTimeout} {
		for _, value := range s.request.Header[name] {
			if limit, ok := hops.TimeLimitOf(name, value); ok {
				ends = min(ends, now+limit)
			}
		}
	}
	return ends
}

// attempt is the highest number that one of the headers says.
func (s *sender) attempt() int {
	most := 1
	for _, name := range attemptHeaders {
		for _, value := range s.request.Header[name] {
			if n, ok := hops.AttemptOf(name, value); ok {
				most = max(most, n)
			}
		}
	}
	return most
}

// keyed tells whether the request is one of those that are done once.
func (s *sender) keyed(c *idempotency.Config) bool {
	return slices.Contains(c.Methods, s.request.Method) && (c.Required || len(s.request.Header[keyHeader]) > 0 || len(s.request.Header[xKeyHeader]) > 0)
}

// bucket chooses the bucket of the rate limit.
func (s *sender) bucket() string {
	if s.handler.Key != nil {
		return s.handler.Key(s.request)
	}
	switch word := s.protection.RateLimit.Key; word {
	case "":
		return ""
	case "caller":
		return s.caller()
	default:
		return s.name(word)
	}
}

// caller is who the request is from, for the gate.
func (s *sender) caller() string {
	if s.handler.Caller != nil {
		return s.handler.Caller(s.request)
	}
	return s.name(s.protection.Caller)
}

// name is who the request is from, by one of the words ip, mtls and header:NAME; the address if the others say nothing.
func (s *sender) name(word string) string {
	if name := s.known(word); name != "" {
		return name
	}
	return s.address()
}

// principal is what the request shows of whose its idempotency key is.
func (s *sender) principal() idempotency.Sender {
	header := s.request.Header // and not s, which would go to the heap
	p := idempotency.Sender{Trusted: s.trusted, Certificate: certificateName(s.request.TLS), Host: s.request.Host, Field: func(name string) string {
		return strings.Join(header.Values(name), "; ")
	}}
	if s.handler.Caller != nil {
		p.Name = s.handler.Caller(s.request)
	} else {
		p.Name = s.known(s.protection.Caller)
	}
	return p
}

// known is who the request is from if word tells by more than an address; else empty.
func (s *sender) known(word string) (name string) {
	switch header, ok := strings.CutPrefix(word, "header:"); {
	case ok && s.trusted:
		if values := s.request.Header.Values(header); len(values) > 0 {
			name = values[len(values)-1] // the nearest hop wrote the last
		}
	case word == "mtls":
		name = certificateName(s.request.TLS)
	}
	return name
}

// address is the client's address, as AppendCaller calls it, or what there is instead.
func (s *sender) address() string {
	peer := s.peer
	if !peer.IsValid() {
		peer = hops.Address(s.request.RemoteAddr)
	}
	a := peer
	if forwarded := s.request.Header[forwardedHeader]; s.trusted && len(forwarded) > 0 {
		a = hops.ForwardedFor(s.gate, peer, forwarded)
	}
	if !a.IsValid() { // as at a Unix socket
		return s.request.RemoteAddr
	}
	if host, _, ok := strings.Cut(s.request.RemoteAddr, ":"); ok && a == peer && a.Is4() && host != "" && host[0] != '[' {
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
