package proxy_test

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy"
)

// heldBack is a connection of a client of which only so many writes go out by themselves. What follows goes with the
// next write after go on.
type heldBack struct {
	net.Conn
	free  int
	held  []byte
	said  chan struct{}
	goOn  chan struct{}
	apart bool // each write goes out alone
}

func (h *heldBack) Write(b []byte) (int, error) {
	if h.free--; h.free > 0 {
		return h.Conn.Write(b)
	}
	if h.free == 0 {
		_, err := h.Conn.Write(b)
		close(h.said)
		return len(b), err
	}
	select {
	case <-h.goOn:
	default:
		if !h.apart && h.held == nil {
			h.held = append(h.held, b...)
			return len(b), nil
		}
		<-h.goOn
	}
	if _, err := h.Conn.Write(append(h.held, b...)); err != nil {
		return 0, err
	}
	h.held = nil
	return len(b), nil
}

// A client that has connected before a drain, and is in the middle of its handshake, is answered, whatever it speaks
// and whoever announces it. Its last words of the handshake may come alone, and its request a round trip later.
func TestADrainAnswersWhoIsInTheMiddleOfAHandshake(t *testing.T) {
	f := newFiles(t, trusted.issue(t), trusted)
	for name, c := range map[string]struct {
		version   uint16
		announced bool
	}{"TLS 1.3": {tls.VersionTLS13, false}, "TLS 1.2": {tls.VersionTLS12, false},
		"announced": {tls.VersionTLS13, true}} {
		t.Run(name, func(t *testing.T) {
			more := []string{f.tls()}
			if c.announced {
				more = append(more, trustLoop, "proxyProtocol: true")
			}
			r := protect(t, guardOf(mirror(t).url, more...), func(c *proxy.Config) { c.HeaderTimeout = patience })
			const clients = 50
			got, goOn := make(chan reply, clients), make(chan struct{})
			for i := range clients {
				nc := r.dial()
				if c.announced {
					nc.send("PROXY TCP4 192.0.2.1 198.51.100.7 4711 443\r\n")
				}
				h := &heldBack{Conn: nc, free: 1, said: make(chan struct{}), goOn: goOn,
					apart: i%2 == 0 || c.version == tls.VersionTLS12}
				secure := tls.Client(h, &tls.Config{InsecureSkipVerify: true, MaxVersion: c.version})
				secure.SetDeadline(time.Now().Add(patience))
				go func() {
					a, _ := askTLS(secure, "/")
					got <- a
				}()
				soon(t, "the first words", h.said)
			}
			drained := r.begins(t)
			close(goOn)
			lost := 0
			for range clients {
				if a := wait(t, "an answer", got); a.status != 200 || !a.close {
					lost++
				}
			}
			if lost > 0 {
				t.Errorf("%d of %d clients have no answer", lost, clients)
			}
			if err := wait(t, "the end of the drain", drained); err != nil {
				t.Error(err)
			}
		})
	}
}

// Nobody waits for one who has not said a word, nor for one whose room others need.
func TestADrainDoesNotWaitForWhoSaysNothingInAHandshake(t *testing.T) {
	f := newFiles(t, trusted.issue(t), trusted)
	r := protect(t, guardOf(mirror(t).url, f.tls()), func(c *proxy.Config) { c.HeaderTimeout = time.Hour })
	c := r.dial()
	nc, err := r.secure() // who comes behind it has come in
	if err != nil {
		t.Fatal(err)
	}
	if a, err := askTLS(nc, "/"); err != nil || a.status != 200 {
		t.Fatalf("%v %+v", err, a)
	}
	drained := r.begins(t)
	c.closed()
	if err := wait(t, "the end of the drain", drained); err != nil {
		t.Error(err)
	}
}

// In the middle of a handshake a client has to make room as one that says nothing: a drain of another listener is no
// reason to keep it.
func TestWhoIsInTheMiddleOfAHandshakeMakesRoom(t *testing.T) {
	f := newFiles(t, trusted.issue(t), trusted)
	r := protect(t, guardOf(mirror(t).url, f.tls()), func(c *proxy.Config) {
		c.MaxConnections, c.HeaderTimeout = 2, time.Hour
	})
	for range 2 {
		r.dial().send("\x16\x03\x01\x02")
	}
	for range 3 {
		nc, err := r.secure()
		if err != nil {
			t.Fatal(err)
		}
		if a, err := askTLS(nc, "/"); err != nil || a.status != 200 {
			t.Errorf("%v %+v", err, a)
		}
	}
}
