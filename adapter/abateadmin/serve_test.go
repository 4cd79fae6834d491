package abateadmin_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateadmin"
	"github.com/abate-go/abate/core"
)

func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if left := goroutinesLeft(); code == 0 && left != "" {
		fmt.Fprintln(os.Stderr, "goroutines left after all tests:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// goroutinesLeft are the stacks of goroutines that serve or read, once they have had time to end.
func goroutinesLeft() string {
	var stacks string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); runtime.Gosched() {
		buf := make([]byte, 1<<20)
		stacks = string(buf[:runtime.Stack(buf, true)])
		if !strings.Contains(stacks, "abateadmin.(*Page)") && !strings.Contains(stacks, "net/http.(*conn).serve") {
			return ""
		}
	}
	return stacks
}

// seenDetail is what GET /guard tells, as far as tests look at it.
type seenDetail struct {
	At       int64
	Row      abateadmin.Row
	Strip    string
	Series   struct{ First, Extra, Good, Bad, Refused []int }
	Attempts []struct {
		Name         string
		Minute, Five int
	}
	Refusals []struct {
		Name         string
		Minute, Five int
	}
	Errors []struct{ Class, Text string }
	Events []struct{ Text string }
	Facts  []struct{ Name, Value, About string }
	Policy string
}

func (s *stage) detail(name string) (d seenDetail) {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("GET", "/guard?name="+url.QueryEscape(name), nil))
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil || w.Code != 200 {
		s.t.Fatalf("%d %v: %s", w.Code, err, w.Body)
	}
	return d
}

func (s *stage) state() (snapshot abateadmin.Snapshot) {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("GET", "/state", nil))
	in := json.NewDecoder(w.Body)
	in.DisallowUnknownFields()
	if err := in.Decode(&snapshot); err != nil || w.Code != 200 {
		s.t.Fatalf("%d %v", w.Code, err)
	}
	return snapshot
}

const secret = "Bearer sesame"

// locked is a page that wants a token of those who change something.
func locked(t testing.TB, log io.Writer) *stage {
	return newStage(t, abateadmin.Config{
		Known: func(r *http.Request) bool { return r.Header.Get("Authorization") == secret },
		Who:   func(*http.Request) string { return "alice" },
		How:   "bring a token",
		Log:   slog.New(slog.NewTextHandler(log, nil)),
	})
}

// order is a POST of the page itself.
func order(path, body string) *http.Request {
	r := httptest.NewRequest("POST", path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Abate-Admin", "1")
	r.Header.Set("Authorization", secret)
	return r
}

func (s *stage) do(r *http.Request) (status int, body string) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func call(g *abate.Guard) error {
	_, err := abate.Do(context.Background(), g, func(context.Context) (int, error) { return 0, nil })
	return err
}

func TestWhoIsNotKnownChangesNothing(t *testing.T) {
	const force = `{"guard": "checkout", "override": "forcedOpen"}`
	for _, c := range []struct {
		name   string
		change func(r *http.Request) *http.Request
		status int
		says   string
	}{
		{"no token", func(r *http.Request) *http.Request { r.Header.Del("Authorization"); return r }, 401, "bring a token"},
		{"another token", func(r *http.Request) *http.Request {
			r.Header.Set("Authorization", "Bearer x")
			return r
		}, 401, "nothing was changed"},
		{"no header of ours", func(r *http.Request) *http.Request {
			r.Header.Del("X-Abate-Admin")
			return r
		}, 403, "X-Abate-Admin is missing"},
		{"a form's type", func(r *http.Request) *http.Request {
			r.Header.Set("Content-Type", "text/plain")
			return r
		}, 415, "application/json"},
		{"another origin", func(r *http.Request) *http.Request {
			r.Header.Set("Origin", "https://evil.test")
			return r
		}, 403, "another web site"},
		{"another site", func(r *http.Request) *http.Request {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			return r
		}, 403, "another web site"},
		{"a neighbour site", func(r *http.Request) *http.Request {
			r.Header.Set("Sec-Fetch-Site", "same-site")
			return r
		}, 403, "another web site"},
		{"GET", func(r *http.Request) *http.Request { r.Method = "GET"; return r }, 405, ""},
		{"HEAD", func(r *http.Request) *http.Request { r.Method = "HEAD"; return r }, 405, ""},
		{"GET with a query", func(*http.Request) *http.Request {
			return httptest.NewRequest("GET", "/override?guard=checkout&override=forcedOpen", nil)
		}, 405, ""},
		{"PUT", func(r *http.Request) *http.Request { r.Method = "PUT"; return r }, 405, ""},
	} {
		s := locked(t, io.Discard)
		g := s.guard("checkout", abate.DefaultPolicy())
		status, body := s.do(c.change(order("/override", force)))
		if status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s: %d %s", c.name, status, body)
		}
		if err := call(g); err != nil || g.State().Override != "" || len(s.state().Acts) != 0 {
			t.Errorf("%s: it was done all the same: %v", c.name, err)
		}
	}
	s := newStage(t, abateadmin.Config{How: "say --admin-token-file"})
	g := s.guard("checkout", abate.DefaultPolicy())
	if status, body := s.do(order("/override", force)); status != 403 ||
		!strings.Contains(body, "say --admin-token-file") || g.State().Override != "" {
		t.Errorf("a page that knows nobody: %d %s", status, body)
	}
}

