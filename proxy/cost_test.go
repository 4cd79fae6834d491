package proxy_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/metrics"
	"github.com/abate-go/abate/policy/balance"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy"
	"github.com/abate-go/abate/proxy/tracing"
)

// everyPolicy has every part of a policy on that a plain request meets.
const everyPolicy = `
defaults:
  timeout: 3s
  attemptTimeout: 1s
  maxRetries: 3
  circuitBreaker: {failureThreshold: 5, failureRateThreshold: 0.5, slowCallRateThreshold: 0.8, slowCallDurationThreshold: 750ms}
  bulkhead: {maxConcurrentCalls: 1000, maxQueue: 25}
  outlierDetection: {consecutiveFailures: 5}
services:
  web:
    upstreams: ["http://UPSTREAM"]
    routes: [{path: /x}]
`

// loop is a client and a service that allocate nothing per request, so that what is counted is the proxy's.
type loop struct {
	client        net.Conn
	request, back []byte
}

func newLoop(t testing.TB, change ...func(*proxy.Config)) *loop {
	l := listen(t)
	answer := append([]byte("HTTP/1.1 200 OK\r\nContent-Length: 1024\r\nContent-Type: text/plain\r\n\r\n"),
		bytes.Repeat([]byte("a"), 1024)...)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			go serveLoop(c, answer)
		}
	}()
	t.Cleanup(func() { l.Close() })
	p := start(t, string(bytes.ReplaceAll([]byte(everyPolicy), []byte("UPSTREAM"), []byte(l.Addr().String()))), change...)
	c, err := net.Dial("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &loop{
		c, []byte("GET /x/7?q=1 HTTP/1.1\r\nHost: web.example\r\nUser-Agent: loop/1\r\nAccept: */*\r\nAuthorization: " +
			"Bearer 0123456789abcdef\r\n\r\n"), make([]byte, 4096),
	}
}

func serveLoop(c net.Conn, answer []byte) {
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		if err != nil || !bytes.HasSuffix(buf[:n], []byte("\r\n\r\n")) {
			return
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

func (l *loop) once(t testing.TB) {
	if _, err := l.client.Write(l.request); err != nil {
		t.Fatal(err)
	}
	for n := 0; ; {
		m, err := l.client.Read(l.back[n:])
		if err != nil {
			t.Fatal(err)
		}
		n += m
		if head := bytes.Index(l.back[:n], []byte("\r\n\r\n")); head > 0 && n == head+4+1024 {
			return
		}
	}
}

func TestARequestUnderEveryPolicyAllocatesNothing(t *testing.T) {
	if raceDetector {
		return // it allocates by itself
	}
	l := newLoop(t)
	allocatesNothing(t, l)
}

// Most calls of a proxy that records traces are not recorded: those cost no memory either.
func TestACallThatIsNotRecordedAllocatesNothing(t *testing.T) {
	if raceDetector {
		return // it allocates by itself
	}
	l := newLoop(t, new(collector).record(noCalls))
	allocatesNothing(t, l)
}

// Nor does a call of a service cost memory where hosts of no service are passed on: by its name it might be one.
func TestACallAmongStrangersAllocatesNothing(t *testing.T) {
	if raceDetector {
		return // it allocates by itself
	}
	l := newLoop(t, func(c *proxy.Config) {
		c.PassThrough = []string{"*:*"}
		text, err := os.ReadFile(c.Policy)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := bytes.Cut(text, []byte("http://"))
		addr, _, _ := bytes.Cut(rest, []byte(`"`))
		list := filepath.Join(t.TempDir(), "targets.json")
		named := "http://web.example\"]\n    discovery: {type: file, path: \"" + list + "\"}"
		text = bytes.Replace(text, []byte("http://"+string(addr)+`"]`), []byte(named), 1)
		err = errors.Join(os.WriteFile(list, []byte(`[{"targets": ["`+string(addr)+`"]}]`), 0o600),
			os.WriteFile(c.Policy, text, 0o600))
		if err != nil {
			t.Fatal(err)
		}
	})
	l.request = bytes.Replace(l.request, []byte("GET /"), []byte("GET http://web.example/"), 1)
	allocatesNothing(t, l)
}

func allocatesNothing(t *testing.T, l *loop) {
	t.Helper()
	for range 100 {
		l.once(t)
	}
	if n := allocations(2000, func() { l.once(t) }); n >= 1 {
		t.Errorf("a request allocates %v times", n)
	}
}

// allocations returns how often a function allocates that is run many times. Less than one is none: deadlines on
// sockets are renewed a few times a second, and pools are emptied by the garbage collector. On a busy machine each run
// is long enough for one of these, or for what another test has left. What the function does itself shows in every
// pass, so the best of five counts.
func allocations(runs int, run func()) float64 {
	least := math.Inf(1)
	for pass := 0; pass < 5 && least >= 1; pass++ {
		least = min(least, testing.AllocsPerRun(runs, run))
	}
	return least
}

// BenchmarkRequest is a request through the proxy, with a share of calls recorded. The processor's time is what counts:
// the rest is sockets.
func BenchmarkRequest(b *testing.B) {
	for name, change := range map[string][]func(*proxy.Config){
		"trace=off": nil, "trace=none": {new(collector).record(tracing.Sampler{Parent: true})},
		"trace=1%":  {new(collector).record(tracing.Sampler{Ratio: 0.01, Parent: true})},
		"trace=all": {new(collector).record(tracing.Sampler{Ratio: 1, Parent: true})},
	} {
		b.Run(name, func(b *testing.B) {
			l := newLoop(b, change...)
			l.once(b)
			b.ReportAllocs()
			for b.Loop() {
				l.once(b)
			}
		})
	}
}

// BenchmarkPolicyPart is what a request costs beyond moving bytes: finding its route, the call under every policy with
// metrics, the choice of an endpoint. It asks the same parts in the same order as exchange.serve.
func BenchmarkPolicyPart(b *testing.B) {
	path := filepath.Join(b.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(everyPolicy), 0o600); err != nil {
		b.Fatal(err)
	}
	metrics := metrics.New()
	set, err := policyfile.Load(path, metrics.Adjust)
	if err != nil {
		b.Fatal(err)
	}
	endpoints := balance.New(balance.Config{ConsecutiveFailures: 5}, 2)
	stats := metrics.Endpoint("web", "/x")
	var call core.Call
	b.ReportAllocs()
	for b.Loop() {
		d, _ := set.Route("web.example", "/x/7")
		began := core.Now()
		stats.Began()
		call = core.Call{}
		if step := d.Guard.Begin(&call, began, core.NoDeadline); step.Action != core.Attempt {
			b.Fatal(step)
		}
		now := core.Now()
		e := endpoints.Pick(now, rand.Uint64(), -1)
		now = core.Now()
		if step := call.AttemptDone(now, 0, abate.Outcome{}); step.Err != nil {
			b.Fatal(step.Err)
		}
		endpoints.Done(e, core.Now(), balance.Success)
		stats.Ended(200, core.Now()-began)
	}
}
