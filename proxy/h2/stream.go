package h2

import (
	"io"
	"sync"
	"time"
)

// Stream is one request and its answer. One goroutine may read from it while another writes to it; Reset, Interrupt,
// StopReading, Gone and Err are for any.
type Stream struct {
	conn    *Conn
	id      uint32
	head    Head // received
	got     fields
	trailer []Field
	infos   []*Head // informational heads that nobody has asked for yet
	began   time.Duration

	// The mutex of the connection guards what follows.

	in, cur   *chunk // content that has come, and that Next has returned
	inflow    inflow
	left      int64  // content that is to come, -1 when not known
	headBytes int    // of the request; on the client's side, of informational heads
	at        uint64 // where it begins among all that is sent

	listed      bool // in the table of the connection
	headDone    bool // the head has been received
	recvEnded   bool
	headSent    bool
	sendEnded   bool
	interrupted bool
	halted      bool // nobody wants to read more
	peeked      bool // cur was shown by Buffered, and Next has to return it still
	toHead      bool // the answer to HEAD has no content
	finished    bool // nobody uses it any more, but for the pins
	pins        int  // for which the goroutine that reads needs it
	err         *StreamError
	recv        waiter
	send        sender

	hookMu sync.Mutex // held while the hook runs
	hook   func()
}

// Head is the head of the request, on the server's side.
func (s *Stream) Head() *Head { return &s.head }

// AwaitHead waits for the head of the answer, on the client's side. It returns informational heads (1xx) too, one with
// each call, and then always the final one. The error is ErrTimeUp, ErrInterrupted or a *StreamError.
func (s *Stream) AwaitHead(until time.Duration) (*Head, error) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if len(s.infos) > 0 {
			info := s.infos[0]
			s.infos = s.infos[1:]
			return info, nil
		}
		if s.headDone {
			return &s.head, nil
		}
		if err := s.awaitInput(until); err != nil {
			return nil, err
		}
	}
}

// awaitInput waits for something to read. mu is held.
func (s *Stream) awaitInput(until time.Duration) error {
	switch {
	case s.err != nil:
		return s.err
	case s.interrupted || s.halted:
		return ErrInterrupted
	case !s.conn.wait(&s.recv, until):
		return ErrTimeUp
	}
	return nil
}

// Next waits for content and returns all that has come and not been returned. It is valid until the next call of Next
// or Buffered; then its window goes back to the peer. The error is io.EOF at the end of the content, ErrTimeUp,
// ErrInterrupted or a *StreamError.
func (s *Stream) Next(until time.Duration) ([]byte, error) {
	c := s.conn
	c.mu.Lock()
	if s.peeked {
		s.peeked = false
		c.mu.Unlock()
		return s.cur.b, nil
	}
	told := s.giveBack()
	for s.in == nil {
		err := io.EOF
		if !s.recvEnded {
			err = s.awaitInput(until)
		}
		if err != nil {
			c.mu.Unlock()
			return nil, err
		}
	}
	s.cur, s.in = s.in, nil
	data := s.cur.b
	if told {
		c.flushAndUnlock()
	} else {
		c.mu.Unlock()
	}
	return data, nil
}

// Buffered returns what Next would return without waiting, and whether that reaches the end of the content. Next will
// return it again. It is valid until the next call of Next or Buffered.
func (s *Stream) Buffered() (data []byte, complete bool) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	return s.buffered()
}

// Take is Next without a wait. It returns the content that has come and was not returned, nil if there is none, and
// whether that reaches the end of the content. It is valid until the next call of Take, Next or Buffered.
func (s *Stream) Take() (data []byte, complete bool) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	data, complete = s.buffered()
	s.peeked = false
	return data, complete
}

// buffered is Buffered with mu held.
func (s *Stream) buffered() (data []byte, complete bool) {
	switch {
	case !s.peeked:
		s.giveBack() // goes out with what follows
		s.cur, s.in = s.in, nil
		s.peeked = s.cur != nil
	case s.in != nil:
		s.cur = s.cur.room(len(s.in.b))
		s.cur.b = append(s.cur.b, s.in.b...)
		s.in.put()
		s.in = nil
	}
	if s.cur != nil {
		data = s.cur.b
	}
	return data, s.recvEnded
}

