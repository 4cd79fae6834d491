package proxy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy"
)

const (
	allowance   = "Abate-Retry-Allowance"
	made        = "Abate-Retries-Made"
	traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

// pair is a proxy at both sides of a program: what comes in goes through it, and what the program sends.
type pair struct {
	*running
	in   string // the address that others call
	app  string // the URL of the program
	sent atomic.Int32
	http *http.Client
}

// Observe counts the attempts that go out.
func (p *pair) Observe(e abate.Event) {
	if e.Kind == core.AttemptBegan || e.Kind == core.HedgeSent {
		p.sent.Add(1)
	}
}

// countOnly are the keys of a service whose calls are limited by their number, and by nothing else.
var countOnly = []string{
	"maxRetries: 2", quickRetry, noBreaker, noEjection, "retryBudget: {disabled: true}", "attemptTimeout: 10s",
}

// newPair runs a program, which is given its proxy's side, and calls next. keys are those of the calls.
func newPair(t testing.TB, app func(p *pair, w http.ResponseWriter, r *http.Request), next string, keys []string,
	change ...func(*proxy.Config)) *pair {
	t.Helper()
	p := &pair{http: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(p.http.CloseIdleConnections)
	p.app = http1.serve(t, func(w http.ResponseWriter, r *http.Request) { app(p, w, r) })
	change = append(change, func(c *proxy.Config) {
		c.Adjust = func(_ string, policy *abate.Policy) { policy.Observer = p }
	})
	p.running = start(t, pairPolicy(p.app, next, keys), change...)
	if err := p.proxy.Open(); err != nil {
		t.Fatal(err)
	}
	p.in = p.proxy.Entrances()[0].Addr.String()
	return p
}

func pairPolicy(app, next string, keys []string) string {
	return guardOf(app, noShed, trustLoop) + single([]string{next}, keys...)
}

// call is the program's call of what it needs, with fields of its own.
func (p *pair) call(r *http.Request, fields map[string]string) *http.Response {
	req, _ := http.NewRequestWithContext(r.Context(), "GET", "http://"+p.addr+"/next", nil)
	for name, value := range fields {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return &http.Response{StatusCode: http.StatusBadGateway, Header: http.Header{}}
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp
}

// forwards is a program that passes these fields of a request on with its own, and the status of the answer back.
func forwards(names ...string) func(*pair, http.ResponseWriter, *http.Request) {
	return func(p *pair, w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(p.call(r, carry(r, names...)).StatusCode)
	}
}

func carry(r *http.Request, names ...string) map[string]string {
	fields := map[string]string{}
	for _, name := range names {
		fields[name] = r.Header.Get(name)
	}
	return fields
}

// ask sends a GET with fields, as lines, to what others call.
func (p *pair) ask(fields ...string) reply {
	p.t.Helper()
	c := dial(p.t, p.in)
	defer c.Close()
	return c.send("GET /x HTTP/1.1\r\nHost: s\r\n" + strings.Join(append(fields, "\r\n"), "\r\n")).answer()
}

func TestAProgramsCallsShareTheAllowanceOfItsRequest(t *testing.T) {
	for _, tt := range []struct {
		name     string
		forwards []string // by the program
		request  []string // and what else the request has
	}{
		{"header", []string{allowance}, nil},
		{"traceparent", []string{"traceparent"}, []string{"traceparent: " + traceparent}},
		{"b3", []string{"b3"}, []string{"b3: 80f198ee56343ba864fe8b2a57d3eff7-e457b5a2e4d86bd1-1-05e3ac9a4f6e3b90"}},
		{"X-B3-TraceId", []string{"X-B3-TraceId"}, []string{"X-B3-TraceId: 64fe8b2a57d3eff7"}},
		{"X-Request-Id", []string{"X-Request-Id"}, []string{"x-request-id: 8c6f0a66-8f2b-4a3b-9a35-0d2f2f1f2a10"}},
		{"all", []string{allowance, "traceparent", "X-Request-Id"}, []string{
			"traceparent: " + traceparent, "x-request-id: 12345678",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			leaf := inTurn(t, status(503))
			p := newPair(t, forwards(tt.forwards...), leaf.url, countOnly)
			for left := range 3 {
				before := len(leaf.seen())
				a := p.ask(append(tt.request, fmt.Sprintf(`%s: %d;owner="edge"`, allowance, left))...)
				if got := len(leaf.seen()) - before; got != 1+left || a.status != 503 || a.header.Get(made) != fmt.Sprint(left) {
					t.Errorf("%d left: %d attempts, and then %d with %v", left, got, a.status, a.header)
				}
				if a.header.Get("X-Should-Retry") != "" {
					t.Errorf("%d left: what is not final asks not to be tried again: %v", left, a.header)
				}
			}
			for _, req := range leaf.seen() {
				if got := field(req, allowance); got != `0;owner="edge"` ||
					strings.Count(strings.ToLower(req), strings.ToLower(allowance)) != 1 {
					t.Errorf("the service got %q", req)
				}
			}
			p.holds(0, 0, 0)
		})
	}
}

// trees is what /gates tells of the table: joined, noRoom, ended.
func (p *pair) trees() [3]int {
	var page struct {
		Trees struct{ Joined, NoRoom, Ended, Names int } `json:"callTrees"`
	}
	if err := json.Unmarshal([]byte(p.adminGet("/gates")), &page); err != nil {
		p.t.Fatal(err)
	}
	if t := page.Trees; t.Joined+t.Ended == 0 && t.Names > 0 {
		p.t.Errorf("%d names of nobody", t.Names)
	}
	return [3]int{page.Trees.Joined, page.Trees.NoRoom, page.Trees.Ended}
}

// holds waits until the table is as it should be: a client has its answer a moment before.
func (p *pair) holds(joined, noRoom, ended int) {
	p.t.Helper()
	want := [3]int{joined, noRoom, ended}
	eventually(p.t, fmt.Sprint("the table holds ", want), func() bool { return p.trees() == want })
}

func TestTheProgramIsToldTheAllowanceAndAnIdOfItsRequest(t *testing.T) {
	p := newPair(t, func(_ *pair, w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%q", r.Header.Values(allowance))
	}, "http://127.0.0.1:1", countOnly)
	form := regexp.MustCompile(`^\["([0-9]+);owner=\\"(.*)\\";call=\\"[0-9a-f]{16}\\""\]$`)
	ids := map[string]bool{}
	for sent, want := range map[string][2]string{
		`2;owner="edge"`:               {"2", "edge"},
		`2;owner="edge";call="00"`:     {"2", "edge"},
		`99999;owner="edge";x=?1`:      {"1000", "edge"},
		`5, 1`:                         {},
		`-1`:                           {},
		`x`:                            {},
		``:                             {},
		`3;owner="a\"b"`:               {"3", `a\\\"b`},
		`7;owner="` + `;call=` + `";y`: {"7", ";call="},
	} {
		a := p.ask(allowance + ": " + sent)
		m := form.FindStringSubmatch(a.content)
		switch {
		case want[0] == "" && a.content != "[]" || want[0] != "" && (m == nil || m[1] != want[0] || m[2] != want[1]):
			t.Errorf("%q became %s", sent, a.content)
		case want[0] != "" && a.header.Get(made) != "0" || want[0] == "" && a.header.Get(made) != "":
			t.Errorf("%q was answered with %q", sent, a.header)
		}
		ids[a.content] = true
	}
	if a := p.ask(allowance+": 4", "abate_retry_allowance: 3", allowance+": x"); !strings.HasPrefix(
		a.content, `["3;call=`) {
		t.Errorf("of several the least should count: %s", a.content)
	}
	again := p.ask(allowance + `: 2;owner="edge"`).content
	if ids[again] {
		t.Errorf("an id came twice: %s", again)
	}
}

func TestCallsMadeAtOnceShareTheAllowance(t *testing.T) {
	for _, name := range []string{allowance, "traceparent"} {
		leaf := inTurn(t, status(503))
		p := newPair(t, func(p *pair, w http.ResponseWriter, r *http.Request) {
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() { p.call(r, carry(r, name)) })
			}
			all.Wait()
			w.WriteHeader(503)
		}, leaf.url, countOnly)
		for range 5 {
			before := len(leaf.seen())
			a := p.ask(allowance+": 2", "traceparent: "+traceparent)
			if got := len(leaf.seen()) - before; got != 7 || !strings.HasPrefix(a.header.Get(made)+";", "2;") {
				t.Errorf("with %s: %d attempts for 5 calls with 2 more between them; the caller was told %v", name, got, a.header)
			}
		}
	}
}

func TestWhatIsFinalIsSaidInTheWordsOfTheCaller(t *testing.T) {
	leaf := inTurn(t, status(503))
	p := newPair(t, forwards(allowance, "traceparent"), leaf.url, countOnly)
	for _, tt := range []struct {
		fields                 []string
		made, retry, ratelimit string
	}{
		{[]string{allowance + ": 9"}, "2;final", "false", ""},
		{[]string{allowance + ": 9", "X-Envoy-Attempt-Count: 1"}, "2;final", "false", "true"},
		{[]string{"X-Envoy-Attempt-Count: 1", "traceparent: " + traceparent}, "", "false", "true"},
		{[]string{"Grpc-Previous-Rpc-Attempts: 1", "traceparent: " + traceparent}, "", "false", ""},
		{[]string{"X-Envoy-Attempt-Count: 1"}, "", "", ""},    // nothing joins its calls
		{[]string{"traceparent: " + traceparent}, "", "", ""}, // nobody repeats it
		{[]string{allowance + ": 2", "X-Envoy-Attempt-Count: 2"}, "2", "", ""},
	} {
		before := len(leaf.seen())
		a := p.ask(tt.fields...)
		got := [3]string{a.header.Get(made), a.header.Get("X-Should-Retry"), a.header.Get("X-Envoy-Ratelimited")}
		if want := [3]string{tt.made, tt.retry, tt.ratelimit}; got != want || len(leaf.seen())-before != 3 {
			t.Errorf("%q: %q after %d attempts, want %q", tt.fields, got, len(leaf.seen())-before, want)
		}
	}
}

// A call that has nothing left says so, whatever its tree has come to meanwhile.
func TestACallWithNothingLeftIsNotTheLastWord(t *testing.T) {
	leaf := inTurn(t, status(503, made+": 0;final"), status(503))
	p := newPair(t, func(p *pair, w http.ResponseWriter, r *http.Request) {
		for _, want := range [][3]string{{"0;final", "false", ""}, {"0", "", "tree-exhausted"}} {
			resp := p.call(r, carry(r, allowance))
			if got := [3]string{
				resp.Header.Get(made), resp.Header.Get("X-Should-Retry"), resp.Header.Get("Abate-Reason"),
			}; got != want {
				t.Errorf("the program was told %q, want %q", got, want)
			}
		}
		w.WriteHeader(503)
	}, leaf.url, countOnly)
	if a := p.ask(allowance + ": 0"); a.header.Get(made) != "0;final" {
		t.Errorf("%v", a.header)
	}
}

func TestFinalStandsOnFailuresOnly(t *testing.T) {
	leaf := inTurn(t, status(503))
	p := newPair(t, func(p *pair, w http.ResponseWriter, r *http.Request) {
		p.call(r, carry(r, allowance))
		var code int
		fmt.Sscan(r.Header.Get("X-Status"), &code)
		w.WriteHeader(code)
	}, leaf.url, countOnly)
	for code, final := range map[int]bool{200: false, 404: false, 408: true, 429: true, 500: true, 503: true} {
		a := p.ask(allowance+": 9", fmt.Sprint("X-Status: ", code), "X-Envoy-Attempt-Count: 1")
		want := "2"
		if final {
			want = "2;final"
		}
		if a.header.Get(made) != want || (a.header.Get("X-Should-Retry") != "") != final ||
			(a.header.Get("X-Envoy-Ratelimited") != "") != final {
			t.Errorf("%d: %v", code, a.header)
		}
	}
}

func TestWhatTheProgramSaysOfItsOwnAttemptsCountsToo(t *testing.T) {
	p := newPair(t, func(_ *pair, w http.ResponseWriter, r *http.Request) {
		w.Header().Set(made, r.Header.Get("X-Says"))
		w.WriteHeader(503)
	}, "http://127.0.0.1:1", countOnly)
	for says, want := range map[string]string{"1": "1", "2;final": "2;final", "": "0", "x": "0"} {
		a := p.ask(allowance+": 2", "X-Says: "+says)
		if got := a.header.Values(made); len(got) != 1 || got[0] != want ||
			(a.header.Get("X-Should-Retry") != "") != strings.Contains(want, "final") {
			t.Errorf("%q became %q: %v", says, got, a.header)
		}
	}
}

func TestStrangersHaveNoAllowance(t *testing.T) {
	leaf := inTurn(t, status(503))
	p := newPair(t, forwards(allowance, "traceparent"), leaf.url, countOnly)
	p.write(strings.Replace(pairPolicy(p.app, leaf.url, countOnly), trustLoop, "trustedPeers: [192.0.2.1]", 1))
	if err := p.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"0", "1000"} {
		before := len(leaf.seen())
		a := p.ask(allowance+": "+value, "traceparent: "+traceparent, "X-Envoy-Attempt-Count: 1")
		if got := len(leaf.seen()) - before; got != 3 || a.header.Get(made) != "" ||
			a.header.Get("X-Envoy-Ratelimited") != "" {
			t.Errorf("a stranger's %s made it %d attempts: %v", value, got, a.header)
		}
	}
}

