package proxy_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/abate-go/abate/proxy"
)

// A call that fails before its first message is sent again, wherever the status came.
func TestAGRPCCallThatFailsBeforeItsFirstMessageIsRepeated(t *testing.T) {
	headFirst := func(c *rpc) error {
		if c.n == 1 {
			_ = c.SendHeader(metadata.Pairs("x-first", "1"))
			return unavailable("later")
		}
		return repeatAll(c)
	}
	for _, tt := range []struct {
		name  string
		serve func(c *rpc) error
		key   string // of the policy
		md    []string
		calls int
		code  codes.Code
	}{
		{"trailers-only, keyed", failingFirst(1, unavailable("busy")), quickRetry, keyed, 2, codes.OK},
		{"twice", failingFirst(2, unavailable("busy")), quickRetry, keyed, 3, codes.OK},
		{"always", failingFirst(100, unavailable("busy")), quickRetry, keyed, 4, codes.Unavailable},
		{"the head first", headFirst, quickRetry, keyed, 2, codes.OK},
		{"named in retryMethods", failingFirst(1, unavailable("busy")), "retryMethods: [/shop.Payment/Get]",
			nil, 2, codes.OK},
		{"another is", failingFirst(1, unavailable("busy")), "retryMethods: [/shop.Payment/Put]", nil, 1, codes.Unavailable},
		{"its service is", failingFirst(1, unavailable("busy")), "retryMethods: [/shop.Payment/*]", nil, 2, codes.OK},
		{"its code is named in retryOn", failingFirst(1, grpcstatus.Error(codes.Internal, "x")), "retryOn: [INTERNAL]", nil,
			2, codes.OK},
		{"not keyed", failingFirst(1, unavailable("busy")), quickRetry, nil, 1, codes.Unavailable},
		{"a code that says nothing about later", failingFirst(1, grpcstatus.Error(codes.Internal, "x")), quickRetry, keyed, 1,
			codes.Internal},
		{"an answer", failingFirst(1, grpcstatus.Error(codes.NotFound, "x")), quickRetry, keyed, 1, codes.NotFound},
		{"a refusal for load", failingFirst(1, grpcstatus.Error(codes.ResourceExhausted, "x")), quickRetry, keyed,
			2, codes.OK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serveGRPC(t, tt.serve)
			keys := []string{tt.key}
			if tt.key != quickRetry {
				keys = append(keys, quickRetry)
			}
			r := start(t, single([]string{s.url}, append(keys, "retryBudget: {ratio: 1}")...))
			c := call(t, dialGRPC(t, r.addr), "/shop.Payment/Get", "hello", tt.md...)
			if c.code != tt.code || c.code == codes.OK && c.reply != "hello" || len(s.seen()) != tt.calls {
				t.Errorf("%v %q %q after %d calls; want %v after %d", c.code, c.message, c.reply, len(s.seen()), tt.code, tt.calls)
			}
			for i, seen := range s.seen() {
				want := ""
				if i > 0 {
					want = fmt.Sprint(i)
				}
				if got := seen.first("grpc-previous-rpc-attempts"); got != want {
					t.Errorf("attempt %d came with grpc-previous-rpc-attempts %q", i+1, got)
				}
			}
			if c.head.Get("x-first") != nil && tt.calls > 1 {
				t.Error("the client has got the head of an attempt that was repeated")
			}
		})
	}
}

// What a client said about attempts of its own is added to, and a call that has failed for good says so.
func TestAttemptsOfAGRPCClientCountOn(t *testing.T) {
	s := serveGRPC(t, failingFirst(100, unavailable("busy")))
	r := start(t, single([]string{s.url}, "maxRetries: 1", quickRetry))
	c := call(t, dialGRPC(t, r.addr), "/a.B/C", "x", append(keyed, "grpc-previous-rpc-attempts", "2")...)
	var got []string
	for _, seen := range s.seen() {
		got = append(got, strings.Join(seen.md.Get("grpc-previous-rpc-attempts"), "+"))
	}
	if !slices.Equal(got, []string{"2", "3"}) {
		t.Errorf("the service got %q", got)
	}
	if c.code != codes.Unavailable || c.message != "busy" || c.last("abate-reason") != "attempts-exhausted" ||
		c.last("grpc-retry-pushback-ms") != "-1" {
		t.Errorf("the client got %+v", c)
	}
}

