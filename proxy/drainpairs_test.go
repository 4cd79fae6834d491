package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy"
)

// begins shuts a proxy down, and returns once that has begun.
func (r *running) begins(t *testing.T) (drained chan error) {
	t.Helper()
	drained = make(chan error, 1)
	r.once.Do(func() { go func() { drained <- r.proxy.Shutdown(context.Background()) }() })
	eventually(t, "the drain", func() bool { return !r.proxy.Ready() })
	return drained
}

// A request that has come before the drain began is answered over TLS too, whether its client rested or not.
func TestADrainAnswersWhatHasComeOverTLS(t *testing.T) {
	f := newFiles(t, trusted.issue(t), trusted)
	r := protect(t, guardOf(mirror(t).url, f.tls()))
	const clients = 100
	conns := make([]*tls.Conn, clients)
	for i := range conns {
		nc, err := r.secure()
		if err != nil {
			t.Fatal(err)
		}
		if a, err := askTLS(nc, "/"); err != nil || a.status != 200 {
			t.Fatalf("%v %+v", err, a)
		}
		conns[i] = nc
	}
	go func() {
		for _, c := range conns {
			io.WriteString(c, "GET / HTTP/1.1\r\nHost: s\r\n\r\n")
		}
		r.once.Do(func() { _ = r.proxy.Shutdown(context.Background()) })
	}()
	lost := 0
	for _, c := range conns {
		if _, err := (&client{t, nil, bufio.NewReader(c)}).read("GET"); err != nil {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d requests were lost", lost, clients)
	}
}

// A protocol that the service agrees to switch to while the proxy drains is refused, and not begun and cut off.
func TestADrainSaysThatItBeginsNoTunnel(t *testing.T) {
	came, goOn := make(chan struct{}, 1), make(chan struct{})
	s := rawUpstream(t, func(c net.Conn, _ int) {
		in := bufio.NewReader(c)
		if _, err := readMessage(in); err != nil {
			return
		}
		came <- struct{}{}
		hold(t, goOn)
		io.WriteString(c, agreeUpgrade)
		_, _ = io.Copy(io.Discard, in)
	})
	r := start(t, single([]string{s.url}))
	c := r.dial().send(askUpgrade)
	soon(t, "the request", came)
	drained := r.begins(t)
	close(goOn)
	if a := c.answer(); a.status != 503 || !a.close || a.problem(t).Reason != "draining" {
		t.Errorf("got %+v", a)
	}
	c.closed()
	if err := wait(t, "the end of the drain", drained); err != nil {
		t.Error(err)
	}
}

// So is a CONNECT whose connection is made while the proxy drains, over either wire, and the tunnel in which a service
// would be called.
func TestADrainSaysThatItOpensNoTunnel(t *testing.T) {
	up, addr := echoing(t)
	dialling, goOn := make(chan struct{}, 3), make(chan struct{})
	r := start(t, forward([]string{mirror(t).url})+"outside: {connect: [\""+addr+"\"]}\n", func(c *proxy.Config) {
		c.Control = func(string, string, syscall.RawConn) error {
			dialling <- struct{}{}
			hold(t, goOn)
			return nil
		}
	})
	ask := func(addr string) string { return "CONNECT " + addr + " HTTP/1.1\r\nHost: " + addr + "\r\n\r\n" }
	over1, over2, late := r.dial().send(ask(addr)), r.h2(65535), r.dial().send(ask(addr))
	over2.request(1, 0, ":method", "CONNECT", ":authority", addr)
	for range 3 {
		soon(t, "a connection is begun", dialling)
	}
	drained := r.begins(t)
	close(goOn)
	for _, c := range []*client{over1, late} {
		if a := c.answer(); a.status != 503 || !a.close || a.problem(t).Reason != "draining" {
			t.Errorf("got %+v", a)
		}
		c.closed()
	}
	if status, _ := over2.status(1); !strings.Contains(status, "503") {
		t.Errorf("over HTTP/2: %s", status)
	}
	over2.Close()
	if err := wait(t, "the end of the drain", drained); err != nil {
		t.Error(err)
	}
	eventually(t, "nothing is left of it", func() bool { return up.open() == 0 })
	if o := outsideOf(t, r); o.Refused["draining"] != 3 {
		t.Errorf("/outside counts %v", o.Refused)
	}
}

// pausing is a connection whose second write waits: of a client, in the middle of its handshake.
type pausing struct {
	net.Conn
	writes      int
	there, goOn chan struct{}
}

func (p *pausing) Write(b []byte) (int, error) {
	if p.writes++; p.writes == 2 {
		p.there <- struct{}{}
		<-p.goOn
	}
	return p.Conn.Write(b)
}

// Other authorities cut nobody off in the middle of a handshake who could come in by them too, and let in nobody else.
func TestAHandshakeOutlivesAChangeOfAuthorities(t *testing.T) {
	for name, c := range map[string]struct {
		next  []byte
		comes bool
	}{"stays": {trusted.cert.Raw, true}, "goes": {stranger.cert.Raw, false}} {
		f := newFiles(t, trusted.issue(t), trusted)
		policy := strings.Replace(guardOf(mirror(t).url, f.mutual(), "caller: mtls"), "127.0.0.1:0", vacant(t), 1)
		r := protect(t, policy)
		nc, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		p := &pausing{Conn: nc, there: make(chan struct{}), goOn: make(chan struct{})}
		shows := []tls.Certificate{client509(t, trusted)}
		secure := tls.Client(p, &tls.Config{InsecureSkipVerify: true, Certificates: shows})
		defer secure.Close()
		secure.SetDeadline(time.Now().Add(patience))
		got := make(chan reply, 1)
		go func() {
			a, _ := askTLS(secure, "/")
			got <- a
		}()
		soon(t, "the middle of the handshake", p.there)
		pemOf(t, f.ca, c.next, stranger.cert.Raw)
		r.becomesPolicy(policy)
		close(p.goOn)
		if a := wait(t, "the end", got); (a.status == 200) != c.comes || a.close {
			t.Errorf("whose authority %s: %+v", name, a)
		}
	}
}

// Whoever has to come in anew, because the door asks for something else, has the answer to what he has sent first, also
// if he rested, and whoever announced him.
func TestWhoHasToComeInAnewHasTheAnswerToWhatHasCome(t *testing.T) {
	lost := 0
	for range 3 { // the proxy looks at its files once a second: perhaps before all requests have been sent
		if lost = lostToOtherAuthorities(t); lost == 0 {
			return
		}
	}
	t.Errorf("%d requests were lost, and some in two trials before", lost)
}

// lostToOtherAuthorities returns how many of a hundred clients that ask just before the door asks for something else
// have no answer.
func lostToOtherAuthorities(t *testing.T) (lost int) {
	t.Helper()
	f := newFiles(t, trusted.issue(t), trusted)
	policy := guardOf(mirror(t).url, f.mutual(), "caller: mtls", trustLoop, "proxyProtocol: true")
	policy = strings.Replace(policy, "127.0.0.1:0", vacant(t), 1)
	r := protect(t, policy)
	shows := client509(t, trusted)
	conns := make([]*tls.Conn, 100)
	for i := range conns {
		c := r.dial().send("PROXY TCP4 192.0.2.1 198.51.100.7 4711 443\r\n")
		conns[i] = tls.Client(c, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{shows}})
		if a, err := askTLS(conns[i], "/"); err != nil || a.status != 200 {
			t.Fatalf("%v %+v", err, a)
		}
	}
	pemOf(t, f.ca, trusted.cert.Raw, stranger.cert.Raw)
	for _, c := range conns {
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: s\r\n\r\n")
	}
	r.becomesPolicy(policy)
	for _, c := range conns {
		if _, err := (&client{t, nil, bufio.NewReader(c)}).read("GET"); err != nil {
			lost++
		}
	}
	return lost
}
