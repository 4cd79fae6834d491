package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/nowait"
)

// clientSocket is the bytes of a client's connection: what is read of them and not used yet, and until when reads and
// writes wait.
type clientSocket struct {
	clock *instant
	stall time.Duration // StallTimeout
	nc    net.Conn
	tcp   *net.TCPConn    // nc, if it is one
	raw   syscall.RawConn // of nc, if it is a socket without TLS
	under *underTLS       // nil without TLS
	ready func(fd uintptr) bool
	rerr  error // of the last call of ready
	in    input
	lends lendingConn // the connection, below TLS if that is spoken

	// until when the first request over TLS is waited for while the proxy drains; 0 behind that
	grace           time.Duration
	readBy, writeBy time.Duration // the deadlines set on the socket, on the guards' clock; 0 when none
}

// underTLS is the connection below TLS, for what TLS cannot tell; nil if it is no socket.
type underTLS struct{ raw syscall.RawConn }

// halfConn is a connection of which one direction can be ended: TCP, or a Unix socket.
type halfConn interface {
	net.Conn
	CloseWrite() error
}

// conn is what the content of a request is read from, and answers are written to.
func (s *clientSocket) conn() net.Conn {
	if s.lends.loan != nil && s.under == nil {
		return &s.lends
	}
	return s.nc
}

// write writes what fits into the socket without the scheduler, which most answers do: then it needs no deadline. One
// that was set before is moved first, since a write fails once it has passed.
func (s *clientSocket) write(p []byte) (err error) {
	n := 0
	if s.raw != nil && s.writeBy == 0 {
		if n, err = s.lends.offer(p); err != nil || n == len(p) {
			return err
		}
	}
	s.setWriteDeadline()
	if s.under != nil {
		_, err = s.nc.Write(p)
	} else {
		_, err = s.lends.Write(p[n:])
	}
	return err
}

// bare is the client's connection, under TLS if that is spoken; nil if it is no socket.
func (s *clientSocket) bare() halfConn {
	c, _ := s.lends.Conn.(halfConn)
	return c
}

// setReadDeadline sees to it that a read does not wait past until, which is after now. It may wake earlier.
func (s *clientSocket) setReadDeadline(now, until time.Duration) {
	if s.readBy <= now || s.readBy > until {
		s.nc.SetReadDeadline(s.clock.time(until))
		s.readBy = until
	}
}

// setWriteDeadline gives the client at least half of StallTimeout to take what is written next.
func (s *clientSocket) setWriteDeadline() {
	now, stall := core.Now(), s.stall
	if s.writeBy < now+stall/2 {
		s.writeBy = now + stall
		s.nc.SetWriteDeadline(s.clock.time(s.writeBy))
	}
}

// read reads what there is into the input. On a TCP socket the buffer is taken when there is something: a connection
// that waits holds none.
func (s *clientSocket) read() error {
	if s.raw == nil {
		n, err := s.nc.Read(s.in.space())
		if s.in.w += n; n > 0 {
			err = nil
		}
		return err
	}
	if err := s.raw.Read(s.ready); err != nil {
		return err
	}
	return s.rerr
}

// wakes reports whether await can wait.
func (s *clientSocket) wakes() bool { return nowait.Possible && s.bottom() != nil }

// bottom is the socket, under TLS if that is spoken; nil if it is none.
func (s *clientSocket) bottom() syscall.RawConn {
	if s.under != nil {
		return s.under.raw
	}
	return s.raw
}

// await waits until there is something to read, or the end of the connection or of the time. It reads nothing: it is
// where idle connections wait, on a stack that has to stay small.
func (s *clientSocket) await() { _ = s.bottom().Read(nowait.Readable) }

// glimpse reads a request that has come already and does not wait for one. What has come before a drain is answered.
func (s *clientSocket) glimpse(dismissed *atomic.Bool) error {
	if s.under != nil {
		return s.glimpseTLS(dismissed)
	}
	err := io.EOF
	if s.raw != nil {
		s.raw.Control(func(fd uintptr) {
			if s.readReady(fd) {
				err = s.rerr
			}
		})
	}
	return err
}

// glimpseTLS is glimpse where TLS is spoken, which may have read the request already. What has come of a record is
// worth a moment: the rest is on its way. Whoever dismisses the client may end a read that looks, and on a busy machine
// the moment may be over before it begins: so it is over only where nothing is left to read. Whoever has just begun TLS
// is waited for, unless others need the room.
func (s *clientSocket) glimpseTLS(dismissed *atomic.Bool) error {
	for began := core.Now(); ; {
		rest, until := s.lends.records.restBy(), time.Unix(1, 0)
		if s.readable() {
			until = s.clock.time(later(core.Now(), glance))
		} else if by := max(s.grace, rest); by > core.Now() {
			until = s.clock.time(by)
		}
		s.readBy = 0
		s.nc.SetReadDeadline(until)
		if dismissed.Load() { // looked at behind that: its deadline must stand
			if s.grace = 0; !s.readable() && rest <= core.Now() {
				s.nc.SetReadDeadline(time.Unix(1, 0))
			}
		}
		n, err := s.nc.Read(s.in.space())
		now := core.Now()
		switch s.in.w += n; {
		case n > 0:
			return nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		case now < s.grace, now < s.lends.records.restBy(), s.readable() && now < later(began, s.stall):
		default:
			return io.EOF
		}
	}
}

// readable reports whether there is something to read on the socket, or its end; false where it cannot be asked.
func (s *clientSocket) readable() (is bool) {
	if raw := s.bottom(); raw != nil {
		_ = raw.Control(func(fd uintptr) { is = nowait.Readable(fd) })
	}
	return is
}

func (s *clientSocket) readReady(fd uintptr) bool {
	n, err := nowait.Read(fd, s.in.space())
	if err == nowait.ErrWouldBlock {
		s.in.release()
		return false
	}
	s.in.w += max(n, 0)
	switch {
	case err != nil:
		s.rerr = os.NewSyscallError("read", err)
	case n <= 0:
		s.rerr = io.EOF
	default:
		s.rerr = nil
	}
	return true
}

// left reports whether the client has closed its connection, or half of it. What it has sent behind its request, and
// nobody has read, must not hide that. Once its request is complete, the alert with which TLS ends tells it too.
func (s *clientSocket) left(complete bool) bool {
	raw := s.bottom()
	if raw == nil {
		return false
	}
	ended, aborted := finished(raw)
	return aborted || ended && complete || hungUp(raw) || s.under != nil && complete && saidGoodbye(raw)
}

// How long, and how much, is read of what a client still sends behind its answer: there are clients that find their
// answer only once they have sent all, and take a reset for its loss.
const (
	lingerTime  = 5 * time.Second
	lingerStill = 500 * time.Millisecond // without a byte
	lingerMost  = 64 << 20
	lingerLeast = 250 * time.Millisecond // however much comes
)

// linger reads for a while what a client still sends after its request has been answered.
func linger(c halfConn) {
	if c.CloseWrite() != nil {
		return
	}
	scratch := buffers.Get().(*[]byte)
	defer buffers.Put(scratch)
	began := core.Now()
	for read, now := 0, began; now < began+lingerTime && (read < lingerMost ||
		now < began+lingerLeast); now = core.Now() {
		c.SetReadDeadline(time.Now().Add(min(lingerStill, began+lingerTime-now)))
		n, err := c.Read(*scratch)
		if read += n; err != nil {
			return
		}
	}
}