func TestAnOverrideRejectsCallsAndIsTakenBack(t *testing.T) {
	var log bytes.Buffer
	s := locked(t, &log)
	g, twin, other := s.guard("checkout", abate.DefaultPolicy()), s.guard("checkout", abate.Policy{}),
		s.guard("other", abate.DefaultPolicy())
	status, body := s.do(order("/override", `{"guard": "checkout", "override": "forcedOpen"}`))
	if status != 200 || !strings.Contains(body, "checkout: circuit forced open") {
		t.Fatalf("%d %s", status, body)
	}
	for _, one := range []*abate.Guard{g, twin} {
		if err := call(one); !errors.Is(err, abate.ErrCircuitOpen) {
			t.Errorf("a call of it: %v", err)
		}
	}
	if err := call(other); err != nil {
		t.Errorf("a call of another: %v", err)
	}
	now := s.state()
	r := now.Rows[0]
	if r.Override != abate.OverrideForcedOpen || r.By != "alice" || r.HandAt == 0 || r.HandAt > now.At ||
		now.At-r.HandAt > 60_000 || r.Level != abateadmin.Trouble {
		t.Errorf("%+v at %d", r, now.At)
	}
	if len(now.Acts) != 1 || now.Acts[0].Who != "alice" || now.Acts[0].Text != "checkout: circuit forced open" {
		t.Errorf("acts: %+v", now.Acts)
	}
	if text := log.String(); !strings.Contains(text, `done="checkout: circuit forced open" by=alice`) {
		t.Errorf("log: %s", text)
	}
	if err := g.Update(abate.DefaultPolicy()); err != nil || !errors.Is(call(g), abate.ErrCircuitOpen) {
		t.Errorf("a reload takes it back: %v", err)
	}
	if status, body := s.do(order("/override", `{"guard": "checkout", "override": ""}`)); status != 200 || call(g) != nil {
		t.Errorf("taken back: %d %s", status, body)
	}
	if r := s.state().Rows[0]; r.Override != "" || r.HandAt != 0 {
		t.Errorf("%+v", r)
	}
	if d := s.detail("checkout"); len(d.Events) == 0 || !strings.Contains(fmt.Sprint(d.Events), "forcedOpen by hand") {
		t.Errorf("events: %+v", d.Events)
	}
}

