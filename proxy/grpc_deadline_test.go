package proxy_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"

	"github.com/abate-go/abate/hops"
)

// frameSeen is a frame of HTTP/2 as a service sees it.
type frameSeen struct {
	kind   http2.FrameType
	ends   bool
	length uint32
	fields map[string]string // of a head
}

// frameService is a service of gRPC that notes which frames a call comes in, and answers OK when it has ended.
func frameService(t testing.TB) (url string, calls chan []frameSeen) {
	calls = make(chan []frameSeen, 100)
	s := rawUpstream(t, func(c net.Conn, _ int) {
		if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		f := http2.NewFramer(c, c)
		f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		_ = f.WriteSettings()
		var head strings.Builder
		encoder := hpack.NewEncoder(&head)
		seen := map[uint32][]frameSeen{}
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			id := frame.Header().StreamID
			switch frame := frame.(type) {
			case *http2.MetaHeadersFrame:
				fields := map[string]string{}
				for _, field := range frame.Fields {
					fields[field.Name] = field.Value
				}
				seen[id] = append(seen[id], frameSeen{http2.FrameHeaders, frame.StreamEnded(), 0, fields})
			case *http2.DataFrame:
				seen[id] = append(seen[id], frameSeen{http2.FrameData, frame.StreamEnded(), frame.Length, nil})
			default:
				continue
			}
			if all := seen[id]; all[len(all)-1].ends {
				calls <- all
				head.Reset()
				for _, field := range [][2]string{{":status", "200"}, {"content-type", "application/grpc"}, {"grpc-status", "0"}} {
					_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
				}
				_ = f.WriteHeaders(http2.HeadersFrameParam{
					StreamID: id, BlockFragment: []byte(head.String()), EndHeaders: true, EndStream: true,
				})
			}
		}
	})
	return "h2c" + strings.TrimPrefix(s.url, "http"), calls
}

// gRPC over HTTP/2 ends a request with a frame of content, an empty one if need be. There are servers that wait for it.
func TestAStreamWithoutAMessageEndsWithAnEmptyFrameOfContent(t *testing.T) {
	url, calls := frameService(t)
	hedged := "hedge: {delay: 20s}"
	for name, policy := range map[string]string{
		"by default":   single([]string{url}),
		"passed on":    single([]string{url}, noRetries),
		"may be twice": single([]string{url}, "retryMethods: [/a.B/*]"),
		"hedged":       single([]string{url}, hedged, "retryMethods: [/a.B/*]"),
		"at a gate":    guardOf(url),
	} {
		var r *running
		if name == "at a gate" {
			r = protect(t, policy)
		} else {
			r = start(t, policy)
		}
		for _, end := range []string{"with its head", "with an empty frame", "later"} {
			c := r.h2(65535)
			flags := byte(0)
			if end == "with its head" {
				flags = 1
			}
			c.request(1, flags, ":method", "POST", ":scheme", "http", ":authority", "s.test", ":path", "/a.B/C", "content-type",
				"application/grpc", "te", "trailers")
			if end == "later" {
				c.frame(6, 0, 0, make([]byte, 8)) // a ping: when it has come back, the call is under way
				c.frames(func(kind, flags byte, _ uint32, _ []byte) bool { return kind == 6 && flags&1 != 0 })
			}
			if flags == 0 {
				c.frame(0, 1, 1, nil)
			}
			frames := wait(t, name+", "+end, calls)
			if len(frames) != 2 || frames[0].kind != http2.FrameHeaders || frames[0].ends || frames[1].kind != http2.FrameData ||
				!frames[1].ends || frames[1].length != 0 {
				t.Errorf("%s, ended %s: %+v, want a head and an empty frame of content that ends the stream", name, end, frames)
			}
			if length, there := frames[0].fields["content-length"]; there {
				t.Errorf("%s, ended %s: content-length %q", name, end, length)
			}
		}
	}
}

