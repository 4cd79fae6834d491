package abategrpc

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
)

// Unary is the interceptor for unary calls. Each attempt is an RPC of its own: interceptors and stats handlers below
// see every one, with the context's deadline of that attempt. grpc.Header, grpc.Trailer and grpc.Peer yield what the
// attempt brought that the caller gets, and grpc.OnFinish is called once.
//
// Under a policy that hedges, copies of a call that may be repeated are made with a message of their own for the reply,
// and one for the request: what is not a protobuf message is not hedged. The winner's reply is copied into the
// caller's.
func (c *Client) Unary(ctx context.Context, name string, req, reply any, conn *grpc.ClientConn,
	invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	m := c.method(name)
	if m.waits {
		opts = append([]grpc.CallOption{waitForReady}, opts...)
	}
	g := c.guardOf(m)
	if g == nil {
		return invoker(ctx, name, req, reply, conn, opts...)
	}
	u := unaries.Get().(*unary)
	u.client, u.method, u.guard, u.request, u.reply, u.conn, u.invoker = c, m, g, req, reply, conn, invoker
	u.prepare(ctx, opts)
	a, release, err := core.Run[*attempt](ctx, g, u)
	release.Done()
	if err != nil || u.out.earlier > 0 {
		u.remember(err)
	}
	err = u.finish(a, err)
	if !u.hedged { // else a copy that has lost may still look at it
		u.forget()
		unaries.Put(u)
	}
	return err
}

var waitForReady = grpc.WaitForReady(true)

// unary is one unary call: the core.Operation. Nobody else gets hold of it, so that it can be used again.
type unary struct {
	client  *Client
	method  *method
	guard   *abate.Guard
	request any
	reply   any
	conn    *grpc.ClientConn
	invoker grpc.UnaryInvoker
	options []grpc.CallOption // the caller's, but for those in wanted
	wanted  *wanted           // nil if the caller wants nothing of the kind
	out     outgoing
	first   *firstAttempt
	end     *ending         // of the first attempt
	again   bool            // the call may be repeated
	ctx     context.Context // the caller's
	sent    time.Duration   // when somebody above made an attempt of this call last
	begun   bool            // an attempt has been made
	hedged  bool            // so may two copies be in the air at once
	kind    kind            // of the reply, if they may

	mu       sync.Mutex // guards the rest
	finished bool       // the caller has its request and reply back
	last     *attempt   // that came back
}

// unaries saves the better half of what a call that succeeds at once would allocate.
var unaries = sync.Pool{New: func() any { return &unary{end: newEnding()} }}

// attempt is what one attempt hands out: interceptors, stats handlers and whatever they have started may keep it as
// long as they like, so it is never used again.
type attempt struct {
	context carrying
	trailer metadata.MD
	brought *brought
	unsent  bool
	options [4]grpc.CallOption
}

// firstAttempt is the one allocation of a call that succeeds at once.
type firstAttempt struct {
	attempt
	room core.Workspace
}

// prepare finds out how often the call may be made.
func (u *unary) prepare(ctx context.Context, opts []grpc.CallOption) {
	p := u.guard.Describe()
	keyed := u.out.open(ctx, u.client, p)
	u.again = u.method.repeatable(p, keyed)
	if u.ctx = ctx; !u.out.numbered && u.client.failed.Len() > 0 {
		u.lookBack()
	}
	u.hedged = u.again && p.Hedge.Enabled() && isMessage(u.request) && isMessage(u.reply)
	if u.out.shared = u.hedged; u.hedged {
		u.kind = kindOf(u.reply)
	}
	if len(opts) > 0 {
		u.options, u.wanted = split(opts)
	}
	u.first = new(firstAttempt)
}

// forget lets go what belongs to the caller. The rest is written anew by the next call.
func (u *unary) forget() {
	u.request, u.reply, u.invoker, u.options, u.wanted, u.out, u.first = nil, nil, nil, nil, nil, outgoing{}, nil
	u.finished, u.last, u.ctx, u.begun = false, nil, nil, false
}

// Workspace is for core.Run.
func (u *unary) Workspace() *core.Workspace { return &u.first.room }

// MayHedge reports whether two copies may be in the air at once.
func (u *unary) MayHedge() bool { return u.hedged }

// Discard has nothing to release.
func (u *unary) Discard(*attempt) {}

// Classify judges an attempt.
func (u *unary) Classify(a *attempt, err error) abate.Outcome {
	if err == nil && len(a.trailer) == 0 { // most of them
		return abate.Outcome{}
	}
	return u.out.counted(judge(u.guard, evidence{u.again, a.unsent, a.trailer}, err))
}

