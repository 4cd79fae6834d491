package proxy_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
)

// block is a head or a trailer: literal fields that nobody is to remember.
func block(fields ...string) (b []byte) {
	for i := 0; i < len(fields); i += 2 {
		b = append(b, 0, byte(len(fields[i])))
		b = append(b, fields[i]...)
		b = appendLength(b, len(fields[i+1]))
		b = append(b, fields[i+1]...)
	}
	return b
}

// appendLength writes a number with a prefix of 7 bits: RFC 7541 §5.1.
func appendLength(b []byte, n int) []byte {
	if n < 127 {
		return append(b, byte(n))
	}
	b = append(b, 127)
	for n -= 127; n >= 128; n >>= 7 {
		b = append(b, byte(n)|128)
	}
	return append(b, byte(n))
}

// message is one of gRPC, as it goes over the wire.
func message(s string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(s))), s...)
}

func code(c uint32) []byte { return binary.BigEndian.AppendUint32(nil, c) }

var grpcHead = []string{":status", "200", "content-type", "application/grpc"}

// trailersOnly is an answer that is a head and nothing else.
func trailersOnly(f *frames, stream uint32, fields ...string) {
	f.write(headersFrame, endHeaders|endStream, stream, block(append(grpcHead[:4:4], fields...)...))
}

// good is an answer that echoes nothing.
func good(f *frames, stream uint32) {
	f.write(headersFrame, endHeaders, stream, block(grpcHead...))
	f.write(dataFrame, 0, stream, message("good"))
	f.write(headersFrame, endHeaders|endStream, stream, block("grpc-status", "0"))
}

