package abategrpc

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
)

// Stream is the interceptor for streams. A stream is repeated, if its method may be, until the first message has come
// back or the caller has seen the header: what was sent until then is kept, up to MaxBuffered, and sent again. A stream
// that could not be opened at all is repeated whatever its method.
//
// For the guard the call ends, as a success, when the first message that comes back is read: the time to the first
// answer is what it learns, and a stream that lasts an hour holds no place of a bulkhead. A stream that fails after
// that is a failure for the circuit breaker, once, when that is read. From there on attemptTimeout is over. In a stream
// of requests with one answer, the time in which the caller sends nothing and has not closed it is the caller's, and
// counts for nobody; if the time of the call is up by then, that is nobody's failure. The
// policy's timeout is the deadline of the whole stream, as that of a service config is, and the server hears of it; a
// stream that may go on for longer needs a guard without one, and one that may stay silent for long a guard without
// attemptTimeout. A stream that ends before its first message is judged by its status. Streams are never hedged.
//
// The rules of grpc.ClientConn.NewStream hold: read a stream to its end, or cancel its context. Either gives all
// permits back.
func (c *Client) Stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, name string,
	streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	m := c.method(name)
	if m.waits {
		opts = append([]grpc.CallOption{waitForReady}, opts...)
	}
	g := c.guardOf(m)
	if g == nil {
		return streamer(ctx, desc, conn, name, opts...)
	}
	s := &stream{client: c, method: m, guard: g, ctx: ctx, streamer: streamer, desc: desc, conn: conn}
	s.changed.L = &s.mu
	s.pace.uploads = desc.ClientStreams && !desc.ServerStreams
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	s.prepare(opts)
	if err := s.begin(); err != nil {
		return nil, err
	}
	return s, nil
}

// stream is what the caller gets: a driver of core.Call, which goes on in the caller's own calls, beside the stream of
// the attempt in the air. While a retry waits and sends again what was sent, mu is held, and a sender waits too.
type stream struct {
	client   *Client
	method   *method
	guard    *abate.Guard
	ctx      context.Context
	streamer grpc.Streamer
	desc     *grpc.StreamDesc
	conn     *grpc.ClientConn
	options  []grpc.CallOption
	onFinish []func(error)
	out      outgoing
	pace     pace
	again    bool          // the stream may be repeated
	limit    time.Duration // the end of the caller's own time
	ends     time.Duration // the end of the policy's timeout, if that is earlier; else NoDeadline

	try     atomic.Pointer[streamTry] // the one in the air, or the last that was
	settled atomic.Bool               // no further try will come: calls go straight to the last

	mu      sync.Mutex
	changed sync.Cond // told when mu is given back after anything below, or try, has changed
	reading bool      // somebody reads a try that may not be the last
	call    core.Call
	over    bool // the call has ended
	driving bool // a step is being taken
	sent    replay
	closed  bool  // by the caller, for sending
	err     error // the end of the stream, if the guard has named it
	unwatch func() bool
	telling func() // the caller that the stream has ended, as soon as mu is free
}

func (s *stream) prepare(opts []grpc.CallOption) {
	p := s.guard.Describe()
	keyed := s.out.open(s.ctx, s.client, p)
	s.again = s.method.repeatable(p, keyed)
	s.sent.limit = -1
	if s.again && p.MaxRetries > 0 {
		s.sent.limit = s.client.bufferLimit()
	}
	for _, o := range opts {
		if f, ok := o.(grpc.OnFinishCallOption); ok {
			s.onFinish = append(s.onFinish, f.OnFinish) // called once, not for every try
		} else {
			s.options = append(s.options, o)
		}
	}
}

// lasting is a context for a try whose time ends then, if it does.
func (s *stream) lasting(ends time.Duration) (context.Context, context.CancelFunc) {
	if ends == core.NoDeadline {
		return context.WithCancel(s.ctx)
	}
	return context.WithTimeout(s.ctx, ends-core.Now())
}

// SendMsg sends a message. While the stream may still be repeated, an end of it that is noticed here is retried at
// once, and io.EOF means, as always, that nothing more need be sent and RecvMsg knows why.
func (s *stream) SendMsg(m any) error {
	t := s.try.Load()
	if !s.settled.Load() {
		s.mu.Lock()
		if !s.settled.Load() {
			s.sent.add(m)
		}
		t = s.try.Load()
		s.mu.Unlock()
	}
	s.pace.begins()
	err := t.stream.SendMsg(m)
	s.pace.ends()
	switch {
	case err == nil:
		return nil
	case err != io.EOF:
		s.broken(err)
		return err
	case s.resent(t):
		return nil
	}
	return io.EOF
}

