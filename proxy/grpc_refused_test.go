package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/abate-go/abate/proxy"
)

// What the proxy says by itself it says in gRPC to a client of gRPC.
func TestTheProxysOwnAnswersAreGRPCToGRPC(t *testing.T) {
	hang := serveGRPC(t, func(c *rpc) error {
		<-c.Context().Done()
		return nil
	})
	busy := serveGRPC(t, failingFirst(1000, unavailable("busy")))
	for _, tt := range []struct {
		name     string
		policy   string
		code     codes.Code
		reason   string
		pushback string
	}{
		{"circuit open", single([]string{busy.url}, "circuitBreaker: {mode: forcedOpen}"), codes.Unavailable,
			"circuit-open", "-1"},
		{"budget empty", single([]string{busy.url}, "retryBudget: {kind: tokens, maxTokens: 1, costPerRetry: 2}", quickRetry,
			noBreaker), codes.Unavailable, "budget-exhausted", "-1"},
		{"nobody listens", single([]string{"h2c://" + refusing(t)}, noRetries), codes.Unavailable, "upstream-error", "-1"},
		{"nobody listens, again and again", single([]string{"h2c://" + refusing(t)}, quickRetry, noBreaker),
			codes.Unavailable, "attempts-exhausted", "-1"},
		{"too slow", single([]string{hang.url}, "attemptTimeout: 50ms", noRetries), codes.DeadlineExceeded,
			"upstream-timeout", "-1"},
		{"no service", "services:\n  s: {upstreams: [http://127.0.0.1:1], routes: [{path: /else}]}\n", codes.Unimplemented,
			"no-route", ""},
		{"no upstreams", "services:\n  s: {routes: [{path: /}]}\n", codes.Unavailable, "no-upstreams", "-1"},
		{"a fallback is for HTTP", single([]string{busy.url}, "circuitBreaker: {mode: forcedOpen}",
			"fallback: {status: 200, body: hello}"), codes.Unavailable, "circuit-open", "-1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, tt.policy)
			c := call(t, dialGRPC(t, r.addr), "/a.B/C", "x", keyed...)
			if c.code != tt.code || c.last("abate-reason") != tt.reason || c.last("grpc-retry-pushback-ms") != tt.pushback {
				t.Errorf("got %+v; want %v, %s, %q", c, tt.code, tt.reason, tt.pushback)
			}
			if tt.reason == "budget-exhausted" && c.message != "busy" {
				t.Errorf("the service's own words were lost: %+v", c)
			}
			if c.message == "" || len(c.trailer.Get("grpc-retry-pushback-ms")) > 1 {
				t.Errorf("got %+v", c)
			}
		})
	}
}

func TestAFullBulkheadRefusesGRPC(t *testing.T) {
	s := serveGRPC(t, repeatAll)
	r := start(t, single([]string{s.url}, "bulkhead: {maxConcurrentCalls: 1, holdDuringBody: true, noQueue: true}"))
	cc := dialGRPC(t, r.addr)
	c := converse(t, cc, "/a.B/Chat").say("1").hear("1") // this stream holds its slot as long as it lasts
	if got := call(t, cc, "/a.B/C", "x"); got.code != codes.Unavailable || got.last("abate-reason") != "bulkhead-full" {
		t.Errorf("got %+v", got)
	}
	_ = c.CloseSend()
	c.ends(codes.OK)
	eventually(t, "its slot is free", func() bool { return call(t, cc, "/a.B/C", "x").code == codes.OK })
}

