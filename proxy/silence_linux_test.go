package proxy_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy"
)

// slowLine is a connection that keeps the second half of what is written to it back, from the nth write on, until it is
// told to let it go.
type slowLine struct {
	net.Conn
	mu   sync.Mutex
	from int // writes that pass; less than 0: all do
	kept []byte
}

func (s *slowLine) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.from != 0 {
		s.from--
		return s.Conn.Write(p)
	}
	half := len(p) / 2
	if len(s.kept) > 0 {
		half = 0
	}
	_, err := s.Conn.Write(p[:half])
	s.kept = append(s.kept, p[half:]...)
	return len(p), err
}

// hold has the second half of what comes after n writes kept back, and letGo sends it.
func (s *slowLine) hold(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from = n
}

func (s *slowLine) letGo() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from = -1
	_, err := s.Conn.Write(s.kept)
	s.kept = nil
	return err
}

// slow is a client that is silent in the middle of something.
type slow struct {
	*slowLine
	t    *testing.T
	r    *running
	over net.Conn // TLS, if that is spoken
	in   *bufio.Reader
}

func newSlow(t *testing.T, r *running) *slow {
	nc := r.dial().TCPConn
	return &slow{slowLine: &slowLine{Conn: nc, from: -1}, t: t, r: r, in: bufio.NewReader(nc)}
}

