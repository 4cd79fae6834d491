package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy"
)

// put replaces the policy file as an editor or Kubernetes does: by renaming another over it.
func (r *running) put(policyYAML string) {
	r.t.Helper()
	next := r.file + ".next"
	err := os.WriteFile(next, []byte(policyYAML), 0o600)
	if err == nil {
		err = os.Rename(next, r.file)
	}
	if err != nil {
		r.t.Error(err)
	}
}

// watch has the proxy look at its file often.
func (r *running) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	r.proxy.Policies().Interval = 5 * time.Millisecond
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.proxy.Watch(ctx) // ends with ctx
	}()
	r.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// TestAReloadUnderLoadFailsNoRequest: with other upstreams, other limits and an extra service each time.
func TestAReloadUnderLoadFailsNoRequest(t *testing.T) {
	var counts [3]atomic.Int32
	counting := func(i int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			counts[i].Add(1)
			body, _ := io.ReadAll(r.Body)
			_, _ = w.Write(body)
		}
	}
	ups := []string{http1.serve(t, counting(0)), h2c.serve(t, counting(1)), http1.serve(t, counting(2))}
	policy := func(i int) string {
		p := single([]string{ups[i%3], ups[(i+1)%3]}, fmt.Sprintf("attemptTimeout: %ds", 10+i), noEjection)
		if i%2 == 0 {
			p += "  extra: {upstreams: [\"http://127.0.0.1:9\"]}\n"
		}
		return p
	}
	r := start(t, policy(0))
	r.watch()
	ctx, stop := context.WithCancel(context.Background())
	var load sync.WaitGroup
	var done atomic.Int32
	for i := range 8 {
		c := []wire{http1, h2c}[i%2].client(t)
		body := strings.Repeat("x", []int{1, 200_000}[i/2%2])
		load.Go(func() {
			for ctx.Err() == nil {
				resp, err := c.Post("http://"+r.addr+"/", "text/plain", strings.NewReader(body))
				if err != nil {
					t.Errorf("a request failed: %v", err)
					return
				}
				got, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != 200 || string(got) != body {
					t.Errorf("a request failed: %s %.300q %v", resp.Status, got, err)
					return
				}
				done.Add(1)
			}
		})
	}
	for i := 1; i <= 15; i++ {
		before := r.shape().Policy.Hash
		r.put(policy(i))
		eventually(t, "it is in force", func() bool { return r.shape().Policy.Hash != before })
		enough := done.Load() + 40 // of 8 clients, each with a request under way
		eventually(t, "requests have passed under it", func() bool { return done.Load() >= enough || t.Failed() })
	}
	stop()
	load.Wait()
	for i := range counts {
		if counts[i].Load() == 0 {
			t.Errorf("upstream %d got no request of %d", i, done.Load())
		}
	}
	if n := strings.Count(r.adminGet("/metrics"), "\nabate_policy_changes_total{service=\"s\"} "); n != 1 ||
		r.shape().Policy.Error != "" {
		t.Errorf("changes: %s, error %q", grep(r.adminGet("/metrics"), "policy_changes"), r.shape().Policy.Error)
	}
}

func TestAReloadChangesWhereRequestsGo(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	t.Parallel() // it waits
	one, two := newMember(t, "one"), newMember(t, "two")
	r := start(t, "services:\n  a: {upstreams: [\""+one.url+"\"], routes: [{path: /a}]}\n")
	c := r.dial()
	if a := c.get("/a"); a.content != "one" {
		t.Fatalf("got %+v", a)
	}
	r.put("services:\n  b: {upstreams: [\"" + two.url + "\"], routes: [{path: /b}]}\n")
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	if a := c.get("/a"); a.status != 404 || a.problem(t).Reason != "no-route" {
		t.Errorf("the service that is gone answers: %+v", a)
	}
	if g := r.guard(); g.Service != "b" || len(r.shape().Services) != 1 {
		t.Errorf("/guards before the first request: %+v", r.shape().Services)
	}
	if a := c.get("/b"); a.content != "two" {
		t.Errorf("got %+v", a)
	}
	eventually(t, "the connection to the old one is closed", func() bool { return one.open() == 0 })
	r.put("services:\n  a: {upstreams: [\"" + two.url + "\"], routes: [{path: /a}]}\n")
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	if a := c.get("/a"); a.content != "two" {
		t.Errorf("it is back, and answers %+v", a)
	}
}

// TestAReloadKeepsWhatHasBeenLearned: a breaker that is open stays open, a budget that is spent is not refilled, an
// endpoint that is out stays out, and connections are kept.
func TestAReloadKeepsWhatHasBeenLearned(t *testing.T) {
	bad, good := newMember(t, "bad"), newMember(t, "good")
	policy := func(timeout string, order ...string) string {
		return single(order, quickRetry, "timeout: "+timeout, "maxRetries: 1", "retryBudget: {ratio: 0.0001, reserve: 3}",
			"outlierDetection: {consecutiveFailures: 3, baseEjectionTime: 1h, maxEjectionTime: 1h}",
			"circuitBreaker: {failureThreshold: 2, waitDurationInOpenState: 1h, maxWaitDurationInOpenState: 1h}")
	}
	r := start(t, policy("10s", bad.url, good.url))
	for range 4 {
		r.get("/")
	}
	bad.down.Store(true)
	eventually(t, "the bad one is out", func() bool { r.get("/"); return r.ejected()[0] })
	good.down.Store(true)
	eventually(t, "the breaker opens", func() bool { r.get("/"); return r.guard().Breaker.State == "open" })
	eventually(t, "all is given back", func() bool {
		e := r.guard().Endpoints
		return e[0].Pending+e[1].Pending == 0 && e[1].Idle == good.open()
	})
	before := r.guard()
	r.put(policy("20s", good.url, bad.url)) // in another order
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	after := r.guard()
	if after.Breaker.State != "open" || after.Breaker.Openings != 1 {
		t.Errorf("the breaker is %+v", after.Breaker)
	}
	if after.Budget > before.Budget+0.01 || before.Budget > 2.5 {
		t.Errorf("the budget was %v and is %v", before.Budget, after.Budget)
	}
	if out := r.ejected(); out[0] || !out[1] || after.Endpoints[1].URL != bad.url {
		t.Errorf("ejected are %v of %+v", out, after.Endpoints)
	}
	if idle, now := before.Endpoints[1].Idle, after.Endpoints[0].Idle; now != idle {
		t.Errorf("%d connections were idle and %d are", idle, now)
	}
}

