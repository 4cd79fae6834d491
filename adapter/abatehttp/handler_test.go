package abatehttp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/shed"
)

func newGate(t testing.TB, p inbound.Protection) *inbound.Gate {
	t.Helper()
	g, err := inbound.NewGate("payments", p)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// gateLog is an observer that remembers.
type gateLog struct {
	mu     sync.Mutex
	events []inbound.GateEvent
}

func (l *gateLog) ObserveGate(e inbound.GateEvent) {
	l.mu.Lock()
	l.events = append(l.events, e)
	l.mu.Unlock()
}

func (l *gateLog) all(kind inbound.GateEventKind) []inbound.GateEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []inbound.GateEvent
	for _, e := range l.events {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found
}

// protect starts a server that stands behind a gate.
func protect(t *testing.T, p inbound.Protection, handle http.HandlerFunc) (*backend, *inbound.Gate, *gateLog) {
	t.Helper()
	log := new(gateLog)
	p.Observer = log
	g := newGate(t, p)
	h := abatehttp.NewHandler(g, handle)
	return serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) }), g, log
}

// places is a protection with so many places and so long a queue.
func places(n, queue int) inbound.Protection {
	return inbound.Protection{
		Shed: shed.Config{Concurrency: shed.Fixed, MaxConcurrency: n, MaxQueue: queue, NoQueue: queue == 0,
			QueueTarget: time.Minute, QueueInterval: time.Minute},
	}
}

func perMinute(n int) ratelimit.Config {
	return ratelimit.Config{Limit: ratelimit.Rate{Tokens: float64(n), Per: time.Minute}, Burst: n}
}

// get sends a request with some headers, given as names and values in turn.
func get(t *testing.T, url string, headers ...string) *http.Response {
	t.Helper()
	return send(t, newRequest(t, "GET", url, nil), headers...)
}

func send(t *testing.T, req *http.Request, headers ...string) *http.Response {
	t.Helper()
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func read(t *testing.T, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// problem reads the body of a refusal and checks what all of them have.
func problem(t *testing.T, resp *http.Response) map[string]any {
	t.Helper()
	var p map[string]any
	body := read(t, resp)
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Fatalf("status %d, %q is no JSON: %v", resp.StatusCode, body, err)
	}
	if resp.Header.Get("Content-Type") != "application/problem+json" || resp.Header.Get("Cache-Control") != "no-store" ||
		p["status"] != float64(resp.StatusCode) || p["service"] != "payments" {
		t.Errorf("header %v, problem %v", resp.Header, p)
	}
	if resp.Header.Get("Abate-Reason") != p["code"] {
		t.Errorf("reason %q, code %q", resp.Header.Get("Abate-Reason"), p["code"])
	}
	return p
}

func TestTheGateLearnsWhatTheHandlerAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		want   abate.Class
	}{
		"nothing": {func(http.ResponseWriter, *http.Request) {}, abate.Success},
		"a body":  {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }, abate.Success},
		"404":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, abate.Success},
		"500":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, abate.Failure},
		"503":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, abate.Overload},
		"429":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, abate.Overload},
		"502 after early hint": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(103)
			w.WriteHeader(502)
		}, abate.Failure},
		"the first head": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			w.WriteHeader(200)
		}, abate.Failure},
	} {
		t.Run(name, func(t *testing.T) {
			b, g, log := protect(t, places(1, 0), c.handle)
			get(t, b.URL)
			done := log.all(inbound.RequestDone)
			if len(done) != 1 || done[0].Class != c.want {
				t.Errorf("%+v, want class %v", done, c.want)
			}
			if n := g.State().Shed.InFlight; n != 0 {
				t.Errorf("%d places are taken", n)
			}
		})
	}
}

func TestAPanicFreesThePlaceAndGoesOn(t *testing.T) {
	for name, handle := range map[string]http.HandlerFunc{
		"at once":           func(http.ResponseWriter, *http.Request) { panic("oops") },
		"after an answer":   func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok"); panic("oops") },
		"abort":             func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"with its deadline": func(_ http.ResponseWriter, r *http.Request) { panic(r.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			p := places(1, 0)
			p.Timeout = time.Minute
			b, g, log := protect(t, p, handle)
			if resp, err := http.Get(b.URL); err == nil {
				resp.Body.Close()
				t.Errorf("answered %d", resp.StatusCode)
			}
			http.DefaultClient.CloseIdleConnections()
			if done := log.all(inbound.RequestDone); len(done) != 1 || done[0].Class != abate.Failure ||
				g.State().Shed.InFlight != 0 {
				t.Errorf("%+v, state %+v", done, g.State().Shed)
			}
		})
	}
}

