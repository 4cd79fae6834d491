package proxy_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy"
)

// status is an answer without content.
func status(code int, fields ...string) string {
	return fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Length: 0\r\n%s\r\n", code, strings.Join(append(fields, ""), "\r\n"))
}

// inTurn is an upstream that gives its answers one after the other, and then the last one for ever.
func inTurn(t *testing.T, answers ...string) *server {
	var n atomic.Int32
	return upstream(t, func(c net.Conn, _ string) { io.WriteString(c, answers[min(int(n.Add(1)), len(answers))-1]) })
}

// What the policy's own limit refuses, the service never saw: it may be asked again.
func TestARequestOverTheServicesRateLimitIsRefusedAsOne(t *testing.T) {
	s := echo(t)
	r := start(t, single([]string{s.url}, "rateLimit: {limit: 1/1h, burst: 1}"))
	if a := r.get("/"); a.status != 200 {
		t.Fatalf("got %+v", a)
	}
	if a := r.get("/"); a.status != 503 || a.header.Get("Abate-Reason") != "rate-limited" || len(s.seen()) != 1 {
		t.Errorf("got %+v, %d reached the service", a, len(s.seen()))
	}
}

func TestFailuresAreRepeatedWithinTheBudget(t *testing.T) {
	s := inTurn(t, status(503, "X-From: service"))
	r := start(t, single([]string{s.url}, quickRetry, noBreaker, "maxRetries: 1",
		"retryBudget: {ratio: 0.0001, reserve: 2}"))
	for i := range 2 {
		a := r.get("/")
		if a.status != 503 || a.header.Get("X-From") != "service" || a.header.Get("X-Should-Retry") != "false" ||
			a.header.Get("Abate-Reason") != "attempts-exhausted" {
			t.Errorf("request %d: the service's own answer should come, marked; got %+v", i, a)
		}
	}
	if a := r.get("/"); a.status != 503 || a.header.Get("X-From") != "service" ||
		a.header.Get("X-Should-Retry") != "false" || a.header.Get("Abate-Reason") != "budget-exhausted" {
		t.Errorf("without budget: got %+v", a)
	}
	var numbers []string
	for _, req := range s.seen() {
		numbers = append(numbers, field(req, "X-Envoy-Attempt-Count"))
	}
	if got := strings.Join(numbers, ""); got != "12121" {
		t.Errorf("attempts %s, want 12121", got)
	}
	if left := r.guard().Budget; left >= 1 {
		t.Errorf("%v are left of the budget", left)
	}
}

// TestAnEmptyBudgetDoesNotReplaceARealAnswer: nor does a circuit that the answer has opened. The service's own goes on,
// with "do not retry" beside it.
func TestAnEmptyBudgetDoesNotReplaceARealAnswer(t *testing.T) {
	const empty, opens = "retryBudget: {kind: tokens, maxTokens: 1, costPerRetry: 2}",
		"circuitBreaker: {failureThreshold: 1}"
	for _, tt := range []struct {
		reason, key, other string
	}{{"budget-exhausted", empty, noBreaker}, {"circuit-open", opens, "maxRetries: 3"},
		{"budget-exhausted", empty, "hedge: {delay: 1h}"}} {
		for _, code := range []int{500, 502, 503, 504, 429, 408} {
			for _, own := range []string{"", "X-Should-Retry: true"} {
				answer := fmt.Sprintf("HTTP/1.1 %d Own\r\nX-From: service\r\nRetry-After: 0\r\nContent-Type: application/x-own\r\n",
					code)
				if own != "" {
					answer += own + "\r\n"
				}
				s := inTurn(t, answer+"Content-Length: 8\r\n\r\nown body")
				r := start(t, single([]string{s.url}, quickRetry, tt.key, tt.other, "retryOn: ['5xx', '429', '408']"))
				for _, a := range []reply{r.get("/"), r.getHTTP2(t, "/")} {
					if tt.key == opens && a.header.Get("X-From") == "" { // the second finds the circuit open
						if a.status != 503 || a.header.Get("Abate-Reason") != "circuit-open" || a.problem(t).Attempts != 0 {
							t.Errorf("%d: got %+v", code, a)
						}
						continue
					}
					if a.status != code || a.content != "own body" || a.header.Get("Content-Type") != "application/x-own" ||
						a.header.Get("Retry-After") != "0" {
						t.Errorf("%s: the %d came as %+v", tt.reason, code, a)
					}
					if got := a.header.Values("X-Should-Retry"); len(got) != 1 || got[0] != "false" ||
						a.header.Get("Abate-Reason") != tt.reason {
						t.Errorf("%s, %d: got %v", tt.reason, code, a.header)
					}
				}
			}
		}
	}
}