// A service may say when to come again, or never.
func TestGRPCPushbackIsObeyed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []string
		calls  int
	}{
		{"none", nil, 2}, {"0", []string{"0"}, 2}, {"a wait", []string{"20"}, 2}, {"never", []string{"-1"}, 1},
		{"no number", []string{"soon"}, 1},
		{"two", []string{"1", "2"}, 1}, {"too much", []string{"99999999999999999999"}, 1},
		{"longer than anybody waits", []string{"2000000000"}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serveGRPC(t, func(c *rpc) error {
				for _, v := range tt.values {
					c.SetTrailer(metadata.Pairs("grpc-retry-pushback-ms", v))
				}
				return failingFirst(1, unavailable("busy"))(c)
			})
			r := start(t, single([]string{s.url}, quickRetry))
			began := time.Now()
			c := call(t, dialGRPC(t, r.addr), "/a.B/C", "x", keyed...)
			if n := len(s.seen()); n != tt.calls || (c.code == codes.OK) != (n == 2) {
				t.Errorf("%v after %d calls; want %d", c.code, n, tt.calls)
			}
			if tt.name == "a wait" && time.Since(began) < 20*time.Millisecond {
				t.Error("the wait was not kept")
			}
		})
	}
}

// What a stream has sent is kept until the first message of the answer, so that another attempt gets all of it.
func TestAStreamIsReplayedUntilItsFirstMessage(t *testing.T) {
	t.Run("before it", func(t *testing.T) {
		read := make(chan struct{}, 10)
		s := serveGRPC(t, func(c *rpc) error {
			if c.n < 3 {
				for range 2 * c.n {
					_, _ = c.receive()
				}
				read <- struct{}{}
				return unavailable("busy")
			}
			return repeatAll(c)
		})
		r := start(t, single([]string{s.url}, "retryMethods: [/a.B/*]", quickRetry))
		c := converse(t, dialGRPC(t, r.addr), "/a.B/Chat").say("1", "2")
		wait(t, "the first attempt", read)
		c.say("3", "4")
		wait(t, "the second attempt", read)
		c.hear("1", "2", "3", "4").say("5").hear("5")
		_ = c.CloseSend()
		c.ends(codes.OK)
		if n := len(s.seen()); n != 3 {
			t.Errorf("%d attempts", n)
		}
	})
	t.Run("all of it", func(t *testing.T) { // also when the client has ended its part
		s := serveGRPC(t, func(c *rpc) error {
			got := c.all()
			if c.n < 2 {
				return unavailable("busy")
			}
			return c.send(strings.Join(got, ""))
		})
		r := start(t, single([]string{s.url}, "retryMethods: [/a.B/*]", quickRetry))
		c := converse(t, dialGRPC(t, r.addr), "/a.B/Upload")
		for range 20 {
			c.say(strings.Repeat("x", 1000))
		}
		_ = c.CloseSend()
		c.hear(strings.Repeat("x", 20000)).ends(codes.OK)
	})
	t.Run("after it", func(t *testing.T) {
		s := serveGRPC(t, func(c *rpc) error {
			m, _ := c.receive()
			_ = c.send(m)
			return unavailable("busy")
		})
		r := start(t, single([]string{s.url}, "retryMethods: [/a.B/*]", quickRetry, "circuitBreaker: {failureThreshold: 1}"))
		converse(t, dialGRPC(t, r.addr), "/a.B/Chat").say("1").hear("1").ends(codes.Unavailable)
		eventually(t, "the breaker hears how the stream ended", func() bool { return r.guard().Breaker.State == "open" })
		if n := len(s.seen()); n != 1 {
			t.Errorf("%d attempts", n)
		}
	})
	t.Run("longer than what is kept", func(t *testing.T) {
		s := serveGRPC(t, func(c *rpc) error {
			if c.n == 1 {
				for range 10 {
					_, _ = c.receive()
				}
				return unavailable("busy")
			}
			return repeatAll(c)
		})
		r := start(t, single([]string{s.url}, "retryMethods: [/a.B/*]", quickRetry), func(c *proxy.Config) {
			c.MaxBufferedBody = 5000
		})
		c := converse(t, dialGRPC(t, r.addr), "/a.B/Chat")
		for range 10 {
			c.say(strings.Repeat("x", 1000))
		}
		c.ends(codes.Unavailable)
		if n := len(s.seen()); n != 1 {
			t.Errorf("%d attempts", n)
		}
	})
}