func TestAboveTheRateLimitThereIs429(t *testing.T) {
	p := inbound.Protection{RateLimit: inbound.ArrivalLimit{Config: perMinute(2)}}
	p.RateLimit.Limit.Per = time.Hour // of which the seconds that a busy machine takes are nothing
	b, _, _ := protect(t, p, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	for n, want := range []struct {
		status    int
		remaining string
	}{{200, "1"}, {200, "0"}, {429, "0"}} {
		resp := get(t, b.URL)
		h := resp.Header
		if resp.StatusCode != want.status || h.Get("X-RateLimit-Remaining") != want.remaining ||
			h.Get("X-RateLimit-Limit") != "2" || h.Get("RateLimit-Policy") != `"default";q=2;w=3600` {
			t.Fatalf("request %d: status %d, header %v", n, resp.StatusCode, h)
		}
		if limit := fmt.Sprintf(`"default";r=%s;t=%s`, want.remaining, h.Get("X-RateLimit-Reset")); h.Get("RateLimit") !=
			limit {
			t.Errorf("request %d: RateLimit %q, want %q", n, h.Get("RateLimit"), limit)
		}
		if want.status == 429 {
			problem := problem(t, resp)
			after, err := strconv.Atoi(h.Get("Retry-After"))
			reset, _ := strconv.Atoi(h.Get("X-RateLimit-Reset"))
			if err != nil || after < reset || reset < 1740 || reset > 1800 || problem["code"] != "rate-limited" ||
				problem["retryAfter"] != float64(after) {
				t.Errorf("header %v, problem %v", h, problem)
			}
		}
	}
}

func TestHeadersFollowTheLimitWhenItChanges(t *testing.T) {
	g := newGate(t, inbound.Protection{RateLimit: inbound.ArrivalLimit{Config: perMinute(2)}})
	h := abatehttp.NewHandler(g, http.NotFoundHandler())
	policy := func() string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		return w.Header().Get("RateLimit-Policy")
	}
	before := policy()
	faster := perMinute(2)
	faster.Limit.Per = time.Second
	if err := g.Update(inbound.Protection{RateLimit: inbound.ArrivalLimit{Config: faster}}); err != nil {
		t.Fatal(err)
	}
	if after := policy(); before != `"default";q=2;w=60` || after != `"default";q=2;w=1` {
		t.Errorf("%s, then %s", before, after)
	}
}

func TestAClosedLimitTellsThatTryingAgainIsInVain(t *testing.T) {
	p := inbound.Protection{
		RateLimit: inbound.ArrivalLimit{Config: ratelimit.Config{Limit: ratelimit.Rate{Per: time.Second}}},
	}
	b, _, _ := protect(t, p, func(http.ResponseWriter, *http.Request) { t.Error("it came through") })
	resp := get(t, b.URL)
	if problem(t, resp); resp.StatusCode != 429 || resp.Header.Get("X-Should-Retry") != "false" ||
		resp.Header.Get("Retry-After") != "" {
		t.Errorf("status %d, header %v", resp.StatusCode, resp.Header)
	}
}

func TestCostsBelowZeroRefillNothing(t *testing.T) {
	p := inbound.Protection{RateLimit: inbound.ArrivalLimit{Config: perMinute(3)}}
	cost := -1000.0
	h := abatehttp.Handler{Gate: newGate(t, p), Next: http.NotFoundHandler(), Cost: func(*http.Request) float64 {
		return cost
	}}
	status := func() int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		return w.Code
	}
	status()
	status()
	if cost = 2; status() != 429 {
		t.Error("a cost of 2 passes where 1 is left")
	}
	if cost = 1; status() != 404 {
		t.Error("a cost of 1 does not pass where 1 is left")
	}
}

