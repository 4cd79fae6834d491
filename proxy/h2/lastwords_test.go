package h2_test

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/abate-go/abate/proxy/h2"
)

// lame is a connection on which, from some moment on, nothing can be written. The reset of a peer that has closed its
// socket has that effect, whatever the peer sent before.
type lame struct {
	net.Conn
	broken atomic.Bool
}

func (l *lame) Write(p []byte) (int, error) {
	if l.broken.Load() {
		return 0, syscall.EPIPE
	}
	return l.Conn.Write(p)
}

// A client reads what a server sent before its end even if a write fails first: which requests it has not handled, or
// an answer.
func TestLastWordsAreHeardAfterAFailedWrite(t *testing.T) {
	for name, c := range map[string]struct {
		words func(r *raw)
		hears func(t *testing.T, s *h2.Stream)
	}{
		"GOAWAY": {
			func(r *raw) { r.WriteGoAway(0, http2.ErrCodeNo, nil) },
			func(t *testing.T, s *h2.Stream) {
				_, err := s.AwaitHead(in(patience))
				if end := (*h2.StreamError)(nil); !errors.As(err, &end) || !end.Refused || !end.Peer {
					t.Errorf("the request may be sent again, got %v", err)
				}
			},
		},
		"an answer": {
			func(r *raw) { r.headers(1, true, r.fields(":status", "200")) },
			func(t *testing.T, s *h2.Stream) {
				if head, err := s.AwaitHead(in(patience)); err != nil || head.Status != 200 {
					t.Errorf("got %v, %v", head, err)
				}
			},
		},
		"nothing": {
			func(r *raw) {},
			func(t *testing.T, s *h2.Stream) {
				began := time.Now()
				_, err := s.AwaitHead(in(patience))
				if end := (*h2.StreamError)(nil); !errors.As(err, &end) || end.Refused || !errors.Is(err, syscall.EPIPE) {
					t.Errorf("got %v", err)
				}
				if waited := time.Since(began); waited > 2*time.Second {
					t.Errorf("that took %v", waited)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := net.Pipe()
				r, nc := newRaw(t, a), &lame{Conn: b}
				go r.greeted(t)
				conn, err := h2.NewClient(nc, nil)
				if err != nil {
					t.Fatal(err)
				}
				<-conn.Agreed()
				s, _, err := conn.Open(post("/"), nil, false, in(patience))
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				nc.broken.Store(true)
				_ = s.Write([]byte("more"), false, in(patience)) // whether it went out, the answer shows
				s.Flush()
				synctest.Wait()
				go c.words(r)
				c.hears(t, s)
				if conn.CanTake() {
					t.Error("it takes more streams")
				}
				s.Close()
				r.Close()
				<-conn.Done()
			})
		})
	}
}

// greeted is a server that sends SETTINGS and reads until the end.
func (r *raw) greeted(t *testing.T) {
	if _, err := io.ReadFull(r.Conn, make([]byte, len(http2.ClientPreface))); err != nil {
		t.Error(err)
		return
	}
	go func() { _, _ = io.Copy(io.Discard, r.Conn) }()
	r.WriteSettings()
}

// lamed returns a client that has sent its SETTINGS. After a call of break, nothing can be written on its connection.
func lamed(t *testing.T, config *h2.Config) (conn *h2.Conn, r *raw, nc *lame) {
	t.Helper()
	a, b := net.Pipe()
	r, nc = newRaw(t, a), &lame{Conn: b}
	go r.greeted(t)
	conn, err := h2.NewClient(nc, config)
	if err != nil {
		t.Fatal(err)
	}
	<-conn.Agreed()
	return conn, r, nc
}

// Without a stream, a client whose write fails reads no more, and NewClient returns the error at once.
func TestAConnectionWithoutStreamsEndsWithTheFailedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, r, nc := lamed(t, &h2.Config{PingAfter: -1})
		s, _, err := conn.Open(post("/"), nil, false, in(patience))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		nc.broken.Store(true)
		began := time.Now()
		s.Close() // which would write RST_STREAM
		<-conn.Done()
		if waited := time.Since(began); waited > 0 || !errors.Is(conn.Err(), syscall.EPIPE) {
			t.Errorf("after %v: %v", waited, conn.Err())
		}
		r.Close()
	})
}

// A connection that can no longer be written to ends with an error, even if its streams end first.
func TestABrokenConnectionDoesNotEndInGoodOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, r, nc := lamed(t, nil)
		s, _, err := conn.Open(post("/"), nil, false, in(patience))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		nc.broken.Store(true)
		_ = s.Write([]byte("more"), false, in(patience))
		s.Flush()
		synctest.Wait()
		s.Close()
		<-conn.Done()
		if err := conn.Err(); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("got %v", err)
		}
		r.Close()
	})
}

// A request that waits to be sent goes to another connection at once.
func TestWhoWaitsForRoomDoesNotWaitForLastWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		r := newRaw(t, a)
		go func() {
			_, _ = io.ReadFull(a, make([]byte, len(http2.ClientPreface)))
			r.WriteSettings() // and it reads no more
		}()
		conn, err := h2.NewClient(b, nil)
		if err != nil {
			t.Fatal(err)
		}
		<-conn.Agreed()
		s, _, err := conn.Open(post("/"), nil, false, in(patience))
		if err != nil {
			t.Fatal(err)
		}
		wrote := make(chan error)
		go func() { wrote <- s.Write(make([]byte, 65535), false, in(patience)) }()
		synctest.Wait()
		if conn.CanTake() {
			t.Fatal("there is room for another")
		}
		done := make(chan error)
		go func() {
			_, _, err := conn.Open(post("/"), nil, false, in(patience))
			done <- err
		}()
		synctest.Wait()
		began := time.Now()
		b.SetWriteDeadline(time.Unix(1, 0)) // the write that waits fails
		if err := <-done; err != h2.ErrGoingAway || time.Since(began) > 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if err := <-wrote; err == nil || time.Since(began) > 2*time.Second {
			t.Errorf("the write under way ended after %v: %v", time.Since(began), err)
		}
		s.Close()
		r.Close()
		<-conn.Done()
	})
}