// TestNobodyCanRaiseWhatThePolicyAllows: neither a peer nor a program.
func TestNobodyCanRaiseWhatThePolicyAllows(t *testing.T) {
	leaf := inTurn(t, status(503))
	for _, forged := range []string{"1000", `1000;owner="me"`, `1000;call="0000000000000001"`,
		`1000;call="xxxxxxxxxxxxxxxx"`, "99999999999", "-5", "1e9", ""} {
		p := newPair(t, func(p *pair, w http.ResponseWriter, r *http.Request) {
			p.call(r, map[string]string{allowance: forged})
		}, leaf.url, countOnly)
		before := len(leaf.seen())
		p.ask(allowance + ": " + forged)
		if got := len(leaf.seen()) - before; got > 3 {
			t.Errorf("%q made it %d attempts", forged, got)
		}
	}
}

func TestCallsBehindAnAnswerDoNotUseWhatTheCallerWasPromised(t *testing.T) {
	leaf := inTurn(t, status(503))
	var fields map[string]string
	under, ended := make(chan struct{}), make(chan int, 1)
	p := newPair(t, func(p *pair, w http.ResponseWriter, r *http.Request) {
		fields = carry(r, allowance, "traceparent")
		// The call goes on when the answer has gone.
		go func() {
			<-under
			req, _ := http.NewRequest("GET", "http://"+p.addr+"/next", nil)
			for name, value := range fields {
				req.Header.Set(name, value)
			}
			resp, err := p.http.Do(req)
			if err != nil {
				ended <- 0
				return
			}
			resp.Body.Close()
			ended <- resp.StatusCode
		}()
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(200)
		http.NewResponseController(w).Flush()
		<-ended
	}, leaf.url, countOnly)
	c := dial(t, p.in)
	c.send("GET / HTTP/1.1\r\nHost: s\r\ntraceparent: " + traceparent + "\r\n" + allowance + ": 2\r\n\r\n")
	resp, err := http.ReadResponse(c.in, &http.Request{Method: "GET"})
	if err != nil || resp.Header.Get(made) != "0" {
		t.Fatalf("%v %v", resp, err)
	}
	close(under)
	io.Copy(io.Discard, resp.Body)
	if got := len(leaf.seen()); got != 1 {
		t.Errorf("%d attempts after the caller was told that none was made", got)
	}
}

