package abategrpc

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/internal/serving"
)

// exchange is a call that a gate has to do with. It is not used again for another one, so whoever holds on to it for too long
// harms only himself.
type exchange struct {
	gate    *abate.Gate
	method  string
	client  context.Context    // over when the client has left
	stream  grpc.ServerStream  // nil of a unary call
	cancel  context.CancelFunc // ends the time limit that the gate gave, if it did
	tree    abate.CallTree
	given   int       // its allowance, if one was believed
	key     *keyedTry // of a call that is done once; else nil
	arrival abate.Arrival
	arrived time.Duration
	until   time.Duration // when it has to be done

	asked   bool // the client said what is left for retries, and wants to hear how many there were
	envoy   bool // it is Envoy, or speaks like it
	talks   bool // the client streams: how long the call takes is its own affair
	settled atomic.Bool
	ended   bool // the handler has returned
}

// enter has the gate decide. The error is what the client gets instead of the service.
func (x *exchange) enter(in *sender) (until time.Duration, err error) {
	if in.unknown() {
		return 0, x.refuse(&unauthenticated, "", 0)
	}
	now := abate.Now()
	x.arrived = now
	step := serving.Decide(x.client, &x.arrival, x.gate.Arrive(&x.arrival, now, in.arrives(now)))
	if step.Action == abate.Refuse {
		return 0, x.turnAway()
	}
	x.until = step.Until
	return step.Until, nil
}

// context is what the handler works under.
func (x *exchange) context(ctx context.Context, in *sender, until time.Duration) context.Context {
	in.plant()
	ctx = abate.WithCallTree(ctx, &x.tree)
	if _, ends := ctx.Deadline(); until != abate.NoDeadline && (!ends || until < in.contextEnds) {
		ctx, x.cancel = context.WithTimeout(ctx, until-abate.Now())
	}
	if in.says {
		ctx = abate.WithPriority(ctx, in.priority)
	}
	return ctx
}

// codeOf is the code that grpc-go sends for what a handler returned.
func codeOf(err error) hops.Code {
	if err == nil {
		return hops.OK
	}
	st, ok := status.FromError(err)
	if !ok {
		st = status.FromContextError(err)
	}
	return hops.Code(st.Code())
}

// finish is told what the handler returned.
func (x *exchange) finish(err error) {
	x.ended = true
	class := abate.Success
	if err != nil {
		class = hops.ServedCode(codeOf(err))
	}
	now := abate.Now()
	x.tell(class != abate.Success, class != abate.Success && x.arrival.NoRetry(now))
	x.settle(now, x.class(now, class))
}

// nearEnd is how much before its deadline a call that is given up counts as one whose time was up: client and server run
// the same time limit, and which of them notices first is a matter of luck.
const nearEnd = 10 * time.Millisecond

// class is what the end of a call says about the service.
func (x *exchange) class(now time.Duration, class abate.Class) abate.Class {
	switch {
	case x.client.Err() == context.Canceled && now >= x.until-min(nearEnd, (x.until-x.arrived)/10):
		return abate.Overload // too slow for its callers
	case x.client.Err() == context.Canceled, class == abate.Success && x.talks:
		return abate.Ignored
	}
	return class
}

// tell puts into the trailers of an answer what became of retries, and whether the client should not try again: because the tree
// says so, or never does.
func (x *exchange) tell(failed, never bool) {
	below := x.report()
	below.Final = below.Final && failed || never
	switch {
	case below.Final:
		md := make(metadata.MD, 3)
		md[pushbackName] = minusOne
		if x.asked {
			md[madeName] = []string{string(hops.AppendMade(nil, below))}
		}
		if x.envoy {
			md[ratelimitedName] = yes
		}
		x.trail(md)
	case x.asked && below.Made == 0:
		x.trail(noneMade)
	case x.asked:
		x.trail(metadata.MD{madeName: {string(hops.AppendMade(nil, below))}})
	}
}

// report is what the tree says when the call ends. What is left goes back to the caller with that, so nothing more is made of
// it here. What calls in flight were given has to be counted: they have not told yet what they used.
func (x *exchange) report() abate.Below {
	_, limited := x.tree.Allowance()
	if !limited {
		return x.tree.Report()
	}
	left := x.tree.Close()
	below := x.tree.Report()
	below.Made = max(below.Made, x.given-left)
	return below
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

// begun is told that the answer of a stream begins.
func (x *exchange) begun() {
	if !x.settled.Load() {
		now := abate.Now()
		x.settle(now, x.class(now, abate.Success))
	}
}

// settle tells the gate, once, that the service is through with the call.
func (x *exchange) settle(now time.Duration, class abate.Class) {
	if x.settled.CompareAndSwap(false, true) {
		x.arrival.Done(now, class)
	}
}

// end settles what is left: the handler has returned, or panicked.
func (x *exchange) end() {
	if !x.ended {
		x.settle(abate.Now(), abate.Failure)
	}
	if x.key != nil {
		x.key.abandon()
	}
	if x.cancel != nil {
		x.cancel()
	}
}