// Services answer in all ways that there are. The client hears a code that fits, what may be repeated is, and nothing
// breaks.
func TestBadAnswersOfGRPCServices(t *testing.T) {
	reset := func(c uint32) func(f *frames, s uint32) {
		return func(f *frames, s uint32) { f.write(resetFrame, 0, s, code(c)) }
	}
	afterMessage := func(then func(f *frames, s uint32)) func(f *frames, s uint32) {
		return func(f *frames, s uint32) {
			f.write(headersFrame, endHeaders, s, block(grpcHead...))
			f.write(dataFrame, 0, s, message("first"))
			then(f, s)
		}
	}
	for _, tt := range []struct {
		name    string
		answer  func(f *frames, stream uint32)
		code    codes.Code // of the call without a retry
		repeats bool
	}{
		{"UNAVAILABLE", func(f *frames, s uint32) { trailersOnly(f, s, "grpc-status", "14") }, codes.Unavailable, true},
		{"a status that is no number", func(f *frames, s uint32) {
			trailersOnly(f, s, "grpc-status", "busy")
		}, codes.Unknown, false},
		{"a negative status", func(f *frames, s uint32) {
			trailersOnly(f, s, "grpc-status", "-14")
		}, codes.Code(1<<32 - 14), false},
		{"two that differ", func(f *frames, s uint32) {
			trailersOnly(f, s, "grpc-status", "5", "grpc-status", "14")
		}, codes.Unavailable, false},
		{"a number that is no code", func(f *frames, s uint32) {
			trailersOnly(f, s, "grpc-status", "99")
		}, codes.Code(99), false},
		{"no status", func(f *frames, s uint32) { trailersOnly(f, s) }, codes.Unknown, false},
		{"a broken message", func(f *frames, s uint32) {
			trailersOnly(f, s, "grpc-status", "14", "grpc-message", "%zz%")
		}, codes.Unavailable, true},
		{"503 of a load balancer", func(f *frames, s uint32) {
			f.write(headersFrame, endHeaders, s, block(":status", "503", "content-type", "text/html"))
			f.write(dataFrame, endStream, s, []byte("<html>"))
		}, codes.Unavailable, true},
		{"404 of a server that is none of gRPC", func(f *frames, s uint32) {
			f.write(headersFrame, endHeaders|endStream, s, block(":status", "404"))
		}, codes.Unimplemented, false},
		{"200 of a server that is none of gRPC", func(f *frames, s uint32) {
			f.write(headersFrame, endHeaders, s, block(":status", "200", "content-type", "text/html"))
			f.write(dataFrame, endStream, s, []byte("<html>"))
		}, codes.Unknown, false},
		{"the end without a trailer", func(f *frames, s uint32) {
			f.write(headersFrame, endHeaders, s, block(grpcHead...))
			f.write(dataFrame, endStream, s, message("good"))
		}, codes.Internal, false},
		{"a failure behind the head", func(f *frames, s uint32) {
			f.write(headersFrame, endHeaders, s, block(grpcHead...))
			f.write(headersFrame, endHeaders|endStream, s, block("grpc-status", "14"))
		}, codes.Unavailable, true},
		{"a failure behind a message", afterMessage(func(f *frames, s uint32) {
			f.write(headersFrame, endHeaders|endStream, s, block("grpc-status", "14"))
		}), codes.Unavailable, false},
		{"trailers twice", afterMessage(func(f *frames, s uint32) {
			f.write(headersFrame, endHeaders|endStream, s, block("grpc-status", "0"))
			f.write(headersFrame, endHeaders|endStream, s, block("grpc-status", "14"))
		}), codes.OK, false},
		{"a trailer that does not end it", afterMessage(func(f *frames, s uint32) {
			f.write(headersFrame, endHeaders, s, block("grpc-status", "0"))
		}), codes.Internal, false},
		{"REFUSED_STREAM", reset(7), codes.Unavailable, true},
		{"INTERNAL_ERROR", reset(2), codes.Unavailable, true},
		{"CANCEL", reset(8), codes.Unavailable, true},
		{"CANCEL behind a message", afterMessage(reset(8)), codes.Canceled, false},
		{"INTERNAL_ERROR behind a message", afterMessage(reset(2)), codes.Internal, false},
		{"ENHANCE_YOUR_CALM behind a message", afterMessage(reset(11)), codes.ResourceExhausted, false},
		{"a reset in a message", func(f *frames, s uint32) {
			f.write(headersFrame, endHeaders, s, block(grpcHead...))
			f.write(dataFrame, 0, s, message("good")[:7])
			f.write(resetFrame, 0, s, code(2))
		}, codes.Internal, false},
		{"a connection that ends", func(f *frames, _ uint32) { f.Close() }, codes.Unavailable, true},
		{"a connection that ends behind a message", afterMessage(func(f *frames, _ uint32) {
			f.Close()
		}), codes.Unavailable, false},
		{"a head as large as it may be", func(f *frames, s uint32) {
			trailersOnly(f, s, "grpc-status", "5", "x-large", strings.Repeat("x", 15<<10))
		}, codes.NotFound, false},
		{"a head that is no head", func(f *frames, s uint32) {
			f.write(headersFrame, endHeaders|endStream, s, []byte{0xff, 0xff, 0xff})
		}, codes.Unavailable, true},
		{"never again", func(f *frames, s uint32) {
			trailersOnly(f, s, "grpc-status", "14", "grpc-retry-pushback-ms", "-1")
		}, codes.Unavailable, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			one := func(retries int) (c called, _ int) {
				var requests atomic.Int32
				url := rawHTTP2(t, func(f *frames, stream uint32, n int) {
					if requests.Store(int32(n)); n == 1 {
						tt.answer(f, stream)
					} else {
						good(f, stream)
					}
				})
				r := start(t, single([]string{url}, fmt.Sprint("maxRetries: ", retries), quickRetry, "retryBudget: {ratio: 1}"))
				c = call(t, dialGRPC(t, r.addr), "/a.B/C", "x", keyed...)
				eventually(t, "nothing pending", func() bool { return r.guard().Endpoints[0].Pending == 0 })
				return c, int(requests.Load())
			}
			if c, _ := one(0); c.code != tt.code {
				t.Errorf("got %v %q, want %v", c.code, c.message, tt.code)
			}
			if c, n := one(1); (c.code == codes.OK && c.reply == "good") != (tt.repeats ||
				tt.code == codes.OK && c.reply == "good") || (n == 2) != tt.repeats {
				t.Errorf("with a retry: %v %q after %d requests; repeated: %v", c.code, c.message, n, tt.repeats)
			}
		})
	}
}

// What a client says about its time and its attempts may be anything. It is passed on only if it is understood.
func TestBadRequestsOfGRPCClients(t *testing.T) {
	s := serveGRPC(t, func(c *rpc) error {
		return c.send(fmt.Sprint(c.md.Get("grpc-previous-rpc-attempts"), backHome(c) > 0))
	})
	r := start(t, single([]string{s.url}))
	for _, tt := range []struct {
		fields []string
		want   string // of the answer's content, or its status
	}{
		{nil, "[] false"},
		{[]string{"grpc-timeout", "10S"}, "[] true"},
		{[]string{"grpc-timeout", "10S", "grpc-timeout", "20S"}, "[] true"},
		{[]string{"grpc-timeout", "10S", "grpc-timeout", "x"}, "[] true"},
		{[]string{"grpc-timeout", "0n"}, "grpc-status: 4"},
		{[]string{"grpc-timeout", "0n", "grpc-timeout", "20S"}, "grpc-status: 4"},
		{[]string{"grpc-timeout", "99999999H"}, "[] true"},
		{[]string{"grpc-timeout", "999999999999999999H"}, "[] false"},
		{[]string{"grpc-timeout", "-1S"}, "[] false"},
		{[]string{"grpc-timeout", "1"}, "[] false"},
		{[]string{"grpc-timeout", ""}, "[] false"},
		{[]string{"grpc-timeout", "1x"}, "[] false"},
		{[]string{"grpc-previous-rpc-attempts", "2"}, "[2] false"},
		{[]string{"grpc-previous-rpc-attempts", "2", "grpc-previous-rpc-attempts", "1"}, "[2] false"},
		{[]string{"grpc-previous-rpc-attempts", "-2"}, "[] false"},
		{[]string{"grpc-previous-rpc-attempts", "many"}, "[] false"},
		{[]string{"grpc-previous-rpc-attempts", "99999999999999999999"}, "[] false"},
	} {
		c := r.h2(65535)
		c.request(1, 0, append([]string{":method", "POST", ":scheme", "http", ":authority", "s.test", ":path", "/a.B/C",
			"content-type", "application/grpc", "te", "trailers"}, tt.fields...)...)
		c.frame(0, 1, 1, message("x"))
		got := ""
		c.frames(func(kind, flags byte, stream uint32, payload []byte) bool {
			got += string(payload)
			return stream == 1 && flags&1 != 0
		})
		if !strings.Contains(got, strings.TrimPrefix(tt.want, "grpc-status: ")) {
			t.Errorf("%q: got %q, want %s", tt.fields, got, tt.want)
		}
	}
}