// TestAGuardThatWasNotAdjustedTellsWhenItWasOverridden, if it was from the page; what the program did the page cannot
// date.
func TestAGuardThatWasNotAdjustedTellsWhenItWasOverridden(t *testing.T) {
	s := locked(t, io.Discard)
	for _, name := range []string{"page", "program"} {
		g, err := abate.New(name, abate.DefaultPolicy())
		if err != nil {
			t.Fatal(err)
		}
		s.Add(g)
		if name == "program" {
			if err := g.Override(abate.OverrideShadow); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := s.state().At
	if status, body := s.do(order("/override", `{"guard": "page", "override": "shadow"}`)); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	rows := s.state().Rows
	if r := rows[0]; r.Override != abate.OverrideShadow || r.HandAt < before || r.By != "alice" {
		t.Errorf("%+v before %d", r, before)
	}
	if r := rows[1]; r.Override != abate.OverrideShadow || r.HandAt != 0 || r.By != "" {
		t.Errorf("%+v", r)
	}
}

func TestBadOrdersSayWhatIsWrong(t *testing.T) {
	s := locked(t, io.Discard)
	g := s.guard("checkout", abate.DefaultPolicy())
	for body, want := range map[string]string{
		``: "not understood", `x`: "not understood", `[]`: "not understood", `{}`: "both needed", `null`: "both needed",
		`{"guard": "checkout"}`: "both needed", `{"override": "shadow"}`: "both needed",
		`{"guard": "", "override": "shadow"}`:                                  "both needed",
		`{"guard": "checkout", "override": "shadow", "x": 1}`:                  "not understood",
		`{"guard": "checkout", "override": "shadow"} {}`:                       "something behind",
		`{"guard": "checkout", "override": "open"}`:                            "forcedOpen, disabled, shadow",
		`{"guard": "checkout", "override": 1}`:                                 "not understood",
		`{"guard": "nobody", "override": "shadow"}`:                            `there is no guard \"nobody\"`,
		`{"guard": "` + strings.Repeat("x", 5000) + `", "override": "shadow"}`: "not understood",
	} {
		status, got := s.do(order("/override", body))
		if status < 400 || status > 404 || !strings.Contains(got, want) || g.State().Override != "" {
			t.Errorf("%.60s: %d %s", body, status, got)
		}
	}
	if status, body := s.do(order("/reload", `{}`)); status != 404 || !strings.Contains(body, "no policy file") {
		t.Errorf("reload: %d %s", status, body)
	}
}

func TestAReloadThatFailsSaysWhere(t *testing.T) {
	fails := errors.New("policy.yaml:3:7: error: unknown key maxRetrys; did you mean maxRetries?")
	problem := fails
	s := newStage(t, abateadmin.Config{
		Known: func(*http.Request) bool { return true }, Reload: func() error { return problem },
		File: func() abateadmin.File {
			return abateadmin.File{Path: "policy.yaml", Loaded: time.Unix(5, 0), Err: problem}
		},
	})
	status, body := s.do(order("/reload", `{}`))
	if status != 422 || !strings.Contains(body, "policy.yaml:3:7") {
		t.Errorf("%d %s", status, body)
	}
	now := s.state()
	if now.Problem != fails.Error() || now.Path != "policy.yaml" || now.Loaded != 5000 || !now.Reloads || !now.May ||
		len(now.Acts) != 1 || now.Acts[0].Problem != fails.Error() {
		t.Errorf("%+v", now)
	}
	problem = nil
	if status, body := s.do(order("/reload", `{}`)); status != 200 || s.state().Problem != "" {
		t.Errorf("fixed: %d %s", status, body)
	}
}

func TestThePageItselfHoldsNoDataAndMayBeSeenByEverybody(t *testing.T) {
	s := newStage(t, abateadmin.Config{Title: "shop", Sees: func(r *http.Request) bool {
		return r.Header.Get("Authorization") == secret
	}, How: "bring a token"})
	s.guard("payments", abate.DefaultPolicy())
	for _, path := range []string{"/", "/page.css", "/page.js"} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		policy := w.Header().Get("Content-Security-Policy")
		if w.Code != 200 || strings.Contains(w.Body.String(), "payments") ||
			w.Header().Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(policy, "frame-ancestors 'none'") ||
			!strings.Contains(policy, "script-src 'self';") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
	for _, path := range []string{"/state", "/events", "/guard?name=payments", "/gate?name=payments"} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != 401 || strings.Contains(w.Body.String(), "payments") || w.Header().Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s without a token: %d %s", path, w.Code, w.Body)
		}
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Authorization", secret)
		if status, _ := s.do(r); status != 403 {
			t.Errorf("%s from another site: %d", path, status)
		}
	}
	for _, path := range []string{"/x", "/guards", "/web/dom.js"} {
		if status, _ := s.do(httptest.NewRequest("GET", path, nil)); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
	if weight := len(abateadmin.HTML) + len(abateadmin.Style) + len(abateadmin.Script); weight > 200<<10 {
		t.Errorf("the page weighs %d bytes", weight)
	} else {
		t.Logf("the page weighs %d bytes", weight)
	}
	if bytes.Contains(abateadmin.HTML, []byte(" on")) && bytes.Contains(abateadmin.HTML, []byte("onclick")) ||
		bytes.Contains(abateadmin.HTML, []byte("style=")) {
		t.Error("the page has handlers or styles of its own, which its policy forbids")
	}
}

func TestOnLoopbackOnlyNamesOfLoopbackAreAnswered(t *testing.T) {
	s := newStage(t, abateadmin.Config{Hosts: []string{"my-alias"}})
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:15000": true, "localhost:1": true, "LOCALHOST": true, "[::1]:80": true, "::1": true,
		"10.1.2.3": true, "my-alias:80": true, "localhost.": true,
		"evil.test": false, "localhost.evil.test:80": false, "": false, "127.0.0.1.evil.test": false, "my-alias.evil": false,
		"[": false, "0x7f.1": false,
	} {
		r := httptest.NewRequest("GET", "/state", nil)
		r.Host = host
		at := func(ip string) *http.Request {
			return r.WithContext(
				context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.ParseIP(ip), Port: 80}))
		}
		for _, ip := range []string{"127.0.0.1", "::1", "127.9.9.9"} {
			if status, body := s.do(at(ip)); (status == 200) != want || !want && status != 421 {
				t.Errorf("%q on %s: %d %s", host, ip, status, body)
			}
		}
		if status, _ := s.do(at("10.0.0.1")); status != 200 {
			t.Errorf("%q where it cannot be known: %d", host, status)
		}
	}
}