// What a gate refuses it refuses in gRPC, too; and it hears how calls ended.
func TestAGateBeforeAGRPCService(t *testing.T) {
	t.Run("rate limit", func(t *testing.T) {
		s := serveGRPC(t, repeatAll)
		r := protect(t, guardOf(s.url, noShed, "rateLimit: {limit: 1/h, burst: 1}"))
		cc := dialGRPC(t, r.addr)
		if c := call(t, cc, "/a.B/C", "x"); c.code != codes.OK {
			t.Errorf("got %+v", c)
		}
		c := call(t, cc, "/a.B/C", "x")
		if c.code != codes.ResourceExhausted || c.last("abate-reason") != "rate-limited" ||
			len(c.last("grpc-retry-pushback-ms")) < 4 || len(c.last("ratelimit")) == 0 {
			t.Errorf("got %+v", c)
		}
	})
	t.Run("time is up", func(t *testing.T) {
		s := serveGRPC(t, repeatAll)
		r := protect(t, guardOf(s.url))
		if c := call(t, dialGRPC(t, r.addr), "/a.B/C", "x", "x-envoy-expected-rq-timeout-ms", "0"); c.code !=
			codes.DeadlineExceeded || len(s.seen()) != 0 {
			t.Errorf("got %+v", c)
		}
	})
	t.Run("a stream holds no slot", func(t *testing.T) {
		s := serveGRPC(t, repeatAll)
		r := protect(t, guardOf(s.url, "shed: {concurrency: fixed, maxConcurrency: 1, noQueue: true}"))
		cc := dialGRPC(t, r.addr)
		c := converse(t, cc, "/a.B/Chat").say("1").hear("1")
		eventually(t, "its slot is free", func() bool { return r.gate().Shed.InFlight == 0 })
		if got := call(t, cc, "/a.B/C", "x"); got.code != codes.OK {
			t.Errorf("got %+v", got)
		}
		c.say("2").hear("2")
		_ = c.CloseSend()
		c.ends(codes.OK)
	})
	t.Run("idempotency keys", func(t *testing.T) { testGRPCKeys(t) })
}

func testGRPCKeys(t *testing.T) {
	next := codes.Unavailable
	s := serveGRPC(t, func(c *rpc) error {
		m, _ := c.receive()
		c.SetTrailer(metadata.Pairs("x-n", fmt.Sprint(c.n)))
		if next != codes.OK {
			return grpcstatus.Error(next, "no")
		}
		return c.send(m + fmt.Sprint(c.n))
	})
	r := protect(t, guardOf(s.url, noShed, "idempotency: {methods: [/shop.Payment/*]}"))
	cc := dialGRPC(t, r.addr)
	const method = "/shop.Payment/Charge"
	if c := call(t, cc, method, "m", "x-idempotency-key", "a"); c.code != codes.Unavailable {
		t.Errorf("got %+v", c)
	}
	next = codes.OK
	for range 2 { // the failure was not kept, the answer is
		c := call(t, cc, method, "m", "x-idempotency-key", "a")
		if c.code != codes.OK || c.reply != "m2" || c.last("x-n") != "2" {
			t.Errorf("got %+v", c)
		}
	}
	if c := call(t, cc, method, "other", "x-idempotency-key", "a"); c.code != codes.FailedPrecondition ||
		c.last("abate-reason") != "idempotency-mismatch" {
		t.Errorf("got %+v", c)
	}
	next = codes.NotFound
	for range 2 {
		if c := call(t, cc, method, "m", "idempotency-key", "b"); c.code != codes.NotFound || c.message != "no" ||
			c.last("x-n") != "3" {
			t.Errorf("got %+v", c)
		}
	}
	next = codes.OK
	if c := call(t, cc, "/shop.Other/Charge", "m", "idempotency-key", "b"); c.reply != "m4" {
		t.Errorf("another service is not keyed: %+v", c)
	}
	if c := call(t, cc, method, "m", "idempotency-key", ""); c.code != codes.InvalidArgument {
		t.Errorf("got %+v", c)
	}
}

// A stranger's spellings of the media type are as good as gRPC's own; gRPC-Web is something else.
func TestWhatIsGRPC(t *testing.T) {
	r := start(t, single([]string{"h2c://" + refusing(t)}, noRetries))
	for contentType, want := range map[string]bool{
		"application/grpc": true, "application/grpc+proto": true, "Application/GRPC": true,
		"application/grpc;charset=utf-8": true,
		"application/grpc-web":           false, "application/grpcx": false, "application/json": false, "": false,
	} {
		req := newRequest(t, "POST", "http://"+r.addr+"/a.B/C", strings.NewReader("x"))
		req.Header.Set("Content-Type", contentType)
		b := begin(t, h2c.client(t), req)
		if got := b.head().Header.Get("Grpc-Status") == "14"; got != want || got != (b.resp.StatusCode == 200) {
			t.Errorf("%q: %s, %v", contentType, b.resp.Status, b.resp.Header)
		}
	}
}

// A server may allow few streams on a connection: then there are more connections, and no call waits for another.
func TestMoreConnectionsWhenTheServerAllowsFewStreams(t *testing.T) {
	const many = 50
	var inside atomic.Int32
	all := make(chan struct{})
	s := serveGRPC(t, func(c *rpc) error {
		if inside.Add(1) == many {
			close(all)
		}
		<-all
		return repeatAll(c)
	}, grpc.MaxConcurrentStreams(3))
	r := start(t, single([]string{s.url}))
	cc := dialGRPC(t, r.addr)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			if c := call(t, cc, "/a.B/C", fmt.Sprint(i), keyed...); c.code != codes.OK || c.reply != fmt.Sprint(i) {
				t.Errorf("got %+v", c)
			}
		})
	}
	within(t, "all calls", wg.Wait)
}

