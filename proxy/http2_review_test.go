package proxy_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// A server that takes no streams at all, or says at once that it is going, is not dialled again and again for one
// request.
func TestAServerThatTakesNoStreamsIsDialledOnce(t *testing.T) {
	for name, hello := range map[string]func(f *frames){
		"no streams": func(f *frames) { f.write(settingsFrame, 0, 0, []byte{0, 3, 0, 0, 0, 0}) },
		"going": func(f *frames) {
			f.Write(append([]byte{0, 0, 0, settingsFrame, 0, 0, 0, 0, 0, 0, 0, 8, goAwayFrame, 0, 0, 0, 0, 0},
				make([]byte, 8)...))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var conns atomic.Int32
			s := rawUpstream(t, func(c net.Conn, _ int) {
				conns.Add(1)
				if _, err := io.ReadFull(c, make([]byte, 24)); err == nil {
					hello(&frames{c, t})
					_, _ = io.Copy(io.Discard, c)
				}
			})
			r := start(t, single([]string{strings.Replace(s.url, "http://", "h2c://", 1)}, noRetries, "timeout: 3s"))
			if a := r.get("/"); a.status != 502 && a.status != 503 {
				t.Errorf("got %d %s", a.status, a.content)
			}
			if n := conns.Load(); n > 2 {
				t.Errorf("one request made %d connections", n)
			}
		})
	}
}

// Whoever has an answer may ask again at once: the key is free, or its answer is there, before the client has the end.
func TestAKeyIsSettledBeforeItsCallHasTheAnswer(t *testing.T) {
	s := serveGRPC(t, func(c *rpc) error {
		_, _ = c.receive()
		return grpcstatus.Error(codes.Unavailable, "no")
	})
	r := protect(t, guardOf(s.url, noShed, "idempotency: {methods: [/shop.Payment/*]}"))
	cc := dialGRPC(t, r.addr)
	for i := range 300 {
		for range 3 {
			if c := call(t, cc, "/shop.Payment/Charge", "m", "x-idempotency-key", fmt.Sprint(i)); c.code != codes.Unavailable {
				t.Fatalf("call %d: got %+v", i, c)
			}
		}
	}
}

// A stream that was on its way to a connection that is ending goes to another, whatever the policy says about retries.
func TestAStreamThatWasNotTakenGoesToAnotherConnection(t *testing.T) {
	url := rawHTTP2(t, func(f *frames, stream uint32, n int) {
		if n == 1 {
			f.write(goAwayFrame, 0, 0, make([]byte, 8))
			f.Close()
			return
		}
		for kind := byte(headersFrame); kind != dataFrame; { // a call that has its answer already takes no more messages
			var err error
			if kind, _, _, _, err = f.read(); err != nil {
				return
			}
		}
		good(f, stream)
	})
	r := start(t, single([]string{url}, noRetries))
	s := converse(t, dialGRPC(t, r.addr), "/shop.Payment/Talk").say("hello")
	s.hear("good")
}

// A status that HTTP does not have is refused, over HTTP/2 as over HTTP/1.1.
func TestAStatusThatHTTPDoesNotHave(t *testing.T) {
	url := rawHTTP2(t, func(f *frames, stream uint32, n int) {
		f.write(headersFrame, endHeaders|endStream, stream, block(":status", "999"))
	})
	r := start(t, single([]string{url}, noRetries))
	if a := r.get("/"); a.status != 502 {
		t.Errorf("got %d", a.status)
	}
}

// A busy connection takes more streams when another one, which is wanted for the load alone, cannot be made.
func TestABusyConnectionIsUsedWhenNoOtherCanBeMade(t *testing.T) {
	l := listen(t)
	const most = 150
	var opened, conns atomic.Int32
	all := make(chan struct{})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if conns.Add(1) > 1 {
				c.Close()
				continue
			}
			go func() {
				defer c.Close()
				_, _ = io.ReadFull(c, make([]byte, 24))
				f := &frames{c, t}
				f.write(settingsFrame, 0, 0, []byte{0, 3, 0, 0, 4, 0}) // 1024 streams
				for {
					kind, _, stream, _, err := f.read()
					if err != nil {
						return
					}
					if kind == headersFrame && opened.Add(1) == most {
						for id := uint32(1); id <= stream; id += 2 {
							f.write(headersFrame, endHeaders|endStream, id, statusOK)
						}
						close(all)
					}
				}
			}()
		}
	}()
	defer l.Close()
	r := start(t, single([]string{"h2c://" + l.Addr().String()}, noRetries, noBreaker, noEjection))
	answers := make(chan reply, most)
	for range most {
		c := r.dial().send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")
		go func() { answers <- c.answer() }()
	}
	for range most {
		if a := <-answers; a.status != 200 {
			t.Fatalf("got %d %s, with %d connections", a.status, a.content, conns.Load())
		}
	}
	<-all
	if n := conns.Load(); n > 10 {
		t.Errorf("%d connections were tried", n)
	}
}
func TestAServerThatAgreesAfterTheProxyHasEnded(t *testing.T) {
	asked, agree := make(chan struct{}), make(chan struct{})
	gone := make(chan struct{})
	s := rawUpstream(t, func(c net.Conn, _ int) {
		defer close(gone)
		_, _ = io.ReadFull(c, make([]byte, 24))
		close(asked)
		<-agree
		(&frames{c, t}).write(settingsFrame, 0, 0, nil)
		_, _ = io.Copy(io.Discard, c)
	})
	r := start(t, single([]string{strings.Replace(s.url, "http://", "h2c://", 1)}, noRetries))
	c := r.dial()
	c.send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")
	<-asked
	c.Close()
	r.shutdown()
	close(agree)
	<-gone
}