// A client may wait for the head before it sends anything.
func TestAClientThatWaitsForTheHeadGetsIt(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	s := serveGRPC(t, func(c *rpc) error {
		_ = c.SendHeader(metadata.Pairs("x-ready", "yes"))
		return repeatAll(c)
	})
	r := start(t, single([]string{s.url}, "retryMethods: [/a.B/*]"))
	c := converse(t, dialGRPC(t, r.addr), "/a.B/Chat")
	head, err := c.Header()
	if err != nil || len(head.Get("x-ready")) != 1 {
		t.Fatalf("head %v, %v", head, err)
	}
	c.say("a").hear("a")
	_ = c.CloseSend()
	c.ends(codes.OK)
}

// The time that the client has bounds the call, and the service hears what is left of it.
func TestGRPCDeadlinesArePassedOnAndKept(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel() // it waits
	left := make(chan time.Duration, 10)
	s := serveGRPC(t, func(c *rpc) error {
		left <- backHome(c)
		if c.method == "/a.B/Hang" {
			<-c.Context().Done()
			return grpcstatus.FromContextError(c.Context().Err()).Err()
		}
		return failingFirst(1, unavailable("busy"))(c)
	})
	r := start(t, single([]string{s.url}, "initialDelay: 30ms", "maxDelay: 30ms", "jitter: none"))
	cc := dialGRPC(t, r.addr)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if c := callIn(ctx, cc, "/a.B/C", "x", keyed...); c.code != codes.OK {
		t.Fatalf("%+v", c)
	}
	first, second := <-left, <-left
	if first > patience || first < patience/2 || second > first-30*time.Millisecond {
		t.Errorf("the service had %v, then %v", first, second)
	}
	const limit = 3 * time.Second // the call has to reach the service within it
	short, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if c := callIn(short, cc, "/a.B/Hang", "x", keyed...); c.code != codes.DeadlineExceeded {
		t.Errorf("%+v", c)
	}
	if d := <-left; d > limit {
		t.Errorf("the service had %v", d)
	}
	if c := call(t, cc, "/a.B/C", "x"); c.code != codes.OK {
		t.Errorf("%+v", c)
	}
}

// A service that hangs is given up by the policy's own time limits, and the client hears which code that is.
func TestAGRPCCallWithoutADeadlineHasThePolicys(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel() // it waits
	gone := make(chan struct{}, 10)
	s := serveGRPC(t, func(c *rpc) error {
		<-c.Context().Done()
		gone <- struct{}{}
		return nil
	})
	r := start(t, single([]string{s.url}, "attemptTimeout: "+long.String(), "maxRetries: 1", quickRetry, noBreaker))
	c := call(t, dialGRPC(t, r.addr), "/a.B/Hang", "x", keyed...)
	if c.code != codes.DeadlineExceeded && c.code != codes.Unavailable || len(s.seen()) != 2 {
		t.Errorf("%+v after %d calls", c, len(s.seen()))
	}
	wait(t, "the service hears that nobody waits", gone)
	wait(t, "the service hears that nobody waits", gone)
}

// Each method can have a policy of its own: a route whose path is the method.
func TestGRPCMethodsHavePoliciesOfTheirOwn(t *testing.T) {
	s := serveGRPC(t, failingFirst(100, unavailable("busy")))
	r := start(t, fmt.Sprintf(`
defaults: {initialDelay: 1ms, retryBudget: {ratio: 1}, circuitBreaker: {disabled: true}}
services:
  reads: {upstreams: [%[1]q], routes: [{path: /shop.Payment/Get}], maxRetries: 2, retryMethods: ["/shop.Payment/*"]}
  writes: {upstreams: [%[1]q], routes: [{path: /shop.Payment/}], maxRetries: 0}
  rest: {upstreams: [%[1]q], routes: [{path: /}], maxRetries: 1, retryOn: [UNAVAILABLE]}
`, s.url))
	cc := dialGRPC(t, r.addr)
	before := 0
	for _, tt := range []struct {
		method   string
		attempts int
	}{{"/shop.Payment/Get", 3}, {"/shop.Payment/Charge", 1}, {"/shop.Other/Get", 2}} {
		call(t, cc, tt.method, "x")
		if n := len(s.seen()) - before; n != tt.attempts {
			t.Errorf("%s: %d attempts, want %d", tt.method, n, tt.attempts)
		}
		before = len(s.seen())
	}
}

