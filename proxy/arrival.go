package proxy

import (
	"bytes"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/fieldname"
	holding "github.com/abate-go/abate/internal/serving"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/shed"
	"github.com/abate-go/abate/proxy/calltree"
	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/identity"
)

// arrival is what an exchange knows of a request at the gate of a protected service. It is taken when the request has
// come and given back when it is answered, so that idle connections hold none.
type arrival struct {
	post    *post
	trees   *calltree.Table
	machine inbound.Arrival
	loan    holding.Loan    // of its slot, while it waits for the client
	request inbound.Request // what the gate is told
	asked   bool            // it has been told
	lines   []byte          // room for what the gate adds to an answer
	open    bool            // the service has the request

	trusted bool   // its fields are believed
	attempt int    // its number, as far as its sender says
	caller  string // who it is from; lies in the request, or in room
	ip      string // the client's address, once it was needed; lies in room
	room    [64]byte
	named   string // its caller, as a field says
	known   string // its caller, if more than an address says it
	bucket  string // its bucket, as a field says

	keys     *idempotency.Config // how its idempotency key is to be kept; nil if keys do not matter for it
	keyField [2][]byte           // what it says, and what its older name says
	hasKey   bool                // one of them came
	key      *keyed              // once it is held

	handled
}

var arrivals = sync.Pool{New: func() any { return new(arrival) }}

// newArrival reads what r says about itself, and takes off what its sender may not say.
func newArrival(r *request) *arrival {
	in := arrivals.Get().(*arrival)
	in.post, in.trees, in.attempt = r.route.post, &r.plane.trees, 1
	in.request.Deadline, in.request.Priority = core.NoDeadline, in.post.protection.Priority.Default
	in.trusted = in.post.gate.Trusts(r.client.origin().peer)
	c := &in.post.protection.Idempotency
	covers := func(pattern string) bool { return hops.Covers(pattern, r.method()) }
	if c.Enabled() && (listed(c.Methods, r.Method) || r.rpc && slices.ContainsFunc(c.Methods, covers)) {
		in.keys = c
	}
	in.read(r)
	return in
}

func listed(methods []string, method []byte) bool {
	for _, m := range methods {
		if m == string(method) {
			return true
		}
	}
	return false
}

// read looks at every field once. Those that the service must not get from this sender, and those that are written
// anew, are taken off.
func (in *arrival) read(r *request) {
	p, kept := in.post, r.Fields[:0]
	for _, f := range r.Fields {
		name, value := text(f.Name), text(f.Value)
		if d, ok := hops.TimeLimitOf(name, value); ok { // also a stranger's: it can only shorten
			in.request.Deadline = min(in.request.Deadline, later(r.began, d))
		}
		isPriority := f.Is(p.priority)
		if in.trusted {
			in.believe(f, isPriority)
		}
		if in.keys != nil {
			in.noteKey(f)
		}
		if !isPriority && (in.trusted || !p.privileged(f)) {
			kept = append(kept, f)
		}
	}
	r.Fields = kept
	in.request.Attempt = in.attempt
	if in.trusted {
		in.readTree(r)
	}
}

// believe reads a field of a trusted peer.
func (in *arrival) believe(f h1.Field, isPriority bool) {
	p := in.post
	if n, ok := hops.AttemptOf(text(f.Name), text(f.Value)); ok {
		in.attempt, in.numbered = max(in.attempt, n), true
		in.envoy = in.envoy || f.Is("x-envoy-attempt-count")
	}
	if isPriority { // the nearest hop wrote the last
		priority, ok := shed.ParsePriority(f.Value)
		if in.request.Priority = priority; !ok {
			in.request.Priority = p.protection.Priority.Default
		}
	}
	if p.caller.kind == byHeader && f.Is(p.caller.field) {
		in.named = text(f.Value)
	}
	if p.bucket.kind == byHeader && f.Is(p.bucket.field) {
		in.bucket = text(f.Value)
	}
}

// privileged reports whether only trusted peers may send a field: what says who a request is from, where it has been,
// how much it matters, and what proxies tell each other.
func (p *post) privileged(f h1.Field) bool {
	return byProxies(f) || p.unnames && fieldname.Asserted(f.Name) || fieldname.Named(f.Name, p.priority) ||
		p.caller.kind == byHeader && fieldname.Named(f.Name, p.caller.field)
}

// byProxies reports whether a field is one in which proxies tell where a request has been.
func byProxies(f h1.Field) bool {
	for _, prefix := range toldByProxies[(f.Name[0]|0x20)&31] {
		if fieldname.Begins(f.Name, prefix) && (len(f.Name) == len(prefix) || prefix[len(prefix)-1] == '-') {
			return true
		}
	}
	return false
}