func TestItMayStandUnderAnyPath(t *testing.T) {
	s := newStage(t, abateadmin.Config{})
	s.guard("payments", abate.DefaultPolicy())
	mux := http.NewServeMux()
	mux.Handle("/debug/abate/", http.StripPrefix("/debug/abate", s))
	for path, want := range map[string]string{"/debug/abate/": `href="page.css"`, "/debug/abate/page.js": "use strict",
		"/debug/abate/state": "payments", "/debug/abate/guard?name=payments": "series"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %.200s", path, w.Code, w.Body)
		}
	}
	for _, text := range []string{string(abateadmin.HTML), string(abateadmin.Script)} {
		for _, bad := range []string{`href="/`, `src="/`, `fetch('/`, `ask('/`} {
			if strings.Contains(text, bad) {
				t.Errorf("%s is not relative", bad)
			}
		}
	}
}

func TestDetailsTellWhy(t *testing.T) {
	s := newStage(t, abateadmin.Config{Format: func(name string, p *abate.Policy) []byte {
		return fmt.Appendf(nil, "%s retries %d", name, p.MaxRetries)
	}})
	p := abate.DefaultPolicy()
	p.Bulkhead.MaxConcurrentCalls = 9
	s.guard("a", p)
	now := core.Now()
	s.calls("a", now-3*sec, 10, 500, 2)
	d := s.detail("a")
	if len(d.Series.First) != 300 || len(d.Strip) != 300 ||
		d.Policy != "# 10.0 retries and hedges could be sent now.\n# 0 of 9 permits are taken, and 0 calls wait for "+
			"one.\na retries 3" || d.Row.Name != "a" {
		t.Errorf("%+v", d)
	}
	sum := func(list []int) (n int) {
		for _, k := range list {
			n += k
		}
		return n
	}
	if sum(d.Series.First) != 10 || sum(d.Series.Extra) != 10 || sum(d.Series.Good) != 5 || sum(d.Series.Bad) != 5 {
		t.Errorf("series: %+v", d.Series)
	}
	if len(d.Errors) != 1 || d.Errors[0].Class != "failure" ||
		!strings.Contains(d.Errors[0].Text, "http://…@payments:8080/charge?…") {
		t.Errorf("errors: %+v", d.Errors)
	}
	if len(d.Refusals) != 1 || d.Refusals[0].Name != "attempts exhausted" || d.Refusals[0].Five != 5 ||
		d.Attempts[1].Name != "failure" || d.Attempts[1].Minute != 15 {
		t.Errorf("refusals %+v, attempts %+v", d.Refusals, d.Attempts)
	}
	if text := fmt.Sprint(d.Facts); !strings.Contains(text, "{Bulkhead 0 of 9 0 queued}") ||
		!strings.Contains(text, "Last back-off 120ms") {
		t.Errorf("facts: %s", text)
	}
	for _, path := range []string{"/guard", "/guard?name=b", "/gate?name=a", "/guard?name=%zz"} {
		if status, body := s.do(httptest.NewRequest("GET", path, nil)); status != 404 || !strings.Contains(body, "error") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// reader reads a stream.
type reader struct {
	t    *testing.T
	in   *bufio.Reader
	stop func()
}

func (s *stage) read(server *httptest.Server) *reader { return s.readAs(server.Client(), server.URL) }

func (s *stage) readAs(client *http.Client, address string) *reader {
	t := s.t.(*testing.T)
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	r, _ := http.NewRequestWithContext(ctx, "GET", address+"/events", nil)
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatal(resp.Status, resp.Header)
	}
	return &reader{t, bufio.NewReader(resp.Body), stop}
}

// event is either kind of event.
type event struct {
	At     int64
	Full   bool
	Rows   []abateadmin.Row
	Gone   []abateadmin.Name
	Sparks []abateadmin.Spark
	Head   *abateadmin.Snapshot
}

func (r *reader) next() (e event, ok bool) {
	line, err := r.in.ReadString('\n')
	if err != nil {
		return e, false
	}
	if _, err := r.in.ReadString('\n'); err != nil {
		return e, false
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &e); err != nil {
		r.t.Fatalf("%v: %s", err, line)
	}
	return e, true
}

// until reads on to an event that fits.
func (r *reader) until(fits func(event) bool) event {
	r.t.Helper()
	for range 1000 {
		if e, ok := r.next(); !ok {
			r.t.Fatal("the stream has ended")
		} else if fits(e) {
			return e
		}
	}
	r.t.Fatal("it did not come")
	return event{}
}

func TestAStreamTellsEverythingOnceAndThenWhatHasChanged(t *testing.T) {
	s := newStage(t, abateadmin.Config{Title: "shop", Known: func(*http.Request) bool { return true }})
	s.SetTick(5 * time.Millisecond)
	a := s.guard("a", abate.DefaultPolicy())
	s.guard("b", abate.DefaultPolicy())
	s.calls("b", core.Now()-20*sec, 7, 0, 0)
	r := s.read(s.serve())
	first, _ := r.next()
	if !first.Full || len(first.Rows) != 2 || len(first.Sparks) != 1 || first.Sparks[0].Name.Name != "b" ||
		len(first.Sparks[0].Good) != 60 {
		t.Fatalf("%+v", first)
	}
	if e, _ := r.next(); e.Full || len(e.Rows) != 0 || e.Head != nil || e.At < first.At {
		t.Errorf("nothing has happened: %+v", e)
	}
	if err := a.Override(abate.OverrideShadow); err != nil {
		t.Fatal(err)
	}
	e := r.until(func(e event) bool { return len(e.Rows) > 0 })
	if len(e.Rows) != 1 || e.Rows[0].Name != "a" || e.Rows[0].Override != abate.OverrideShadow {
		t.Errorf("%+v", e)
	}
	s.Remove(a)
	if e := r.until(func(e event) bool { return len(e.Gone) > 0 }); e.Gone[0].Name != "a" || len(e.Rows) != 0 {
		t.Errorf("%+v", e)
	}
	if status, body := s.do(order("/override", `{"guard": "b", "override": "disabled"}`)); status != 200 {
		t.Fatal(body)
	}
	if e := r.until(func(e event) bool { return e.Head != nil }); len(e.Head.Acts) != 1 || e.Head.Title != "shop" {
		t.Errorf("%+v", e.Head)
	}
	s.Page.Begin("again")
	s.guard("b", abate.DefaultPolicy())
	if e := r.until(func(e event) bool { return e.Full }); len(e.Rows) > 1 || len(e.Sparks) != 0 {
		t.Errorf("nothing of what was before is of the run that begins: %+v", e)
	}
}

// TestAFrameOfAThousandGuardsIsAsLargeAsWhatHasChanged: the first has everything, and a quiet second costs next to
// nothing.
func TestAFrameOfAThousandGuardsIsAsLargeAsWhatHasChanged(t *testing.T) {
	s := newStage(t, abateadmin.Config{})
	s.SetTick(5 * time.Millisecond)
	now := core.Now()
	for i := range 1000 {
		name := "service-" + strconv.Itoa(i)
		s.guard(name, abate.DefaultPolicy())
		s.calls(name, now-40*sec, 3, 0, 0)
	}
	r := s.read(s.serve())
	size := func() int {
		line, err := r.in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		_, _ = r.in.ReadString('\n')
		return len(line)
	}
	if n := size(); n < 200<<10 || n > 800<<10 {
		t.Errorf("the first frame has %d bytes", n)
	}
	if n := size(); n > 64 {
		t.Errorf("a frame in which nothing happened has %d bytes", n)
	}
	if err := s.guards["service-7"].Override(abate.OverrideShadow); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if n := size(); n > 64 {
			if n > 640 {
				t.Errorf("a frame about one guard has %d bytes", n)
			}
			return
		}
	}
	t.Error("it was never told")
}