// A slow unary call gets a copy; the client gets one answer, and the loser is cancelled.
func TestASlowGRPCCallGetsACopy(t *testing.T) {
	came, cancelled := make(chan struct{}), make(chan struct{}, 1)
	s := serveGRPC(t, func(c *rpc) error {
		if c.first("grpc-previous-rpc-attempts") == "" { // which need not be the first to come
			close(came)
			<-c.Context().Done()
			cancelled <- struct{}{}
			return nil
		}
		hold(t, came) // else it could win before the other has set out
		if n := c.first("grpc-previous-rpc-attempts"); n != "1" {
			t.Errorf("a copy came with %q", n)
		}
		return repeatAll(c)
	})
	r := start(t, single([]string{s.url}, "hedge: {delay: 20ms}", "attemptTimeout: 20s"))
	if c := call(t, dialGRPC(t, r.addr), "/a.B/C", "hello", keyed...); c.code != codes.OK || c.reply != "hello" {
		t.Errorf("%+v", c)
	}
	wait(t, "the slow one hears that it has lost", cancelled)
	if n := len(s.seen()); n != 2 {
		t.Errorf("%d calls", n)
	}
}

// Messages of any size pass both ways, and what comes faster than it is taken waits.
func TestGRPCMessagesOfAnySizePass(t *testing.T) {
	s := serveGRPC(t, repeatAll)
	r := start(t, single([]string{s.url}))
	cc := dialGRPC(t, r.addr)
	for _, size := range []int{0, 1, 16 << 10, 65535, 65536, 1 << 20, 3 << 20} {
		m := strings.Repeat("x", size)
		if c := call(t, cc, "/a.B/C", m); c.code != codes.OK || c.reply != m {
			t.Errorf("%d bytes: %v %q, %d came back", size, c.code, c.message, len(c.reply))
		}
	}
	c := converse(t, cc, "/a.B/Chat")
	const many, size = 300, 20 << 10
	go func() {
		for i := range many {
			b := []byte(fmt.Sprint(i, strings.Repeat("y", size)))
			if c.SendMsg(&b) != nil {
				return
			}
		}
		_ = c.CloseSend()
	}()
	for i := range many {
		c.hear(fmt.Sprint(i, strings.Repeat("y", size)))
	}
	c.ends(codes.OK)
}

// A client that cancels takes its call with it.
func TestAGRPCClientThatLeavesTakesItsCallWithIt(t *testing.T) {
	for _, spoken := range []bool{false, true} {
		t.Run(fmt.Sprintf("after a message %v", spoken), func(t *testing.T) {
			gone := make(chan error, 1)
			s := serveGRPC(t, func(c *rpc) error {
				if m, _ := c.receive(); spoken {
					_ = c.send(m)
				}
				<-c.Context().Done()
				gone <- c.Context().Err()
				return nil
			})
			r := start(t, single([]string{s.url}, "retryMethods: [/a.B/*]"))
			ctx, cancel := context.WithCancel(context.Background())
			c := converseIn(ctx, t, dialGRPC(t, r.addr), "/a.B/Chat").say("hello")
			if spoken {
				c.hear("hello")
			} else {
				eventually(t, "the service has it", func() bool { return len(s.seen()) == 1 })
			}
			cancel()
			wait(t, "the service hears of it", gone)
			eventually(t, "nothing pending", func() bool { return r.guard().Endpoints[0].Pending == 0 })
			calls := 0 // what the service has answered counts, whatever its client does then
			if spoken {
				calls = 1
			}
			if g := r.guard(); g.Breaker.State != "closed" || g.Breaker.Calls != calls || len(s.seen()) != 1 {
				t.Errorf("%+v, %d calls", g.Breaker, len(s.seen()))
			}
		})
	}
}

// A connection that breaks under a stream ends it with a status, and calls that may be repeated go on.
func TestAServiceThatDiesMidstream(t *testing.T) {
	s := serveGRPC(t, func(c *rpc) error {
		m, _ := c.receive()
		_ = c.send(m)
		<-c.Context().Done()
		return nil
	})
	r := start(t, single([]string{s.url}))
	c := converse(t, dialGRPC(t, r.addr), "/a.B/Chat").say("hello").hear("hello")
	s.server.Stop()
	err := c.ends(codes.Unavailable)
	if !strings.Contains(fmt.Sprint(err), "broke off") || len(c.Trailer().Get("abate-reason")) != 1 {
		t.Errorf("the client got %v, %v", err, c.Trailer())
	}
}

