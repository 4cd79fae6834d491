package proxy

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h2"
)

// streamConn is the connection inside a stream of HTTP/2, after CONNECT. One goroutine may read from it while another
// writes to it.
type streamConn struct {
	s    *h2.Stream
	peer netip.Addr
	data []byte // read and not taken

	mu    sync.Mutex
	until time.Duration // for reads
	over  bool          // the deadline lies in the past
	ended bool          // this side is
}

func newStreamConn(s *h2.Stream, peer netip.Addr) *streamConn {
	return &streamConn{s: s, peer: peer, until: core.NoDeadline}
}

func (c *streamConn) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		c.mu.Lock()
		until := c.until
		c.mu.Unlock()
		data, err := c.s.Next(until)
		if err != nil {
			return 0, c.because(err)
		}
		c.data = data
	}
	n := copy(p, c.data)
	c.data = c.data[n:]
	return n, nil
}

// because is the error of a read as those of sockets are.
func (c *streamConn) because(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(err, h2.ErrTimeUp) || errors.Is(err, h2.ErrInterrupted) && c.over {
		return os.ErrDeadlineExceeded
	}
	return err
}

// Write sends p at once.
func (c *streamConn) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := c.s.Write(p, false, core.NoDeadline); err != nil {
		return 0, err
	}
	c.s.Flush()
	return len(p), nil
}

// CloseWrite ends this side of the stream.
func (c *streamConn) CloseWrite() error {
	c.mu.Lock()
	ended := c.ended
	c.ended = true
	c.mu.Unlock()
	if ended {
		return nil
	}
	return c.s.Write(nil, true, core.NoDeadline)
}

// Close breaks the stream off, unless both sides have ended it.
func (c *streamConn) Close() error {
	c.s.Reset(h2.Cancel)
	return nil
}

// SetReadDeadline ends reads that wait if t lies in the past, and has those to come wait until then otherwise.
func (c *streamConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	c.until, c.over = core.NoDeadline, false
	if !t.IsZero() {
		left := time.Until(t)
		c.until, c.over = later(core.Now(), left), left <= 0
	}
	over := c.over
	c.mu.Unlock()
	if over {
		c.s.StopReading()
	} else {
		c.s.ReadOn()
	}
	return nil
}

// SetWriteDeadline does nothing: a write waits for StallTimeout at most.
func (c *streamConn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline is SetReadDeadline.
func (c *streamConn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// LocalAddr is none of its own.
func (c *streamConn) LocalAddr() net.Addr { return &net.TCPAddr{} }

// RemoteAddr has no port: its connection has others beside it.
func (c *streamConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: c.peer.AsSlice()}
}

var _ io.ReadWriteCloser = (*streamConn)(nil)
