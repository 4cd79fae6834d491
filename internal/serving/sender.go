package serving

import (
	"context"
	"hash/maphash"
	"iter"
	"net/netip"
	"strings"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/shed"
)

// Source is a driver's request, for what a protection may ask about it. The names of fields are in any case.
type Source interface {
	// Last returns the last value of a field: the nearest hop wrote it.
	Last(name string) (value string, ok bool)
	// Joined returns all values of a field, with sep between them.
	Joined(name, sep string) string
	// Fields returns all fields, each with each of its values.
	Fields() iter.Seq2[string, string]
	// Peer returns the address of the other end of the connection, the zero Addr if there is none.
	Peer() netip.Addr
	// Address returns the client's address, as hops.AppendCaller writes it. If trusted, its own fields are believed.
	Address(trusted bool) string
	// Certificate returns the name in the client's certificate, "" without one that was verified.
	Certificate() string
	// Named returns who the request is from if the program itself says so.
	Named() (name string, ok bool)
	// Bucket returns the bucket of the rate limit if the program itself says so, and how many tokens the request takes, 0
	// if the program does not say.
	Bucket() (key string, ok bool, cost float64)
}

// Sender is who a request is from, and what may be believed of what it says.
type Sender struct {
	Source
	Protection *inbound.Protection
	Trusted    bool // its fields are believed
	Envoy      bool // it numbers its attempts as Envoy does
	Forwarded  bool // the next hop gets its fields unless they are overwritten, as behind a reverse proxy
	Own        bool // the program itself says something of it: Named and Bucket have to be asked
	Says       bool // the next hop has to hear of the request's priority

	// Host is the authority that the request is for, or "". It is needed for a key only.
	Host string

	now         time.Duration
	deadline    time.Duration
	contextEnds time.Duration // the deadline of the context that the driver has
	attempt     int
	priority    shed.Priority
}

// Meet makes s the sender of a request that arrives at g now. client is over when the client has left.
func (s *Sender) Meet(client context.Context, g *inbound.Gate, from Source) {
	s.Source, s.Protection, s.now, s.attempt = from, g.Describe(), core.Now(), 1
	s.contextEnds = core.NoDeadline
	if t, ok := client.Deadline(); ok {
		s.contextEnds = s.now + min(time.Until(t), core.NoDeadline-max(s.now, 0))
	}
	s.deadline = s.contextEnds
	if len(s.Protection.TrustedPeers) > 0 {
		peer := from.Peer()
		s.Trusted = peer.IsValid() && g.Trusts(peer)
	}
}

// unknown reports whether the request has to be refused because nobody knows who sent it.
func (s *Sender) unknown() bool {
	if !s.Protection.Authentication.Enabled() {
		return false
	}
	name, _ := s.named()
	return name == ""
}

// Hear notes what a field says. Anybody may say how long he waits: it only shortens his own request.
// Which attempt a request is says only who is believed.
func (s *Sender) Hear(name, value string) {
	if limit, ok := hops.TimeLimitOf(name, value); ok {
		s.deadline = min(s.deadline, s.now+limit)
		return
	}
	if n, ok := hops.AttemptOf(name, value); ok && s.Trusted {
		s.attempt = max(s.attempt, n)
		s.Envoy = s.Envoy || len(name) == len(hops.AttemptCount)
	}
}

// request returns what the gate is told of the request, when all of its fields have been heard.
func (s *Sender) request() inbound.Request {
	p := s.Protection
	q := inbound.Request{Deadline: s.deadline, Attempt: s.attempt}
	s.priority, s.Says = p.Priority.Default, p.Priority.Default != shed.Critical
	if s.Trusted || s.Forwarded {
		if word, ok := s.Last(p.Priority.Header); ok {
			s.Says = true // if it is not believed, the next hop has to hear something else
			if got, ok := shed.ParsePriority([]byte(word)); ok && s.Trusted {
				s.priority = got
			}
		}
	}
	q.Priority = s.priority
	if p.RateLimit.Enabled() {
		q.Key, q.Cost = s.bucket()
	}
	if p.Shed.Enabled() && p.Shed.MaxCallerShare > 0 {
		q.Caller = max(maphash.String(callerSeed, s.caller()), 1) // 0 would be nobody in particular
	}
	return q
}

// callerSeed makes the hashes of callers different in every process: nobody can choose to share another's.
var callerSeed = maphash.MakeSeed()

// bucket chooses the bucket of the rate limit, and what the request takes from it; 0 is what the protection says.
func (s *Sender) bucket() (string, float64) {
	var key string
	var ok bool
	var cost float64
	if s.Own {
		key, ok, cost = s.Bucket()
	}
	if word := s.Protection.RateLimit.Key; !ok && word == "caller" {
		key = s.caller()
	} else if !ok && word != "" {
		key = s.name(word)
	}
	if !(cost > 0) { // NaN too
		cost = 0
	}
	return key, cost
}

// named is who the request is from if the program itself says so.
func (s *Sender) named() (name string, ok bool) {
	if !s.Own {
		return "", false
	}
	return s.Named()
}

// caller is who the request is from, for the gate.
func (s *Sender) caller() string {
	if name, ok := s.named(); ok {
		return name
	}
	return s.name(s.Protection.Caller)
}

// name is who the request is from, by one of the words ip, mtls and header:NAME; the address if the others say nothing.
func (s *Sender) name(word string) string {
	if name := s.known(word); name != "" {
		return name
	}
	return s.Address(s.Trusted)
}

// known is who the request is from if word says more than an address; else empty.
func (s *Sender) known(word string) (name string) {
	switch header, ok := strings.CutPrefix(word, "header:"); {
	case ok && s.Trusted:
		name, _ = s.Last(header)
	case word == "mtls":
		name = s.Certificate()
	}
	return name
}

// principal is whose the request's idempotency key is, and what its repeats must have in common beside that.
func (s *Sender) principal(scope string) (principal, compared string) {
	from := s.Source // and not s, which would go to the heap
	p := idempotency.Sender{
		Trusted: s.Trusted, Certificate: from.Certificate(), Host: s.Host,
		Field:    func(name string) string { return from.Joined(name, "; ") },
		Identity: Identity(from.Fields()),
	}
	name, ok := s.named()
	if p.Name = name; !ok {
		p.Name = s.known(s.Protection.Caller)
	}
	return idempotency.Principal(scope, p)
}

// Under returns ctx with the deadline and the priority of the request. cancel is nil if ctx ends early
// enough by itself.
func (s *Sender) Under(ctx context.Context, until time.Duration) (_ context.Context, cancel context.CancelFunc) {
	if _, ends := ctx.Deadline(); until != core.NoDeadline && (!ends || until < s.contextEnds) {
		ctx, cancel = context.WithTimeout(ctx, until-core.Now())
	}
	if s.Says {
		ctx = core.WithPriority(ctx, s.priority)
	}
	return ctx, cancel
}
