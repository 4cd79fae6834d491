package proxy_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	needsredis "github.com/abate-go/abate/internal/needs/redis"
)

// A key is let go only if the try did not reach the service: else it may be doing the request, or have done it. The
// next try is told to wait until the lease is over, or, where no try may run after an effect, that nobody knows.
func TestAKeyIsLetGoOnlyIfTheTryDidNotReachTheService(t *testing.T) {
	reset := func(code uint32) func(*frames, uint32) {
		return func(f *frames, stream uint32) {
			f.write(resetFrame, 0, stream, binary.BigEndian.AppendUint32(nil, code))
		}
	}
	goAway := func(last uint32) func(*frames, uint32) {
		return func(f *frames, stream uint32) {
			f.write(goAwayFrame, 0, 0, binary.BigEndian.AppendUint64(nil, uint64(stream*last)<<32))
			f.Close()
		}
	}
	for name, c := range map[string]struct {
		fail    func(f *frames, stream uint32)
		reached bool
	}{
		"it refuses the stream":         {reset(refusedStream), false},
		"it goes, and has not taken it": {goAway(0), false},
		"it goes, and has taken it":     {goAway(1), true},
		"it cancels":                    {reset(8), true},
		"it has an error":               {reset(2), true},
		"it crashes":                    {func(f *frames, _ uint32) { f.Close() }, true},
		"it crashes behind an informational one": {func(f *frames, s uint32) {
			f.write(headersFrame, endHeaders, s, block(":status", "103"))
			f.Close()
		}, true},
	} {
		for settings, repeat := range map[string]string{
			keys: "idempotency-running", keepsErrors: "idempotency-effect-unknown",
		} {
			for _, rpc := range []bool{false, true} {
				t.Run(fmt.Sprint(name, ", ", repeat, ", gRPC ", rpc), func(t *testing.T) {
					r := protect(t, guardOf(rawHTTP2(t, func(f *frames, stream uint32, n int) {
						if n <= 2 { // one that was refused unread goes out once more at once
							c.fail(f, stream)
						} else if rpc {
							good(f, stream)
						} else {
							f.write(headersFrame, endHeaders|endStream, stream, statusOK)
						}
					}), settings))
					var reason func() (string, bool)
					if rpc {
						cc := dialGRPC(t, r.addr)
						reason = func() (string, bool) {
							c := call(t, cc, "/a.B/C", "m", keyed...)
							return c.last("abate-reason"), c.code == codes.OK
						}
					} else {
						reason = func() (string, bool) {
							c := r.dial().send(post("k", "one"))
							a := c.answer()
							if a.status == 103 { // the try goes on
								a = c.answer()
							}
							return a.header.Get("Abate-Reason"), a.status == 200
						}
					}
					if why, done := reason(); done && c.reached {
						t.Fatalf("it is done at once, %q", why)
					}
					why, done := reason()
					if !c.reached && !done {
						why, done = reason()
					}
					if done == c.reached || c.reached && why != repeat {
						t.Errorf("the repeat: done %t, reason %q", done, why)
					}
				})
			}
		}
	}
}

// Shutdown does not forget those whose clients have left: what they asked for is done, and after the restart their next
// try finds the answer.
func TestARunWhoseClientHasLeftOutlivesAShutdown(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	for name, leave := range map[string]func(t *testing.T, r *running, came chan struct{}){
		"HTTP/1": func(t *testing.T, r *running, came chan struct{}) {
			c := r.dial()
			c.send(post("a", "one"))
			soon(t, "the service has it", came)
			c.SetLinger(0)
			c.Close()
		},
		"HTTP/2 a reset": func(t *testing.T, r *running, came chan struct{}) {
			c := postOverHTTP2(t, r, came)
			c.frame(resetFrame, 0, 1, binary.BigEndian.AppendUint32(nil, 8))
			c.frame(pingFrame, 0, 0, make([]byte, 8))
			c.frames(func(kind, flags byte, _ uint32, _ []byte) bool { return kind == pingFrame && flags&ack != 0 })
		},
		"HTTP/2 no connection": func(t *testing.T, r *running, came chan struct{}) { postOverHTTP2(t, r, came).Close() },
	} {
		t.Run(name, func(t *testing.T) {
			up, came, answer := holding(t)
			policy := guardOf(up.url, "idempotency: {methods: [POST], file: "+filepath.Join(t.TempDir(), "keys.db")+"}")
			r := protect(t, policy)
			leave(t, r, came)
			down := make(chan error, 1)
			go func() { down <- r.proxy.Shutdown(context.Background()) }()
			eventually(t, "it drains", func() bool { return !r.proxy.Ready() })
			select {
			case err := <-down:
				t.Fatalf("it is down, and the service has not answered: %v", err)
			default:
			}
			answer <- ok("done")
			if err := wait(t, "the end", down); err != nil {
				t.Fatal(err)
			}
			close(answer)
			a := protect(t, policy).settled(post("a", "one"))
			if a.content != "done" || a.header.Get("Idempotency-Replayed") != "true" || len(up.seen()) != 1 {
				t.Errorf("after the restart: %+v, done %d times", a, len(up.seen()))
			}
		})
	}
}

