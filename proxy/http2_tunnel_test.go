package proxy_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h2"
)

var extended = []string{":method", "CONNECT", ":protocol", "websocket", ":scheme", "http", ":authority", "s.test",
	":path",
	"/chat", "sec-websocket-version", "13", "sec-websocket-protocol", "x"}

// status reads frames up to the head of the answer on a stream, and returns its status as HPACK has it.
func (c *h2raw) status(stream uint32) (status string, end bool) {
	c.t.Helper()
	c.frames(func(kind, flags byte, id uint32, p []byte) bool {
		if kind == 3 && id == stream {
			c.t.Fatalf("the stream is reset: %v", p)
		}
		if kind != 1 || id != stream {
			return false
		}
		end = flags&1 != 0
		switch {
		case p[0] == 0x88:
			status = "200"
		case bytes.Contains(p, []byte("502")):
			status = "502"
		case bytes.Contains(p, []byte("501")):
			status = "501"
		case bytes.Contains(p, []byte("403")):
			status = "403"
		default:
			status = fmt.Sprintf("%q", p)
		}
		return true
	})
	return status, end
}

// content reads frames until so much content has come on a stream.
func (c *h2raw) content(stream uint32, want string) {
	c.t.Helper()
	got := ""
	c.frames(func(kind, _ byte, id uint32, p []byte) bool {
		if kind == 3 && id == stream {
			c.t.Fatalf("the stream is reset: %v", p)
		}
		if kind == 0 && id == stream {
			got += string(p)
		}
		return len(got) >= len(want)
	})
	if got != want {
		c.t.Errorf("got %q, want %q", got, want)
	}
}

// ended reads frames until the other side has ended a stream.
func (c *h2raw) ended(stream uint32) {
	c.t.Helper()
	c.frames(func(kind, flags byte, id uint32, p []byte) bool {
		return id == stream && (kind == 0 || kind == 1) && flags&1 != 0
	})
}

func TestWebSocketOverHTTP2ReachesAServiceThatSpeaksHTTP1(t *testing.T) {
	s, heads := switching(t, func(c *net.TCPConn, in *bufio.Reader) {
		io.WriteString(c, agreeUpgrade+"welcome")
		_, _ = io.Copy(c, in)
		c.CloseWrite()
	})
	c := start(t, single([]string{s.url})).h2(1 << 20)
	announced := false
	c.frames(func(kind, flags byte, _ uint32, p []byte) bool {
		for ; kind == 4 && len(p) >= 6; p = p[6:] {
			announced = announced || binary.BigEndian.Uint16(p) == 8 && binary.BigEndian.Uint32(p[2:]) == 1
		}
		return kind == 4 && flags&1 == 0
	})
	if !announced {
		t.Error("the proxy does not announce that it takes an extended CONNECT")
	}
	c.request(1, 0, extended...)
	if status, end := c.status(1); status != "200" || end {
		t.Fatalf("status %s, ended %v", status, end)
	}
	head := wait(t, "the request", heads)
	for _, want := range []string{"GET /chat HTTP/1.1\r\n", "Upgrade: websocket\r\n", "Connection: Upgrade\r\n",
		"Sec-WebSocket-Key: ", "sec-websocket-protocol: x\r\n"} {
		if !strings.Contains(head, want) {
			t.Errorf("the service got no %q:\n%s", want, head)
		}
	}
	c.content(1, "welcome")
	c.frame(0, 0, 1, []byte("hello"))
	c.content(1, "hello")
	c.frame(0, 1, 1, []byte("bye"))
	c.content(1, "bye")
	c.ended(1)
}

func TestAnswerWithoutASwitchIsNoWebSocket(t *testing.T) {
	s := upstream(t, func(c net.Conn, _ string) { io.WriteString(c, status(200)) })
	c := start(t, single([]string{s.url})).h2(1 << 20)
	c.request(1, 0, extended...)
	if status, _ := c.status(1); status != "502" {
		t.Errorf("status %s", status)
	}
	c.request(3, 0, append([]string{":method", "CONNECT", ":protocol", "connect-udp"}, extended[4:]...)...)
	if status, _ := c.status(3); status != "501" {
		t.Errorf("another protocol: status %s", status)
	}
}

