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

// lame is a connection on which, from some moment on, nothing can be written: the reset of a peer that has closed its socket
// does that, whatever the peer has said before.
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

// What a server has said before its end is heard though a write fails first: which requests it has not taken, or an answer.
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
				_ = s.Write([]byte("more"), false, in(patience)) // whether it went out, the answer tells
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

// greeted is a server that says hello and reads what there is until the end.
func (r *raw) greeted(t *testing.T) {
	if _, err := io.ReadFull(r.Conn, make([]byte, len(http2.ClientPreface))); err != nil {
		t.Error(err)
		return
	}
	go func() { _, _ = io.Copy(io.Discard, r.Conn) }()
	r.WriteSettings()
}