// A program that divides by zero gets the cost that the protection has, as for any cost that is not above zero.
func TestACostThatIsNoNumberIsTheProtectionsOwn(t *testing.T) {
	p := inbound.Protection{RateLimit: inbound.ArrivalLimit{Config: perMinute(1)}}
	h := abatehttp.Handler{Gate: newGate(t, p), Next: http.NotFoundHandler(), Cost: func(*http.Request) float64 {
		return math.NaN()
	}}
	for i, want := range []int{404, 429} {
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil)); w.Code != want {
			t.Errorf("request %d: status %d, want %d", i, w.Code, want)
		}
	}
}

// hold is a handler that tells when it has begun and waits to be let go.
func hold() (handle http.HandlerFunc, began chan struct{}, end chan struct{}) {
	began, end = make(chan struct{}, 100), make(chan struct{})
	return func(w http.ResponseWriter, _ *http.Request) {
		began <- struct{}{}
		<-end
		io.WriteString(w, "done")
	}, began, end
}

// async sends a request and returns where its status will be: 0 for an error.
func async(req *http.Request) chan int {
	status := make(chan int, 1)
	go func() {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(req)
		if err != nil {
			status <- 0
			return
		}
		resp.Body.Close()
		status <- resp.StatusCode
	}()
	return status
}

func TestWithoutAPlaceThereIs503(t *testing.T) {
	handle, began, end := hold()
	b, _, _ := protect(t, places(1, 0), handle)
	first := async(newRequest(t, "GET", b.URL, nil))
	<-began
	resp := get(t, b.URL)
	p := problem(t, resp)
	if after, err := strconv.Atoi(resp.Header.Get("Retry-After")); resp.StatusCode != 503 || err != nil || after < 1 ||
		p["code"] != "overloaded" || p["reason"] == nil {
		t.Errorf("status %d, header %v, problem %v", resp.StatusCode, resp.Header, p)
	}
	close(end)
	if <-first != 200 {
		t.Error("the first was not answered")
	}
}

func TestRequestsWaitForAPlace(t *testing.T) {
	handle, began, end := hold()
	b, g, _ := protect(t, places(1, 10), handle)
	first := async(newRequest(t, "GET", b.URL, nil))
	<-began
	second := async(newRequest(t, "GET", b.URL, nil))
	if !settles(func() bool { return g.State().Shed.Queued == 1 }) {
		t.Fatalf("nobody waits: %+v", g.State().Shed)
	}
	end <- struct{}{}
	<-began
	end <- struct{}{}
	if a, b := <-first, <-second; a != 200 || b != 200 {
		t.Errorf("status %d and %d", a, b)
	}
}

func TestAClientThatLeavesTheQueueIsForgotten(t *testing.T) {
	handle, began, end := hold()
	b, g, log := protect(t, places(1, 10), handle)
	first := async(newRequest(t, "GET", b.URL, nil))
	<-began
	ctx, leave := context.WithCancel(t.Context())
	second := async(newRequest(t, "GET", b.URL, nil).WithContext(ctx))
	if !settles(func() bool { return g.State().Shed.Queued == 1 }) {
		t.Fatalf("nobody waits: %+v", g.State().Shed)
	}
	leave()
	<-second
	if !settles(func() bool { return g.State().Shed.Queued == 0 }) {
		t.Errorf("it still waits: %+v", g.State().Shed)
	}
	close(end)
	if <-first != 200 || len(began) != 0 {
		t.Error("the one that left was handled")
	}
	if refused := log.all(inbound.RequestRefused); len(refused) != 1 || refused[0].Reason != context.Canceled {
		t.Errorf("%+v", refused)
	}
}

func TestADeadlineEndsTheWaitForAPlace(t *testing.T) {
	handle, began, end := hold()
	b, _, _ := protect(t, places(1, 10), handle)
	first := async(newRequest(t, "GET", b.URL, nil))
	<-began
	resp := get(t, b.URL, "Grpc-Timeout", "30m")
	if p := problem(t, resp); resp.StatusCode != 504 && resp.StatusCode != 503 {
		t.Errorf("status %d, problem %v", resp.StatusCode, p)
	}
	close(end)
	<-first
}

func TestWorkThatNobodyWaitsForIsRefused(t *testing.T) {
	for name, value := range map[string]string{"X-Envoy-Expected-Rq-Timeout-Ms": "0", "Grpc-Timeout": "0m"} {
		b, _, _ := protect(t, inbound.Protection{}, func(http.ResponseWriter, *http.Request) { t.Error("it was done") })
		resp := get(t, b.URL, name, value)
		if p := problem(t, resp); resp.StatusCode != 504 || p["code"] != "deadline" {
			t.Errorf("%s: status %d, problem %v", name, resp.StatusCode, p)
		}
	}
}

