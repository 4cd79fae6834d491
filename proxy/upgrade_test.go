package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy"
)

const (
	askUpgrade = "GET /chat HTTP/1.1\r\nHost: s.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	agreeUpgrade = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
)

// switching is an upstream that agrees to an upgrade and goes on with tunnel. What it is asked comes on heads.
func switching(t *testing.T, tunnel func(c *net.TCPConn, in *bufio.Reader)) (s *server, heads chan string) {
	heads = make(chan string, 10)
	return rawUpstream(t, func(c net.Conn, _ int) {
		in := bufio.NewReader(c)
		head, err := readMessage(in)
		if err != nil {
			return
		}
		heads <- head
		tunnel(c.(*net.TCPConn), in)
	}), heads
}

// switched reads the head of a 101.
func (c *client) switched() http.Header {
	c.t.Helper()
	resp, err := http.ReadResponse(c.in, &http.Request{Method: "GET"})
	if err != nil || resp.StatusCode != 101 {
		c.t.Fatalf("no 101: %v, %v", resp, err)
	}
	return resp.Header
}

// expect reads exactly want.
func (c *client) expect(want string) {
	c.t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c.in, got); string(got[:n]) != want || err != nil {
		c.t.Fatalf("got %q, %v; want %q", got[:n], err, want)
	}
}

// echoLines sends every line back.
func echoLines(c *net.TCPConn, in *bufio.Reader) {
	for l, err := in.ReadString('\n'); err == nil; l, err = in.ReadString('\n') {
		io.WriteString(c, "<"+l)
	}
}

func TestAnUpgradedConnectionPassesBytesBothWays(t *testing.T) {
	s, heads := switching(t, func(c *net.TCPConn, in *bufio.Reader) {
		io.WriteString(c, agreeUpgrade+"early\n") // with the handshake in one piece
		echoLines(c, in)
		io.WriteString(c, "last\n")
	})
	r := start(t, single([]string{s.url}))
	c := r.dial()
	c.send(askUpgrade + "too early\n")
	h := c.switched()
	if h.Get("Upgrade") != "websocket" || h.Get("Connection") != "Upgrade" ||
		h.Get("Sec-Websocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		t.Errorf("the client got %v", h)
	}
	c.expect("early\n<too early\n")
	c.send("one\n").expect("<one\n")
	if g := r.guard(); g.Endpoints[0].Pending != 1 || g.Breaker.Calls != 1 {
		t.Errorf("while it is open: %+v", g)
	}
	c.send("two\n").CloseWrite()
	c.expect("<two\nlast\n") // the service goes on after the client has finished
	c.closed()
	head := wait(t, "the handshake", heads)
	if field(head, "Connection") != "Upgrade" || field(head, "Upgrade") != "websocket" ||
		field(head, "Sec-WebSocket-Key") != "dGhlIHNhbXBsZSBub25jZQ==" {
		t.Errorf("the service got %q", head)
	}
	eventually(t, "nothing pending", func() bool { return r.guard().Endpoints[0].Pending == 0 })
}

func TestAServiceMayFinishItsHalfFirst(t *testing.T) {
	got := make(chan string, 1)
	s, _ := switching(t, func(c *net.TCPConn, in *bufio.Reader) {
		io.WriteString(c, agreeUpgrade+"bye\n")
		c.CloseWrite()
		rest, _ := io.ReadAll(in)
		got <- string(rest)
	})
	c := start(t, single([]string{s.url})).dial()
	c.send(askUpgrade).switched()
	c.expect("bye\n")
	c.closed()
	c.send("more\n").Close()
	if rest := wait(t, "the rest", got); rest != "more\n" {
		t.Errorf("the service got %q", rest)
	}
}