// pipes is a listener whose connections are pipes: under testing/synctest their time limits go by its clock.
type pipes chan net.Conn

func (p pipes) Close() error { close(p); return nil }
func (pipes) Addr() net.Addr { return &net.TCPAddr{} }
func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

// dial is the other side.
func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	mine, its := net.Pipe()
	p <- its
	return mine, nil
}

// TestAServersTimeLimitsDoNotCutAStream: they are for answers that have an end.
func TestAServersTimeLimitsDoNotCutAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := newStage(t, abateadmin.Config{}), make(pipes)
		s.SetTick(20 * time.Millisecond)
		server := &http.Server{Handler: s, WriteTimeout: 50 * time.Millisecond, ReadTimeout: 50 * time.Millisecond}
		go server.Serve(l)
		client := &http.Client{Transport: &http.Transport{DialContext: l.dial}}
		defer server.Close()
		defer client.CloseIdleConnections()
		defer s.Close()
		r, began := s.readAs(client, "http://page.test"), time.Now()
		for range 20 {
			if _, ok := r.next(); !ok {
				t.Fatal("the stream was cut")
			}
		}
		if took := time.Since(began); took < 300*time.Millisecond {
			t.Errorf("it took %v: the limits were not reached", took)
		}
	})
}

func TestAStreamEndsWhenItsReaderIsNoLongerKnownOrThePageIsClosed(t *testing.T) {
	var known atomic.Bool
	known.Store(true)
	s := newStage(t, abateadmin.Config{Sees: func(*http.Request) bool { return known.Load() }})
	s.SetTick(time.Millisecond)
	server := s.serve()
	r := s.read(server)
	r.next()
	known.Store(false)
	for ok := true; ok; _, ok = r.next() { //nolint:revive // until the stream ends
	}
	known.Store(true)
	r = s.read(server)
	r.next()
	s.Close()
	for ok := true; ok; _, ok = r.next() { //nolint:revive // until the stream ends
	}
}