func TestTheLeastDeadlineHolds(t *testing.T) {
	for name, c := range map[string]struct {
		timeout time.Duration
		headers []string
		want    time.Duration // 0 for none
	}{
		"none":       {},
		"the gate's": {timeout: time.Hour, want: time.Hour},
		"the caller's": {
			timeout: 2 * time.Hour, headers: []string{"X-Envoy-Expected-Rq-Timeout-Ms", "3600000"}, want: time.Hour,
		},
		"the least of the headers": {
			headers: []string{"X-Envoy-Expected-Rq-Timeout-Ms", "7200000", "Grpc-Timeout", "1H"}, want: time.Hour,
		},
		"the least, the other way": {
			headers: []string{"X-Envoy-Expected-Rq-Timeout-Ms", "3600000", "Grpc-Timeout", "2H"}, want: time.Hour,
		},
		"the least of a list, the other way": {
			headers: []string{"Grpc-Timeout", "1H", "Grpc-Timeout", "2H"}, want: time.Hour,
		},
		"the least of a list": {headers: []string{"Grpc-Timeout", "2H", "Grpc-Timeout", "1H"}, want: time.Hour},
		"nonsense":            {headers: []string{"Grpc-Timeout", "soon", "X-Envoy-Expected-Rq-Timeout-Ms", "-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var left time.Duration
			b, _, _ := protect(t, inbound.Protection{Timeout: c.timeout}, func(_ http.ResponseWriter, r *http.Request) {
				if d, ok := r.Context().Deadline(); ok {
					left = time.Until(d)
				}
			})
			get(t, b.URL, c.headers...)
			if left > c.want || c.want > 0 && left < c.want-time.Minute {
				t.Errorf("%v are left, want %v", left, c.want)
			}
		})
	}
}

func TestAHandlerThatStopsAtTheDeadlineWithoutAWordIsAnsweredFor(t *testing.T) {
	b, _, log := protect(t, inbound.Protection{Timeout: time.Millisecond}, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	})
	resp := get(t, b.URL)
	if p := problem(t, resp); resp.StatusCode != 504 || p["code"] != "deadline" {
		t.Errorf("status %d, problem %v", resp.StatusCode, p)
	}
	if !settles(func() bool {
		return len(log.all(inbound.RequestDone)) == 1
	}) || log.all(inbound.RequestDone)[0].Class != abate.Failure {
		t.Errorf("%+v", log.all(inbound.RequestDone))
	}
}

func TestTheContextEndsWithTheRequest(t *testing.T) {
	var ctx context.Context
	h := abatehttp.NewHandler(newGate(t, inbound.Protection{Timeout: time.Hour}),
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if ctx = r.Context(); ctx.Err() != nil {
				t.Error("it is over before")
			}
		}))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	if ctx.Err() != context.Canceled {
		t.Error(ctx.Err())
	}
}

func TestAStreamIsDoneForTheLimitsAtItsFirstFlush(t *testing.T) {
	more := make(chan struct{})
	b, g, log := protect(t, places(1, 0), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: hello\n\n")
		w.(http.Flusher).Flush()
		<-more
		io.WriteString(w, "data: bye\n\n")
	})
	var streams []io.Reader
	for n := range 3 { // more than there are places
		resp := get(t, b.URL)
		streams = append(streams, resp.Body)
		event := make([]byte, 13)
		if _, err := io.ReadFull(resp.Body, event); string(event) != "data: hello\n\n" || err != nil {
			t.Fatalf("status %d, %q, %v", resp.StatusCode, event, err)
		}
		if !settles(func() bool {
			return len(log.all(inbound.RequestDone)) == n+1
		}) || log.all(inbound.RequestDone)[n].Class != abate.Success || g.State().Shed.InFlight != 0 {
			t.Errorf("stream %d is not done: %+v", n, g.State().Shed)
		}
	}
	close(more)
	for _, s := range streams {
		if rest, err := io.ReadAll(s); string(rest) != "data: bye\n\n" || err != nil {
			t.Errorf("%q, %v", rest, err)
		}
	}
	if done := log.all(inbound.RequestDone); len(done) != 3 {
		t.Errorf("%d are done", len(done))
	}
}

