package abategrpc

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/policy/bulkhead"
)

// begin opens the stream: the whole call up to there.
func (s *stream) begin() error {
	s.mu.Lock()
	defer s.unlock()
	s.call.Under(core.CallTreeOf(s.ctx))
	s.call.Watch(core.ObserverOf(s.ctx))
	now, until := core.Now(), core.NoDeadline
	if t, ok := s.ctx.Deadline(); ok {
		until = now + time.Until(t)
	}
	s.limit, s.ends = until, core.NoDeadline
	if own := s.guard.Describe().Timeout; own > 0 && now+own < until {
		s.ends = now + own
	}
	if s.out.earlier > 0 {
		s.call.Repeated()
	}
	step := s.guard.Begin(&s.call, now, until)
	if step.Action != core.Finish {
		// Where the caller leaves without another word, or closes the connection, this gives the permits back.
		s.unwatch = context.AfterFunc(s.ctx, s.abandon)
	}
	return s.drive(step)
}

// drive takes the steps of the call until a try is in the air, which is nil, or the call has ended. mu is held.
func (s *stream) drive(step core.Step) error {
	s.driving = true
	for {
		switch step.Action {
		case core.Attempt:
			t := s.open(step.Until)
			if t.stream != nil {
				s.driving = false
				return nil
			}
			step = s.unopened(t)
		case core.Sleep:
			step = s.sleep(step.Until)
		case core.Queue:
			step = s.queue()
		default:
			s.driving = false
			return s.finish(step.Err)
		}
	}
}

// open makes a try, and sends what was sent already. What goes wrong with that is seen when somebody reads.
func (s *stream) open(until time.Duration) *streamTry {
	t := &streamTry{number: s.call.Attempts(), began: core.Now()}
	allowance, tell := s.call.Delegate(0)
	t.told, t.left = tell, allowance.Left
	ends := s.ends
	if !s.desc.ServerStreams && !s.pace.uploads && until < s.limit { // its first message is its end
		ends = until
	}
	ctx, cancel := s.lasting(ends)
	t.cancel = cancel
	patience := time.Duration(0) // without limit
	if until < min(ends, s.limit) {
		patience = max(until-core.Now(), 1)
		// Not a deadline of the context: that would be the server's as well, and go on after the first message.
		t.timer = time.AfterFunc(patience, t.expire)
	}
	ctx = s.out.context(ctx, s.method, core.Sending{Number: t.number, Allowance: allowance, Announce: tell}, &t.context)
	opts := append(make([]grpc.CallOption, 0, len(s.options)+2), s.options...)
	opts = append(opts, grpc.Trailer(&t.trailer), grpc.OnFinish(func(err error) { s.closedBelow(t, err) }))
	cs, err := s.streamer(ctx, s.desc, s.conn, s.method.name, opts...)
	if err == nil {
		err = s.replay(cs)
	}
	if err != nil {
		t.err = t.translate(err)
		t.end()
		return t
	}
	t.stream = cs
	if s.pace.uploads && (t.timer == nil || t.timer.Stop()) { // until here mu was held, and nobody could pause
		follow(s, t, patience)
	}
	s.try.Store(t)
	return t
}

// replay sends what was sent before.
func (s *stream) replay(cs grpc.ClientStream) error {
	switch err := s.sent.each(cs.SendMsg); {
	case err == io.EOF: // it has ended: who reads will see how
		return nil
	case err != nil:
		return err
	case s.closed:
		return cs.CloseSend()
	}
	return nil
}

// unopened judges a try that brought no stream.
func (s *stream) unopened(t *streamTry) core.Step {
	return s.report(t, s.judge(evidence{again: s.again, unsent: t.closed.Load() && t.trailer == nil}, t.err))
}

