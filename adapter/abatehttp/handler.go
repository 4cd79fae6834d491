package abatehttp

import (
	"context"
	"io"
	"net/http"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/serving"
)

// Handler is an http.Handler that stands behind a gate: it hands to Next what the gate admits, and refuses the rest,
// cheaply, with an RFC 9457 problem that says why and when to come again. Set the fields before the first request;
// after that a Handler is safe for concurrent use, and must not be copied. The package's comment says what it does
// and in which order.
//
// A request that passes costs one allocation (576 bytes), and one more while a rate limit is on; a deadline, a
// priority and a call tree have to be put in its context, which costs five, two and three. No goroutine is started.
// Requests with an idempotency key cost the copies of body and answer besides what the store takes.
type Handler struct {
	// Next handles what the gate admits. It must not be nil.
	Next http.Handler

	// Gate decides about all requests. Nil means that requests pass as if there were no Handler.
	Gate *inbound.Gate

	// Select, if set, chooses the gate of each request instead. It must be quick and safe for concurrent use, must not
	// change the request and must not read its body. A request for which it returns nil passes: a health check, for
	// instance.
	Select func(*http.Request) *inbound.Gate

	// Caller, if set, tells who a request is from, instead of Protection.Caller: the user whom a middleware in front of
	// this one has authenticated. It must not return what the caller can choose. If the protection asks for
	// authentication, a request without a caller ("") is refused with 401: bearer tokens from a file are the proxy's to
	// read, so without Caller that is every request.
	Caller func(*http.Request) string

	// Key, if set, chooses the bucket of the rate limit, instead of Protection.RateLimit.Key.
	Key func(*http.Request) string

	// Cost, if set, returns how many tokens of the rate limit a request takes. What is not above zero counts as the
	// cost in the protection.
	Cost func(*http.Request) float64

	limits limitTexts
	watch  serving.Watch
}

// NewHandler returns a Handler that hands to next what g admits.
func NewHandler(g *inbound.Gate, next http.Handler) *Handler { return &Handler{Gate: g, Next: next} }

// ServeHTTP hands the request to Next, or refuses it. If Next panics, the slot of the request is free again, its
// idempotency key is let go, and the panic goes on. A panic behind the head of an answer for good lets no key go: the
// request was done, and repeats get 409.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g := h.Gate
	if h.Select != nil {
		g = h.Select(r)
	}
	if g == nil {
		h.Next.ServeHTTP(w, r)
		return
	}
	x := &exchange{out: w, handler: h, request: r}
	x.Gate = g
	var s serving.Sender
	s.Meet(r.Context(), g, (*source)(x))
	x.hear(&s)
	refused := x.Enter(r.Context(), &s)
	x.showLimit()
	if refused != nil {
		x.turnAway(refused)
		return
	}
	defer x.end()
	x.watchBody()
	if store, c, on := g.Idempotency(); on && x.keyed(c) {
		x.handleKeyed(&s, store, c)
		return
	}
	x.handle(x.with(r, r.Context(), &s))
}

// exchange is a request that a gate has to do with, and the answer to it: an http.ResponseWriter that sees what goes
// through. It is not used again for another request, so whoever holds on to it for too long harms only himself.
type exchange struct {
	serving.Exchange
	out     http.ResponseWriter
	handler *Handler
	request *http.Request
	cancel  context.CancelFunc        // ends the time limit that the gate gave, if it did
	values  [len(limitHeaders)]string // of the headers that show the limit
	key     *keyedTry                 // of a request that is done once; else nil
	tree    *callTree                 // of a request whose caller counts attempts; else nil
	body    io.ReadCloser             // the request's, if it is read through x; else nil
	reads   serving.Side              // from the client
	writes  serving.Side              // to the client
	source  io.Reader                 // of the answer, if Next copies it from there
	passed  int64                     // how much of the answer has gone to out
	status  int                       // of the answer's head, once that is written
	ended   bool                      // Next has returned
	asked   bool                      // the caller wants to know how many attempts were made: it has sent an allowance
	envoy   bool                      // the caller is to be told in Envoy's words, too
}

// with returns r under ctx, with the deadline, the priority and the call tree of the request if there is any; r
// itself if there is nothing.
func (x *exchange) with(r *http.Request, ctx context.Context, s *serving.Sender) *http.Request {
	ctx, x.cancel = s.Under(ctx, x.Until)
	if !limited(ctx) { // else a Handler before this one has made the tree, and reports it
		x.plant(s.Trusted)
	}
	if x.tree != nil {
		if s.Trusted {
			x.tree.believed.Context = ctx
			ctx = &x.tree.believed
		}
		ctx = core.WithCallTree(ctx, &x.tree.CallTree)
	}
	if x.cancel == nil && x.key == nil && x.tree == nil && !s.Says {
		outer := core.CallTreeOf(ctx)
		if outer == nil {
			return r
		}
		// Its own: what Next asks repeats nothing that a Handler before this one has asked.
		ctx = core.WithCallTree(ctx, outer)
	}
	return r.WithContext(ctx)
}

func (x *exchange) handle(r *http.Request) {
	x.handler.Next.ServeHTTP(x.writer(), r)
	x.ended = true
}

// end settles what is left: Next has returned, or panicked.
func (x *exchange) end() {
	if x.ended && x.status == 0 {
		if x.cancel != nil && core.Now() >= x.Until { // the handler has noticed that, and has said nothing about it
			x.refuse(x, &serving.DeadlinePassed, "")
		} else if x.key == nil {
			x.tell(http.StatusOK, false) // net/http writes that head
		}
	}
	class := x.class()
	if !x.ended && class == abate.Success {
		class = abate.Failure // it panicked in the middle of its answer
	}
	x.settle(class)
	if x.key != nil {
		x.endKey()
	}
	if x.cancel != nil {
		x.cancel()
	}
	x.leaveBody()
}

// settle tells the gate, once, that the service is through with the request.
func (x *exchange) settle(class abate.Class) { x.Settle(x.request.Context(), class) }

// class is what the answer says about the service.
func (x *exchange) class() abate.Class {
	if x.status == http.StatusSwitchingProtocols {
		return abate.Ignored
	}
	return hops.ServedClass(x.status)
}