func TestATunnelEndsWithEitherEnd(t *testing.T) {
	t.Run("client", func(t *testing.T) {
		ended := make(chan error, 1)
		s, _ := switching(t, func(c *net.TCPConn, in *bufio.Reader) {
			io.WriteString(c, agreeUpgrade)
			_, err := io.Copy(io.Discard, in)
			ended <- err
		})
		c := start(t, single([]string{s.url})).dial()
		c.send(askUpgrade).switched()
		c.SetLinger(0) // a reset
		c.Close()
		wait(t, "the service hears of it", ended)
	})
	t.Run("service", func(t *testing.T) {
		s, _ := switching(t, func(c *net.TCPConn, _ *bufio.Reader) {
			io.WriteString(c, agreeUpgrade)
			c.SetLinger(0)
		})
		c := start(t, single([]string{s.url})).dial()
		c.send(askUpgrade).switched()
		c.closed()
	})
}

// TestARefusedUpgradeIsAnAnswerLikeAnyOther: and the connection goes on.
func TestARefusedUpgradeIsAnAnswerLikeAnyOther(t *testing.T) {
	s := upstream(t, func(c net.Conn, req string) {
		if field(req, "Upgrade") != "" {
			io.WriteString(c, "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
			return
		}
		io.WriteString(c, ok("yes"))
	})
	r := start(t, single([]string{s.url}))
	c := r.dial()
	if a := c.send(askUpgrade).answer(); a.status != 403 || a.content != "no" || a.close {
		t.Errorf("got %+v", a)
	}
	if a := c.get("/"); a.content != "yes" {
		t.Errorf("the next request got %+v", a)
	}
	if n := s.connections(); n != 1 {
		t.Errorf("%d connections to the service", n)
	}
}

func TestAHandshakeThatFailsIsRepeated(t *testing.T) {
	n := 0
	s := rawUpstream(t, func(c net.Conn, _ int) {
		in := bufio.NewReader(c)
		for {
			if _, err := readMessage(in); err != nil {
				return
			}
			if n++; n > 1 {
				io.WriteString(c, agreeUpgrade)
				echoLines(c.(*net.TCPConn), in)
				return
			}
			io.WriteString(c, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
		}
	})
	c := start(t, single([]string{s.url}, quickRetry)).dial()
	c.send(askUpgrade).switched()
	c.send("one\n").expect("<one\n")
}

// TestATunnelHasNoTimeLimit: neither of the call, nor of the attempt, nor of silence.
func TestATunnelHasNoTimeLimit(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel() // it waits
	s, _ := switching(t, func(c *net.TCPConn, in *bufio.Reader) {
		io.WriteString(c, agreeUpgrade)
		echoLines(c, in)
	})
	const limit = long // the service has to agree within it
	r := start(t, single([]string{s.url}, "timeout: "+limit.String(), "attemptTimeout: "+limit.String()),
		func(c *proxy.Config) {
			c.StallTimeout, c.IdleTimeout, c.HeaderTimeout = limit, limit, limit
		})
	c := r.dial()
	c.send(askUpgrade).switched()
	tick := time.NewTicker(limit + short)
	defer tick.Stop()
	for range 2 {
		<-tick.C
		c.send("still\n").expect("<still\n")
	}
}

func TestAnUpgradeFollowsOtherRequestsOnItsConnection(t *testing.T) {
	s := rawUpstream(t, func(c net.Conn, _ int) {
		in := bufio.NewReader(c)
		for {
			req, err := readMessage(in)
			if err != nil {
				return
			}
			if field(req, "Upgrade") != "" {
				io.WriteString(c, agreeUpgrade)
				echoLines(c.(*net.TCPConn), in)
				return
			}
			io.WriteString(c, ok(content(req)))
		}
	})
	c := start(t, single([]string{s.url})).dial()
	c.send("POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 4\r\n\r\nbody" + askUpgrade + "early\n") // all at once
	if a := c.answer(); a.content != "body" {
		t.Errorf("got %+v", a)
	}
	c.switched()
	c.expect("<early\n")
}

func TestAnUpgradePassesOverTLS(t *testing.T) {
	l := listen(t)
	secure := tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{trusted.issue(t)}})
	var served sync.WaitGroup
	served.Go(func() {
		c, err := secure.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		in := bufio.NewReader(c)
		if _, err := readMessage(in); err != nil {
			t.Error(err)
			return
		}
		io.WriteString(c, agreeUpgrade+"early\n")
		for l, err := in.ReadString('\n'); err == nil; l, err = in.ReadString('\n') {
			io.WriteString(c, "<"+l)
		}
		io.WriteString(c, "last\n")
	})
	t.Cleanup(func() {
		l.Close()
		served.Wait()
	})
	c := start(t, single([]string{"https://" + l.Addr().String()})).dial()
	c.send(askUpgrade + "too early\n").switched()
	c.expect("early\n<too early\n")
	c.send("one\n").expect("<one\n")
	c.CloseWrite()
	c.expect("last\n")
	c.closed()
}

