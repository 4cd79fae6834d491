package proxy_test

import (
	"encoding/binary"
	"io"
	"net/http"
	"sync"
	"testing"
)

// h2raw is a client of HTTP/2 that sends frames as it likes.
type h2raw struct {
	*client
	mu sync.Mutex
}

func (r *running) h2(window uint32) *h2raw {
	r.t.Helper()
	c := &h2raw{client: r.dial()}
	c.begin(window)
	return c
}

// begin sends what a connection begins with.
func (c *h2raw) begin(window uint32) {
	c.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	settings := binary.BigEndian.AppendUint16(nil, 4) // SETTINGS_INITIAL_WINDOW_SIZE
	c.frame(4, 0, 0, binary.BigEndian.AppendUint32(settings, window))
}

func (c *h2raw) frame(kind, flags byte, stream uint32, payload []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	c.Write(append(binary.BigEndian.AppendUint32(head, stream), payload...))
}

// request sends the head of a request, with literal fields.
func (c *h2raw) request(stream uint32, flags byte, fields ...string) {
	var block []byte
	for i := 0; i < len(fields); i += 2 {
		block = append(block, 0, byte(len(fields[i])))
		block = append(block, fields[i]...)
		block = append(block, byte(len(fields[i+1])))
		block = append(block, fields[i+1]...)
	}
	c.frame(1, flags|4, stream, block)
}

// frames reads frames until f is done, and acknowledges settings.
func (c *h2raw) frames(f func(kind, flags byte, stream uint32, payload []byte) bool) {
	c.t.Helper()
	for {
		head := make([]byte, 9)
		if _, err := io.ReadFull(c.in, head); err != nil {
			c.t.Fatalf("no more frames: %v", err)
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(c.in, payload); err != nil {
			c.t.Fatal(err)
		}
		if head[3] == 4 && head[4]&1 == 0 {
			c.frame(4, 1, 0, nil)
		}
		if f(head[3], head[4], binary.BigEndian.Uint32(head[5:]), payload) {
			return
		}
	}
}

var h2post = []string{":method", "POST", ":scheme", "http", ":authority", "s.test", ":path", "/"}

// A client of HTTP/2 that does not send the body it announced must not keep what its call holds.
func TestAStreamThatDoesNotSendItsBodyIsLetGo(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	for _, c := range []struct{ name, length string }{{"held", "10"}, {"streamed", "1000000"}} {
		for _, out := range []wire{http1, h2c} {
			t.Run(c.name+" to "+out.name, func(t *testing.T) {
				url := out.serve(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
				r := start(t, single([]string{url}, noRetries, "bulkhead: {maxConcurrentCalls: 1, noQueue: true}"),
					stallTimeout(short))
				cl := r.h2(65535)
				cl.request(1, 0, append(h2post, "content-length", c.length)...)
				cl.frames(func(kind, _ byte, stream uint32, _ []byte) bool { return stream == 1 && (kind == 3 || kind == 1) })
				unharmed(t, r)
			})
		}
	}
}

// A client of HTTP/2 that does not take the answer it asked for must not keep the service's connection.
func TestAStreamThatDoesNotTakeItsAnswerIsLetGo(t *testing.T) {
	for _, e := range endlessAnswers {
		t.Run(e.name, func(t *testing.T) {
			s, ended := pouring(t, e.head, e.piece)
			r := start(t, single([]string{s.url}), stallTimeout(short))
			cl := r.h2(100)
			cl.request(1, 1, ":method", "GET", ":scheme", "http", ":authority", "s.test", ":path", "/")
			wait(t, "the service is let go", ended)
			cl.frames(func(kind, _ byte, stream uint32, _ []byte) bool { return kind == 3 && stream == 1 })
			eventually(t, "everything is given back", func() bool { return calm(r) })
		})
	}
}