// postOverHTTP2 sends the request of post over HTTP/2, and waits until the service has it.
func postOverHTTP2(t *testing.T, r *running, came chan struct{}) *h2raw {
	t.Helper()
	c := r.h2(1 << 16)
	c.request(1, 0, ":method", "POST", ":scheme", "http", ":authority", "s", ":path", "/orders?x=1",
		"idempotency-key", "a")
	c.frame(dataFrame, endStream, 1, []byte("one"))
	soon(t, "the service has it", came)
	return c
}

// A reload that changes how or where keys are kept, in the middle of a run or after it, changes nothing for its
// repeats: they are done neither beside it nor again.
func TestAReloadInTheMiddleOfARunLetsNoRepeatPass(t *testing.T) {
	file := func(t *testing.T) string { return "file: " + filepath.Join(t.TempDir(), "keys.db") }
	for name, c := range map[string]struct{ before, after func(t *testing.T) string }{
		"another retention": {nothing, func(*testing.T) string { return "retention: 1s, minRetention: 1s" }},
		"another lease":     {nothing, func(*testing.T) string { return "lease: 100ms" }},
		"less memory":       {nothing, func(*testing.T) string { return "maxMemory: 65536" }},
		"into a file":       {nothing, file},
		"into a Redis":      {nothing, func(*testing.T) string { return "fleet: true" }},
		"out of a file":     {file, nothing},
		"another file":      {file, file},
		"a scope":           {nothing, func(*testing.T) string { return "scope: credential" }},
		"errors kept":       {nothing, func(*testing.T) string { return "keepServerErrors: true" }},
	} {
		t.Run(name, func(t *testing.T) {
			up, came, answer := holding(t)
			t.Cleanup(func() { close(answer) })
			policy := func(more func(t *testing.T) string) string {
				s := guardOf(up.url, strings.Replace("idempotency: {methods: [POST], "+more(t)+"}", ", }", "}", 1))
				if strings.Contains(s, "fleet: true") {
					s += "redis: {addresses: [\"" + needsredis.Start(t).Addr() + "\"]}\n"
				}
				return s
			}
			changed := policy(c.after) // which may end the test: before anything waits for an answer
			r := protect(t, policy(c.before))
			done := fields(post("b", "one"), "Authorization: Bearer ann")
			answer <- ok("done before")
			if a := r.dial().send(done).answer(); a.content != "done before" {
				t.Fatalf("%+v", a)
			}
			<-came
			first := r.dial()
			request := fields(post("a", "one"), "Authorization: Bearer ann")
			first.send(request)
			soon(t, "the service has it", came)
			r.write(changed)
			if err := r.proxy.Reload(); err != nil {
				t.Fatal(err)
			}
			second := r.dial()
			second.send(request)
			select {
			case <-came:
				t.Fatal("it is done beside the first")
			case a := <-answered(second):
				refusedBy(t, a, 409, "idempotency-running")
			}
			answer <- ok("done")
			if a := first.answer(); a.content != "done" {
				t.Errorf("the first got %+v", a)
			}
			for request, content := range map[string]string{request: "done", done: "done before"} {
				again := r.dial()
				again.send(request)
				select {
				case <-came:
					t.Errorf("what was %q is done again", content)
					answer <- ok("again")
				case a := <-answered(again):
					if a.content != content || a.header.Get("Idempotency-Replayed") != "true" {
						t.Errorf("%+v", a)
					}
				}
			}
		})
	}
}

func nothing(*testing.T) string { return "" }

// answered is where the answer comes, if one does.
func answered(c *client) <-chan reply {
	to := make(chan reply, 1)
	go func() {
		if a, err := c.read("POST"); err == nil {
			to <- a
		}
	}()
	return to
}