// resent is told that try t has ended while the caller sent. It reports whether another has taken its place, and has
// been sent all that t has.
func (s *stream) resent(t *streamTry) bool {
	if s.try.Load() != t { // whoever reads was quicker
		return !s.ended()
	}
	if s.settled.Load() {
		return false
	}
	if md, _ := t.stream.Header(); md != nil {
		// An answer has begun: messages may wait to be read, and only RecvMsg knows where they go. It must not repeat the
		// stream any more, since its caller stops sending now.
		s.commit(t)
	}
	s.probe(t)
	return s.try.Load() != t && !s.ended()
}

func (s *stream) commit(t *streamTry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.try.Load() == t {
		s.sent.lose()
	}
}

// probe finds out how try t has ended, which has, without an answer: there can be no message to read, so any will do to
// be given the status. If the stream is to be repeated, it has been when probe returns.
func (s *stream) probe(t *streamTry) {
	s.mu.Lock()
	stale := func() bool { return s.over || s.sent.lost || s.try.Load() != t }
	for s.reading && !stale() { // who reads t sees the same end, and acts on it; it may then read the next one for long
		s.changed.Wait()
	}
	if stale() {
		s.mu.Unlock()
		return
	}
	s.reading = true
	s.mu.Unlock()
	defer s.stopReading()
	if err := t.stream.RecvMsg(new(emptypb.Empty)); err != nil {
		s.tryEnded(t, err)
	}
}

func (s *stream) startReading() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.reading {
		s.changed.Wait()
	}
	s.reading = true
}

func (s *stream) stopReading() {
	s.mu.Lock()
	defer s.unlock()
	s.reading = false
}

func (s *stream) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}

// CloseSend tells the server that nothing more will be sent.
func (s *stream) CloseSend() error {
	s.mu.Lock()
	s.closed = true
	s.pace.close()
	t := s.try.Load()
	s.mu.Unlock()
	return t.stream.CloseSend()
}

// RecvMsg reads a message.
func (s *stream) RecvMsg(m any) error {
	if s.settled.Load() {
		return s.readSettled(m)
	}
	s.startReading()
	defer s.stopReading()
	for {
		t, err := s.readable()
		if err != nil {
			return err
		}
		if err = t.stream.RecvMsg(m); err == nil {
			s.arrived(t)
			return nil
		}
		if err = s.tryEnded(t, err); err != errAgain {
			return err
		}
	}
}

// errAgain says that another try is in the air.
var errAgain = errors.New("again")

// readable returns the try to read from, or the end of the stream.
func (s *stream) readable() (*streamTry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.try.Load(), s.err
}

// readSettled reads from the last try, when the guard has nothing more to say.
func (s *stream) readSettled(m any) error {
	t, err := s.readable()
	if err != nil {
		return err
	}
	if err = t.stream.RecvMsg(m); err != nil {
		err = t.translate(err)
		t.end()
		s.brokeOff(t, err)
		s.announce(err)
	}
	return err
}

// brokeOff tells the guard how a stream ended that had counted as a success with its first message. One whose own time
// is up has not broken off: how long a caller wants a stream says nothing about the server.
func (s *stream) brokeOff(t *streamTry, err error) {
	var failure error
	if err != io.EOF && !timedOut(s, err) {
		if o := s.judge(evidence{trailer: t.stream.Trailer()}, err); o.Class == abate.Failure || o.Class == abate.Overload {
			failure = err
		}
	}
	s.mu.Lock()
	defer s.unlock()
	s.call.AnswerEnded(core.Now(), failure)
}

// Header waits for the header of the answer. Who has seen it gets no other: from then on the stream is not repeated.
func (s *stream) Header() (metadata.MD, error) {
	for {
		t, err := s.readable()
		if err != nil {
			return nil, nil // as in grpc-go: RecvMsg says it
		}
		md, err := t.stream.Header()
		if md != nil || s.settled.Load() {
			s.commit(t)
			return md, err
		}
		if s.probe(t); s.try.Load() == t {
			return nil, err
		}
	}
}

// Trailer returns the trailer of the last try.
func (s *stream) Trailer() metadata.MD {
	return s.try.Load().stream.Trailer()
}

// Context returns the context of the try in the air. As in grpc-go, who asks for it gets no other.
func (s *stream) Context() context.Context {
	t := s.try.Load()
	s.commit(t)
	return t.stream.Context()
}

var _ grpc.ClientStream = (*stream)(nil)

// left names the end of a call's context.
func left(err error) error {
	if err == context.DeadlineExceeded {
		return abate.ErrDeadline
	}
	return err
}
