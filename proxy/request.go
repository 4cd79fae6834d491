package proxy

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/internal/fieldname"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/proxy/calltree"
	"github.com/abate-go/abate/proxy/h1"
)

// The pseudonyms of this process in Via (RFC 9110 §7.6.3), by which it knows a request that it has sent itself: one
// for calls that go out and one for those that come in, since a call may well do both.
var outgoing, incoming = newPseudonym(), newPseudonym()

func newPseudonym() string {
	id := make([]byte, 4)
	_, _ = rand.Read(id) // never fails
	return "abate-" + hex.EncodeToString(id)
}

// request is what a client asks for, and what is known of it before anything is decided: whoever works on the request
// reads it.
type request struct {
	h1.Request
	plane  *plane
	client client
	route  route
	fleet  *fleet
	in     *arrival // at the gate of a protected service; nil for a call that goes out
	began  time.Duration
	again  bool          // it may be repeated
	rpc    bool          // it is a gRPC call
	limit  time.Duration // the end of a gRPC call's time: its client's, and from bound on the least of all
	before int           // attempts that its client has made of this call, as it says; of a call that goes out
	called
	traced traced
	lacks  marks // that none of its fields has
}

// service is the name of the service as its clients know it.
func (r *request) service() string {
	if r.route.post != nil {
		return r.route.post.gate.Name()
	}
	return r.route.Guard.Name()
}

// ownsRetries reports whether this proxy may repeat and hedge at all: a gateway only if the file says so.
func (r *request) ownsRetries() bool {
	return !r.plane.config.Gateway || r.plane.policies.GatewayRetries()
}

// mayTryAgain reports whether there may be another attempt at all.
func (r *request) mayTryAgain() bool { return r.fleet.policy.MaxRetries > 0 && r.ownsRetries() }

// repeatable reports whether sending the request twice does no harm.
func (r *request) repeatable(p *abate.Policy) bool {
	if r.rpc {
		return hops.RepeatableCall(p, r.method(), r.Keyed)
	}
	return abatehttp.Repeatable(text(r.Method), r.Keyed, p.RetryMethods)
}

// discreet reports that the clients are strangers, who need not know the addresses behind the proxy.
func (r *request) discreet() bool { return r.plane.config.Gateway || r.in != nil }

// keyInUse is the key that the request holds, nil if it holds none.
func (r *request) keyInUse() *keyed {
	if r.in == nil {
		return nil
	}
	return r.in.key
}

// gone reports whether the client has left, and need not be worked for. A request with a key is finished all the same:
// the answer is kept for the client's next try, and as long as the hold renews its lease no other may run beside this
// one. An answer that has begun to come has a lease for the rest: it is recorded, if not whole. Without one, only a try
// whose key is lost works in vain, and one that takes longer than its answer would be remembered.
func (r *request) gone() bool {
	if !r.client.gone() {
		return false
	}
	key, took := r.keyInUse(), core.Now()-r.began
	switch {
	case key == nil || key.Fate() == idempotency.Lost:
		return true
	case key.answer.Status != 0:
		return took > key.Config.Lease
	}
	return took > max(key.Config.Retention, key.Config.Lease)
}

func (r *request) pseudonym() string {
	if r.in != nil {
		return incoming
	}
	return outgoing
}

// looped reports whether the request has been on this way through the process before.
func (r *request) looped() bool {
	if !r.has(hasVia) {
		return false
	}
	name := r.pseudonym()
	for _, f := range r.Fields {
		if f.Is("via") && strings.Contains(text(f.Value), name) {
			return true
		}
	}
	return false
}

// target is the path and query for e, as the route rewrites them: the base path of its URL goes before them, unless the
// request was addressed to the upstream itself and has it already.
func (r *request) target(e *endpoint) []byte {
	if e.base == "" && r.route.Rewrite.Nothing() || r.route.Upstream || r.Path[0] != '/' {
		return r.Path
	}
	if e.base == "" {
		if rest, ok := r.route.Rewrite.Strip(r.Path); ok {
			return rest
		}
	}
	return r.route.Rewrite.Append([]byte(e.base), r.Path)
}

