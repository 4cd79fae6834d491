package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// withLimits plays a test of a time limit with longer and longer ones, until it comes out as it should. A machine that
// stands still for longer than a limit spoils a try; what is wrong with the proxy spoils all of them.
func withLimits(t *testing.T, play func(limit time.Duration) error) {
	t.Helper()
	var err error
	for limit := 200 * time.Millisecond; limit < 10*time.Second; limit *= 2 {
		if err = play(limit); err == nil {
			return
		}
		t.Logf("with a limit of %v: %v", limit, err)
	}
	t.Error(err)
}

// quiet waits d for something to come from the proxy, and reports whether nothing has.
func (c *client) quiet(d time.Duration) bool {
	c.SetReadDeadline(time.Now().Add(d))
	_, err := c.in.Peek(1)
	c.SetReadDeadline(time.Now().Add(patience))
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// A slow client is no slow service: neither the attempt's time nor the breaker's clock runs while it is waited for. It
// announces how much it sends, and each pause is short, but not all together; or it does not, and its pause is longer
// than an attempt may take.
func TestASlowUploadIsNotASlowService(t *testing.T) {
	t.Parallel() // it waits
	s, piece := echo(t), strings.Repeat("x", 100_000)
	for name, upload := range map[string]struct {
		head, piece, last string
		pieces            int
		pause             float64 // of the limit
	}{
		"of a known length":    {"Content-Length: 400000\r\n\r\n", piece, "", 4, 0.4},
		"of an unknown length": {"Transfer-Encoding: chunked\r\n\r\n", "3\r\nabc\r\n", "0\r\n\r\n", 1, 1.5},
	} {
		withLimits(t, func(limit time.Duration) error {
			r := start(t, single([]string{s.url}, noRetries, noEjection, fmt.Sprintf("attemptTimeout: %v", limit),
				fmt.Sprintf("circuitBreaker: {slowCallDurationThreshold: %v, slowCallRateThreshold: 0.5, "+
					"minimumNumberOfCalls: 2, failureThreshold: 1, waitDurationInOpenState: 1m}", limit)))
			conns := make([]*client, 4)
			for i := range conns {
				conns[i] = r.dial().send("POST / HTTP/1.1\r\nHost: s.test\r\n" + upload.head)
			}
			for range upload.pieces {
				conns[0].quiet(time.Duration(upload.pause * float64(limit)))
				for _, conn := range conns {
					io.WriteString(conn, upload.piece) // the answer says whether the proxy wanted it
				}
			}
			for _, conn := range conns {
				io.WriteString(conn, upload.last)
				if a, err := conn.read("POST"); err != nil || a.status != 200 {
					return fmt.Errorf("%s: %d %s, %v", name, a.status, a.content, err)
				}
			}
			if b := r.guard().Breaker; b.State != "closed" || b.Openings != 0 {
				return fmt.Errorf("%s: the breaker is %s after %d openings", name, b.State, b.Openings)
			}
			return nil
		})
	}
}

// A service that hangs when it has all of an upload is found out, whatever its client took to send it.
func TestAServiceThatHangsAfterSlowUploadsIsFoundOut(t *testing.T) {
	t.Parallel() // it waits
	closed := make(chan struct{})
	s := rawUpstream(t, func(c net.Conn, _ int) {
		go io.Copy(io.Discard, c)
		<-closed
	})
	t.Cleanup(func() { close(closed) }) // before the service waits for those that it serves
	withLimits(t, func(limit time.Duration) error {
		r := start(t, single([]string{s.url}, noRetries, noEjection, fmt.Sprintf("attemptTimeout: %v", limit),
			"circuitBreaker: {failureThreshold: 2, waitDurationInOpenState: 1m}"))
		conns := make([]*client, 2)
		for i := range conns {
			conns[i] = r.dial().send("POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 100003\r\n\r\nabc")
		}
		if !conns[0].quiet(limit * 3 / 2) {
			return errors.New("an answer has come while the client sends")
		}
		if b := r.guard().Breaker; b.State != "closed" {
			return fmt.Errorf("while the clients send the breaker is %s", b.State)
		}
		for i, conn := range conns { // from here on a machine that stands still changes nothing
			io.WriteString(conn, strings.Repeat("x", 100_000))
			if a := conn.answer(); a.status != 504 {
				t.Errorf("upload %d: %d %s", i, a.status, a.content)
			}
		}
		if b := r.guard().Breaker; b.State != "open" {
			t.Errorf("the breaker is %s", b.State)
		}
		return nil
	})
}

// A service that stops to read is found out, although its client is not done.
func TestAServiceThatDoesNotReadIsFoundOut(t *testing.T) {
	t.Parallel() // it waits
	closed := make(chan struct{})
	s := rawUpstream(t, func(c net.Conn, _ int) {
		io.ReadFull(c, make([]byte, 1000))
		<-closed
	})
	t.Cleanup(func() { close(closed) }) // before the service waits for those that it serves
	r := start(t, single([]string{s.url}, noRetries, noEjection, "attemptTimeout: 300ms",
		"circuitBreaker: {failureThreshold: 2, waitDurationInOpenState: 1m}"))
	for i := range 3 {
		conn := r.dial()
		conn.send("POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 100000000\r\n\r\n")
		go io.Copy(conn, io.LimitReader(zeros{}, 64<<20))
		want := 504
		if i == 2 {
			want = 503
		}
		if a := conn.answer(); a.status != want {
			t.Errorf("upload %d: %d %s", i, a.status, a.content)
		}
		conn.Close()
	}
	if b := r.guard().Breaker; b.State != "open" {
		t.Errorf("the breaker is %s", b.State)
	}
}

// A stream of gRPC whose own time is up has not broken off: how long a client wants it says nothing about the service.
// One that the service breaks off has.
func TestAStreamThatOutlivesItsTimeIsNoFailure(t *testing.T) {
	over := make(chan struct{})
	s := serveGRPC(t, func(c *rpc) error {
		if c.method == "/a.B/Idle" { // a subscription without news
			_ = c.SendHeader(nil)
		} else if err := c.send("first"); err != nil {
			return err
		}
		if c.method == "/a.B/Breaks" {
			return grpcstatus.Error(codes.Unavailable, "gone")
		}
		<-over // whatever its time is: that is up for the proxy first
		return nil
	})
	t.Cleanup(func() { close(over) }) // before the service waits for those that it serves
	for _, tt := range []struct {
		method string
		state  string
	}{{"/a.B/Watch", "closed"}, {"/a.B/Idle", "closed"}, {"/a.B/Breaks", "open"}} {
		withLimits(t, func(limit time.Duration) error {
			r := start(t, single([]string{s.url}, noRetries, noEjection, fmt.Sprintf("timeout: %v", limit),
				"circuitBreaker: {failureThreshold: 1, waitDurationInOpenState: 1m}"))
			ctx, cancel := context.WithTimeout(t.Context(), patience) // which nobody waits for
			defer cancel()
			c := converseIn(ctx, t, dialGRPC(t, r.addr), tt.method)
			var err error
			for err == nil {
				err = c.RecvMsg(new([]byte))
			}
			cancel()
			eventually(t, tt.method+" is over", func() bool { return r.guard().Endpoints[0].Pending == 0 })
			if b := r.guard().Breaker; b.State != tt.state {
				return fmt.Errorf("after %s, which ended with %v, the breaker is %s", tt.method, err, b.State)
			}
			return nil
		})
	}
}

// A gRPC client that pauses before it has sent all may have nothing to say yet. How long it likes to is not in the
// attempt's time, is no latency and no silence; and if its own time is up meanwhile, that is nobody's failure.
func TestAStreamWhoseClientPausesIsNotASlowService(t *testing.T) {
	t.Parallel() // it waits
	s := serveGRPC(t, func(c *rpc) error {
		n := 0
		for ; ; n++ {
			if _, err := c.receive(); errors.Is(err, io.EOF) {
				return c.send(fmt.Sprint(n))
			} else if err != nil {
				return err
			}
		}
	})
	for _, kind := range []string{"{kind: adaptive}", "{failureThreshold: 1, slowCallDurationThreshold: LIMIT, " +
		"slowCallRateThreshold: 0.01, minimumNumberOfCalls: 1, waitDurationInOpenState: 1m}"} {
		withLimits(t, func(limit time.Duration) error {
			kind := strings.ReplaceAll(kind, "LIMIT", limit.String())
			r := start(t, single([]string{s.url}, noRetries, noEjection, fmt.Sprintf("attemptTimeout: %v", limit),
				"circuitBreaker: "+kind, "bulkhead: {limit: adaptive}"))
			calls := make([]*conversation, 20)
			for i := range calls {
				calls[i] = converse(t, dialGRPC(t, r.addr), "/a.B/Upload").say("a")
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			late := converseIn(ctx, t, dialGRPC(t, r.addr), "/a.B/Upload").say("a")
			pause := time.NewTimer(limit * 3 / 2)
			<-pause.C
			late.ends(codes.DeadlineExceeded)
			if c := call(t, dialGRPC(t, r.addr), "/a.B/Upload", "x"); c.code != codes.OK { // there is a place
				return fmt.Errorf("got %+v", c)
			}
			for _, c := range calls {
				if err := c.say("b").CloseSend(); err != nil {
					return err
				}
				var got []byte
				if err := c.RecvMsg(&got); err != nil || string(got) != "2" {
					return fmt.Errorf("%q, %v", got, err)
				}
			}
			if b := r.guard().Breaker; b.State != "closed" || b.Openings != 0 {
				return fmt.Errorf("the breaker is %s after %d openings", b.State, b.Openings)
			}
			return nil
		})
	}
}

// A service that hangs when the client of a gRPC stream has sent all has the attempt's time, and is found out.
func TestAServiceThatHangsBehindAPausedStreamIsFoundOut(t *testing.T) {
	t.Parallel() // it waits
	over := make(chan struct{})
	s := serveGRPC(t, func(c *rpc) error { <-over; return nil })
	t.Cleanup(func() { close(over) }) // before the service waits for those that it serves
	r := start(t, single([]string{s.url}, noRetries, noEjection, fmt.Sprintf("attemptTimeout: %v", short),
		"circuitBreaker: {failureThreshold: 1, waitDurationInOpenState: 1m}"))
	c := converse(t, dialGRPC(t, r.addr), "/a.B/Upload").say("a")
	pause := time.NewTimer(short * 3 / 2)
	<-pause.C
	if b := r.guard().Breaker; b.State != "closed" {
		t.Errorf("while its client pauses the breaker is %s", b.State)
	}
	if err := c.say("b").CloseSend(); err != nil {
		t.Fatal(err)
	}
	c.ends(codes.DeadlineExceeded)
	if b := r.guard().Breaker; b.State != "open" {
		t.Errorf("the breaker is %s", b.State)
	}
}