// refused checks what every refusal by the policy has: it is honest, and asks not to be tried again at once.
func refused(t *testing.T, a reply, p problem) {
	t.Helper()
	after, err := strconv.Atoi(a.header.Get("Retry-After"))
	if err != nil || after < 1 || after != p.RetryAfter {
		t.Errorf("Retry-After: %q, in the body %d", a.header.Get("Retry-After"), p.RetryAfter)
	}
	if a.header.Get("X-Should-Retry") != "false" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("header %v", a.header)
	}
	if p.Type != "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity" || p.Detail == "" {
		t.Errorf("body %+v", p)
	}
}

func TestRetryAfterIsObeyed(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	t.Parallel() // it waits
	t.Run("waits", func(t *testing.T) {
		var times []time.Time
		s := upstream(t, func(c net.Conn, _ string) {
			if times = append(times, time.Now()); len(times) == 1 {
				io.WriteString(c, status(503, "Retry-After: 1"))
				return
			}
			io.WriteString(c, ok("good"))
		})
		if a := start(t, single([]string{s.url}, quickRetry)).get("/"); a.content != "good" {
			t.Fatalf("got %+v", a)
		}
		if pause := times[1].Sub(times[0]); pause < time.Second {
			t.Errorf("the service asked for 1 s and got %v", pause)
		}
	})
	t.Run("is too long", func(t *testing.T) {
		s := inTurn(t, status(503, "Retry-After: 3600"))
		a := start(t, single([]string{s.url}, quickRetry)).get("/")
		if a.status != 503 || a.header.Get("Retry-After") != "3600" || a.header.Get("Abate-Reason") != "overloaded" ||
			len(s.seen()) != 1 {
			t.Errorf("got %+v after %d attempts", a, len(s.seen()))
		}
	})
}

func TestOnlyWhatMayBeRepeatedIs(t *testing.T) {
	for _, tt := range []struct {
		name, method, field, key, answer string
		attempts                         int
	}{
		{name: "GET", method: "GET", attempts: 2},
		{name: "HEAD", method: "HEAD", attempts: 2},
		{name: "OPTIONS", method: "OPTIONS", attempts: 2},
		{name: "POST", method: "POST", attempts: 1},
		{name: "PUT", method: "PUT", attempts: 1},
		{name: "DELETE", method: "DELETE", attempts: 1},
		{name: "POST with a key", method: "POST", field: "Idempotency-Key: k", attempts: 2},
		{name: "POST with the older key", method: "POST", field: "X-Idempotency-Key: k", attempts: 2},
		{name: "POST with an empty key", method: "POST", field: "Idempotency-Key:", attempts: 1},
		{name: "PUT by policy", method: "PUT", key: "retryMethods: [PUT]", attempts: 2},
		{name: "GET not by policy", method: "GET", key: "retryMethods: [PUT]", attempts: 1},
		{name: "a status that is never repeated", method: "GET", key: `neverRetryOn: ["503"]`, attempts: 1},
		{name: "told not to", method: "GET", answer: status(503, "X-Should-Retry: false"), attempts: 1},
		{name: "a status that no repetition fixes", method: "GET", answer: status(501), attempts: 1},
		{name: "the client's mistake", method: "GET", answer: status(404), attempts: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.answer == "" {
				tt.answer = status(503)
			}
			s := inTurn(t, tt.answer, ok(""))
			r := start(t, single([]string{s.url}, quickRetry, tt.key))
			c := r.dial().send(tt.method + " / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 4\r\n" +
				strings.TrimSpace(tt.field+"\r\nX: y") + "\r\n\r\nbody")
			a, err := c.read(tt.method)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(s.seen()); got != tt.attempts || (a.status == 200) != (tt.attempts == 2) {
				t.Errorf("%d after %d attempts, want %d", a.status, got, tt.attempts)
			}
			for _, req := range s.seen() {
				if content(req) != "body" || field(req, "Content-Length") != "4" {
					t.Errorf("the service got %q", req)
				}
			}
		})
	}
}

