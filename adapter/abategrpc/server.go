package abategrpc

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/serving"
)

// Server puts the methods of a grpc.Server behind gates: it hands to them what the gate admits, and refuses the rest,
// cheaply, with a status that says why and when to come again. Set the fields before the first call; after that a
// Server is safe for concurrent use. A call passes, in this order: authentication → deadline → rate limit → shed,
// with its queue → idempotency key → the handler. What is refused comes to none of the later ones.
//
// What a client gets instead of the service:
//
//   - RESOURCE_EXHAUSTED for the rate limit; UNAVAILABLE, which clients repeat by themselves, when there is too much to
//     do; DEADLINE_EXCEEDED when its time is over already. For keys: INVALID_ARGUMENT (missing or no key), ABORTED
//     (another try is running), FAILED_PRECONDITION (used for another message), ALREADY_EXISTS (done, and its answer
//     could not be kept).
//   - Details: google.rpc.ErrorInfo, see ErrorDomain, and google.rpc.RetryInfo if it should come again.
//   - Trailers: grpc-retry-pushback-ms, which is -1 if coming again is in vain; abate-reason; abate-retries-made for
//     those who sent abate-retry-allowance. The last, and the -1, are on failures of the service as well.
//
// Calls of health checks and of reflection pass, whatever the gate says, unless Select chooses a gate for them: who
// asks an overloaded server whether it lives must not be told that it is dead.
//
// A unary call that passes costs two allocations (464 bytes): its own state, and the context that carries its call
// tree. A time limit of the gate's own costs four more, and what a trusted peer says one for each name. No goroutine
// is started.
type Server struct {
	// Gate decides about all calls. Nil means that calls pass as if there were no Server.
	Gate *inbound.Gate

	// Select, if set, chooses the gate by the full name of the method ("/shop.Payment/Get") instead. It must be quick
	// and safe for concurrent use. A call for which it returns nil passes. PassesByDefault names those that pass without
	// a Select.
	Select func(method string) *inbound.Gate

	// Caller, if set, tells who a call is from, instead of Protection.Caller: the user whom an interceptor in front of
	// this one has authenticated. It must not return what the caller can choose. If the protection asks for
	// authentication, a call without a caller ("") is refused with UNAUTHENTICATED: bearer tokens from a file are the
	// proxy's to read, so without Caller that is every call.
	Caller func(ctx context.Context, method string) string

	// Key, if set, chooses the bucket of the rate limit, instead of Protection.RateLimit.Key.
	Key func(ctx context.Context, method string) string

	// Cost, if set, returns how many tokens of the rate limit a call takes. What is not above zero counts as the cost
	// in the protection.
	Cost func(ctx context.Context, method string) float64

	watch serving.Watch
}

// NewServer returns a Server with one gate for everything.
func NewServer(g *inbound.Gate) *Server { return &Server{Gate: g} }

// UnaryServerInterceptor stands g in front of all unary methods. NewServer(g).Options sets the one for streams as well.
func UnaryServerInterceptor(g *inbound.Gate) grpc.UnaryServerInterceptor { return NewServer(g).Unary }

// StreamServerInterceptor stands g in front of all streaming methods.
func StreamServerInterceptor(g *inbound.Gate) grpc.StreamServerInterceptor {
	return NewServer(g).Stream
}

// Gated gives some methods a gate of their own.
type Gated struct {
	// Methods are full names ("/shop.Payment/Get"), or all methods of a service ("/shop.Payment/*"); a full name counts
	// more.
	Methods []string
	// Gate decides about them. Nil lets them pass.
	Gate *inbound.Gate
}

// ServerOptions are the options with which grpc.NewServer makes a server that stands behind g, with other gates for
// some methods. They chain: interceptors that were set before them run in front of the gate (authentication,
// logging), those set after behind it. Stats handlers, OpenTelemetry's among them, see every call, refused or not.
//
//	server := grpc.NewServer(abategrpc.ServerOptions(gate)...)
func ServerOptions(g *inbound.Gate, others ...Gated) []grpc.ServerOption {
	s := NewServer(g)
	if len(others) > 0 {
		s.Select = selectGate(g, others)
	}
	return s.Options()
}

// Options are the options that put a grpc.Server behind s.
func (s *Server) Options() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(s.Unary), grpc.ChainStreamInterceptor(s.Stream)}
}

