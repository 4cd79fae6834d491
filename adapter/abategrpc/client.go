package abategrpc

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/repeats"
)

// Client puts the calls of a grpc.ClientConn under guards. Set the fields before the first call; after that a Client is
// safe for concurrent use, and must not be copied. One Client may serve several connections to the same server.
//
// A call that fails returns the last attempt's own error, or one in which errors.As finds an *abate.Error. status.Code
// and status.FromError work on both: they yield the last attempt's status or, if there was no attempt, UNAVAILABLE
// (circuit open, bulkhead full, throttled), RESOURCE_EXHAUSTED (rate limit), DEADLINE_EXCEEDED or CANCELLED.
type Client struct {
	// Guard is the guard of all calls. Nil means that calls pass as if there were no Client.
	Guard *abate.Guard

	// Methods have guards of their own, instead of Guard.
	Methods []Guarded

	// Select, if set, chooses the guard by the full name of the method ("/shop.Payment/Get") instead of Guard and
	// Methods. It must be quick and safe for concurrent use. A call for which it returns nil passes.
	Select func(method string) *abate.Guard

	// MaxBuffered is how many bytes of the messages that were sent on a stream are held in memory, as protobuf, so that
	// they can be sent again while nothing has come back. A stream that has sent more is not repeated. It matters only
	// for methods that may be repeated, under a policy that retries. Zero means 64 KiB; a negative number means never
	// to hold any. With more than 64 KiB a repeat may wait for a server that does not read, and its answer with it.
	MaxBuffered int

	// OmitHeaders leaves out the metadata that tells the server the attempt's number, the work's priority and what is
	// left of the call tree's retries, takes off all other metadata that begins with abate- or x-envoy-, and does not
	// look at what the answers count. Set it for servers of other companies. A policy's InternalHeaders does the same
	// for one guard.
	OmitHeaders bool

	// WaitForReady makes calls wait for a connection, until their time is up, instead of failing at once while there is
	// none: grpc.WaitForReady as the default in DialOptions. Such a wait is not a failed attempt, and draws nothing
	// from the budget; set a time limit in the policy or in the context, else it may last for ever.
	WaitForReady bool

	// Observer, if set, is told of retries by method; the guards' own observers know more, but no methods.
	Observer RetryObserver

	failed  repeats.Memory[sign]
	methods methodCache
	waits   bool // WaitForReady of the methods that are not in Methods
}

// Guarded gives some methods a guard of their own.
type Guarded struct {
	// Methods are full names ("/shop.Payment/Get"), or all methods of a service ("/shop.Payment/*"); a full name counts
	// more.
	Methods []string
	// Guard decides about them. Nil lets them pass.
	Guard *abate.Guard
	// WaitForReady makes them wait for a connection; see Client.WaitForReady, which holds for all methods.
	WaitForReady bool
}

// RetryObserver is told of retries by method. Its methods must be quick and safe for concurrent use. The metrics
// grpc_client_retry_attempts_total and grpc_client_retry_budget_exhausted_total are made of it.
type RetryObserver interface {
	// RetryAttempt is called when an attempt after the first of its call, a retry or a hedge, has ended. status is the
	// name of its code as in the specification of gRPC: "OK", "UNAVAILABLE". Of a stream it is what is known when the
	// first message comes.
	RetryAttempt(method, status string)
	// BudgetExhausted is called when a call ends with a failure that would have been repeated, had the retry budget not
	// been empty.
	BudgetExhausted(method string)
}

// NewClient returns a Client with one guard for everything, and guards of their own for some methods.
func NewClient(g *abate.Guard, others ...Guarded) *Client { return &Client{Guard: g, Methods: others} }

// DialOptions are the options with which grpc.NewClient makes a connection whose calls are under g, with other guards
// for some methods. They chain: interceptors that were set before them see calls, those set after see every attempt,
// and so do stats handlers, OpenTelemetry's among them. They switch off the retries that a service config may ask
// grpc-go for: two retriers would multiply.
//
//	conn, err := grpc.NewClient(target, append(abategrpc.DialOptions(guard), credentials)...)
func DialOptions(g *abate.Guard, others ...Guarded) []grpc.DialOption {
	return NewClient(g, others...).DialOptions()
}

// UnaryClientInterceptor puts all unary calls under g. DialOptions does more: set grpc.WithDisableRetry beside it.
func UnaryClientInterceptor(g *abate.Guard) grpc.UnaryClientInterceptor { return NewClient(g).Unary }

// StreamClientInterceptor puts all streams under g. DialOptions does more: set grpc.WithDisableRetry beside it.
func StreamClientInterceptor(g *abate.Guard) grpc.StreamClientInterceptor { return NewClient(g).Stream }

// DialOptions are the options that put a connection under c.
func (c *Client) DialOptions() []grpc.DialOption {
	options := []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(c.Unary), grpc.WithChainStreamInterceptor(c.Stream), grpc.WithDisableRetry(),
	}
	if c.WaitForReady {
		options = append(options, grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	}
	return options
}

// ForMethods makes a guard with policy p for some methods of the server that g guards. It shares the retry budget of g,
// so that however many methods there are, their retries together stay within it; if g has none, p's own counts.
// Everything else is its own. Its name in errors and metrics is that of g with the first method's. An invalid policy
// and a method that is none are errors.
func ForMethods(g *abate.Guard, p abate.Policy, methods ...string) (Guarded, error) {
	if len(methods) == 0 {
		return Guarded{}, fmt.Errorf("abategrpc: a policy for methods of %q names none; give full names such as "+
			"/shop.Payment/Get or /shop.Payment/*", g.Name())
	}
	for _, m := range methods {
		if !fullName(m) {
			return Guarded{}, fmt.Errorf("abategrpc: %q is no method of %q; give a full name such as /shop.Payment/Get or "+
				"/shop.Payment/*", m, g.Name())
		}
	}
	if shared := g.Budget(); shared != nil {
		p.Budget = shared
	}
	own, err := abate.New(g.Name()+methods[0], p)
	if err != nil {
		return Guarded{}, err
	}
	return Guarded{Methods: methods, Guard: own}, nil
}

// fullName reports whether m is /service/method.
func fullName(m string) bool {
	service, method, ok := strings.Cut(strings.TrimPrefix(m, "/"), "/")
	return ok && m[0] == '/' && service != "" && method != "" && !strings.Contains(method, "/")
}

// bufferLimit is MaxBuffered with its default.
func (c *Client) bufferLimit() int {
	if c.MaxBuffered == 0 {
		return 64 << 10
	}
	return c.MaxBuffered
}

// counted is o without what a server has counted that was told nothing: that is not of our call tree.
func (out *outgoing) counted(o abate.Outcome) abate.Outcome {
	if out.omit {
		o.Below.Said, o.Below.Made = false, 0
	}
	return o
}

func (c *Client) guardOf(m *method) *abate.Guard {
	if c.Select != nil {
		return c.Select(m.name)
	}
	return m.guard
}

// WithIdempotencyKey returns a context for one call whose server does it once, however often it comes: the metadata
// x-idempotency-key says that it may be repeated. The key must be unique for the intent, the same for all its tries.
func WithIdempotencyKey(ctx context.Context, key string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, xKeyName, key)
}