// TestWhatWasNotSentMayBeSent: a connection that could not be made has done no harm, whatever the method.
func TestWhatWasNotSentMayBeSent(t *testing.T) {
	for _, out := range []wire{http1, h2c} {
		for _, in := range []wire{http1, h2c} {
			t.Run(in.name+" to "+out.name, func(t *testing.T) {
				l := listen(t)
				dead := out.scheme + "://" + l.Addr().String()
				l.Close()
				good := out.serve(t, pieces)
				r := start(t, single([]string{dead, good}, quickRetry, noEjection, noBreaker, "retryBudget: {disabled: true}"))
				c := in.client(t)
				for range 6 {
					sent := bytes.Repeat([]byte("x"), large) // a stream: it can be sent once
					b := begin(t, c, newRequest(t, "POST", "http://"+r.addr+"/", io.MultiReader(bytes.NewReader(sent))))
					if b.head().StatusCode != 200 {
						t.Fatalf("got %d", b.resp.StatusCode)
					}
					b.rest(string(sent))
				}
			})
		}
	}
}

func TestAnAttemptHasItsTime(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	for _, tt := range []struct {
		name     string
		keys     []string
		reason   string
		attempts int
	}{
		{"one", []string{"attemptTimeout: 2s", noRetries}, "upstream-timeout", 1},
		{"two", []string{"attemptTimeout: 2s", "maxRetries: 1", retriesSlow}, "attempts-exhausted", 2},
		{"the call's", []string{"timeout: 2s"}, "deadline", 1},
		{"the call's is shorter", []string{"attemptTimeout: 2s", "timeout: 3900ms", retriesSlow}, "deadline", 2},
		{"with a hedge", []string{"attemptTimeout: 2s", noRetries, "hedge: {delay: 20ms}"}, "upstream-timeout", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // it waits
			silent := upstream(t, func(net.Conn, string) {})
			r := start(t, single([]string{silent.url}, append(tt.keys, quickRetry)...))
			a := r.get("/")
			p := a.problem(t)
			if a.status != 504 || p.Reason != tt.reason || p.Attempts != tt.attempts ||
				a.header.Get("X-Should-Retry") != "false" {
				t.Errorf("got %d %+v, want %s after %d", a.status, p, tt.reason, tt.attempts)
			}
			if n := len(silent.seen()); n != tt.attempts {
				t.Errorf("%d attempts reached the service", n)
			}
			if g := r.guard(); g.Breaker.Calls == 0 {
				t.Error("the breaker has not counted it")
			}
		})
	}
}