// The health service of the admin page, asked by gRPC's own client.
func TestTheHealthService(t *testing.T) {
	r := start(t, "services:\n  good: {upstreams: [http://127.0.0.1:1], routes: [{path: /good}]}\n"+
		"  bad: {upstreams: [http://127.0.0.1:1], routes: [{path: /bad}], circuitBreaker: {mode: forcedOpen}}\n")
	l := listen(t)
	page := &http.Server{Handler: r.admin, Protocols: h2c.protocols}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = page.Serve(l)
	}()
	t.Cleanup(func() {
		page.Close()
		<-done
	})
	cc, err := grpc.NewClient("passthrough:///"+l.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	health := grpc_health_v1.NewHealthClient(cc)
	const up, down = grpc_health_v1.HealthCheckResponse_SERVING, grpc_health_v1.HealthCheckResponse_NOT_SERVING
	for service, want := range map[string]grpc_health_v1.HealthCheckResponse_ServingStatus{
		"": up, "good": up, "bad": down,
	} {
		if got, err := health.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: service}); err != nil ||
			got.Status != want {
			t.Errorf("%q: %v, %v; want %v", service, got, err, want)
		}
	}
	if _, err := health.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "none"}); grpcstatus.Code(err) !=
		codes.NotFound {
		t.Errorf("a service that there is not: %v", err)
	}
	list, err := health.List(ctx, &grpc_health_v1.HealthListRequest{})
	if err != nil || len(list.Statuses) != 3 || list.Statuses["bad"].GetStatus() != down ||
		list.Statuses[""].GetStatus() != up {
		t.Errorf("list: %v, %v", list, err)
	}
	watch := func(service string) func(grpc_health_v1.HealthCheckResponse_ServingStatus) {
		w, err := health.Watch(ctx, &grpc_health_v1.HealthCheckRequest{Service: service})
		if err != nil {
			t.Fatal(err)
		}
		return func(want grpc_health_v1.HealthCheckResponse_ServingStatus) {
			t.Helper()
			if got, err := w.Recv(); err != nil || got.Status != want {
				t.Errorf("watching %q: %v, %v; want %v", service, got, err, want)
			}
		}
	}
	whole, good, none := watch(""), watch("good"), watch("none")
	whole(up)
	good(up)
	none(grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN)
	r.write("services:\n  none: {upstreams: [http://127.0.0.1:1], routes: [{path: /}]}\n")
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	good(grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN)
	none(up)
	release := make(chan struct{}) // a request keeps the proxy from being down at once
	s := upstream(t, func(c net.Conn, _ string) {
		hold(t, release)
		io.WriteString(c, ok("done"))
	})
	r.write(single([]string{s.url}))
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	asked := r.dial().send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")
	eventually(t, "the request is there", func() bool { return len(s.seen()) == 1 })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.shutdown()
	}()
	whole(down)
	close(release)
	if a := asked.answer(); a.content != "done" {
		t.Errorf("got %+v", a)
	}
	soon(t, "the end", ended)
}

// Those who have not shown what the admin page asks for hear only how the proxy itself is.
func TestHealthOfServicesIsForThoseWhoAreKnown(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	writeFile(t, tokens, "ops "+strings.Repeat("s", 32)+"\n")
	r := start(t, single([]string{"http://127.0.0.1:1"}), func(c *proxy.Config) { c.AdminTokens = tokens })
	check := func(service, token string) string {
		message := append([]byte{0, 0, 0, 0, byte(len(service) + 2), 10, byte(len(service))}, service...)
		req := newRequest(t, "POST", "http://admin"+"/grpc.health.v1.Health/Check", strings.NewReader(string(message)))
		req.Header.Set("Content-Type", "application/grpc")
		if req.ProtoMajor = 2; token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		r.admin.ServeHTTP(w, req)
		return w.Header().Get(http.TrailerPrefix + "Grpc-Status")
	}
	if a, b, c := check("", ""), check("s", ""), check("s", strings.Repeat("s", 32)); a != "0" || b != "16" || c != "0" {
		t.Errorf("the proxy %s, a service for a stranger %s, for one who is known %s", a, b, c)
	}
}