// ours reports whether a field of the request is about the hop before, and replaced.
func (r *request) ours(f h1.Field) bool {
	if r.omits() && len(f.Name) > 0 && (f.Name[0]|0x20 == 'a' && fieldname.Begins(f.Name, "abate-") ||
		f.Name[0]|0x20 == 'x' && fieldname.Begins(f.Name, "x-envoy-")) {
		return true
	}
	if r.traced.writes && r.traced.replaces(f) {
		return true
	}
	if calltree.IsAllowance(f) {
		return r.in != nil || r.owner
	}
	if r.in != nil && r.in.key.aboutKey(f) {
		return true
	}
	if r.rpc && (f.Is("grpc-timeout") || f.Is("grpc-previous-rpc-attempts")) {
		return true
	}
	return len(f.Name) > 16 && (f.Name[0]|0x20) == 'x' &&
		(f.Is("x-envoy-attempt-count") || f.Is("x-envoy-expected-rq-timeout-ms"))
}

// has reports whether the request may have a field of these kinds. One whose fields nobody has looked at may.
func (r *request) has(kinds marks) bool { return r.lacks&kinds != kinds }

// mayHaveOurs reports whether a field of the request may be one that ours reports.
func (r *request) mayHaveOurs() bool {
	kinds := hasEnvoy
	if r.traced.writes {
		kinds |= hasTrace
	}
	if r.in != nil || r.owner {
		kinds |= hasAllowance
	}
	if r.rpc {
		kinds |= hasRPC
	}
	// Of those that begin in a certain way there is no mark.
	return r.has(kinds) || r.omits() || r.in != nil && r.in.key != nil
}

// omits reports whether the service is told nothing that is meant for services of one's own.
func (r *request) omits() bool {
	return r.in == nil && r.fleet.policy.InternalHeaders == core.OmitInternal
}

// keepsHost reports whether the service gets the Host that the client wrote.
func (r *request) keepsHost() bool { return r.plane.config.Gateway || r.in != nil }

// appendForwarded tells the service who asked. X-Forwarded-For grows by the client; the other two are the first
// proxy's.
func (r *request) appendForwarded(dst []byte) []byte {
	from := r.client.origin()
	if from.peer.IsValid() {
		dst = append(dst, "X-Forwarded-For: "...)
		dst = append(from.peer.AppendTo(dst), "\r\n"...)
	}
	host, proto := true, true
	for i := 0; i < len(r.Fields) && r.has(hasForwarded); i++ {
		f := r.Fields[i]
		host = host && !f.Is("x-forwarded-host")
		proto = proto && !f.Is("x-forwarded-proto")
	}
	if host {
		dst = append(dst, "X-Forwarded-Host: "...)
		dst = append(append(dst, r.Host...), "\r\n"...)
	}
	switch {
	case !proto:
	case from.tls:
		dst = append(dst, "X-Forwarded-Proto: https\r\n"...)
	default:
		dst = append(dst, "X-Forwarded-Proto: http\r\n"...)
	}
	return dst
}

// trailer is the fields behind the content of the request, without those that its sender may not send.
func (r *request) trailer() []h1.Field {
	fields, privileged := r.client.trailer(), asStranger
	switch {
	case r.in != nil && r.in.trusted, r.in == nil && !r.fromStranger():
		return fields
	case r.in != nil:
		privileged = r.in.post.privileged
	}
	if !slices.ContainsFunc(fields, privileged) {
		return fields
	}
	return slices.DeleteFunc(slices.Clone(fields), privileged)
}

// outliveInput copies what is said of a request at its end, in the access log and in traces: it lies in the input,
// which a tunnel gives away long before, to other clients.
func outliveInput(r *request) {
	for _, b := range []*[]byte{&r.Method, &r.Host, &r.Path} {
		*b = bytes.Clone(*b)
	}
	var kept []h1.Field
	for _, f := range r.Fields {
		if f.Is("traceparent") {
			kept = append(kept, h1.Field{Name: bytes.Clone(f.Name), Value: bytes.Clone(f.Value)})
		}
	}
	r.Fields = kept
	if r.in != nil {
		r.in.caller = strings.Clone(r.in.caller)
	}
}