// TestACircuitOpensAndComesBack: closed, open after failures in a row, probed, ramped up, closed.
func TestACircuitOpensAndComesBack(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel() // it waits
	var down atomic.Bool
	var asked atomic.Int32
	s := upstream(t, func(c net.Conn, _ string) {
		asked.Add(1)
		if down.Load() {
			io.WriteString(c, status(500))
			return
		}
		io.WriteString(c, ok("good"))
	})
	states := new(stateLog)
	r := start(t, single([]string{s.url}, noRetries, noEjection,
		"circuitBreaker: {failureThreshold: 3, waitDurationInOpenState: 2s, permittedCallsInHalfOpen: 1, successThreshold: "+
			"2, rampUp: 300ms}"),
		func(c *proxy.Config) { c.Adjust = func(_ string, p *abate.Policy) { p.Observer = states } })
	states.r = r
	states.want(t, "closed", 0)
	if a := r.get("/"); a.content != "good" {
		t.Fatalf("got %+v", a)
	}
	down.Store(true)
	for range 3 {
		if a := r.get("/"); a.status != 500 || a.header.Get("Abate-Reason") != "" {
			t.Errorf("a failure of the service came as %+v", a)
		}
	}
	states.want(t, "open", 2)
	before := asked.Load()
	a := r.get("/")
	p := a.problem(t)
	if a.status != 503 || p.Reason != "circuit-open" || p.Attempts != 0 || p.Service != "s" || asked.Load() != before {
		t.Errorf("got %d %+v, %d reached the service", a.status, p, asked.Load()-before)
	}
	refused(t, a, p)

	down.Store(false)
	eventually(t, "a probe gets through", func() bool { return r.get("/").status == 200 })
	states.want(t, "half-open", 1) // one more success is needed
	eventually(t, "closed again", func() bool { r.get("/"); return r.guard().Breaker.State == "closed" })
	states.want(t, "closed", 0)
	if got, want := states.all(), []string{
		"closed>open", "open>half-open", "half-open>ramp-up", "ramp-up>closed",
	}; !slices.Equal(got, want) {
		t.Errorf("the states changed %v, want %v", got, want)
	}
	if n := r.guard().Breaker.Openings; n != 1 {
		t.Errorf("opened %d times", n)
	}
}

// stateLog is how the states of the breaker changed.
type stateLog struct {
	r       *running
	mu      sync.Mutex
	changes []string
}

// Observe notes a change.
func (l *stateLog) Observe(e abate.Event) {
	if e.Kind != core.BreakerChanged {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes = append(l.changes, fmt.Sprint(e.From, ">", e.To))
}

func (l *stateLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.changes)
}

// want checks the state, also as the metric has it.
func (l *stateLog) want(t *testing.T, state string, metric int) {
	t.Helper()
	if got := l.r.guard().Breaker.State; got != state {
		t.Errorf("the breaker is %s, want %s", got, state)
	}
	if m := l.r.adminGet("/metrics"); !strings.Contains(
		m, fmt.Sprintf("\ncircuit_breaker_state{service=\"s\"} %d\n", metric)) {
		t.Errorf("%s: want %d in %q", state, metric, grep(m, "circuit_breaker_state"))
	}
}