func TestATakenOverConnectionIsDoneForTheLimits(t *testing.T) {
	for name, hijack := range map[string]func(http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error){
		"by assertion": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			return w.(http.Hijacker).Hijack()
		},
		"by controller": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			return http.NewResponseController(w).Hijack()
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, g, log := protect(t, places(1, 0), func(w http.ResponseWriter, r *http.Request) {
				conn, rw, err := hijack(w)
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
				rw.Flush()
				for {
					line, err := rw.ReadString('\n')
					if err != nil {
						return
					}
					rw.WriteString(line)
					rw.Flush()
				}
			})
			conn, err := net.Dial("tcp", b.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			back := bufio.NewReader(conn)
			resp, err := http.ReadResponse(back, nil)
			if err != nil || resp.StatusCode != 101 {
				t.Fatalf("%v, %v", resp, err)
			}
			for _, line := range []string{"one\n", "two\n"} {
				io.WriteString(conn, line)
				if got, err := back.ReadString('\n'); got != line || err != nil {
					t.Errorf("%q, %v", got, err)
				}
			}
			if done := log.all(inbound.RequestDone); len(done) != 1 || done[0].Class != abate.Ignored ||
				g.State().Shed.InFlight != 0 {
				t.Errorf("%+v, %+v", done, g.State().Shed)
			}
		})
	}
}

// sink is a ResponseWriter that notes which of its methods were called.
type sink struct {
	http.ResponseWriter
	readFrom int
}

func (s *sink) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, http.ErrNotSupported }
func (s *sink) ReadFrom(r io.Reader) (int64, error) {
	s.readFrom++
	return io.Copy(s.ResponseWriter, r)
}

// wrapped is a middleware's writer that has nothing but Unwrap.
type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestTheHandlerCanDoWhatTheWriterBelowCan(t *testing.T) {
	plain := struct{ http.ResponseWriter }{httptest.NewRecorder()}
	for name, c := range map[string]struct {
		below            http.ResponseWriter
		flushes, hijacks bool
	}{
		"nothing":              {plain, false, false},
		"flush":                {httptest.NewRecorder(), true, false},
		"flush, wrapped":       {wrapped{httptest.NewRecorder()}, true, false},
		"take over":            {&sink{ResponseWriter: plain}, true, true},
		"take over, wrapped":   {wrapped{wrapped{&sink{ResponseWriter: plain}}}, true, true},
		"nothing, but wrapped": {wrapped{plain}, false, false},
	} {
		var flushes, hijacks, reads bool
		h := abatehttp.NewHandler(newGate(t, inbound.Protection{}),
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, flushes = w.(http.Flusher)
				_, hijacks = w.(http.Hijacker)
				_, reads = w.(io.ReaderFrom)
			}))
		h.ServeHTTP(c.below, httptest.NewRequest("GET", "/", nil))
		if flushes != c.flushes || hijacks != c.hijacks || reads != c.hijacks {
			t.Errorf("%s: flush %v, hijack %v, read from %v", name, flushes, hijacks, reads)
		}
	}
}

func TestFilesGoTheShortWay(t *testing.T) {
	below := &sink{ResponseWriter: httptest.NewRecorder()}
	log := new(gateLog)
	h := abatehttp.NewHandler(newGate(t, inbound.Protection{Observer: log}),
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if n, err := io.Copy(w, io.LimitReader(strings.NewReader("content"), 5)); n != 5 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		}))
	h.ServeHTTP(below, httptest.NewRequest("GET", "/", nil))
	if below.readFrom != 1 {
		t.Error("ReadFrom of the writer below was not used")
	}
	above := abatehttp.NewHandler(newGate(t, inbound.Protection{}),
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.Copy(w, struct{ io.Reader }{strings.NewReader("content")})
		}))
	recorder := httptest.NewRecorder()
	// whose ReadFrom is hidden
	above.ServeHTTP(wrapped{&sink{ResponseWriter: recorder}}, httptest.NewRequest("GET", "/", nil))
	if recorder.Body.String() != "content" {
		t.Errorf("%q", recorder.Body)
	}
}

