package abategrpc

import (
	"hash/maphash"
	"net"
	"net/netip"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/shed"
)

// sender is who a call is from, and what may be believed of it.
type sender struct {
	server      *Server
	exchange    *exchange
	protection  *abate.Protection
	peer        *peer.Peer // nil without a server around us
	address     netip.Addr // the zero Addr if there is none, as at a Unix socket
	trusted     bool
	contextEnds time.Duration // the deadline that the context has already, on the guards' clock
	priority    shed.Priority
	says        bool // the next hop should hear of the priority
}

func newSender(s *Server, x *exchange) sender {
	in := sender{server: s, exchange: x, protection: x.gate.Describe()}
	if len(in.protection.TrustedPeers) > 0 {
		in.findPeer()
		in.trusted = in.address.IsValid() && x.gate.Trusts(in.address)
	}
	x.asked = len(in.values(allowanceName)) > 0
	return in
}

// findPeer reads the address of the other end of the connection.
func (in *sender) findPeer() {
	if in.peer == nil {
		if in.peer, _ = peer.FromContext(in.exchange.client); in.peer != nil {
			in.address = addressOf(in.peer.Addr)
		}
	}
}

func addressOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	if a == nil {
		return netip.Addr{}
	}
	return hops.Address(a.String())
}

// values are those of one name in the metadata, in any case. So little is looked at that a copy of all would cost more.
func (in *sender) values(name string) []string {
	return metadata.ValueFromIncomingContext(in.exchange.client, name)
}

// unknown tells whether the call has to be refused because nobody knows who sent it.
func (in *sender) unknown() bool {
	return in.protection.Authentication.Enabled() && (in.server.Caller == nil || in.caller() == "")
}

// arrives is what the gate is told of the call.
func (in *sender) arrives(now time.Duration) abate.Request {
	p, x := in.protection, in.exchange
	q := abate.Request{Deadline: in.deadline(now), Attempt: 1}
	in.priority, in.says = p.Priority.Default, p.Priority.Default != shed.Critical
	if in.trusted {
		q.Attempt = in.attempt()
		if words := in.values(p.Priority.Header); len(words) > 0 {
			in.says = true // if it cannot be read, the next hop hears the default
			if got, ok := shed.ParsePriority([]byte(words[len(words)-1])); ok {
				in.priority = got
			}
		}
	}
	q.Priority = in.priority
	if p.RateLimit.Enabled() {
		q.Key = in.bucket()
		if in.server.Cost != nil {
			if cost := in.server.Cost(x.client, x.method); cost > 0 {
				q.Cost = cost
			}
		}
	}
	if p.Shed.Enabled() && p.Shed.MaxCallerShare > 0 {
		q.Caller = max(maphash.String(callerSeed, in.caller()), 1) // 0 would be nobody in particular
	}
	return q
}

var callerSeed = maphash.MakeSeed()

// deadline is the least of the context's, which grpc-go made of grpc-timeout, and Envoy's. Anybody may send them: they only
// shorten his own call.
func (in *sender) deadline(now time.Duration) time.Duration {
	in.contextEnds = abate.NoDeadline
	if t, ok := in.exchange.client.Deadline(); ok {
		in.contextEnds = now + min(time.Until(t), abate.NoDeadline-max(now, 0))
	}
	ends := in.contextEnds
	for _, value := range in.values(timeLeftName) {
		if limit, ok := hops.TimeLimitOf(hops.TimeLeft, value); ok {
			ends = min(ends, now+limit)
		}
	}
	return ends
}

// attempt is the highest number that the metadata says.
func (in *sender) attempt() int {
	most := 1
	for _, name := range [...]string{attemptsName, attemptCountName} {
		for _, value := range in.values(name) {
			if n, ok := hops.AttemptOf(name, value); ok {
				most = max(most, n)
			}
		}
	}
	in.exchange.envoy = len(in.values(attemptCountName)) > 0
	return most
}

// plant makes the call tree that the call belongs to what its metadata say: always one, for every client of gRPC understands the
// pushback in which it ends.
func (in *sender) plant() {
	if x := in.exchange; in.trusted && x.asked {
		if a, ok := hops.LeastAllowance(in.values(allowanceName)); ok {
			x.tree.Reset(a)
			x.given = a.Left
		}
	}
}

// bucket chooses the bucket of the rate limit.
func (in *sender) bucket() string {
	if in.server.Key != nil {
		return in.server.Key(in.exchange.client, in.exchange.method)
	}
	switch word := in.protection.RateLimit.Key; word {
	case "":
		return ""
	case "caller":
		return in.caller()
	default:
		return in.name(word)
	}
}

// caller is who the call is from, for the gate.
func (in *sender) caller() string {
	if in.server.Caller != nil {
		return in.server.Caller(in.exchange.client, in.exchange.method)
	}
	return in.name(in.protection.Caller)
}

// name is who the call is from, by one of the words ip, mtls and header:NAME; the address if the others say nothing.
func (in *sender) name(word string) string {
	if name := in.known(word); name != "" {
		return name
	}
	return in.addressText()
}

// principal is what the call shows of whose its idempotency key is.
func (in *sender) principal() idempotency.Sender {
	in.findPeer()
	client := in.exchange.client // and not in, which would go to the heap
	p := idempotency.Sender{Trusted: in.trusted, Certificate: certificateName(in.peer), Field: func(name string) string {
		return strings.Join(metadata.ValueFromIncomingContext(client, name), "; ")
	}}
	if in.server.Caller != nil {
		p.Name = in.server.Caller(client, in.exchange.method)
	} else {
		p.Name = in.known(in.protection.Caller)
	}
	p.Host = p.Field(":authority")
	return p
}

// known is who the call is from if word tells by more than an address; else empty.
func (in *sender) known(word string) (name string) {
	switch header, ok := strings.CutPrefix(word, "header:"); {
	case ok && in.trusted:
		if values := in.values(header); len(values) > 0 {
			name = values[len(values)-1] // the nearest hop wrote the last
		}
	case word == "mtls":
		in.findPeer()
		name = certificateName(in.peer)
	}
	return name
}

// addressText is the client's address, as hops.AppendCaller calls it, or what there is instead.
func (in *sender) addressText() string {
	in.findPeer()
	a := in.address
	if in.trusted {
		a = hops.ForwardedFor(in.exchange.gate, a, in.values(forwardedName))
	}
	if !a.IsValid() {
		if in.peer == nil || in.peer.Addr == nil {
			return ""
		}
		return in.peer.Addr.String()
	}
	var room [64]byte
	return string(hops.AppendCaller(room[:0], a))
}

// certificateName is the name in the client's certificate, empty without one that was verified.
func certificateName(p *peer.Peer) string {
	if p == nil {
		return ""
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return ""
	}
	return hops.CertificateName(info.State.VerifiedChains[0][0])
}