// secure goes over to TLS.
func (s *slow) secure() {
	pool := x509.NewCertPool()
	pool.AddCert(trusted.cert)
	s.over = tls.Client(s.slowLine, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"})
	s.in = bufio.NewReader(s.over)
}

// say sends something, and hear reads an answer.
func (s *slow) say(text string) {
	s.t.Helper()
	var to io.Writer = s.slowLine
	if s.over != nil {
		to = s.over
	}
	if _, err := io.WriteString(to, text); err != nil {
		s.t.Error(err)
	}
}

func (s *slow) hear() {
	s.t.Helper()
	resp, err := http.ReadResponse(s.in, nil)
	if err != nil {
		s.t.Errorf("it was not answered: %v", err)
		return
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != 200 {
		s.t.Errorf("it got %d %s", resp.StatusCode, text)
	}
}

// A kind of listener, and how a client asks there who is not slow: it stays, without another request.
type doorKind struct {
	start func(t *testing.T, change ...func(*proxy.Config)) *running
	ask   func(r *running) net.Conn
}

const oneGet = "GET / HTTP/1.1\r\nHost: s\r\n\r\n"

var (
	plainDoor = doorKind{
		func(t *testing.T, change ...func(*proxy.Config)) *running {
			return start(t, single([]string{mirror(t).url}), change...)
		},
		func(r *running) net.Conn { c := r.dial(); c.send(oneGet).answer(); return c },
	}
	tlsDoor = doorKind{
		func(t *testing.T, change ...func(*proxy.Config)) *running {
			return protect(t, guardOf(mirror(t).url, newFiles(t, trusted.issue(t), trusted).tls()), change...)
		},
		func(r *running) net.Conn {
			nc, err := r.secure()
			if err == nil {
				_, err = askTLS(nc, "/")
			}
			if err != nil {
				r.t.Fatal(err)
			}
			return nc
		},
	}
	announcedDoor = doorKind{
		func(t *testing.T, change ...func(*proxy.Config)) *running {
			return protect(t, guardOf(mirror(t).url, noShed, trustLoop, "proxyProtocol: true"), change...)
		},
		func(r *running) net.Conn {
			c := r.dial()
			c.send("PROXY TCP4 192.0.2.1 198.51.100.7 4711 443\r\n" + oneGet).answer()
			return c
		},
	}
)

// announcement2 is a PROXY header, version 2.
const announcement2 = "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x01\xc6\x33\x64\x07\x12\x67\x01\xbb"

// once has the client have had one answer.
func once(s *slow) { s.say(oneGet); s.hear() }

// half sends half of a text.
func half(text string) func(*slow) { return func(s *slow) { s.say(text[:len(text)/2]) } }

func rest(text string) func(*slow) { return func(s *slow) { s.say(text[len(text)/2:]); s.hear() } }

// held sends all of a text, of which half stays on the way; released is its end.
func held(s *slow) { s.hold(0); s.say(oneGet) }

func released(s *slow) {
	if err := s.letGo(); err != nil {
		s.t.Error(err)
	}
	s.hear()
}

// shakesHands begins a handshake of which what follows n writes stays on the way.
func shakesHands(n int) func(*slow) {
	return func(s *slow) {
		s.secure()
		s.hold(n)
		hands := make(chan error, 1)
		go func() { hands <- s.over.(*tls.Conn).Handshake() }()
		s.t.Cleanup(func() {
			if err := <-hands; err != nil {
				s.t.Errorf("the handshake: %v", err)
			}
		})
	}
}

const aPost = "POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 100000\r\n\r\n"

// Clients that are silent in the middle of something.
var slowOnes = []struct {
	name                string
	door                doorKind
	before, begin, goOn func(*slow) // the first while it is not yet clear who is idle for longest
	rests               bool
}{
	{"nothing yet", plainDoor, func(*slow) {}, func(*slow) {}, once, false},
	{"nothing yet over TLS", tlsDoor, func(s *slow) { s.secure(); shake(s) }, func(*slow) {}, once, false},
	{"the first head", plainDoor, func(*slow) {}, half(oneGet), rest(oneGet), false},
	{"a head", plainDoor, once, half(oneGet), rest(oneGet), false},
	{"a head after a rest", plainDoor, once, half(oneGet), rest(oneGet), true},
	{"a body", plainDoor, once, func(s *slow) { s.say(aPost + "some") },
		func(s *slow) { s.say(strings.Repeat("x", 100000-4)); s.hear() }, false},
	{"a body after a rest", plainDoor, once, func(s *slow) { s.say(aPost + "some") },
		func(s *slow) { s.say(strings.Repeat("x", 100000-4)); s.hear() }, true},
	{"a head behind a request", plainDoor, once, func(s *slow) { s.say(oneGet + oneGet[:20]); s.hear() },
		func(s *slow) { s.say(oneGet[20:]); s.hear() }, false},
	{"a TLS record", tlsDoor, func(s *slow) { s.secure(); once(s) }, held, released, false},
	{"a TLS record after a rest", tlsDoor, func(s *slow) { s.secure(); once(s) }, held, released, true},
	{"a TLS record behind a request", tlsDoor, func(s *slow) { s.secure(); once(s) }, func(s *slow) {
		s.hold(1)
		s.say(oneGet)
		s.say(oneGet)
		s.hear()
	}, released, false},
	{"a handshake", tlsDoor, func(*slow) {}, shakesHands(0), func(s *slow) {
		if s.letGo() == nil {
			once(s)
		}
	}, false},
	{"a handshake between two messages", tlsDoor, func(*slow) {}, shakesHands(1), func(s *slow) {
		if s.letGo() == nil {
			once(s)
		}
	}, false},
	{"a balancer's header", announcedDoor, func(*slow) {}, half(announcement2), func(s *slow) {
		s.say(announcement2[len(announcement2)/2:])
		once(s)
	}, false},
	{"a frame of HTTP/2", plainDoor, frameOnce, func(s *slow) { s.say(aFrame(3)[:5]) },
		func(s *slow) { s.say(aFrame(3)[5:]); s.frames(3) }, false},
	{"a head of HTTP/2", plainDoor, frameOnce, func(s *slow) { s.say(aFrame(3)[:20]) },
		func(s *slow) { s.say(aFrame(3)[20:]); s.frames(3) }, false},
}

// shake is the handshake alone.
func shake(s *slow) {
	if err := s.over.(*tls.Conn).Handshake(); err != nil {
		s.t.Error(err)
	}
}

// aFrame is a GET over HTTP/2.
func aFrame(stream byte) string {
	block := ""
	for _, f := range []string{":method", "GET", ":scheme", "http", ":authority", "s", ":path", "/"} {
		if f[0] == ':' {
			block += "\x00"
		}
		block += string(rune(len(f))) + f
	}
	return "\x00\x00" + string(rune(len(block))) + "\x01\x05\x00\x00\x00" + string(rune(stream)) + block
}

func frameOnce(s *slow) {
	s.say("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00" + aFrame(1))
	s.frames(1)
}

// frames reads frames to the end of a stream.
func (s *slow) frames(stream byte) {
	s.t.Helper()
	for {
		var head [9]byte
		_, err := io.ReadFull(s.in, head[:])
		if err == nil {
			_, err = io.CopyN(io.Discard, s.in, int64(head[0])<<16|int64(head[1])<<8|int64(head[2]))
		}
		if err != nil {
			s.t.Errorf("it was not answered: %v", err)
			return
		}
		if head[3] == 4 && head[4] == 0 {
			s.say("\x00\x00\x00\x04\x01\x00\x00\x00\x00")
		}
		if head[8] == stream && head[3] <= 1 && head[4]&1 != 0 {
			return
		}
	}
}

// TestWhoIsInTheMiddleOfSomethingIsNotIdle: of two clients, for whom there is room, the first was idle for longer, and
// has begun something when a third comes. The second has to make room.
func TestWhoIsInTheMiddleOfSomethingIsNotIdle(t *testing.T) {
	for _, c := range slowOnes {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := c.door.start(t, func(c *proxy.Config) { c.MaxConnections, c.HeaderTimeout = 2, time.Hour })
			one := newSlow(t, r)
			c.before(one)
			two := c.door.ask(r)
			if c.rests {
				eventually(t, "both rest", func() bool { return r.proxy.Resting() == 2 })
			}
			c.begin(one)
			eventually(t, "one of them is idle", func() bool { return r.proxy.Idle() == 1 })
			three := c.door.ask(r)
			if _, err := two.Read(make([]byte, 1)); err == nil || errors.Is(err, net.ErrClosed) {
				t.Errorf("the second did not make room: %v", err)
			}
			c.goOn(one)
			three.Close()
		})
	}
}