func TestStreamIsATunnelToo(t *testing.T) {
	_, addr := echoing(t)
	c := start(t, "defaults: {}\noutside: {connect: [\""+addr+"\"]}\n").h2(1 << 20)
	c.request(1, 0, ":method", "CONNECT", ":authority", addr)
	if status, end := c.status(1); status != "200" || end {
		t.Fatalf("status %s, ended %v", status, end)
	}
	c.frame(0, 1, 1, []byte("hello"))
	c.content(1, "hello")
	c.ended(1)
	c.request(3, 0, ":method", "CONNECT", ":authority", "127.0.0.1:1")
	if status, _ := c.status(3); status != "403" {
		t.Errorf("to another port: status %s", status)
	}
}

// What is in a tunnel of HTTP/2 nobody reads, so there is none to a service: the answer says how to call it.
func TestATunnelOfHTTP2ToAServiceSaysWhatToDo(t *testing.T) {
	s := echo(t)
	c := start(t, single([]string{s.url})).h2(1 << 20)
	c.request(1, 0, ":method", "CONNECT", ":authority", strings.TrimPrefix(s.url, "http://"))
	if status, _ := c.status(1); status != "403" {
		t.Fatalf("status %s", status)
	}
	said := ""
	c.frames(func(kind, flags byte, stream uint32, payload []byte) bool {
		if kind == 0 && stream == 1 {
			said += string(payload)
		}
		return flags&1 == 0
	})
	for _, want := range []string{"belongs to service s", "send the request itself, without CONNECT", "over HTTP/1.1",
		"outside.connect"} {
		if !strings.Contains(said, want) {
			t.Errorf("it says %s, and not %q", said, want)
		}
	}
}

// extending is a service that speaks HTTP/2 alone, and sends back what comes in a WebSocket.
func extending(t *testing.T, announce bool, heads chan<- string) (url string) {
	s := rawUpstream(t, func(nc net.Conn, _ int) {
		_ = h2.NewServer(nc, &h2.Config{ExtendedConnect: announce}, func(st *h2.Stream) {
			head := st.Head()
			text := fmt.Sprintf("%s %s %s", head.Method, head.Protocol, head.Path)
			for _, f := range head.Fields {
				text += fmt.Sprintf(" %s=%s", f.Name, f.Value)
			}
			heads <- text
			if len(head.Protocol) == 0 {
				_ = st.WriteHead(400, nil, 0, true)
				return
			}
			_ = st.WriteHead(200, nil, -1, false)
			st.Flush()
			for {
				data, err := st.Next(core.NoDeadline)
				if err != nil {
					_ = st.End()
					return
				}
				_ = st.Write(data, false, core.NoDeadline)
				st.Flush()
			}
		}).Serve(nil)
	})
	return strings.Replace(s.url, "http://", "h2c://", 1)
}

func TestWebSocketReachesAServiceThatSpeaksHTTP2(t *testing.T) {
	heads := make(chan string, 4)
	c := start(t, single([]string{extending(t, true, heads)})).dial()
	c.send(askUpgrade)
	if got := c.switched().Get("Sec-WebSocket-Accept"); got != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		t.Errorf("Sec-WebSocket-Accept: %s", got)
	}
	if h := wait(t, "the request", heads); !strings.HasPrefix(h, "CONNECT websocket /chat ") ||
		strings.Contains(h, "sec-websocket-key") {
		t.Errorf("the service got %s", h)
	}
	c.send("hello")
	c.expect("hello")
	c.CloseWrite()
	c.closed()
	both := start(t, single([]string{extending(t, true, heads)})).h2(1 << 20)
	both.request(1, 0, extended...)
	if status, end := both.status(1); status != "200" || end {
		t.Fatalf("over HTTP/2 on both sides: status %s, ended %v", status, end)
	}
	both.frame(0, 1, 1, []byte("hello"))
	both.content(1, "hello")
	both.ended(1)
}

func TestServiceThatTakesNoExtendedConnectGetsNone(t *testing.T) {
	heads := make(chan string, 4)
	a := start(t, single([]string{extending(t, false, heads)})).dial().send(askUpgrade).answer()
	if h := wait(t, "the request", heads); a.status != 400 || !strings.HasPrefix(h, "GET  /chat") {
		t.Errorf("%d; the service got %s", a.status, h)
	}
}
