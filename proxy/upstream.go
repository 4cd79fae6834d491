package proxy

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h1"
)

// read reads what comes next for a, into the connection's input. It waits until the attempt's time is up, the client
// has left, or a copy of the attempt has won.
func (a *answer) read() error {
	c, r := a.conn, a.req
	for {
		now := core.Now()
		followBody(a, now)
		if now >= a.until {
			return &timeLimitError{"no answer"}
		}
		c.setReadDeadline(r.plane.clock, now, min(a.until, nextLook(a, now), reminder(a)))
		n, err := c.nc.Read(c.in.space())
		if c.in.w += n; n > 0 {
			return nil
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.readBy = 0
			if a.cancelled.Load() || r.gone() {
				return errGone
			}
			if a.resp.Status < 200 { // a 100 behind the head of the final answer would be content
				remind(a, core.Now())
			}
		default:
			return err
		}
	}
}

// converse writes the request and waits for the first bytes of the answer. Both in one wait of the runtime's poller:
// it is told that the connection has nothing to read, and only then does the request go out, so that no answer can be
// missed, and none that was not asked for is taken. It saves a look at the connection before, and a read in vain
// after.
func (a *answer) converse() error {
	c := a.conn
	c.asked, c.wrote, c.failed = false, 0, nil
	for now := a.head.now; !c.asked; now = core.Now() {
		if now >= a.until {
			return &timeLimitError{"nothing sent"}
		}
		c.setReadDeadline(a.req.plane.clock, now, min(a.until, later(now, glance)))
		err := c.raw.Read(c.turn)
		switch {
		case c.failed != nil:
			return c.failed
		case a.cancelled.Load():
			return errGone
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.readBy = 0 // read goes on waiting
		case err != nil:
			return err
		}
	}
	if c.wrote < len(c.out) { // the socket is full: a rare case for small requests
		a.hurry(c)
		_, err := c.nc.Write(c.out[c.wrote:])
		if c.cut = err != nil; c.cut && !answered(c) {
			return err
		}
	}
	return nil
}

// hurry bounds the time for a write that may have to wait.
func (a *answer) hurry(c *upstreamConn) {
	p := a.req.plane
	c.hurried = true
	c.nc.SetWriteDeadline(p.clock.time(min(a.until, later(core.Now(), p.config.StallTimeout))))
}

// roundTrip sends the request on a connection and reads the head of the answer.
func (a *answer) roundTrip() error {
	c := a.conn
	c.out = a.head.appendRequest(c.out[:0], a.to)
	body := a.body
	if body.kind == inMemory {
		c.out = body.appendTo(c.out)
	}
	if c.turn != nil && c.security == nil && body.kind != streamed && len(c.out) <= bufferSize {
		err := a.converse()
		if a.sent = c.asked; err == io.EOF {
			return errClosedEarly
		} else if err != nil {
			return err
		}
		return a.awaitHead()
	}
	return a.sendLong()
}

// sendLong sends a request that is too long for one write, or whose body is still coming.
func (a *answer) sendLong() error {
	c := a.conn
	if c.security == nil && c.raw != nil && !silent(c.raw) {
		return errStale
	}
	a.sent = true
	if len(c.out) > bufferSize {
		a.hurry(c)
	}
	_, err := c.nc.Write(c.out)
	if cap(c.out) > 2*bufferSize {
		c.out = nil
	}
	if c.cut = err != nil; c.cut && !answered(c) {
		return err
	}
	if a.body.kind == streamed {
		a.body.send(c)
	}
	return a.awaitHead()
}

// maxInterim is how many informational answers an attempt may bring.
const maxInterim = 16

// awaitHead reads the head of the final answer, and passes informational ones on.
func (a *answer) awaitHead() error {
	c, r := a.conn, a.req
	for interim := 0; ; interim++ {
		head, err := a.readHead()
		if err != nil {
			return err
		}
		if bad := a.resp.Parse(head, string(r.Method) == "HEAD"); bad != nil {
			return &badAnswerError{bad.Problem}
		}
		c.in.take(len(head))
		switch status := a.resp.Status; {
		case status >= 200 || status == 101 && r.Upgrade != nil:
			a.begin()
			return nil
		case status == 101:
			return &badAnswerError{"101 Switching Protocols, which nobody asked for"}
		case interim >= maxInterim:
			return &badAnswerError{"more than 16 informational answers"}
		case status == 100:
			if u := a.body.upload; u != nil && !u.granted {
				r.client.interim(100, nil)
				u.grant()
			}
		case a.alone:
			r.client.interim(status, a.resp.Fields)
		}
	}
}

// badAnswerError is an answer that is not HTTP, or a trick.
type badAnswerError struct{ problem string }

func (e *badAnswerError) Error() string { return "malformed answer: " + e.problem }

func (a *answer) readHead() ([]byte, error) {
	c := a.conn
	for scanned := 0; ; {
		if u := c.in.unread(); len(u) > scanned {
			n, bad := h1.HeadEnd(u, scanned)
			switch {
			case bad != nil:
				return nil, &badAnswerError{bad.Problem}
			case n > 0:
				return u[:n], nil
			}
			scanned = len(u)
		}
		if c.in.buf != nil && c.in.w == len(*c.in.buf) && !c.in.grow() {
			return nil, &badAnswerError{"its head is longer than 64 KiB"}
		}
		if err := a.read(); err != nil {
			if err == io.EOF && len(c.in.unread()) == 0 {
				return nil, errClosedEarly
			} else if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}

// reminder is when the body of a is sent although the service has not asked for it: before the attempt has to end.
func reminder(a *answer) time.Duration {
	u := a.body.upload
	if u == nil || u.granted || a.resp.Status >= 200 {
		return core.NoDeadline
	}
	wait := continueWait
	if a.patience > 0 {
		wait = min(wait, a.patience/2)
	}
	return later(u.began, wait)
}

// remind grants what the service has not answered for so long, and tells the client.
func remind(a *answer, now time.Duration) {
	if now >= reminder(a) {
		a.req.client.interim(100, nil)
		a.body.upload.grant()
	}
}