// judge classifies the end of a try. An end that the caller made is nobody's failure.
func (s *stream) judge(e evidence, err error) abate.Outcome {
	if err != nil && s.ctx.Err() == context.Canceled {
		return abate.Outcome{Class: abate.Ignored, NoRetry: true, Err: err}
	}
	if t := s.try.Load(); t != nil && err != nil && (t.paused.Load() || s.pace.pauses()) && timedOut(s, err) {
		return abate.Outcome{Class: abate.Ignored, NoRetry: true, Err: err}
	}
	o := s.out.counted(judge(s.guard, e, err))
	o.NoRetry = o.NoRetry || s.sent.lost
	return o
}

// report tells the call, and the observer, of the end of try t. mu is held.
func (s *stream) report(t *streamTry, o abate.Outcome) core.Step {
	if t.number > 1 && s.client.Observer != nil {
		s.client.Observer.RetryAttempt(s.method.name, hops.Code(statusOf(o.Err).Code()).String())
	}
	now := core.Now()
	if s.pace.uploads {
		h := s.pace.of(t)
		h.Tell(&s.call, now, 0)
	}
	return s.call.AttemptDone(now, 0, o)
}

// arrived is told that the first message has come back: the call has succeeded.
func (s *stream) arrived(t *streamTry) {
	s.mu.Lock()
	defer s.unlock()
	whole := !s.desc.ServerStreams
	t.stopTimer()
	s.sent.lose()
	s.settled.Store(true)
	if !s.over {
		s.report(t, s.success(t, whole))
		s.leave()
	}
	switch {
	case whole:
		t.end()
		s.noteEnd(nil)
	case t.closed.Load(): // at the same moment, by the caller: closedBelow has left it to us
		s.noteEnd(t.ending)
	}
}

// success is what the first message says. What the callee has to say of its own attempts comes with the trailer, at the
// end; a callee may show in the header that it has something to say.
func (s *stream) success(t *streamTry, whole bool) (o abate.Outcome) {
	switch {
	case whole:
		o.Below = hops.MostMade(t.stream.Trailer()[madeName])
	case t.told:
		header, _ := t.stream.Header()
		o.Begun = true
		if b := hops.MostMade(header[madeName]); b.Said {
			o.Below = core.Below{Said: true, Made: max(b.Made, t.left)}
		}
	}
	o.Below.Final = false
	o.Unfinished = !whole
	return o
}

// tryEnded is told that reading try t has ended with err. It returns errAgain if another one is in the air, else what
// the caller gets.
func (s *stream) tryEnded(t *streamTry, err error) error {
	s.mu.Lock()
	defer s.unlock()
	err = t.translate(err)
	t.end()
	if s.over {
		s.noteEnd(err)
		return err
	}
	if err == io.EOF {
		s.report(t, s.judge(evidence{trailer: t.stream.Trailer()}, nil))
		s.leave()
		s.settled.Store(true)
		s.noteEnd(nil)
		return err
	}
	step := s.report(t, s.judge(evidence{again: s.again, trailer: t.stream.Trailer()}, err))
	if step.Action == core.Finish {
		return s.finish(step.Err)
	}
	if err = s.drive(step); err == nil {
		return errAgain
	}
	return err
}

// finish ends the call. mu is held.
func (s *stream) finish(err error) error {
	s.leave()
	s.client.noteEnd(s.method, err)
	s.err = wrap(err)
	s.sent.lose()
	s.settled.Store(true)
	s.noteEnd(s.err)
	return s.err
}

// leave notes that the call has ended. mu is held.
func (s *stream) leave() {
	s.over = true
	if s.unwatch != nil {
		s.unwatch()
	}
}

// broken is told that the caller's message could not be sent, for which the server has done nothing.
func (s *stream) broken(err error) {
	s.mu.Lock()
	defer s.unlock()
	t := s.try.Load()
	t.end()
	if !s.over {
		s.report(t, abate.Outcome{Class: abate.Ignored, NoRetry: true, Err: err})
		s.leave()
	}
	s.sent.lose()
	s.settled.Store(true)
	s.noteEnd(err)
}

