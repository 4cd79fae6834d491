package abategrpc

import (
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/abate-go/abate/core"
)

// pace is how far the caller of a client stream is. Until he has closed it for sending the server has nothing to say:
// while he sends nothing the time is his, and nobody takes it for the server's. While a message of his is not taken, it
// is the server's.
type pace struct {
	uploads bool         // the stream is one of requests, with one answer
	closed  atomic.Bool  // for sending
	sending atomic.Int64 // since when a message is on its way; 0 for none
	sent    atomic.Int64 // when the last one was, or the stream was closed
}

// begins says that a message is being sent.
func (p *pace) begins() {
	if p.uploads {
		p.sending.Store(int64(core.Now()))
	}
}

// ends says that it has been.
func (p *pace) ends() {
	if p.uploads {
		p.sent.Store(int64(core.Now()))
		p.sending.Store(0)
	}
}

// close says that nothing more will be sent.
func (p *pace) close() {
	if p.uploads && !p.closed.Load() {
		p.sent.Store(int64(core.Now()))
		p.closed.Store(true)
	}
}

// pauses reports whether it is the caller who is waited for.
func (p *pace) pauses() bool { return p.uploads && !p.closed.Load() && p.sending.Load() == 0 }

// of is how far the server of try t has the request.
func (p *pace) of(t *streamTry) core.Handover {
	moved := p.sent.Load()
	if began := p.sending.Load(); began != 0 {
		moved = began
	}
	return core.Handover{Began: t.began, Moved: time.Duration(moved), Asks: p.pauses()}
}

// glance is how often it is looked where a stream stands.
const glance = 250 * time.Millisecond

// follow has the guard know of the pauses of try t, whose server has patience for its part; 0 for any. mu is held.
func follow(s *stream, t *streamTry, patience time.Duration) {
	t.patience = patience
	t.timer = time.AfterFunc(tell(s, t), func() {
		s.mu.Lock()
		defer s.unlock()
		if s.over || s.try.Load() != t {
			return
		}
		if again := tell(s, t); again > 0 {
			t.timer.Reset(again)
			return
		}
		t.expire()
	})
}

// tell tells the guard where try t stands. It returns when to look again, 0 if its server's time is up. mu is held.
func tell(s *stream, t *streamTry) (again time.Duration) {
	now, h := core.Now(), s.pace.of(t)
	h.Tell(&s.call, now, glance)
	if h.Asks {
		return glance
	}
	return max(min(glance, h.Until(now, t.patience, core.NoDeadline)-now), 0)
}

// timedOut reports whether err, with which try t has ended, says that the time of the call is up.
func timedOut(s *stream, err error) bool {
	return core.Outlived(&s.call, core.Now(), statusOf(err).Code() == codes.DeadlineExceeded)
}