// toldByProxies is the names of the fields in which proxies and delivery networks tell services who a request is
// from, and which path it had: by the lower five bits of the first letter. A name that ends with a dash stands for
// all that begin so.
var toldByProxies = func() (by [32][]string) {
	for _, name := range []string{
		"abate-", "ali-cdn-real-ip", "cdn-real-ip", "cdn-src-ip", "cf-connecting-ip", "cf-connecting-ipv6",
		"cf-connecting-o2o", "cf-ipcountry", "cf-pseudo-ipv4", "cf-visitor", "client-ip",
		"cloudfront-viewer-address", "cluster-client-ip", "do-connecting-ip", "fastly-client-ip", "fastly-ssl",
		"fly-client-ip",
		"forwarded", "forwarded-for", "front-end-https", "gclb-client-ip", "grpc-previous-rpc-attempts", "incap-client-ip",
		"proxy-client-ip", "real-ip", "remote-addr", "true-client-ip", "wl-proxy-client-ip",
		"x-akamai-client-ip", "x-appengine-user-ip", "x-appengine-remote-addr", "x-arr-ssl", "x-azure-clientip",
		"x-azure-socketip",
		"x-client-ip", "x-client-ip-address", "x-client-port", "x-cluster-client-ip", "x-envoy-", "x-forward-for",
		"x-forwarded",
		"x-forwarded-", "x-forwarder-for", "x-host", "x-http-host-override", "x-ms-forwarded-client-ip",
		"x-number-of-retry-attempts",
		"x-nf-client-connection-ip", "x-original-forwarded-for", "x-original-host", "x-original-method",
		"x-original-proto", "x-original-remote-addr", "x-original-uri", "x-original-url", "x-originating-ip",
		"x-proxyuser-ip", "x-real-ip", "x-real-port", "x-remote-addr", "x-remote-ip", "x-rewrite-url",
		"x-scheme", "x-sigsci-client-ip", "x-source-ip", "x-true-client-ip", "x-true-ip", "x-url-scheme",
		"x-vercel-forwarded-for", "z-forwarded-for",
	} {
		at := name[0] & 31
		by[at] = append(by[at], name)
	}
	return by
}()

// authenticate reports whether the caller may come in, and which name its token has.
func (in *arrival) authenticate(r *request) (name string, ok bool) {
	if in.post.tokens == nil {
		return "", true
	}
	tokens := in.post.tokens.value.Load()
	if tokens == nil { // the file cannot be read: nobody is known
		return "", false
	}
	var found []byte
	for _, f := range r.Fields {
		if f.Is("authorization") {
			if found != nil {
				return "", false
			}
			found = f.Value
		}
	}
	return tokens.Caller(found)
}

// seed makes the hashes of callers different in every process: nobody can choose to share another's.
var seed = maphash.MakeSeed()

// identify finds out who the request is from, and which bucket it takes from. token is the name of its token, if it
// has one.
func (in *arrival) identify(r *request, token string) {
	from, p := r.client.origin(), in.post
	switch p.caller.kind {
	case byCertificate:
		in.caller = from.name
	case byToken:
		in.caller = token
	case byHeader:
		in.caller = in.named
	}
	if in.known = in.caller; in.caller == "" {
		in.known, in.caller = token, in.address(r)
	}
	switch p.bucket.kind {
	case byCaller:
		in.request.Key = in.caller
	case byIP:
		in.request.Key = in.address(r)
	case byHeader:
		if in.request.Key = in.bucket; in.bucket == "" {
			in.request.Key = in.address(r)
		}
	}
	if p.protection.Shed.MaxCallerShare > 0 {
		in.request.Caller = max(maphash.String(seed, in.caller), 1)
	}
}

// address is the client's, as far as it can be known: the peer's, or what a trusted peer says. It is written as for a
// caller.
func (in *arrival) address(r *request) string {
	if in.ip == "" {
		addr := r.client.origin().peer
		if in.trusted {
			addr = identity.Client(r.Fields, addr, in.post.gate.Trusts)
		}
		in.ip = text(hops.AppendCaller(in.room[:0], addr))
	}
	return in.ip
}

// noteKey notes an idempotency key. Several are an error that is found when they are read.
func (in *arrival) noteKey(f h1.Field) {
	to := &in.keyField[0]
	switch {
	case f.Is("x-idempotency-key"):
		to = &in.keyField[1]
	case !f.Is("idempotency-key"):
		return
	}
	in.hasKey = true
	if *to == nil {
		*to = f.Value
		return
	}
	*to = bytes.Join([][]byte{*to, f.Value}, []byte(", "))
}

// principal is what the request shows of whose its idempotency key is.
func (in *arrival) principal(r *request) idempotency.Sender {
	return idempotency.Sender{Name: in.known, Certificate: r.client.origin().name, Trusted: in.trusted,
		Identity: holding.Identity(func(yield func(name, value string) bool) {
			for _, f := range r.Fields {
				if !yield(string(f.Name), string(f.Value)) {
					return
				}
			}
		}),
		Host: string(r.Host), Field: func(name string) string {
			var values []string
			for _, f := range r.Fields {
				if fieldname.Named(f.Name, name) {
					values = append(values, string(f.Value))
				}
			}
			return strings.Join(values, "; ")
		}}
}

// comparesBodies reports whether the body of the request is to be compared with those of earlier tries.
func (in *arrival) comparesBodies() bool { return in.keys != nil && in.hasKey }

// leaveGate gives the arrival back. What it refers to may be overwritten from here on.
func (r *request) leaveGate(answered bool) {
	if in := r.in; in != nil {
		r.client.lend(nil)
		in.leaveTree(answered)
		*in = arrival{lines: in.lines[:0]}
		arrivals.Put(in)
		r.in = nil
	}
}

// served gives the slot at the gate back: the service is through with the request.
func (in *arrival) served(class abate.Class) {
	if in != nil && in.open {
		in.open = false
		in.loan.Close()
		in.machine.Done(core.Now(), class)
	}
}