func TestTooManyReadersAreTurnedAway(t *testing.T) {
	s := newStage(t, abateadmin.Config{})
	server := s.serve()
	readers := make([]*reader, abateadmin.MaxReaders)
	for i := range readers {
		readers[i] = s.read(server)
		readers[i].next()
	}
	resp, err := server.Client().Get(server.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("one more: %s", resp.Status)
	}
	readers[0].stop()
	for range 10_000 { // the place is free once the server has noticed
		resp, err := server.Client().Get(server.URL + "/state")
		if err == nil {
			resp.Body.Close()
		}
		ctx, stop := context.WithCancel(t.Context())
		r, _ := http.NewRequestWithContext(ctx, "GET", server.URL+"/events", nil)
		resp, err = server.Client().Do(r)
		stop()
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == 200 {
				return
			}
		}
	}
	t.Error("a place that was left is not free")
}

// stuck is a reader who takes nothing: a write to it ends at its deadline.
type stuck struct {
	*httptest.ResponseRecorder
	deadlines int
}

func (w *stuck) SetWriteDeadline(time.Time) error { w.deadlines++; return nil }
func (w *stuck) SetReadDeadline(time.Time) error  { return nil }
func (w *stuck) Write([]byte) (int, error)        { return 0, os.ErrDeadlineExceeded }