// A program that does not notice that nobody waits any more goes on making calls.
func TestCallsOfARequestThatWasGivenUpAreStillKnown(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	t.Parallel() // it waits
	leaf := inTurn(t, status(503))
	left := make(chan map[string]string, 1)
	hold := make(chan struct{})
	p := newPair(t, func(p *pair, w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Quick") != "" {
			w.WriteHeader(p.call(r, carry(r, "traceparent")).StatusCode)
			return
		}
		left <- carry(r, allowance, "traceparent")
		<-hold
	}, leaf.url, countOnly)
	t.Cleanup(func() { close(hold) })
	a := p.ask(allowance+": 2", "traceparent: "+traceparent, "X-Envoy-Expected-Rq-Timeout-Ms: 2000")
	if a.status != 504 || a.header.Get(made) != "0" {
		t.Fatalf("%+v", a)
	}
	p.holds(0, 0, 1)
	fields := <-left
	for _, name := range []string{allowance, "traceparent"} {
		before := len(leaf.seen())
		req := newRequest(t, "GET", "http://"+p.addr+"/late", nil)
		resp := p.call(req, map[string]string{name: fields[name]})
		if got := len(leaf.seen()) - before; got != 1 || resp.StatusCode != 503 {
			t.Errorf("a late call with %s made %d attempts", name, got)
		}
	}
	before := len(leaf.seen())
	a = p.ask(allowance+": 1", "traceparent: "+traceparent, "X-Quick: 1")
	if got := len(leaf.seen()) - before; got != 2 || a.header.Get(made) != "1" {
		t.Errorf("the next try of the same trace made %d attempts: %v", got, a.header)
	}
	p.holds(0, 0, 1)
}