// queued returns clients of a service with room for one: the others wait, and the service until open is closed. inside
// counts the requests that have reached it.
func queued(t *testing.T, n int) (r *running, clients []*client, inside *atomic.Int32, open chan struct{}) {
	inside, open = new(atomic.Int32), make(chan struct{})
	s := upstream(t, func(c net.Conn, _ string) {
		inside.Add(1)
		hold(t, open)
		io.WriteString(c, ok("good"))
	})
	r = start(t, single([]string{s.url}, "bulkhead: {maxConcurrentCalls: 1, maxQueue: 2, maxWait: 20s, order: fifo}"))
	for i := range n {
		clients = append(clients, r.dial().send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n"))
		eventually(t, "it is where it should be", func() bool {
			g := r.guard()
			return g.Bulkhead.Running == 1 && g.Bulkhead.Queued == i
		})
	}
	return r, clients, inside, open
}

func TestABulkheadQueuesAndThenRefuses(t *testing.T) {
	r, clients, inside, open := queued(t, 3)
	a := r.get("/")
	p := a.problem(t)
	if a.status != 503 || p.Reason != "bulkhead-full" || p.Attempts != 0 {
		t.Errorf("got %d %+v", a.status, p)
	}
	refused(t, a, p)
	clients[1].Close() // a client that leaves gives up its slot
	eventually(t, "the slot is free", func() bool { return r.guard().Bulkhead.Queued == 1 })
	close(open)
	for _, i := range []int{0, 2} {
		if a := clients[i].answer(); a.content != "good" {
			t.Errorf("client %d got %+v", i, a)
		}
	}
	if n := inside.Load(); n != 2 {
		t.Errorf("%d requests reached the service", n)
	}
	eventually(t, "empty", func() bool { return r.guard().Bulkhead.Running == 0 })
}

func TestABulkheadsQueueHasATimeLimit(t *testing.T) {
	held, open := make(chan struct{}), make(chan struct{})
	s := upstream(t, func(c net.Conn, _ string) {
		close(held)
		hold(t, open)
		io.WriteString(c, ok("good"))
	})
	r := start(t, single([]string{s.url}, "bulkhead: {maxConcurrentCalls: 1, maxQueue: 1, maxWait: 20ms}"))
	first := r.dial().send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")
	wait(t, "the first", held)
	if a := r.get("/"); a.status != 503 || a.problem(t).Reason != "bulkhead-full" {
		t.Errorf("got %+v", a)
	}
	close(open)
	if a := first.answer(); a.content != "good" {
		t.Errorf("the first got %+v", a)
	}
}

// TestAClientThatLeavesDuringTheBackOffEndsTheCall: nobody waits for a further attempt.
func TestAClientThatLeavesDuringTheBackOffEndsTheCall(t *testing.T) {
	for _, in := range []wire{http1, h2c} {
		t.Run(in.name, func(t *testing.T) {
			s := inTurn(t, status(503))
			r := start(t, single([]string{s.url}, "initialDelay: 20s", "maxDelay: 20s", "jitter: none",
				"bulkhead: {maxConcurrentCalls: 1, noQueue: true}"))
			req := newRequest(t, "GET", "http://"+r.addr+"/", nil)
			ctx, cancel := context.WithCancel(req.Context())
			defer cancel()
			b := begin(t, in.client(t), req.WithContext(ctx))
			eventually(t, "the first attempt has failed", func() bool {
				return len(s.seen()) == 1 && strings.Contains(r.adminGet("/metrics"), `abate_active_retries{service="s"} 1`)
			})
			cancel()
			<-b.failed
			eventually(t, "the call has ended", func() bool { return r.guard().Bulkhead.Running == 0 })
			if n := len(s.seen()); n != 1 {
				t.Errorf("%d attempts", n)
			}
		})
	}
}

func TestTheServiceIsToldAboutTheAttempt(t *testing.T) {
	s := inTurn(t, status(503), ok(""))
	r := start(t, single([]string{s.url}, quickRetry, "attemptTimeout: 5s", "timeout: 8s"))
	c := r.dial()
	c.send("GET / HTTP/1.1\r\nHost: s.test\r\nVia: 1.0 edge\r\nX-Envoy-Attempt-Count: " +
		"77\r\nx-envoy-expected-rq-timeout-ms: 99\r\n\r\n").answer()
	for i, req := range s.seen() {
		var via, counts, limits []string
		for l := range strings.Lines(req) {
			switch name, value, _ := strings.Cut(strings.TrimSpace(l), ": "); strings.ToLower(name) {
			case "via":
				via = append(via, value)
			case "x-envoy-attempt-count":
				counts = append(counts, value)
			case "x-envoy-expected-rq-timeout-ms":
				limits = append(limits, value)
			}
		}
		if len(via) != 2 || via[0] != "1.0 edge" || !strings.HasPrefix(via[1], "1.1 abate-") {
			t.Errorf("attempt %d: Via %q", i+1, via)
		}
		if len(counts) != 1 || counts[0] != fmt.Sprint(i+77) { // its client has made 76 of them
			t.Errorf("attempt %d has the number %q", i+1, counts)
		}
		if ms, _ := strconv.Atoi(strings.Join(limits, ",")); ms < 1 || ms > 5000 {
			t.Errorf("attempt %d has the limit %q", i+1, limits)
		}
	}
	if n := len(s.seen()); n != 2 {
		t.Errorf("%d attempts", n)
	}
}

func TestAServiceWithoutLimitIsToldNone(t *testing.T) {
	s := inTurn(t, ok(""))
	start(t, single([]string{s.url})).get("/")
	if got := field(s.seen()[0], "X-Envoy-Expected-Rq-Timeout-Ms"); got != "" {
		t.Errorf("the limit is %q", got)
	}
}

// TestALoopIsCut: an upstream that is the proxy itself would call itself until nothing is left.
func TestALoopIsCut(t *testing.T) {
	t.Parallel() // it waits
	for _, scheme := range []string{"http://", "h2c://"} {
		r := start(t, single([]string{"http://127.0.0.1:9"}))
		r.write(single([]string{scheme + r.addr}, noRetries))
		if err := r.proxy.Reload(); err != nil {
			t.Fatal(err)
		}
		a := r.get("/")
		if p := a.problem(t); a.status != 508 || p.Reason != "loop" || p.Attempts != 0 {
			t.Errorf("%s: got %d %+v", scheme, a.status, p)
		}
	}
}

func TestRequestsThatGoNowhereGetAReason(t *testing.T) {
	r := start(t, "services:\n  empty:\n    routes: [{path: /empty}]\n  named:\n    upstreams: [\"http://127.0.0.1:9\"]\n")
	a := r.get("/empty/x")
	if p := a.problem(t); a.status != 502 || p.Reason != "no-upstreams" || p.Service != "empty" || p.Attempts != 0 {
		t.Errorf("got %d %+v", a.status, p)
	}
	a = r.get("/other?secret=1")
	if p := a.problem(t); a.status != 404 || p.Reason != "no-route" || p.Service != "" ||
		!strings.Contains(p.Detail, "empty, named") {
		t.Errorf("got %d %+v", a.status, p)
	}
	if a.header.Get("X-Should-Retry") != "" {
		t.Errorf("a 404 is nobody's to repeat: %v", a.header)
	}
}

// TestManyClientsUnderFailureStayWithinTheBudget: over all connections and both protocols.
func TestManyClientsUnderFailureStayWithinTheBudget(t *testing.T) {
	const calls = 200
	s := inTurn(t, status(503))
	r := start(t, single([]string{s.url}, quickRetry, noBreaker, noEjection, "retryBudget: {ratio: 0.1, reserve: 5}"))
	var all sync.WaitGroup
	for i := range 8 {
		c := []wire{http1, h2c}[i%2].client(t)
		all.Go(func() {
			for range calls / 8 {
				if resp, err := c.Get("http://" + r.addr + "/"); err != nil || resp.StatusCode != 503 {
					t.Errorf("got %v, %v", resp, err)
				} else {
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}
		})
	}
	all.Wait()
	if n, most := len(s.seen()), calls+calls/10+5; n > most || n < calls {
		t.Errorf("%d attempts for %d calls, at most %d", n, calls, most)
	}
}

// TestALongBodyIsNotHeld: it is sent once, as a stream, also to a service that has not read it.
func TestALongBodyIsNotHeld(t *testing.T) {
	eachWay(t, func(t *testing.T, in, out wire) {
		const limit = 40_000
		var n atomic.Int32
		r := start(t, single([]string{out.serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if n.Add(1) == 1 {
				w.WriteHeader(503)
			}
		})}, quickRetry), func(c *proxy.Config) { c.MaxBufferedBody = limit })
		c := in.client(t)
		for _, tt := range []struct {
			size     int
			status   int
			attempts int32
		}{{limit + 1, 503, 1}, {limit, 200, 2}} {
			n.Store(0)
			req := newRequest(t, "POST", "http://"+r.addr+"/", strings.NewReader(strings.Repeat("x", tt.size)))
			req.Header.Set("Idempotency-Key", "k")
			b := begin(t, c, req)
			if b.head(); b.resp.StatusCode != tt.status || n.Load() != tt.attempts {
				t.Errorf("%d bytes: got %s after %d attempts", tt.size, b.resp.Status, n.Load())
			}
			b.rest("")
		}
	})
}
