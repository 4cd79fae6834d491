// Package interoptest has other projects' tests of conformance run through Abate: grpc-go's interoperability test,
// client and server, and h2spec. They are a module of their own so that nobody who imports the proxy gets what they
// need.
package interoptest_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/shed"
	"github.com/abate-go/abate/proxy"
)

// patience bounds every wait for something that must happen.
const patience = 60 * time.Second

// verdicts takes the word of grpc-go's test client, which ends the process when a case fails: here it ends the case.
type verdicts struct{ grpclog.LoggerV2 }

type failedCase string

func (verdicts) FatalDepth(_ int, args ...any)  { panic(failedCase(fmt.Sprint(args...))) }
func (verdicts) InfoDepth(int, ...any)          {}
func (verdicts) WarningDepth(int, ...any)       {}
func (verdicts) ErrorDepth(int, ...any)         {}
func (v verdicts) Fatal(args ...any)            { v.FatalDepth(0, args...) }
func (v verdicts) Fatalf(f string, args ...any) { v.FatalDepth(0, fmt.Sprintf(f, args...)) }
func (v verdicts) Fatalln(args ...any)          { v.FatalDepth(0, args...) }

func TestMain(m *testing.M) {
	grpclog.SetLoggerV2(verdicts{grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard)})
	os.Exit(m.Run())
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// namesItself fills in the server's name, which pick_first_unary asks for and grpc-go's test server leaves to who runs
// it.
func namesItself(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	reply, err := next(ctx, req)
	if asked, ok := req.(*testgrpc.SimpleRequest); ok && err == nil && asked.GetFillServerId() {
		reply.(*testgrpc.SimpleResponse).ServerId = "the only one"
	}
	return reply, err
}

// serve runs grpc-go's test server and returns its address.
func serve(t testing.TB, options ...grpc.ServerOption) string {
	t.Helper()
	s := grpc.NewServer(append(options, grpc.ChainUnaryInterceptor(namesItself))...)
	testgrpc.RegisterTestServiceServer(s, interop.NewTestServer())
	l, done := listen(t), make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // ends with Stop
	}()
	t.Cleanup(func() {
		s.Stop()
		<-done
	})
	return l.Addr().String()
}

// run runs a proxy with a policy file, and returns the address of its listener for clients.
func run(t testing.TB, policy string, change ...func(*proxy.Config)) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	c := proxy.Config{Policy: file, Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&c)
	}
	p, err := proxy.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Open(); err != nil {
		t.Fatal(err)
	}
	l, served := listen(t), make(chan error, 1)
	go func() { served <- p.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := p.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().String()
}

// vacant is an address of loopback that nobody listens on.
func vacant(t testing.TB) string {
	t.Helper()
	l := listen(t)
	defer l.Close()
	return l.Addr().String()
}

// manner is how the calls of all cases are guarded: what the proxy's file says, and the policy of the library's client.
type manner struct {
	name   string
	file   string
	policy func() abate.Policy
}

var manners = []manner{
	{"passed on", "{maxRetries: 0}", func() abate.Policy { return abate.Policy{} }},
	{"default policy", "{}", abate.DefaultPolicy},
	{"retried", "{retryMethods: ['/grpc.testing.TestService/*'], retryBudget: {ratio: 1}, timeout: 1h, attemptTimeout: " +
		"30m}", func() abate.Policy {
		p := abate.DefaultPolicy()
		p.RetryMethods, p.RetryBudget.Ratio, p.Timeout, p.AttemptTimeout = []string{"/grpc.testing.TestService/*"},
			1, time.Hour, 30*time.Minute
		return p
	}},
	{"hedged", "{retryMethods: ['/grpc.testing.TestService/*'], retryBudget: {ratio: 1}, hedge: {delay: 1ms, maxHedges: " +
		"2}}", func() abate.Policy {
		p := abate.DefaultPolicy()
		p.RetryMethods, p.RetryBudget.Ratio = []string{"/grpc.testing.TestService/*"}, 1
		p.Hedge = hedge.Config{Delay: time.Millisecond, MaxHedges: 2}
		return p
	}},
}

func h2c(addr string) string { return "h2c://" + addr }

func (m manner) egress(t testing.TB, url string) string {
	return run(t, fmt.Sprintf("defaults: %s\nservices: {s: {upstreams: ['%s'], routes: [{path: /}]}}\n", m.file, url))
}

// places is how much gates admit: what they shed is no question of conformance.
const places = 10_000

func ingress(t testing.TB, url string, keys ...string) string {
	addr, more := vacant(t), ""
	for _, key := range keys {
		more += ", " + key
	}
	run(t, fmt.Sprintf("protect: {s: {listen: '%s', upstreams: ['%s'], shed: {concurrency: fixed, maxConcurrency: "+
		"%d}%s}}\n", addr, url, places, more))
	return addr
}

// gated are the options of a server behind a gate.
func gated(t testing.TB) []grpc.ServerOption {
	t.Helper()
	g, err := inbound.NewGate("s", inbound.Protection{Shed: shed.Config{Concurrency: shed.Fixed, MaxConcurrency: places}})
	if err != nil {
		t.Fatal(err)
	}
	return abategrpc.ServerOptions(g)
}

// guarded are the options of a client under a guard.
func (m manner) guarded(t testing.TB) []grpc.DialOption {
	t.Helper()
	g, err := abate.New("s", m.policy())
	if err != nil {
		t.Fatal(err)
	}
	return abategrpc.DialOptions(g)
}

// arrangement is where Abate stands between a client and a service. begin returns where the client dials, and with
// what.
type arrangement struct {
	name  string
	begin func(t *testing.T, m manner) (addr string, options []grpc.DialOption)
}

var arrangements = []arrangement{
	{"direct", func(t *testing.T, _ manner) (string, []grpc.DialOption) { return serve(t), nil }},
	{"proxy, egress", func(t *testing.T, m manner) (string, []grpc.DialOption) { return m.egress(t, h2c(serve(t))), nil }},
	{"proxy, ingress", func(t *testing.T, _ manner) (string, []grpc.DialOption) { return ingress(t, h2c(serve(t))), nil }},
	{"library, client", func(t *testing.T, m manner) (string, []grpc.DialOption) { return serve(t), m.guarded(t) }},
	{"library, server", func(t *testing.T, _ manner) (string, []grpc.DialOption) { return serve(t, gated(t)...), nil }},
	{"library, both", func(t *testing.T, m manner) (string, []grpc.DialOption) {
		return serve(t, gated(t)...), m.guarded(t)
	}},
	{"library to proxy", func(t *testing.T, m manner) (string, []grpc.DialOption) {
		return m.egress(t, h2c(ingress(t, h2c(serve(t))))), m.guarded(t)
	}},
}

// played are the arrangements that are played: under -short only the last one, which has the library, egress and
// ingress in it.
func played() []arrangement {
	if testing.Short() {
		return arrangements[len(arrangements)-1:]
	}
	return arrangements
}

// dial makes a connection as grpc-go's test client does.
func dial(t testing.TB, addr string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr,
		append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// verdict makes a case and returns what it says when it has failed; "" when it has passed.
func verdict(test func()) (said string) {
	defer func() {
		switch what := recover().(type) {
		case nil:
		case failedCase:
			said = string(what)
		default:
			panic(what)
		}
	}()
	test()
	return ""
}

// counted sums up what passed.
type counted struct {
	mu             sync.Mutex
	passed, failed int
}

func (c *counted) note(ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok {
		c.passed++
	} else {
		c.failed++
	}
}