// Attempt makes the call once.
func (u *unary) Attempt(ctx context.Context, s core.Sending) (*attempt, error) {
	a, req, reply, end := &u.first.attempt, u.request, u.reply, u.end
	if s.Number == 1 {
		u.begun = true
	} else {
		a, end = new(attempt), newEnding()
		if u.hedged {
			if req, reply = u.copies(); req == nil {
				return nil, errTooLate
			}
			a.brought = &brought{reply: reply}
		}
	}
	err := u.invoker(u.out.context(ctx, u.method, s, &a.context), u.method.name, req, reply, u.conn,
		a.callOptions(u, end)...)
	a.unsent = end.take() && err != nil && a.trailer == nil
	if s.Number > 1 && u.client.Observer != nil {
		u.client.Observer.RetryAttempt(u.method.name, hops.Code(statusOf(err).Code()).String())
	}
	if u.wanted != nil {
		u.note(a)
	}
	return a, err
}

// note remembers the attempt that came back last.
func (u *unary) note(a *attempt) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.finished {
		u.last = a
	}
}

// callOptions are the caller's, and ours.
func (a *attempt) callOptions(u *unary, end *ending) []grpc.CallOption {
	opts := append(a.options[:0], u.options...)
	opts = append(opts, grpc.Trailer(&a.trailer), end.option)
	if u.wanted != nil {
		if a.brought == nil {
			a.brought = new(brought)
		}
		opts = append(opts, grpc.Header(&a.brought.header), grpc.Peer(&a.brought.peer))
	}
	return opts
}

// finish gives the caller what the call came to.
func (u *unary) finish(a *attempt, err error) error {
	if u.hedged || u.wanted != nil {
		u.mu.Lock()
		u.finished = true
		if a == nil {
			a = u.last // a later step was refused: it is still what the last answer said
		}
		u.mu.Unlock()
	}
	if err == nil && u.hedged && a != &u.first.attempt {
		replace(u.reply, a.brought.reply)
	}
	if err != nil {
		u.client.noteEnd(u.method, err)
		err = wrap(err)
	}
	if u.wanted != nil {
		u.wanted.deliver(a, err)
	}
	return err
}

// noteEnd tells the observer of a call that ended with err.
func (c *Client) noteEnd(m *method, err error) {
	if c.Observer != nil && abate.Reason(err) == abate.ErrBudgetExhausted {
		c.Observer.BudgetExhausted(m.name)
	}
}

// wanted are the places where the caller wants to see what an answer brought.
type wanted struct {
	headers  []*metadata.MD
	trailers []*metadata.MD
	peers    []*peer.Peer
	finish   []func(error)
}

// brought is what an attempt's answer brought, where that is not in the caller's own reply or is asked for.
type brought struct {
	reply  any // of a copy of a hedged call
	header metadata.MD
	peer   peer.Peer
}

// split takes the options out that must not be there twice: grpc-go would write into them with every attempt, and with
// two at once.
func split(opts []grpc.CallOption) ([]grpc.CallOption, *wanted) {
	for i, o := range opts {
		switch o.(type) {
		case grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption, grpc.OnFinishCallOption:
			w, others := new(wanted), append(make([]grpc.CallOption, 0, len(opts)), opts[:i]...)
			for _, o := range opts[i:] {
				if !w.take(o) {
					others = append(others, o)
				}
			}
			return others, w
		}
	}
	return opts, nil
}

func (w *wanted) take(o grpc.CallOption) bool {
	switch o := o.(type) {
	case grpc.HeaderCallOption:
		w.headers = append(w.headers, o.HeaderAddr)
	case grpc.TrailerCallOption:
		w.trailers = append(w.trailers, o.TrailerAddr)
	case grpc.PeerCallOption:
		w.peers = append(w.peers, o.PeerAddr)
	case grpc.OnFinishCallOption:
		w.finish = append(w.finish, o.OnFinish)
	default:
		return false
	}
	return true
}

// deliver writes what attempt a brought into the caller's places; nil if there was none.
func (w *wanted) deliver(a *attempt, err error) {
	if a != nil && a.trailer != nil { // else nothing has come, and nothing is written, as in grpc-go
		for _, to := range w.headers {
			*to = a.brought.header
		}
		for _, to := range w.trailers {
			*to = a.trailer
		}
		for _, to := range w.peers {
			*to = a.brought.peer
		}
	}
	for _, f := range w.finish {
		f(err)
	}
}

// ending notices that grpc-go has ended an RPC. If it has, and has not written a trailer, not even an empty one, then
// there was no stream: the call has not left. The end alone, or the missing trailer alone, may be the doing of another
// interceptor.
//
// One that is used again and fires late, as grpc-go does not, could at worst do half of what it takes to call an
// attempt unsent.
type ending struct {
	seen   atomic.Bool
	option grpc.CallOption
}

func newEnding() *ending {
	e := new(ending)
	e.option = grpc.OnFinish(func(error) { e.seen.Store(true) })
	return e
}

// take reports whether the RPC has ended, and forgets it.
func (e *ending) take() bool {
	seen := e.seen.Load()
	if seen {
		e.seen.Store(false)
	}
	return seen
}
