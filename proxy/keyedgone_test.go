package proxy_test

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

const keepsErrors = "idempotency: {methods: [POST], keepServerErrors: true}"

// A client that leaves does not undo what the service has done: whatever the answer to its try says, its next try gets
// that.
func TestTheAnswerToAClientThatLeftIsKeptWhateverItSays(t *testing.T) {
	for _, c := range []struct {
		status int
		keys   string
	}{{200, keys}, {402, keys}, {409, keys}, {500, keepsErrors}, {503, keepsErrors}} {
		for _, way := range leaving {
			t.Run(fmt.Sprint(c.status, " ", way.name), func(t *testing.T) {
				var runs atomic.Int32
				came, answer := make(chan struct{}), make(chan struct{})
				up := upstream(t, func(nc net.Conn, _ string) {
					n := runs.Add(1)
					if n == 1 {
						close(came)
						<-answer
					}
					fmt.Fprintf(nc, "HTTP/1.1 %d Answer\r\nContent-Length: 5\r\n\r\nrun %d", c.status, n)
				})
				r := protect(t, guardOf(up.url, c.keys))
				first := r.dial()
				first.send(post("a", "one"))
				soon(t, "the service has it", came)
				way.leave(first)
				close(answer)
				a := r.settled(post("a", "one"))
				if a.status != c.status || a.content != "run 1" || a.header.Get("Idempotency-Replayed") != "true" ||
					runs.Load() != 1 {
					t.Errorf("%+v, done %d times", a, runs.Load())
				}
			})
		}
	}
}

// settled sends a request again until the try that holds its key has ended.
func (r *running) settled(request string) (a reply) {
	r.t.Helper()
	eventually(r.t, "the first try has ended", func() bool {
		c := r.dial()
		defer c.Close()
		a = c.send(request).answer()
		return a.header.Get("Abate-Reason") != "idempotency-running"
	})
	return a
}

func TestTheAnswerToAGRPCClientThatLeftIsKeptWhateverItSays(t *testing.T) {
	for _, code := range []codes.Code{
		codes.OK, codes.NotFound, codes.FailedPrecondition, codes.Unavailable, codes.Internal,
	} {
		t.Run(code.String(), func(t *testing.T) {
			came, answer := make(chan struct{}), make(chan struct{})
			s := serveGRPC(t, func(c *rpc) error {
				if c.n == 1 {
					close(came)
					<-answer
				}
				if code != codes.OK {
					return grpcstatus.Error(code, fmt.Sprint("run ", c.n))
				}
				return c.send(fmt.Sprint("run ", c.n))
			})
			r := protect(t, guardOf(s.url, keepsErrors))
			cc := dialGRPC(t, r.addr)
			ctx, leave := context.WithCancel(t.Context())
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				callIn(ctx, cc, "/a.B/C", "m", keyed...)
			}()
			soon(t, "the service has it", came)
			leave()
			<-gone
			call(t, cc, "/a.B/C", "other", "x-idempotency-key", "behind") // whose frames come behind the reset
			close(answer)
			var c called
			eventually(t, "the first try has ended", func() bool {
				c = call(t, cc, "/a.B/C", "m", keyed...)
				return c.last("abate-reason") != "idempotency-running"
			})
			if c.code != code || c.reply+c.message != "run 1" {
				t.Errorf("%+v, done %d times", c, len(s.seen()))
			}
		})
	}
}

// One service may serve many hosts, each to its own tenant, and so over gRPC.
func TestAGRPCKeyThatComesBackForAnotherHostIsNeitherAnsweredNorDone(t *testing.T) {
	s := serveGRPC(t, repeatAll)
	r := protect(t, guardOf(s.url, keys))
	for _, c := range []struct {
		host string
		code codes.Code
	}{{"one.test", codes.OK}, {"two.test", codes.FailedPrecondition}, {"ONE.test:443", codes.OK}} {
		got := call(t, dialGRPC(t, r.addr, grpc.WithAuthority(c.host)), "/a.B/C", "m", keyed...)
		if got.code != c.code || c.code != codes.OK && got.last("abate-reason") != "idempotency-mismatch" {
			t.Errorf("for %s: %+v", c.host, got)
		}
	}
	if n := len(s.seen()); n != 1 {
		t.Errorf("done %d times", n)
	}
}
