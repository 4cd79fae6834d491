package abategrpc

import (
	"iter"
	"net"
	"net/netip"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/internal/serving"
)

// heard are the names in which a call says how long its caller waits, beside its context, and behind that which
// attempt it is. Only of trusted peers the latter matter.
var heard = [...]string{timeLeftName, attemptsName, attemptCountName}

// hear has s hear what the call says.
func (x *exchange) hear(s *serving.Sender) {
	s.Own = x.server.Caller != nil || x.server.Key != nil || x.server.Cost != nil
	names := heard[:1]
	if s.Trusted {
		names = heard[:]
	}
	for _, name := range names {
		for _, value := range x.values(name) {
			s.Hear(name, value)
		}
	}
	x.asked, x.envoy = len(x.values(allowanceName)) > 0, s.Envoy
}

// values are those of one name in the metadata, in any case. So little is looked at that a copy of all would cost more.
func (x *exchange) values(name string) []string {
	return metadata.ValueFromIncomingContext(x.client, name)
}

// source is an exchange as the serving.Source of its call.
type source exchange

func (f *source) Last(name string) (string, bool) {
	values := metadata.ValueFromIncomingContext(f.client, name)
	if len(values) == 0 {
		return "", false
	}
	return values[len(values)-1], true
}

func (f *source) Joined(name, sep string) string {
	return strings.Join(metadata.ValueFromIncomingContext(f.client, name), sep)
}

func (f *source) Fields() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		md, _ := metadata.FromIncomingContext(f.client)
		for name, values := range md {
			for _, value := range values {
				if !yield(name, value) {
					return
				}
			}
		}
	}
}

func (f *source) Peer() netip.Addr {
	p, _ := peer.FromContext(f.client)
	return addressOf(p)
}

func (f *source) Named() (name string, ok bool) {
	if f.server.Caller == nil {
		return "", false
	}
	return f.server.Caller(f.client, f.method), true
}

func (f *source) Bucket() (key string, ok bool, cost float64) {
	s := f.server
	if s.Key != nil {
		key, ok = s.Key(f.client, f.method), true
	}
	if s.Cost != nil {
		cost = s.Cost(f.client, f.method)
	}
	return key, ok, cost
}

func (f *source) Address(trusted bool) string {
	p, ok := peer.FromContext(f.client)
	a := addressOf(p)
	if trusted {
		a = hops.ForwardedFor(f.Gate, a, metadata.ValueFromIncomingContext(f.client, forwardedName))
	}
	switch {
	case a.IsValid():
		var room [64]byte
		return string(hops.AppendCaller(room[:0], a))
	case !ok || p.Addr == nil: // without a server around us
		return ""
	}
	return p.Addr.String() // as of a Unix socket
}

// addressOf is the address of a peer, the zero Addr if it has none.
func addressOf(p *peer.Peer) netip.Addr {
	if p == nil || p.Addr == nil {
		return netip.Addr{}
	}
	if tcp, ok := p.Addr.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return hops.Address(p.Addr.String())
}

func (f *source) Certificate() string {
	p, ok := peer.FromContext(f.client)
	if !ok {
		return ""
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return ""
	}
	return hops.CertificateName(info.State.VerifiedChains[0][0])
}