// closedBelow is called by grpc-go when it has ended try t, on whose goroutine so ever: mu may be held by who called
// this.
func (s *stream) closedBelow(t *streamTry, err error) {
	t.ending = err
	t.paused.Store(s.pace.pauses())
	t.closed.Store(true)
	//lint:ignore SA1019 there is no other way to know that the caller has closed the connection
	closing := errors.Is(err, grpc.ErrClientConnClosing)
	// Who closes a connection, or cancels a stream, need not read it to its end.
	if closing || s.settled.Load() && s.ctx.Err() != nil {
		go func() {
			if closing {
				s.abandon()
			}
			if s.settled.Load() {
				s.letGo(err)
			}
		}()
	}
}

// abandon ends a call whose caller has left without reading the stream to its end, or whose time is up.
func (s *stream) abandon() {
	s.mu.Lock()
	defer s.unlock()
	t := s.try.Load()
	if t == nil { // it was never opened
		return
	}
	late := s.ctx.Err() == context.DeadlineExceeded
	if late { // the try's context ends with the caller's, for the same reason; to cancel it first would name another
		t.stopTimer()
	} else {
		t.end()
	}
	if s.over {
		return
	}
	err := status.FromContextError(context.Canceled).Err()
	o := abate.Outcome{Class: abate.Ignored, NoRetry: true, Err: err}
	if late {
		err = status.FromContextError(context.DeadlineExceeded).Err()
		o = s.judge(evidence{}, err)
		o.NoRetry = true
	}
	s.report(t, o)
	s.leave()
	s.sent.lose()
	s.settled.Store(true)
	s.noteEnd(err)
}

// unlock also does what must not be done under mu, and gives the permits back when a step has panicked.
func (s *stream) unlock() {
	if s.driving { // the step did not return
		s.call.Abort(core.Now())
		s.leave()
	}
	tell := s.telling
	s.telling = nil
	s.changed.Broadcast()
	s.mu.Unlock()
	if tell != nil {
		tell()
	}
}

// letGo ends a stream whose answer nobody will read to its end.
func (s *stream) letGo(err error) {
	s.mu.Lock()
	defer s.unlock()
	s.call.AnswerEnded(core.Now(), nil)
	s.noteEnd(err)
}

// announce calls the caller's OnFinish, once.
func (s *stream) announce(err error) {
	s.mu.Lock()
	defer s.unlock()
	s.noteEnd(err)
}

// noteEnd is announce for who holds mu.
func (s *stream) noteEnd(err error) {
	all := s.onFinish
	if s.onFinish = nil; all == nil {
		return
	}
	if err == io.EOF {
		err = nil
	}
	s.telling = func() {
		for _, f := range all {
			f(err)
		}
	}
}

// sleep waits before a retry. mu is held, so that a sender waits too.
func (s *stream) sleep(until time.Duration) core.Step {
	timer := time.NewTimer(until - core.Now())
	defer timer.Stop()
	select {
	case <-timer.C:
		if s.ctx.Err() == nil {
			return s.call.Resume(core.Now())
		}
	case <-s.ctx.Done():
	}
	return s.call.Cancel(core.Now(), left(s.ctx.Err()))
}

func (s *stream) queue() core.Step {
	admitted := make(chan struct{}, 1)
	w := &bulkhead.Waiter{Wake: func() {
		select {
		case admitted <- struct{}{}:
		default: // there is room for one, and one is all
		}
	}}
	step := s.call.Enqueue(core.Now(), w)
	if step.Action != core.Queued {
		return step
	}
	timer := time.NewTimer(step.Until - core.Now())
	defer timer.Stop()
	for ; step.Action == core.Queued; timer.Reset(step.Until - core.Now()) {
		step = s.await(w, admitted, timer.C)
	}
	return step
}

// await waits until a queued call is woken, its time has come or its caller leaves.
func (s *stream) await(w *bulkhead.Waiter, woken <-chan struct{}, timeout <-chan time.Time) core.Step {
	select {
	case <-woken:
		if s.ctx.Err() == nil {
			return s.call.Admitted(core.Now())
		}
	case <-timeout:
		return s.call.LeaveQueue(core.Now(), w, nil)
	case <-s.ctx.Done():
	}
	return s.call.LeaveQueue(core.Now(), w, left(s.ctx.Err()))
}