func TestMuchPassesThroughATunnel(t *testing.T) {
	sent := bytes.Repeat([]byte("0123456789abcde\n"), 4<<20>>4)
	s, _ := switching(t, func(c *net.TCPConn, in *bufio.Reader) {
		io.WriteString(c, agreeUpgrade)
		_, _ = io.Copy(c, in)
	})
	c := start(t, single([]string{s.url})).dial()
	c.send(askUpgrade).switched()
	go func() {
		_, _ = c.Write(sent)
		c.CloseWrite()
	}()
	if got, err := io.ReadAll(c.in); !bytes.Equal(got, sent) || err != nil {
		t.Errorf("%d bytes of %d came back, %v", len(got), len(sent), err)
	}
}

// TestADrainCutsTunnelsOffAtItsEnd: they would last for ever.
func TestADrainCutsTunnelsOffAtItsEnd(t *testing.T) {
	ended := make(chan struct{})
	s, _ := switching(t, func(c *net.TCPConn, in *bufio.Reader) {
		io.WriteString(c, agreeUpgrade)
		echoLines(c, in)
		close(ended)
		<-t.Context().Done() // it does not take the hint
	})
	r := start(t, single([]string{s.url}))
	c := r.dial()
	c.send(askUpgrade).switched()
	c.send("one\n").expect("<one\n")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	r.once.Do(func() { go func() { done <- r.proxy.Shutdown(ctx) }() })
	eventually(t, "the drain", func() bool { return !r.proxy.Ready() })
	c.send("two\n").expect("<two\n") // it still works
	select {
	case err := <-done:
		t.Fatalf("the drain did not wait: %v", err)
	default:
	}
	cancel()
	if err := wait(t, "the end of the drain", done); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	c.closed()
	wait(t, "the service hears of it", ended)
	if left := goroutinesLeft(); left != "" {
		t.Errorf("the tunnel is still there:\n%s", left)
	}
}

func TestADrainEndsWithTheLastTunnel(t *testing.T) {
	s, _ := switching(t, func(c *net.TCPConn, in *bufio.Reader) {
		io.WriteString(c, agreeUpgrade)
		echoLines(c, in)
	})
	r := start(t, single([]string{s.url}))
	c := r.dial()
	c.send(askUpgrade).switched()
	done := make(chan error, 1)
	r.once.Do(func() { go func() { done <- r.proxy.Shutdown(context.Background()) }() })
	eventually(t, "the drain", func() bool { return !r.proxy.Ready() })
	c.Close()
	if err := wait(t, "the end of the drain", done); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

// TestOnlyWhatWasAskedForIsSwitchedTo: h2c would carry requests past the policy, so it is not asked for at all.
func TestOnlyWhatWasAskedForIsSwitchedTo(t *testing.T) {
	s := upstream(t, func(c net.Conn, req string) {
		io.WriteString(c, ok(field(req, "Upgrade")+field(req, "HTTP2-Settings")))
	})
	c := start(t, single([]string{s.url})).dial()
	a := c.send(strings.Replace(askUpgrade, "websocket", "h2c", 1)).answer()
	if a.status != 200 || a.content != "" {
		t.Errorf("got %d, and the service was asked for %q", a.status, a.content)
	}
	if got := fmt.Sprint(c.get("/").status); got != "200" {
		t.Errorf("the next request got %s", got)
	}
}