// A client that never reads its answer is let go, and so is the service.
func TestAGRPCClientThatNeverReadsIsLetGo(t *testing.T) {
	gone := make(chan struct{}, 1)
	s := serveGRPC(t, func(c *rpc) error {
		for c.send(strings.Repeat("x", 10<<10)) == nil {
		}
		gone <- struct{}{}
		return nil
	})
	r := start(t, single([]string{s.url}), stallTimeout(short))
	c := r.h2(100)
	c.request(1, 0, ":method", "POST", ":scheme", "http", ":authority", "s.test", ":path", "/a.B/C", "content-type",
		"application/grpc", "te", "trailers")
	c.frame(0, 1, 1, message("x"))
	wait(t, "the service hears of it", gone)
	eventually(t, "everything is given back", func() bool { return calm(r) })
}

// Metadata that is longer than what anybody takes fails its own call, and no other.
func TestOversizedMetadataFailsItsCallOnly(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	s := serveGRPC(t, func(c *rpc) error {
		if c.first("x-long") == "answer" {
			c.SetTrailer(metadata.Pairs("x-long", long))
		}
		return repeatAll(c)
	})
	r := start(t, single([]string{s.url}, noBreaker, quickRetry))
	cc := dialGRPC(t, r.addr)
	for _, value := range []string{"answer", long} {
		if c := call(t, cc, "/a.B/C", "x", "x-long", value); c.code == codes.OK {
			t.Errorf("%.10s: got %v", value, c.code)
		}
		if c := call(t, cc, "/a.B/C", "x"); c.code != codes.OK {
			t.Errorf("after %.10s: got %+v", value, c)
		}
	}
	c := r.h2(65535)
	var block []byte // in pieces, as nobody should send it
	block = append(block, 0, 6)
	block = append(appendLength(append(block, "x-long"...), len(long)), long...)
	c.frame(1, 0, 1, append([]byte{0, 7, ':', 'm', 'e', 't', 'h', 'o', 'd', 4, 'P', 'O', 'S', 'T'}, block[:10]...))
	for rest := block[10:]; len(rest) > 0; {
		n := min(len(rest), 16<<10)
		flags := byte(0)
		if n == len(rest) {
			flags = 4
		}
		c.frame(9, flags, 1, rest[:n])
		rest = rest[n:]
	}
	c.frames(func(kind, _ byte, stream uint32, _ []byte) bool { return stream == 1 && kind <= 3 || kind == 7 })
	if c := call(t, cc, "/a.B/C", "x"); c.code != codes.OK {
		t.Errorf("at the end: got %+v", c)
	}
}

// The head of an answer waits a moment for its first message: a failure in between is still repeated.
func TestAFailureBehindTheHeadIsStillRepeated(t *testing.T) {
	url := rawHTTP2(t, func(f *frames, stream uint32, n int) {
		if n%2 == 0 {
			good(f, stream)
			return
		}
		f.write(headersFrame, endHeaders, stream, block(grpcHead...))
		f.write(pingFrame, 0, 0, make([]byte, 8))
		for { // until the proxy has seen the head
			if kind, flags, _, _, err := f.read(); err != nil || kind == pingFrame && flags&ack != 0 {
				break
			}
		}
		f.write(headersFrame, endHeaders|endStream, stream, block("grpc-status", "14"))
	})
	r := start(t, single([]string{url}, "maxRetries: 1", quickRetry, noBreaker, "retryBudget: {ratio: 1}"))
	cc := dialGRPC(t, r.addr)
	if c := call(t, cc, "/a.B/C", "x", keyed...); c.reply != "good" {
		t.Errorf("got %+v", c)
	}
	if m := r.adminGet("/metrics"); !strings.Contains(
		m, `http_client_retry_attempts_total{attempt="2",endpoint="/",service="s"} 1`) {
		t.Errorf("it was not repeated:\n%s", grep(m, "retry_attempts"))
	}
}