// A service that goes in good order loses no call.
func TestAServiceThatDrainsLosesNoCall(t *testing.T) {
	s, next := serveGRPC(t, repeatAll), serveGRPC(t, repeatAll)
	r := start(t, single([]string{s.url, next.url}, quickRetry, "retryMethods: [/a.B/*]"))
	cc := dialGRPC(t, r.addr)
	var failed atomic.Int32
	halfway, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := range 400 {
			if i == 200 {
				close(halfway)
			}
			if c := call(t, cc, "/a.B/C", "x"); c.code != codes.OK {
				failed.Add(1)
				t.Log(c)
			}
		}
	}()
	<-halfway
	s.server.GracefulStop()
	<-done
	if failed.Load() > 0 {
		t.Errorf("%d calls failed", failed.Load())
	}
}

// A proxy that drains lets calls that are under way finish.
func TestAProxyThatDrainsFinishesItsStreams(t *testing.T) {
	s := serveGRPC(t, repeatAll)
	r := start(t, single([]string{s.url}))
	c := converse(t, dialGRPC(t, r.addr), "/a.B/Chat").say("1").hear("1")
	down := make(chan struct{})
	go func() {
		defer close(down)
		r.shutdown()
	}()
	eventually(t, "it drains", func() bool { return !r.proxy.Ready() })
	c.say("2").hear("2")
	_ = c.CloseSend()
	c.ends(codes.OK)
	soon(t, "the end", down)
}

// A program may have thousands of streams open on one connection.
func TestThousandsOfStreamsOnOneConnection(t *testing.T) {
	const many = 2000
	s := serveGRPC(t, repeatAll)
	r := start(t, single([]string{s.url}))
	cc := dialGRPC(t, r.addr)
	streams := make([]*conversation, many)
	for i := range streams {
		streams[i] = converse(t, cc, "/a.B/Chat").say(fmt.Sprint(i))
	}
	for round := range 2 {
		for i, c := range streams {
			c.hear(fmt.Sprint(i)).say(fmt.Sprint(i))
			if round == 1 {
				_ = c.CloseSend()
			}
		}
	}
	for i, c := range streams {
		c.hear(fmt.Sprint(i)).ends(codes.OK)
	}
	eventually(t, "all are over", func() bool { return r.guard().Endpoints[0].Pending == 0 })
}

// A stream counts when its answer begins, and before its client knows of that: a service all of whose streams go on for
// hours does not look as one that hangs.
func TestAStreamCountsWhenItsAnswerBegins(t *testing.T) {
	s := serveGRPC(t, func(c *rpc) error {
		if c.method == "/a.B/Silent" { // its first message is a long time coming, its head is not
			_ = c.SendHeader(nil)
		}
		return repeatAll(c)
	})
	r := start(t, single([]string{s.url}, "bulkhead: {limit: adaptive}"))
	cc := dialGRPC(t, r.addr)
	for i, method := range []string{"/a.B/Chat", "/a.B/Silent", "/a.B/Chat"} {
		c := converse(t, cc, method)
		if method == "/a.B/Silent" {
			if _, err := c.Header(); err != nil {
				t.Fatal(err)
			}
		} else {
			c.say("x").hear("x")
		}
		g := r.guard()
		if g.Breaker.Calls != i+1 || g.Endpoints[0].Pending != i+1 {
			t.Errorf("%d streams are open: %+v", i+1, g)
		}
	}
}

// A client that leaves long after it has sent all is noticed, too.
func TestAClientThatWaitsAndLeavesIsNoticed(t *testing.T) {
	gone := make(chan struct{}, 1)
	s := serveGRPC(t, func(c *rpc) error {
		_ = c.send("news")
		<-c.Context().Done()
		gone <- struct{}{}
		return nil
	})
	r := start(t, single([]string{s.url}))
	ctx, cancel := context.WithCancel(context.Background())
	c := converseIn(ctx, t, dialGRPC(t, r.addr), "/a.B/Watch")
	_ = c.say("x").CloseSend()
	c.hear("news")
	tick := time.NewTicker(600 * time.Millisecond) // the proxy has long stopped looking by itself
	defer tick.Stop()
	<-tick.C
	cancel()
	wait(t, "the service hears of it", gone)
}
