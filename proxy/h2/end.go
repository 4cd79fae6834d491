package h2

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/abate-go/abate/core"
)

// netError is the end of a connection that the protocol knows nothing of.
type netError struct {
	problem string
	cause   error
}

func (e *netError) Error() string {
	if e.cause != nil {
		return "HTTP/2: " + e.problem + ": " + e.cause.Error()
	}
	return "HTTP/2: " + e.problem
}

func (e *netError) Unwrap() error { return e.cause }

// Drain has the connection take no new streams and end after the last one. A server announces that to its client in two
// steps, so that no request that is on its way is lost: RFC 9113 §6.8. It does not wait: see Done.
func (c *Conn) Drain() {
	c.mu.Lock()
	if c.dead || c.draining != not {
		c.mu.Unlock()
		return
	}
	c.drain(core.Now())
	c.endIfOver()
	c.announce()
}

// drain begins to drain. mu is held.
func (c *Conn) drain(now time.Duration) {
	if !c.server {
		c.sayLast()
		return
	}
	c.draining, c.drainAt, c.closing = saidFirst, now, true
	c.out.goAway(maxStreamID, NoError, "")
	c.out.ping(0, drainPing)
	c.alarm.set(now + drainWait)
}

// sayLast says for good which streams are the last. mu is held.
func (c *Conn) sayLast() {
	c.draining, c.closing, c.streams.final = saidLast, true, true
	c.out.goAway(c.streams.lastOfPeer(), NoError, "")
}

// endIfOver ends the connection if it drains and there is nothing left, and writes out what there is. mu is held, and
// free afterwards.
func (c *Conn) endIfOver() {
	over := c.draining == saidLast || !c.server && c.closing
	if !over || c.busy() > 0 || c.dead {
		c.flushAndUnlock()
		return
	}
	c.fail(c.broken)
}

// announce calls OnClosing, once, when the connection takes no new streams. mu is not held.
func (c *Conn) announce() {
	c.mu.Lock()
	due := c.closing && !c.announced && c.config.OnClosing != nil
	c.announced = c.announced || due
	c.mu.Unlock()
	if due {
		c.config.OnClosing(c)
	}
}

// Close ends the connection, and all its streams with it. It does not wait.
func (c *Conn) Close() {
	c.mu.Lock()
	c.fail(errClosed)
}

// fail ends the connection for everybody on this side; err is nil if in good order. The goroutine that reads closes the
// socket. mu is held, and free afterwards.
func (c *Conn) fail(err error) {
	if c.dead {
		c.mu.Unlock()
		return
	}
	c.dead, c.closing, c.err = true, true, err
	c.alarm.stop()
	ours, said := err.(*ConnError)
	c.polite = err == nil || said
	if !c.polite {
		c.writer.mute = true // but for the end of a frame
	}
	if said && !ours.Peer {
		c.out.goAway(c.streams.lastOfPeer(), ours.Code, ours.Problem)
	}
	var hooked []*Stream
	for _, s := range c.streams.open {
		s.fail(c.endOf(s))
		c.streams.remove(s)
		s.pins++
		hooked = append(hooked, s)
	}
	c.line.wakeAll()
	c.workers.dismiss()
	close(c.done)
	c.mu.Unlock()
	c.nc.SetReadDeadline(time.Unix(1, 0))
	for _, s := range hooked {
		s.callHook()
	}
	c.unpin(hooked...)
	c.announce()
}

// endOf returns what the end of the connection means to a stream. Where the end is polite, what waits is still written,
// so no stream is refused. mu is held.
func (c *Conn) endOf(s *Stream) *StreamError {
	e := &StreamError{Code: Cancel, Cause: c.err, Refused: !c.server && !c.polite && s.at >= c.writer.handed}
	var why *ConnError
	if errors.As(c.err, &why) {
		e.Code = why.Code
	}
	if c.goneAway != nil && c.err == io.ErrUnexpectedEOF {
		e.Code, e.Peer, e.Cause = c.goneAway.Code, true, c.goneAway
	}
	return e
}

// lastWords is how long a client reads on when it can no longer write.
const lastWords = time.Second

// writeFailed ends the connection. A client that has requests under way reads first what is there: the server's GOAWAY,
// or its answer, may have come before the reset that the write met, and it says which requests may be sent again. mu is
// held, and free afterwards.
func (c *Conn) writeFailed(err error) {
	why := &netError{"write", err}
	if c.server || c.dead || c.busy() == 0 {
		c.fail(why)
		return
	}
	c.broken, c.closing, c.writer.mute = why, true, true
	c.line.wakeHeads()                              // they go elsewhere
	c.nc.SetReadDeadline(time.Now().Add(lastWords)) // under the lock: a fail that follows ends the reading at once
	c.mu.Unlock()
	c.announce()
}

// readFailed returns why the connection ended, by an error of a read. mu is held.
func (c *Conn) readFailed(err error) error {
	switch {
	case c.broken != nil && (err != io.EOF || c.goneAway == nil):
		return c.broken
	case err != io.EOF:
		return &netError{"read", err}
	case c.busy() > 0:
		return io.ErrUnexpectedEOF
	case c.goneAway != nil && c.goneAway.Code != NoError:
		return c.goneAway
	}
	return nil
}

// goodbye writes out what there is and closes the socket, so that the peer gets all of it: what it has sent and nobody
// has read would have the kernel reset the connection. mu is not held.
func (c *Conn) goodbye() {
	c.mu.Lock()
	polite := c.polite
	var quiet <-chan struct{}
	if polite {
		c.nc.SetWriteDeadline(time.Now().Add(time.Second))
		c.flushAndUnlock()
		c.mu.Lock()
		quiet = c.writer.done()
	}
	c.mu.Unlock()
	if quiet != nil {
		<-quiet
	}
	if polite {
		linger(c.nc)
	}
	c.nc.Close()
	c.mu.Lock()
	c.writer.release()
	c.mu.Unlock()
}

// linger reads for a moment what the peer still sends.
func linger(nc net.Conn) {
	half, ok := nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	nc.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	scratch := newChunk(classes[2])
	defer scratch.put()
	for read := 0; read < 256<<10; {
		n, err := nc.Read(scratch.b[:cap(scratch.b)])
		if read += n; err != nil {
			return
		}
	}
}