func TestRequestsOfOneTraceShareTheLeastAllowance(t *testing.T) {
	leaf := inTurn(t, status(503))
	var here sync.WaitGroup
	here.Add(2)
	p := newPair(t, func(p *pair, w http.ResponseWriter, r *http.Request) {
		here.Done()
		here.Wait()
		w.WriteHeader(p.call(r, carry(r, "traceparent")).StatusCode)
	}, leaf.url, countOnly)
	var all sync.WaitGroup
	for _, left := range []string{"9", "1"} {
		all.Go(func() { p.ask(allowance+": "+left, "traceparent: "+traceparent) })
	}
	all.Wait()
	if got := len(leaf.seen()); got != 3 {
		t.Errorf("%d attempts for 2 calls with 1 more between them", got)
	}
	p.holds(0, 0, 0)
}

func TestAFullTableRepeatsNothing(t *testing.T) {
	leaf := inTurn(t, status(503))
	came, hold := make(chan string, 2), make(chan struct{})
	p := newPair(t, func(p *pair, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			came <- r.Header.Get(allowance)
			<-hold
		}
		var name string
		fmt.Sscan(r.Header.Get("X-Forward"), &name)
		w.WriteHeader(p.call(r, carry(r, name)).StatusCode)
	}, leaf.url, countOnly, func(c *proxy.Config) { c.CallTrees = 1 })
	first := dial(t, p.in).send("GET /hold HTTP/1.1\r\nHost: s\r\n" + allowance + ": 2\r\nX-Forward: " + allowance +
		"\r\n\r\n")
	if got := <-came; !strings.Contains(got, "call=") {
		t.Fatalf("the first was told %q", got)
	}
	for _, name := range []string{allowance, "traceparent", "nothing"} {
		p.holds(1, 0, 0)
		before := len(leaf.seen())
		a := p.ask(allowance+`: 2;owner="edge"`, "traceparent: "+traceparent, "X-Forward: "+name)
		if got := len(leaf.seen()) - before; got != 1 || a.header.Get(made) != "0" {
			t.Errorf("there was no room, and with %s %d attempts: %v", name, got, a.header)
		}
	}
	before := len(leaf.seen())
	close(hold)
	if a := first.answer(); a.header.Get(made) != "2" || len(leaf.seen())-before != 3 {
		t.Errorf("the one that had room made %d attempts: %v", len(leaf.seen())-before, a.header)
	}
	p.holds(0, 0, 0)
	before = len(leaf.seen())
	if p.ask(allowance+": 2", "X-Forward: "+allowance); len(leaf.seen())-before != 3 {
		t.Errorf("with room again: %d attempts", len(leaf.seen())-before)
	}
	p.holds(0, 0, 0)
}