func TestAReaderWhoTakesNothingIsDropped(t *testing.T) {
	s := newStage(t, abateadmin.Config{})
	s.guard("a", abate.DefaultPolicy())
	w := &stuck{ResponseRecorder: httptest.NewRecorder()}
	s.ServeHTTP(w, httptest.NewRequest("GET", "/events", nil)) // and returns
	if w.deadlines != 1 {
		t.Errorf("a write has no deadline")
	}
}

func FuzzOrder(f *testing.F) {
	for _, seed := range []string{`{"guard": "a", "override": "shadow"}`, `{"guard": "a", "override": null}`,
		`{"Guard": 1}`, "", "\xff", `{"guard":"a","override":""}{}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		s := locked(t, io.Discard)
		g := s.guard("a", abate.DefaultPolicy())
		guard, override, err := abateadmin.ParseOrder(strings.NewReader(body))
		if err == nil && guard == "" {
			t.Errorf("%q is about no guard", body)
		}
		status, answer := s.do(order("/override", body))
		if !json.Valid([]byte(answer)) {
			t.Errorf("%q: %s", body, answer)
		}
		if len(body) > 4096 {
			return
		}
		if done := status == 200; done != (err == nil && guard == "a" &&
			(override == "" || override == "forcedOpen" || override == "disabled" || override == "shadow")) {
			t.Errorf("%q: %d, %v", body, status, err)
		}
		if status == 200 && g.State().Override != override || status != 200 && g.State().Override != "" {
			t.Errorf("%q: %d and %q in force", body, status, g.State().Override)
		}
	})
}

func FuzzQueryAndHost(f *testing.F) {
	f.Add("name=a", "127.0.0.1:80")
	f.Add("name=%00&name=b", "[::1")
	f.Add("%zz", "localhost:x")
	s := newStage(f, abateadmin.Config{})
	s.guard("a", abate.DefaultPolicy())
	f.Fuzz(func(t *testing.T, query, host string) {
		r := httptest.NewRequest("GET", "/guard", nil)
		r.URL.RawQuery, r.Host = query, host
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{
			IP: net.IPv4(127, 0, 0, 1), Port: 80,
		}))
		status, body := s.do(r)
		if status != 200 && status != 404 && status != 421 || !json.Valid([]byte(body)) {
			t.Errorf("%q: %d %s", query, status, body)
		}
		if s.Hosts(host) && strings.HasSuffix(host, ".test") {
			t.Errorf("%q is answered", host)
		}
	})
}