func selectGate(g *inbound.Gate, others []Gated) func(string) *inbound.Gate {
	gates := make(map[string]*inbound.Gate)
	for _, o := range others {
		for _, m := range o.Methods {
			gates[m] = o.Gate
		}
	}
	return func(method string) *inbound.Gate {
		if own, ok := gates[method]; ok {
			return own
		}
		for pattern, own := range gates { // few, and no text is made
			if hops.Covers(pattern, method) {
				return own
			}
		}
		if PassesByDefault(method) {
			return nil
		}
		return g
	}
}

// PassesByDefault tells the methods that a Server without a Select lets pass: health checks
// (/grpc.health.v1.Health/*) and reflection (/grpc.reflection.*).
func PassesByDefault(method string) bool {
	return strings.HasPrefix(method, "/grpc.") &&
		(strings.HasPrefix(method, "/grpc.health.v1.Health/") || strings.HasPrefix(method, "/grpc.reflection."))
}

func (s *Server) gateOf(method string) *inbound.Gate {
	switch {
	case s.Select != nil:
		return s.Select(method)
	case PassesByDefault(method):
		return nil
	}
	return s.Gate
}

// Unary is the interceptor for unary methods. If the handler panics, the slot of the call is free again, its
// idempotency key is let go, and the panic goes on.
func (s *Server) Unary(
	ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	g := s.gateOf(info.FullMethod)
	if g == nil {
		return handler(ctx, req)
	}
	x := &exchange{server: s, client: ctx, method: info.FullMethod}
	var in serving.Sender
	if err := x.enter(g, &in); err != nil {
		return nil, err
	}
	defer x.end()
	if store, c, on := g.Idempotency(); on && keyedMethod(c.Methods, info.FullMethod) {
		if c.Required || len(x.values(keyName)) > 0 || len(x.values(xKeyName)) > 0 {
			return x.handleKeyed(&in, store, c, req, handler)
		}
	}
	return x.handle(&in, req, handler)
}

// Stream is the interceptor for streaming methods. The call holds its slot until its first message or its header goes
// out, or until it ends: what lasts longer says nothing about the service, and an event stream that is open for an
// hour must not keep others out. While it waits for a message of its client the slot is lent. Its time limit holds to
// the end, for a handler that waits for a message too; if it
// is the gate's own, such a wait costs a goroutine, and the message must not be used again after it has failed.
// Idempotency keys are for unary calls, and not looked at here.
func (s *Server) Stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	g := s.gateOf(info.FullMethod)
	if g == nil {
		return handler(srv, ss)
	}
	w := &gatedStream{ServerStream: ss}
	x := &w.exchange
	x.server, x.client, x.method = s, ss.Context(), info.FullMethod
	x.stream, x.talks = ss, info.IsClientStream
	var in serving.Sender
	if err := x.enter(g, &in); err != nil {
		return err
	}
	defer x.end()
	w.ctx = x.context(x.client, &in)
	err := handler(srv, w)
	x.finish(err)
	return err
}

// gatedStream is a stream that tells the gate when its answer begins.
type gatedStream struct {
	exchange
	grpc.ServerStream
	ctx   context.Context
	reads serving.Side
}

// Context has the deadline, the call tree and the priority of the call.
func (w *gatedStream) Context() context.Context { return w.ctx }

// RecvMsg reads a message, until the time limit: grpc-go's own RecvMsg knows only that of the client. While it waits
// for the client the slot is lent.
func (w *gatedStream) RecvMsg(m any) error {
	if w.Lends && !w.begun.Load() {
		w.server.watch.Begin(&w.reads, &w.Loan)
		defer w.server.watch.End(&w.reads, &w.Loan)
	}
	if w.cancel == nil { // the gate has not added one
		return w.ServerStream.RecvMsg(m)
	}
	if err := w.ctx.Err(); err != nil { // an earlier read may still be under way
		return status.FromContextError(err).Err()
	}
	read := make(chan error, 1)
	go func() { read <- w.ServerStream.RecvMsg(m) }() // ends with the stream, at the latest
	select {
	case err := <-read:
		return err
	case <-w.ctx.Done():
		return status.FromContextError(w.ctx.Err()).Err()
	}
}

// SendMsg sends a message. The first one gives the slot back before it is sent: a client that does not read must not
// hold it.
func (w *gatedStream) SendMsg(m any) error {
	w.settle(abate.Success)
	return w.ServerStream.SendMsg(m)
}

// SendHeader sends the header, with which the answer begins.
func (w *gatedStream) SendHeader(md metadata.MD) error {
	w.settle(abate.Success)
	return w.ServerStream.SendHeader(md)
}