// The timeout of a policy, or of a gate, is the deadline of a gRPC call: its service hears of it, as of its client's.
func TestAPolicysTimeoutReachesGRPCServicesAsTheirDeadline(t *testing.T) {
	url, calls := frameService(t)
	for _, tt := range []struct {
		name     string
		run      func() *running
		sent     string // by the client
		longest  time.Duration
		shortest time.Duration // 0: there is no deadline
	}{
		{"none", func() *running { return start(t, single([]string{url})) }, "", 0, 0},
		{"the policy's", func() *running {
			return start(t, single([]string{url}, "timeout: 1h"))
		}, "", time.Hour, 50 * time.Minute},
		{"the policy's, which is less", func() *running {
			return start(t, single([]string{url}, "timeout: 1h"))
		}, "3H", time.Hour, 50 * time.Minute},
		{"the client's, which is less", func() *running {
			return start(t, single([]string{url}, "timeout: 1h"))
		}, "30M", 30 * time.Minute, 20 * time.Minute},
		{"the policy's of a hedged call", func() *running {
			return start(t, single([]string{url}, "timeout: 1h", "hedge: {delay: 20s}", "retryMethods: [/a.B/*]"))
		}, "", time.Hour, 50 * time.Minute},
		{"an attempt's is not the call's", func() *running {
			return start(t, single([]string{url}, "attemptTimeout: 10m"))
		}, "", 0, 0},
		{"the policy's beside an attempt's", func() *running {
			return start(t, single([]string{url}, "attemptTimeout: 10m", "timeout: 1h"))
		}, "", time.Hour, 50 * time.Minute},
		{"the gate's", func() *running { return protect(t, guardOf(url, "timeout: 1h")) }, "", time.Hour, 50 * time.Minute},
		{"the client's at a gate", func() *running {
			return protect(t, guardOf(url, "timeout: 1h"))
		}, "99999999u", 100 * time.Second, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := tt.run()
			c := r.h2(65535)
			fields := []string{":method", "POST", ":scheme", "http", ":authority", "s.test", ":path", "/a.B/C", "content-type",
				"application/grpc", "te", "trailers"}
			if tt.sent != "" {
				fields = append(fields, "grpc-timeout", tt.sent)
			}
			c.request(1, 0, fields...)
			c.frame(0, 1, 1, message("x"))
			head := wait(t, "the call", calls)[0].fields
			value, said := head["grpc-timeout"]
			limit, ok := hops.ParseGRPCTimeout(value)
			if said != (tt.shortest > 0) || said && (!ok || limit > tt.longest || limit < tt.shortest) {
				t.Errorf("grpc-timeout %q, want %v to %v", value, tt.shortest, tt.longest)
			}
			var envoys int64
			n, _ := fmt.Sscan(head["x-envoy-expected-rq-timeout-ms"], &envoys)
			if left := time.Duration(envoys) * time.Millisecond; (n == 1) != said || left > limit+time.Second ||
				left < limit-time.Second {
				t.Errorf("x-envoy-expected-rq-timeout-ms %d beside grpc-timeout %q", envoys, value)
			}
		})
	}
}

// A stream is a call too: it ends at the timeout, as in gRPC, with the code for that. attemptTimeout bounds the wait
// for its first message only.
func TestAStreamEndsAtThePolicysTimeoutAndNotAtThatOfAnAttempt(t *testing.T) {
	if testing.Short() {
		return // it waits
	}
	t.Parallel()
	s := serveGRPC(t, func(c *rpc) error {
		if err := c.send("first"); err != nil {
			return err
		}
		m, err := c.receive()
		if err != nil {
			<-c.Context().Done()
			return context.Cause(c.Context())
		}
		return c.send(m)
	})
	r := start(t, single([]string{s.url}, "attemptTimeout: 1s", noRetries))
	long := converse(t, dialGRPC(t, r.addr), "/a.B/Watch").hear("first")
	past := time.NewTimer(1500 * time.Millisecond)
	<-past.C
	long.say("second").hear("second").ends(codes.OK)
	r = start(t, single([]string{s.url}, "timeout: 3s", noRetries))
	converse(t, dialGRPC(t, r.addr), "/a.B/Watch").hear("first").ends(codes.DeadlineExceeded)
}