// giveBack gives the window of the content that Next has returned back to the peer, and reports whether a frame says so
// now. mu is held.
func (s *Stream) giveBack() (told bool) {
	if s.cur == nil {
		return false
	}
	n := len(s.cur.b)
	s.cur.put()
	s.cur = nil
	told = s.conn.giveBack(n)
	if s.recvEnded || !s.listed {
		return told
	}
	more := s.inflow.giveBack(n)
	if more == 0 {
		return told
	}
	if s.in == nil { // it is read as fast as it comes
		more += s.inflow.grow(s.conn.config.MaxStreamWindow)
	}
	s.conn.out.window(s.id, more)
	return true
}

// Trailer returns the fields behind the content. It is nil before Next has returned io.EOF or Buffered was complete,
// and if there are none.
func (s *Stream) Trailer() []Field {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return s.trailer
}

// Gone reports whether the stream has ended early: the peer has reset it, the connection has ended, or this side has
// given it up.
func (s *Stream) Gone() bool {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return s.err != nil
}

// Err returns why the stream ended early: a *StreamError, or nil.
func (s *Stream) Err() error {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.err == nil {
		return nil
	}
	return s.err
}

// fail ends the stream on this side. Complete content can still be read, and so can what has come of an answer: the
// caller may be able to use a part. mu is held.
func (s *Stream) fail(e *StreamError) {
	if s.err == nil {
		s.err = e
	}
	if s.in != nil && !s.recvEnded && s.conn.server {
		s.conn.giveBack(len(s.in.b))
		s.in.put()
		s.in = nil
	}
	s.recv.wake()
	s.send.wake()
}

// release ends the use of a stream by the caller of Close, or by its handler. mu is held.
func (s *Stream) release() {
	s.peeked = false
	s.giveBack()
	if s.in != nil {
		s.conn.giveBack(len(s.in.b))
		s.in.put()
		s.in = nil
	}
	if s.conn.server {
		s.conn.streams.heads -= s.headBytes
	}
	s.finished = true
	if s.pins == 0 {
		s.recycle()
	}
}

// Interrupt ends all waits on the stream, those under way and those to come, with ErrInterrupted.
func (s *Stream) Interrupt() {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	s.interrupted = true
	s.recv.wake()
	s.send.wake()
}

// StopReading ends all waits for content or a head, those under way and those to come, with ErrInterrupted.
func (s *Stream) StopReading() {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	s.halted = true
	s.recv.wake()
}

// ReadOn undoes StopReading.
func (s *Stream) ReadOn() {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	s.halted = false
}

// OnGone calls f, once, when the peer resets the stream or the connection ends; at once if that has happened. f must
// not wait, nor call OnGone. When OnGone(nil) returns, f is not running and will not be called.
func (s *Stream) OnGone(f func()) {
	s.hookMu.Lock()
	s.hook = f
	s.hookMu.Unlock()
	if f != nil && s.Gone() {
		s.callHook()
	}
}

func (s *Stream) callHook() {
	s.hookMu.Lock()
	defer s.hookMu.Unlock()
	if f := s.hook; f != nil {
		s.hook = nil
		f()
	}
}

// streamPool holds streams that nobody uses.
var streamPool = sync.Pool{New: func() any { return new(Stream) }}

// How much of its memory a stream keeps for the next one.
const (
	keptArena  = 4 << 10
	keptFields = 64
)

// recycle puts a stream into the pool. Nobody may refer to it any more.
func (s *Stream) recycle() {
	for _, c := range [...]*chunk{s.in, s.cur} {
		if c != nil {
			c.put()
		}
	}
	arena, list := s.got.arena[:0], s.got.list[:0]
	if cap(arena) > keptArena {
		arena = nil
	}
	if cap(list) > keptFields {
		list = nil
	}
	*s = Stream{got: fields{arena: arena, list: list}}
	streamPool.Put(s)
}

// newStream returns a stream of c. Streams hold no channels: those belong to a bubble in tests with virtual time.
func newStream(c *Conn) *Stream {
	s := streamPool.Get().(*Stream)
	s.conn, s.recv.woken.L, s.send.woken.L = c, &c.mu, &c.mu
	return s
}