func TestATraceThatNeverEndsIsNotOneRequest(t *testing.T) {
	leaf := inTurn(t, status(503))
	p := newPair(t, func(p *pair, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/x" {
			return
		}
		w.WriteHeader(p.call(r, carry(r, "traceparent")).StatusCode)
	}, leaf.url, countOnly)
	// One holds the trace from the beginning to the end.
	holds := dial(t, p.in).send("POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 100000\r\ntraceparent: " + traceparent +
		"\r\n" + allowance + ": 2\r\n\r\n")
	p.holds(1, 0, 0)
	for range 120 {
		p.ask(allowance+": 2", "traceparent: "+traceparent)
	}
	if got := len(leaf.seen()) - 120; got < 4 || got > 60 {
		t.Errorf("%d more attempts for 120 requests", got)
	}
	holds.Close()
	eventually(t, "it has left", func() bool { return p.trees()[0] == 0 })
}

func TestRefusalsOfAGateSayThatNothingWasMade(t *testing.T) {
	up := mirror(t)
	r := protect(t, guardOf(up.url, trustLoop, noShed, "rateLimit: {limit: 1/1h, burst: 1}"))
	c := r.dial()
	for _, tt := range []struct {
		fields string
		status int
		made   []string
	}{
		{"", 200, nil},
		{"", 429, nil},
		{allowance + ": 2\r\n", 429, []string{"0"}},
		{allowance + ": 2\r\nX-Envoy-Expected-Rq-Timeout-Ms: 0\r\n", 504, []string{"0"}},
	} {
		a := c.send("GET / HTTP/1.1\r\nHost: s\r\n" + tt.fields + "\r\n").answer()
		if a.status != tt.status || !slices.Equal(a.header[http.CanonicalHeaderKey(made)], tt.made) {
			t.Errorf("%q: %d %v", tt.fields, a.status, a.header)
		}
	}
	never := protect(t, guardOf(up.url, trustLoop, noShed, "rateLimit: {limit: 0/1h}"))
	a := never.dial().send("GET / HTTP/1.1\r\nHost: s\r\n" + allowance + ": 2\r\n\r\n").answer()
	if a.status != 429 || a.header.Get(made) != "0;final" || len(a.header["X-Should-Retry"]) != 1 {
		t.Errorf("%d %v", a.status, a.header)
	}
}