// A server of gRPC cancels the stream of a call whose deadline has passed, and may be quicker than the timer of the
// proxy: the call is past its deadline all the same, and not without a service.
func TestACallThatItsServiceCancelsAtTheDeadlineIsPastItsDeadline(t *testing.T) {
	for name, begin := range map[string]func(f *frames, stream uint32){
		"before the answer": func(*frames, uint32) {},
		"behind a message": func(f *frames, stream uint32) {
			f.write(headersFrame, endHeaders, stream, block(grpcHead...))
			f.write(dataFrame, 0, stream, message("first"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			url := rawHTTP2(t, func(f *frames, stream uint32, _ int) {
				begin(f, stream)
				for end := time.Now().Add(time.Millisecond); time.Now().Before(end); { // no timer is as punctual
				}
				f.write(resetFrame, 0, stream, binary.BigEndian.AppendUint32(nil, uint32(http2.ErrCodeCancel)))
			})
			r := start(t, single([]string{url}, noBreaker, "retryMethods: [/a.B/*]"))
			c := r.h2(65535)
			ended := ""
			fields := hpack.NewDecoder(4096, func(f hpack.HeaderField) {
				if f.Name == "grpc-status" {
					ended = f.Value
				}
			})
			for n := range uint32(300) {
				stream := 2*n + 1
				c.request(stream, 0, ":method", "POST", ":scheme", "http", ":authority", "s.test", ":path", "/a.B/C",
					"content-type", "application/grpc", "te", "trailers", "grpc-timeout", "1m")
				c.frame(0, 1, stream, message("x"))
				c.frames(func(kind, flags byte, of uint32, payload []byte) bool {
					if kind == headersFrame {
						_, _ = fields.Write(payload)
					}
					return of == stream && (kind == resetFrame || flags&endStream != 0)
				})
				if ended != "4" {
					t.Fatalf("call %d ended with grpc-status %q, want 4 (DEADLINE_EXCEEDED)", n, ended)
				}
				ended = ""
			}
		})
	}
}

// What a service is told to have is what is left when it is told, however long its connection was in coming.
func TestTheDeadlineIsToldAsOfWhenThereIsAConnection(t *testing.T) {
	url, calls := frameService(t)
	held := make(chan time.Duration, 10)
	slow := rawUpstream(t, func(c net.Conn, _ int) {
		begun := make([]byte, 1)
		if _, err := io.ReadFull(c, begun); err != nil {
			return
		}
		since, pause := time.Now(), time.NewTimer(50*time.Millisecond)
		<-pause.C
		held <- time.Since(since)
		on, err := net.Dial("tcp", strings.TrimPrefix(url, "h2c://"))
		if err != nil {
			t.Error(err)
			return
		}
		defer on.Close()
		go func() { _, _ = io.Copy(c, on) }()
		_, _ = io.Copy(on, io.MultiReader(bytes.NewReader(begun), c))
	})
	r := start(t, single([]string{"h2c" + strings.TrimPrefix(slow.url, "http")}))
	c := r.h2(65535)
	c.request(1, 0, ":method", "POST", ":scheme", "http", ":authority", "s.test", ":path", "/a.B/C", "content-type",
		"application/grpc", "te", "trailers", "grpc-timeout", "99999999u")
	c.frame(0, 1, 1, message("x"))
	fields, waited := wait(t, "the call", calls)[0].fields, <-held
	left := 99_999_999*time.Microsecond - waited
	if told, ok := hops.ParseGRPCTimeout(fields["grpc-timeout"]); !ok || told > left {
		t.Errorf("grpc-timeout %q where the connection took %v: at most %v is left", fields["grpc-timeout"], waited, left)
	}
	var envoys int64
	_, err := fmt.Sscan(fields["x-envoy-expected-rq-timeout-ms"], &envoys)
	if told := time.Duration(envoys) * time.Millisecond; err != nil || told > left+time.Millisecond {
		t.Errorf("x-envoy-expected-rq-timeout-ms %d where at most %v is left", envoys, left)
	}
}