func TestAResponseControllerReachesTheConnection(t *testing.T) {
	b, _, _ := protect(t, places(1, 0), func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		for name, err := range map[string]error{
			"read deadline":  c.SetReadDeadline(time.Now().Add(time.Hour)),
			"write deadline": c.SetWriteDeadline(time.Now().Add(time.Hour)),
			"full duplex":    c.EnableFullDuplex(), "flush": c.Flush(),
		} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	get(t, b.URL)
}

func TestEarlyHintsAndTrailersPass(t *testing.T) {
	b, _, _ := protect(t, places(1, 0), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>")
		w.WriteHeader(103)
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "content")
		w.Header().Set("X-Sum", "42")
		w.Header().Set(http.TrailerPrefix+"X-Late", "7")
	})
	var hints []int
	ctx := httptrace.WithClientTrace(t.Context(),
		&httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
			hints = append(hints, code)
			return nil
		}})
	resp := send(t, newRequest(t, "GET", b.URL, nil).WithContext(ctx))
	if body := read(t, resp); body != "content" || resp.Trailer.Get("X-Sum") != "42" ||
		resp.Trailer.Get("X-Late") != "7" || len(hints) != 1 || hints[0] != 103 {
		t.Errorf("%q, trailer %v, hints %v", body, resp.Trailer, hints)
	}
}

func TestHTTP2StreamsPass(t *testing.T) {
	log := new(gateLog)
	p := places(1, 0)
	p.Observer = log
	more := make(chan struct{})
	h := abatehttp.NewHandler(newGate(t, p), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := w.(http.Hijacker); ok || r.ProtoMajor != 2 {
			t.Errorf("%s: a stream cannot be taken over", r.Proto)
		}
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "one")
		w.(http.Flusher).Flush()
		<-more
		io.WriteString(w, "two")
		w.Header().Set("X-Sum", "42")
	}))
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	defer s.Close()
	tr := &http.Transport{Protocols: s.Config.Protocols}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, 3)
	if _, err := io.ReadFull(resp.Body, first); string(first) != "one" || err != nil || !settles(func() bool {
		return len(log.all(inbound.RequestDone)) == 1
	}) {
		t.Errorf("%q, %v, %+v", first, err, log.all(inbound.RequestDone))
	}
	close(more)
	if rest := read(t, resp); rest != "two" || resp.Trailer.Get("X-Sum") != "42" {
		t.Errorf("%q, trailer %v", rest, resp.Trailer)
	}
}

func TestAClientThatLeavesSaysNothingAboutTheService(t *testing.T) {
	began := make(chan struct{})
	b, _, log := protect(t, places(1, 0), func(w http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		w.WriteHeader(500)
	})
	ctx, leave := context.WithCancel(t.Context())
	status := async(newRequest(t, "GET", b.URL, nil).WithContext(ctx))
	<-began
	leave()
	<-status
	if !settles(func() bool {
		return len(log.all(inbound.RequestDone)) == 1
	}) || log.all(inbound.RequestDone)[0].Class != abate.Ignored {
		t.Errorf("%+v", log.all(inbound.RequestDone))
	}
}

func TestWithoutAGateRequestsPass(t *testing.T) {
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	closed := newGate(t, inbound.Protection{
		RateLimit: inbound.ArrivalLimit{Config: ratelimit.Config{Limit: ratelimit.Rate{Per: time.Second}}},
	})
	for name, h := range map[string]*abatehttp.Handler{
		"none":        {Next: next},
		"none chosen": {Next: next, Gate: closed, Select: func(*http.Request) *inbound.Gate { return nil }},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != 204 {
			t.Errorf("%s: status %d", name, w.Code)
		}
	}
}

func TestAuthenticationFailsClosed(t *testing.T) {
	p := inbound.Protection{Authentication: inbound.Authentication{BearerTokens: "/tokens"}}
	served := 0
	h := &abatehttp.Handler{Gate: newGate(t, p), Next: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		served++
	})}
	status := func() int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		return w.Code
	}
	if status() != 401 {
		t.Error("without Caller it passes")
	}
	name := ""
	h.Caller = func(*http.Request) string { return name }
	if status() != 401 {
		t.Error("an unknown caller passes")
	}
	if name = "ada"; status() != 200 || served != 1 {
		t.Error("a known caller does not pass")
	}
}
