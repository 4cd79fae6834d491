package abategrpc

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/serving"
)

// exchange is a call that a gate has to do with. It is not used again for another one, so whoever holds on to it for
// too long harms only himself.
type exchange struct {
	serving.Exchange
	server *Server
	method string
	client context.Context    // over when the client has left
	stream grpc.ServerStream  // nil of a unary call
	cancel context.CancelFunc // ends the time limit that the gate gave, if it did
	tree   serving.Tree
	key    *keyedTry // of a call that is done once; else nil

	begun atomic.Bool // the answer of a stream has begun, or ended: those who say so may be several goroutines
	asked bool        // the client said what is left for retries, and wants to hear how many there were
	envoy bool        // it is Envoy, or speaks like it
	talks bool        // the client streams: how long the call takes is its own affair
	ended bool        // the handler has returned
}

// enter has the gate decide. The error is what the client gets instead of the service.
func (x *exchange) enter(g *inbound.Gate, in *serving.Sender) error {
	x.Gate = g
	in.Meet(x.client, g, (*source)(x))
	x.hear(in)
	p := x.Enter(x.client, in)
	if p == nil {
		return nil
	}
	r := x.Arrival.Refusal()
	x.tell(p.Code, r.RetryAfter, false, r.NoRetry)
	return errorOf(p, g.Name(), "", r.Shed, r.RetryAfter)
}

// context is what the handler works under. It always has a call tree, for every client of gRPC understands the
// pushback in which that ends.
func (x *exchange) context(ctx context.Context, in *serving.Sender) context.Context {
	if in.Trusted && x.asked {
		x.tree.Believe(x.values(allowanceName))
	}
	ctx, x.cancel = in.Under(core.WithCallTree(ctx, &x.tree.CallTree), x.Until)
	return ctx
}

func (x *exchange) handle(in *serving.Sender, req any, handler grpc.UnaryHandler) (any, error) {
	resp, err := handler(x.context(x.client, in), req)
	x.finish(err)
	return resp, err
}

// codeOf is the code that grpc-go sends for what a handler returned.
func codeOf(err error) hops.Code {
	if err == nil {
		return hops.OK
	}
	return hops.Code(statusOf(err).Code())
}

// classOf is what the end of a call says about the service.
func classOf(err error) abate.Class {
	if err == nil {
		return abate.Success
	}
	return hops.ServedCode(codeOf(err))
}

// finish is told what the handler returned.
func (x *exchange) finish(err error) {
	x.ended = true
	class := classOf(err)
	x.tell("", 0, class != abate.Success, class != abate.Success && x.Arrival.NoRetry(core.Now()))
	x.settle(class)
}

// tell puts into the trailers of an answer what became of retries, and what the client should do: not try again,
// because the tree says so of a failure or never does, or else wait. reason is the code of a refusal.
func (x *exchange) tell(reason string, wait time.Duration, failed, never bool) {
	var below core.Below
	if x.asked || failed {
		below = x.tree.Report()
	}
	below.Final = below.Final && failed || never
	if reason == "" && !below.Final {
		if x.asked && below.Made > 0 {
			x.trail(metadata.MD{madeName: {string(hops.AppendMade(nil, below))}})
		} else if x.asked {
			x.trail(noneMade)
		}
		return
	}
	md := make(metadata.MD, 4)
	if reason != "" {
		md[reasonName] = []string{reason}
	}
	switch {
	case below.Final:
		md[pushbackName] = minusOne
		if x.envoy {
			md[ratelimitedName] = yes
		}
	case wait > 0:
		md[pushbackName] = []string{string(hops.AppendPushback(nil, hops.Pushback{Wait: wait}))}
	}
	if x.asked {
		md[madeName] = []string{string(hops.AppendMade(nil, below))}
	}
	x.trail(md)
}

// noneMade is the report that most calls make. It is only read.
var noneMade = metadata.MD{madeName: {"0"}}

// trail adds to the trailers.
func (x *exchange) trail(md metadata.MD) {
	if x.stream != nil {
		x.stream.SetTrailer(md)
		return
	}
	_ = grpc.SetTrailer(x.client, md) // fails for a client that has left, and without a server around us
}

// settle tells the gate, once, that the service is through with the call, or that the answer of a stream begins.
func (x *exchange) settle(class abate.Class) {
	if x.talks && class == abate.Success && x.client.Err() == nil {
		class = abate.Ignored
	}
	if x.stream == nil || x.begun.CompareAndSwap(false, true) {
		x.Settle(x.client, class)
	}
}

// end settles what is left: the handler has returned, or panicked.
func (x *exchange) end() {
	if !x.ended {
		if x.stream == nil || x.begun.CompareAndSwap(false, true) {
			x.Settle(context.Background(), abate.Failure) // whether or not its client is still there
		}
		if x.key != nil {
			x.key.record.release()
			x.key.Panicked(0, false)
		}
	}
	if x.cancel != nil {
		x.cancel()
	}
}