func TestAPolicyThatChangesUnderARequestLosesNothing(t *testing.T) {
	leaf := inTurn(t, status(503))
	came, hold := make(chan struct{}), make(chan struct{})
	p := newPair(t, func(p *pair, w http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		<-hold
		w.WriteHeader(p.call(r, carry(r, allowance)).StatusCode)
	}, leaf.url, countOnly)
	keys := slices.Clone(countOnly)
	for i, change := range []string{"maxRetries: 5", "maxRetries: 1", "maxRetries: 2\n    retryOwner: edge"} {
		c := dial(t, p.in).send("GET / HTTP/1.1\r\nHost: s\r\n" + allowance + ": 2\r\n\r\n")
		<-came
		keys[0] = change
		p.write(pairPolicy(p.app, leaf.url, keys))
		if err := p.proxy.Reload(); err != nil {
			t.Fatal(err)
		}
		before := len(leaf.seen())
		hold <- struct{}{}
		a := c.answer()
		extra := []int{2, 1, 2}[i]
		if got := len(leaf.seen()) - before - 1; got != extra || !strings.HasPrefix(a.header.Get(made), fmt.Sprint(extra)) {
			t.Errorf("%s: %d more attempts, and the caller was told %v", change, got, a.header)
		}
	}
	if got := p.owner(); got != "edge" {
		t.Errorf("/guards shows %q", got)
	}
}

func (p *pair) owner() string {
	var page struct {
		Services []struct{ RetryOwner string }
	}
	if err := json.Unmarshal([]byte(p.adminGet("/guards")), &page); err != nil || len(page.Services) == 0 {
		p.t.Fatal(err)
	}
	return page.Services[0].RetryOwner
}