// TestABadFileChangesNothing: the mistake is shown where people look, until it is fixed.
func TestABadFileChangesNothing(t *testing.T) {
	s := newMember(t, "a")
	r := start(t, single([]string{s.url}))
	hash := r.shape().Policy.Hash
	for _, bad := range []string{"services:\n  s: {maxRetrys: 3}\n", "", "services: [", single([]string{"ftp://x"})} {
		r.put(bad)
		if err := r.proxy.Reload(); err == nil {
			t.Errorf("%q was loaded", bad)
		}
		p := r.shape().Policy
		if p.Hash != hash || !strings.Contains(p.Error, "policy.yaml") {
			t.Errorf("%q: %+v", bad, p)
		}
		if a := r.get("/"); a.content != "a" {
			t.Errorf("%q: got %+v", bad, a)
		}
	}
	r.put(single([]string{s.url}, "maxRetries: 1"))
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	if p := r.shape().Policy; p.Error != "" || p.Hash == hash {
		t.Errorf("after it was fixed: %+v", p)
	}
}

func TestAProxyWithABadFileDoesNotStart(t *testing.T) {
	file := t.TempDir() + "/policy.yaml"
	if _, err := proxy.New(proxy.Config{Policy: file}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(file, []byte("services:\n  s: {maxRetrys: 3, timeout: soon}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := proxy.New(proxy.Config{Policy: file})
	for _, want := range []string{"policy.yaml:2:", "maxRetrys", "maxRetries", "timeout"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// TestADrainFinishesWhatIsUnderWay: and takes nothing new.
func TestADrainFinishesWhatIsUnderWay(t *testing.T) {
	for _, in := range []wire{http1, h2c} {
		t.Run(in.name, func(t *testing.T) {
			came, goOn := make(chan struct{}), make(chan struct{})
			s := newMember(t, "a")
			slow := http1.serve(t, func(w http.ResponseWriter, _ *http.Request) {
				close(came)
				hold(t, goOn)
				io.WriteString(w, "done")
			})
			r := start(t, "services:\n  s: {upstreams: "+
				"[\""+slow+"\"], routes: [{path: /slow}]}\n  a: {upstreams: [\""+s.url+"\"], routes: [{path: /}]}\n")
			idle := r.dial()
			idle.get("/")
			b := begin(t, in.client(t), newRequest(t, "GET", "http://"+r.addr+"/slow", nil))
			wait(t, "the request", came)
			drained := make(chan error, 1)
			r.once.Do(func() { go func() { drained <- r.proxy.Shutdown(context.Background()) }() })
			idle.closed()
			if w := adminStatus(r, "/readyz"); w != 503 {
				t.Errorf("/readyz says %d", w)
			}
			if w := adminStatus(r, "/healthz"); w != 200 {
				t.Errorf("/healthz says %d: a drain is no illness", w)
			}
			if !r.shape().Draining {
				t.Error("/guards does not say that it drains")
			}
			if nc, err := net.DialTimeout("tcp", r.addr, patience); err == nil {
				nc.Close()
				t.Error("a new client was taken")
			}
			select {
			case err := <-drained:
				t.Fatalf("the drain did not wait: %v", err)
			default:
			}
			close(goOn)
			b.head()
			b.rest("done")
			if in.name == http1.name && !b.resp.Close {
				t.Error("the client is not told that the connection ends")
			}
			if err := wait(t, "the end of the drain", drained); err != nil {
				t.Errorf("Shutdown: %v", err)
			}
			eventually(t, "connections to services are closed", func() bool { return s.open() == 0 })
		})
	}
}

func adminStatus(r *running, path string) int {
	w := httptest.NewRecorder()
	r.admin.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Code
}

// TestADrainThatTakesTooLongCutsOff: the answer is broken off, not completed.
func TestADrainThatTakesTooLongCutsOff(t *testing.T) {
	eachWay(t, func(t *testing.T, in, out wire) {
		left := make(chan struct{})
		r := start(t, single([]string{out.serve(t, func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "half\n")
			flush(w)
			<-r.Context().Done()
			close(left)
		})}))
		b := begin(t, in.client(t), newRequest(t, "GET", "http://"+r.addr+"/", nil))
		b.line("half")
		ctx, cancel := context.WithCancel(context.Background())
		drained := make(chan error, 1)
		r.once.Do(func() { go func() { drained <- r.proxy.Shutdown(ctx) }() })
		eventually(t, "the drain", func() bool { return !r.proxy.Ready() })
		cancel()
		if err := wait(t, "the end of the drain", drained); !errors.Is(err, context.Canceled) {
			t.Errorf("Shutdown: %v", err)
		}
		within(t, "the answer breaks off", func() {
			if rest, err := io.ReadAll(b.in); err == nil {
				t.Errorf("it ended well, with %q", rest)
			}
		})
		wait(t, "the service hears of it", left)
	})
}
