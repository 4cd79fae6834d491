package abatehttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/serving"
	"github.com/abate-go/abate/policy/idempotency"
)

// once is a protection under which POST requests are done once for each key.
func once() inbound.Protection {
	return inbound.Protection{Idempotency: idempotency.Config{Methods: []string{"POST"}, MaxBody: 1000, MaxAnswer: 1000}}
}

func post(t *testing.T, url, key, body string) *http.Response {
	t.Helper()
	return send(t, newRequest(t, "POST", url, strings.NewReader(body)), "Idempotency-Key", key)
}

// details are what the gate was told about keys.
func (l *gateLog) details() (all []string) {
	for _, e := range l.all(inbound.KeyDecided) {
		all = append(all, e.Detail)
	}
	return all
}

// classes are what the gate was told about the service.
func (l *gateLog) classes() (all []abate.Class) {
	for _, e := range l.all(inbound.RequestDone) {
		all = append(all, e.Class)
	}
	return all
}

func TestARepeatGetsTheFirstAnswer(t *testing.T) {
	b, _, log := protect(t, once(), func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Location", "/orders/1")
		w.Header().Add("X-Many", "a")
		w.Header().Add("X-Many", "b")
		w.Header().Set("Set-Cookie", "session=1")
		w.Header().Set("Connection", "close")
		w.WriteHeader(201)
		w.Header().Set("X-Too-Late", "1")
		w.Write(body)
	})
	var answers []*http.Response
	for n := range 3 {
		resp := post(t, b.URL+"/orders?x=1", `"k 1"`, "order")
		if body := read(t, resp); resp.StatusCode != 201 || body != "order" || resp.Header.Get("Location") != "/orders/1" ||
			fmt.Sprint(resp.Header["X-Many"]) != "[a b]" || resp.Header.Get("X-Too-Late") != "" {
			t.Fatalf("try %d: status %d, header %v, body %q", n, resp.StatusCode, resp.Header, body)
		}
		answers = append(answers, resp)
	}
	if n := b.requests.Load(); n != 3 {
		t.Errorf("%d requests", n)
	}
	if got := fmt.Sprint(log.details()); got != "[run replay replay]" {
		t.Error(got)
	}
	if got := fmt.Sprint(log.classes()); got != "[success ignored ignored]" {
		t.Errorf("the gate has learned %s", got)
	}
	if answers[0].Header.Get("Idempotency-Replayed") != "" || answers[1].Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%v, %v", answers[0].Header, answers[1].Header)
	}
	if answers[0].Header.Get("Set-Cookie") == "" || answers[1].Header.Get("Set-Cookie") != "" {
		t.Error("cookies are for the first only")
	}
}

func TestOneKeyBelongsToOneRequestOfOneCaller(t *testing.T) {
	p := once()
	p.TrustedPeers = []string{"127.0.0.1"}
	b, _, log := protect(t, p, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201) })
	post(t, b.URL+"/a", "k", "order")
	if resp := post(t, b.URL+"/a", "k", "another"); resp.StatusCode != 422 ||
		problem(t, resp)["code"] != "idempotency-mismatch" {
		t.Errorf("another body: status %d", resp.StatusCode)
	}
	if resp := post(t, b.URL+"/b", "k", "order"); resp.StatusCode != 422 {
		t.Errorf("another path: status %d", resp.StatusCode)
	}
	resp := send(t, newRequest(t, "POST", b.URL+"/b", nil), "Idempotency-Key", "k", "Authorization", "Bearer another")
	if resp.StatusCode != 201 || resp.Header.Get("Idempotency-Replayed") != "" {
		t.Errorf("another caller: status %d", resp.StatusCode)
	}
	if !settles(func() bool { return fmt.Sprint(log.classes()) == "[success ignored ignored success]" }) {
		t.Errorf("the gate has learned %v", log.classes())
	}
}

func TestKeysAreReadWithCare(t *testing.T) {
	p := once()
	p.Idempotency.Required = true
	for name, c := range map[string]struct {
		method string
		keys   []string
		code   string // "" for none: it is done
	}{
		"bare":                 {"POST", []string{"k1"}, ""},
		"quoted":               {"POST", []string{`"k1"`}, ""},
		"other method":         {"PUT", nil, ""},
		"missing":              {"POST", nil, "idempotency-key-missing"},
		"empty":                {"POST", []string{""}, "idempotency-key-invalid"},
		"quoted, but empty":    {"POST", []string{`""`}, "idempotency-key-invalid"},
		"two":                  {"POST", []string{"k1", "k2"}, "idempotency-key-invalid"},
		"newline":              {"POST", []string{"k\n1"}, "idempotency-key-invalid"},
		"10 MB":                {"POST", []string{strings.Repeat("k", 10<<20)}, "idempotency-key-invalid"},
		"10 MB of escapes":     {"POST", []string{`"` + strings.Repeat(`\\`, 5<<20) + `"`}, "idempotency-key-invalid"},
		"hash tag":             {"POST", []string{"{a}b"}, ""},
		"not even UTF-8":       {"POST", []string{"\xff"}, "idempotency-key-invalid"},
		"other method with it": {"GET", []string{"two words"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			done := false
			h := abatehttp.NewHandler(newGate(t, p), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				done = true
			}))
			r := httptest.NewRequest(c.method, "/", strings.NewReader("body"))
			if c.keys != nil {
				r.Header["Idempotency-Key"] = c.keys
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if c.code == "" {
				if !done || w.Code != 200 {
					t.Errorf("status %d, %s", w.Code, w.Body)
				}
				return
			}
			if got := problem(t, w.Result()); done || w.Code != 400 || got["code"] != c.code ||
				len(got["detail"].(string)) > 500 {
				t.Errorf("status %d, problem %.1000v", w.Code, got)
			}
		})
	}
}

func TestTheSameKeyAtOnceIsDoneOnce(t *testing.T) {
	var runs atomic.Int64
	began, end := make(chan struct{}, 100), make(chan struct{})
	b, _, _ := protect(t, once(), func(w http.ResponseWriter, _ *http.Request) {
		runs.Add(1)
		began <- struct{}{}
		<-end
		io.WriteString(w, "done")
	})
	request := func() *http.Request {
		r := newRequest(t, "POST", b.URL, strings.NewReader("order"))
		r.Header.Set("Idempotency-Key", "k")
		return r
	}
	var all []chan int
	for range 8 {
		all = append(all, async(request()))
	}
	<-began
	if resp := send(t, request()); resp.StatusCode != 409 || resp.Header.Get("Retry-After") != "1" ||
		problem(t, resp)["code"] != "idempotency-running" {
		t.Errorf("status %d, header %v", resp.StatusCode, resp.Header)
	}
	if !settles(func() bool { return b.requests.Load() == 9 }) {
		t.Errorf("%d requests", b.requests.Load())
	}
	close(end)
	answered := 0
	for _, status := range all {
		switch got := <-status; got {
		case 200:
			answered++
		case 409:
		default:
			t.Errorf("status %d", got)
		}
	}
	if runs.Load() != 1 || answered < 1 {
		t.Errorf("%d runs, %d answered", runs.Load(), answered)
	}
	if resp := send(t, request()); resp.StatusCode != 200 || read(t, resp) != "done" {
		t.Errorf("status %d", resp.StatusCode)
	}
}

func TestAnAnswerThatIsNotForGoodIsNotKept(t *testing.T) {
	var do atomic.Value
	b, _, _ := protect(t, once(), func(w http.ResponseWriter, r *http.Request) { do.Load().(http.HandlerFunc)(w, r) })
	for name, fail := range map[string]http.HandlerFunc{
		"500":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"503":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) },
		"429":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) },
		"panic": func(http.ResponseWriter, *http.Request) { panic("oops") },
		"panic in the answer": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(502)
			io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		},
	} {
		do.Store(fail)
		r := newRequest(t, "POST", b.URL, strings.NewReader("order"))
		r.Header.Set("Idempotency-Key", strings.ReplaceAll(name, " ", "-"))
		<-async(r)
		do.Store(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "done") }))
		if resp := post(t, b.URL, strings.ReplaceAll(name, " ", "-"), "order"); resp.StatusCode != 200 ||
			read(t, resp) != "done" {
			t.Errorf("after %s: status %d", name, resp.StatusCode)
		}
	}
}

func TestARefusalBurnsNoKey(t *testing.T) {
	p := once()
	p.RateLimit.Config = perMinute(1)
	store := idempotency.NewMemory(1<<20, core.Now)
	p.Store = store
	b, _, _ := protect(t, p, func(w http.ResponseWriter, _ *http.Request) {})
	post(t, b.URL, "k1", "order")
	if resp := post(t, b.URL, "k2", "order"); resp.StatusCode != 429 || store.Len() != 1 {
		t.Errorf("status %d, %d keys", resp.StatusCode, store.Len())
	}
}

func TestLargeBodies(t *testing.T) {
	for name, c := range map[string]struct {
		size   int
		opaque bool // without a length
		status int
	}{
		"at the limit":                  {1000, false, 200},
		"above it":                      {1001, false, 413},
		"at the limit, without length":  {1000, true, 200},
		"above it, without length":      {1001, true, 413},
		"far above it, without length":  {10 << 20, true, 413},
		"none":                          {0, false, 200},
		"none, but without length also": {0, true, 200},
	} {
		t.Run(name, func(t *testing.T) {
			got := -1
			b, _, _ := protect(t, once(), func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if got = len(body); err != nil {
					t.Error(err)
				}
			})
			var body io.Reader = strings.NewReader(strings.Repeat("x", c.size))
			if c.opaque {
				body = struct{ io.Reader }{body}
			}
			w := httptest.NewRecorder()
			r := httptest.NewRequest("POST", "/", body)
			r.Header.Set("Idempotency-Key", "k")
			b.Config.Handler.ServeHTTP(w, r)
			if w.Code != c.status || c.status == 200 && got != c.size || c.status != 200 && got != -1 {
				t.Errorf("status %d, the handler read %d", w.Code, got)
			}
		})
	}
}

func TestABrokenBodyIsNotDone(t *testing.T) {
	b, g, _ := protect(t, once(), func(http.ResponseWriter, *http.Request) { t.Error("it was done") })
	body, end := io.Pipe()
	r := newRequest(t, "POST", b.URL, body)
	r.Header.Set("Idempotency-Key", "k")
	status := async(r)
	io.WriteString(end, "half")
	end.CloseWithError(errors.New("oops"))
	if got := <-status; got != 0 {
		t.Errorf("status %d", got)
	}
	if !settles(func() bool { return g.State().Shed.InFlight == 0 }) {
		t.Error("the place is lost")
	}
}

func TestALargeAnswerPassesAndIsNotReplayed(t *testing.T) {
	runs := 0
	b, _, _ := protect(t, once(), func(w http.ResponseWriter, _ *http.Request) {
		runs++
		for range 11 {
			io.WriteString(w, strings.Repeat("x", 100))
		}
	})
	if resp := post(t, b.URL, "k", ""); len(read(t, resp)) != 1100 || resp.StatusCode != 200 {
		t.Errorf("status %d", resp.StatusCode)
	}
	if resp := post(t, b.URL, "k", ""); resp.StatusCode != 409 || problem(t, resp)["code"] != "idempotency-not-stored" ||
		runs != 1 {
		t.Errorf("status %d, %d runs", resp.StatusCode, runs)
	}
}

func TestAnAnswerIsKeptUpToTheLimit(t *testing.T) {
	b, _, _ := protect(t, once(), func(w http.ResponseWriter, _ *http.Request) {
		io.Copy(w, struct{ io.Reader }{strings.NewReader(strings.Repeat("x", 1000))})
	})
	for n := range 2 {
		if resp := post(t, b.URL, "k", ""); len(read(t, resp)) != 1000 || resp.StatusCode != 200 {
			t.Errorf("try %d: status %d", n, resp.StatusCode)
		}
	}
}

func TestAnswersAreReplayedWithTheirTrailers(t *testing.T) {
	for name, set := range map[string]func(http.Header){
		"announced":     func(h http.Header) { h.Set("Trailer", "X-Sum") },
		"not announced": func(h http.Header) { h.Set(http.TrailerPrefix+"X-Sum", "42") },
	} {
		b, _, _ := protect(t, once(), func(w http.ResponseWriter, _ *http.Request) {
			set(w.Header())
			io.WriteString(w, "content")
			w.Header().Set("X-Sum", "42")
		})
		resp := post(t, b.URL, "k", "")
		if body := read(t, resp); body != "content" || resp.Trailer.Get("X-Sum") != "42" {
			t.Errorf("%s: %q, trailer %v", name, body, resp.Trailer)
		}
		resp = post(t, b.URL, "k", "")
		if body := read(t, resp); resp.StatusCode != 200 || resp.Header.Get("Idempotency-Replayed") != "true" ||
			body != "content" || fmt.Sprint(resp.Trailer["X-Sum"]) != "[42]" {
			t.Errorf("%s: the repeat got %d, %q, trailer %v", name, resp.StatusCode, body, resp.Trailer)
		}
	}
}

func TestAStreamedAnswerIsKept(t *testing.T) {
	more := make(chan struct{})
	b, _, _ := protect(t, once(), func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "one")
		http.NewResponseController(w).Flush()
		<-more
		io.WriteString(w, "two")
	})
	resp := post(t, b.URL, "k", "")
	first := make([]byte, 3)
	if _, err := io.ReadFull(resp.Body, first); string(first) != "one" || err != nil {
		t.Errorf("%q, %v", first, err)
	}
	close(more)
	if read(t, resp) != "two" {
		t.Error("the rest is missing")
	}
	if resp := post(t, b.URL, "k", ""); read(t, resp) != "onetwo" || resp.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// slowStore is a store in which completing takes until it is let go.
type slowStore struct {
	idempotency.Store
	completing, complete chan struct{}
}

func (s *slowStore) Complete(ctx context.Context, key string, token uint64, r idempotency.Response,
	retention time.Duration) error {
	s.completing <- struct{}{}
	<-s.complete
	return s.Store.Complete(ctx, key, token, r, retention)
}

func TestAnAnswerIsStoredBeforeTheClientHasIt(t *testing.T) {
	store := &slowStore{idempotency.NewMemory(1<<20, core.Now), make(chan struct{}), make(chan struct{})}
	p := once()
	p.Store = store
	b, _, _ := protect(t, p, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 1000)) })
	r := newRequest(t, "POST", b.URL, nil)
	r.Header.Set("Idempotency-Key", "k")
	status := async(r)
	<-store.completing
	select {
	case <-status:
		t.Error("the client has its answer before it is stored")
	default:
	}
	close(store.complete)
	if got := <-status; got != 200 {
		t.Errorf("status %d", got)
	}
}

func TestWhatAClientThatLeftAskedForIsDoneAndKept(t *testing.T) {
	began, end := make(chan struct{}, 1), make(chan struct{})
	b, _, log := protect(t, once(), func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-end
		if err := r.Context().Err(); err != nil {
			t.Errorf("the work is interrupted: %v", err)
		}
		io.WriteString(w, "done")
	})
	ctx, leave := context.WithCancel(t.Context())
	r := newRequest(t, "POST", b.URL, strings.NewReader("order")).WithContext(ctx)
	r.Header.Set("Idempotency-Key", "k")
	status := async(r)
	<-began
	leave()
	<-status
	if !settles(func() bool { return b.open.Load() == 0 || b.opened.Load() == 1 }) {
		t.Error("the connection is open")
	}
	close(end)
	if !settles(func() bool { return len(log.all(inbound.RequestDone)) == 1 }) {
		t.Fatal("it is never done")
	}
	var resp *http.Response
	settles(func() bool {
		resp = post(t, b.URL, "k", "order")
		return resp.StatusCode != 409 // it is being stored
	})
	if read(t, resp) != "done" || resp.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("status %d, header %v", resp.StatusCode, resp.Header)
	}
}

func TestARequestWithAKeyHasItsDeadline(t *testing.T) {
	silent := true
	h := abatehttp.NewHandler(newGate(t, once()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if silent {
			<-r.Context().Done()
			return
		}
		io.WriteString(w, "done")
	}))
	try := func(ctx context.Context, headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/", nil).WithContext(ctx)
		r.Header.Set("Idempotency-Key", "k")
		if len(headers) > 0 {
			r.Header.Set(headers[0], headers[1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	if w := try(t.Context(), "Grpc-Timeout", "20m"); w.Code != 504 {
		t.Errorf("status %d after the header's", w.Code)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if w := try(ctx); w.Code != 504 {
		t.Errorf("status %d after the context's", w.Code)
	}
	if silent = false; try(t.Context()).Code != 200 {
		t.Error("the key is not free")
	}
}

// awayStore is a store that fails.
type awayStore struct {
	idempotency.Store
	err      error
	mu       sync.Mutex // guards complete
	complete error
}

func (s *awayStore) set(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complete = err
}

func (s *awayStore) Begin(ctx context.Context, key string, fp idempotency.Fingerprint, lease time.Duration) (
	idempotency.Begun, error) {
	if s.err != nil {
		return idempotency.Begun{}, s.err
	}
	return s.Store.Begin(ctx, key, fp, lease)
}

func (s *awayStore) Renew(ctx context.Context, key string, token uint64, lease time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.complete != nil {
		return s.complete
	}
	return s.Store.Renew(ctx, key, token, lease)
}

func (s *awayStore) Complete(ctx context.Context, key string, token uint64, r idempotency.Response,
	retention time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.complete != nil {
		return s.complete
	}
	return s.Store.Complete(ctx, key, token, r, retention)
}

func TestAStoreThatIsAwayFailsClosedOrOpen(t *testing.T) {
	for name, c := range map[string]struct {
		err      error
		whenAway string
		status   int
		detail   string
	}{
		"away, closed": {errors.New("no route"), "", 503, "[away]"},
		"full, closed": {idempotency.ErrFull, "", 503, "[full]"},
		"away, open":   {errors.New("no route"), "open", 200, "[away]"},
	} {
		t.Run(name, func(t *testing.T) {
			p := once()
			p.Store, p.Idempotency.WhenAway = &awayStore{err: c.err}, c.whenAway
			b, g, log := protect(t, p, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
			resp := post(t, b.URL, "k", "order")
			if resp.StatusCode != c.status || fmt.Sprint(log.details()) != c.detail || g.State().Shed.InFlight != 0 {
				t.Errorf("status %d, details %v", resp.StatusCode, log.details())
			}
			if c.status == 200 {
				if body := read(t, resp); body != "order" {
					t.Errorf("%q", body)
				}
				return
			}
			if problem(t, resp)["code"] != "idempotency-unavailable" || resp.Header.Get("Retry-After") == "" {
				t.Errorf("header %v", resp.Header)
			}
		})
	}
}

// Whoever has an answer that is not recorded may see its request done again by the next try.
func TestAnAnswerThatIsNotRecordedIsNotGivenOut(t *testing.T) {
	for name, c := range map[string]struct {
		err      error
		whenAway string
		status   int
		details  string
	}{
		"away":       {errors.New("no route"), "", 503, "[run away unrecorded]"},
		"taken over": {idempotency.ErrLost, "", 503, "[run lost]"},
		"away, open": {errors.New("no route"), "open", 201, "[run away unrecorded]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, log := once(), new(gateLog)
				p.Observer, p.Idempotency.WhenAway = log, c.whenAway
				store := &awayStore{Store: idempotency.NewMemory(1<<20, core.Now), complete: c.err}
				p.Store = store
				h := abatehttp.NewHandler(newGate(t, p), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Location", "/orders/7")
					w.WriteHeader(201)
					io.WriteString(w, "done")
				}))
				first := keyedTo(h, "/")
				if first.Code != c.status || fmt.Sprint(log.details()) != c.details ||
					(first.Header().Get("Location") != "") != (c.status == 201) {
					t.Errorf("status %d, header %v, details %v", first.Code, first.Header(), log.details())
				}
				if c.status == 503 && (first.Header().Get("Abate-Reason") != "idempotency-unrecorded" ||
					first.Header().Get("Retry-After") == "") {
					t.Errorf("header %v", first.Header())
				}
				store.set(nil)
				time.Sleep(3 * time.Second)
				if again := keyedTo(h, "/"); c.err != idempotency.ErrLost &&
					(again.Code != 201 || again.Header().Get("Idempotency-Replayed") != "true" || again.Body.String() != "done") {
					t.Errorf("with the store back the repeat gets %d %s, details %v", again.Code, again.Body, log.details())
				}
			})
		})
	}
}

// keyedTo is a request with a key.
func keyedTo(h http.Handler, target string) *httptest.ResponseRecorder {
	r, w := httptest.NewRequest("POST", target, nil), httptest.NewRecorder()
	r.Header.Set("Idempotency-Key", "k")
	h.ServeHTTP(w, r)
	return w
}

// The head of a stream says that the request was done: what goes out before the end is recorded before that.
func TestAStreamIsMarkedBeforeItsFirstByteGoesOut(t *testing.T) {
	for name, write := range map[string]func(w http.ResponseWriter) error{
		"a flush":        func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
		"a large answer": func(w http.ResponseWriter) error { _, err := w.Write(make([]byte, 5000)); return err },
	} {
		for _, away := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", store away: ", away), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p, runs := once(), 0
					store := &awayStore{Store: idempotency.NewMemory(1<<20, core.Now)}
					if away {
						store.complete = errors.New("no route")
					}
					p.Store = store
					var h *abatehttp.Handler
					client := httptest.NewRecorder()
					h = abatehttp.NewHandler(newGate(t, p), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						runs++
						w.WriteHeader(201)
						err := write(w)
						if (err != nil) != away || client.Body.Len() > 0 && away {
							t.Errorf("%v, %d bytes have gone out", err, client.Body.Len())
						}
						if !away {
							panic(http.ErrAbortHandler) // in the middle of an answer whose head the client has
						}
					}))
					r := httptest.NewRequest("POST", "/", nil)
					r.Header.Set("Idempotency-Key", "k")
					func() {
						defer func() { _ = recover() }()
						h.ServeHTTP(client, r)
					}()
					if want := map[bool]int{false: 201, true: 503}[away]; client.Code != want {
						t.Errorf("status %d, want %d", client.Code, want)
					}
					store.set(nil)
					time.Sleep(2 * p.Idempotency.WithDefaults().Lease)
					if again := keyedTo(h, "/"); runs != 1 || again.Code != 409 && again.Code != 201 {
						t.Errorf("%d runs, the repeat got %d", runs, again.Code)
					}
				})
			})
		}
	}
}

func TestALongTryKeepsItsKeyAndACrashedOneDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := once()
		p.Idempotency.Lease = time.Second
		log := new(gateLog)
		p.Observer = log
		begin := time.Now()
		store := idempotency.NewMemory(1<<20, func() time.Duration { return time.Since(begin) })
		p.Store = store
		g := newGate(t, p)
		end := make(chan struct{})
		var tries []abatehttp.Try
		h := abatehttp.NewHandler(g, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			try, ok := abatehttp.TryOf(r.Context())
			if !ok {
				t.Error("the handler knows nothing of the try")
			}
			tries = append(tries, try)
			<-end
		}))
		request := func(key string) *httptest.ResponseRecorder {
			r := httptest.NewRequest("POST", "/", nil)
			r.Header.Set("Idempotency-Key", key)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		first := make(chan int)
		go func() { first <- request("k").Code }()
		time.Sleep(10 * time.Second) // ten leases
		if w := request("k"); w.Code != 409 {
			t.Errorf("status %d while it runs", w.Code)
		}
		close(end)
		if got := <-first; got != 200 {
			t.Errorf("status %d", got)
		}
		if w := request("k"); w.Code != 200 || w.Header().Get("Idempotency-Replayed") != "true" {
			t.Errorf("status %d, header %v", w.Code, w.Header())
		}

		nobody, compared := idempotency.Principal("", idempotency.Sender{Host: "example.com", Field: func(string) string {
			return ""
		}})
		crashed := idempotency.StoreKey("payments", nobody, "k2")
		if _, err := store.Begin(t.Context(), crashed, idempotency.FingerprintOf("POST", "/", nil).With(compared),
			time.Second); err != nil {
			t.Fatal(err)
		}
		if w := request("k2"); w.Code != 409 {
			t.Errorf("status %d before the end of the lease", w.Code)
		}
		time.Sleep(2 * time.Second)
		if w := request("k2"); w.Code != 200 {
			t.Errorf("status %d after it", w.Code)
		}
		if len(tries) != 2 || tries[0].TakenOver || tries[0].Key != "k" || !tries[1].TakenOver || tries[1].Token == 0 {
			t.Errorf("%+v", tries)
		}
		if got := fmt.Sprint(log.details()); got != "[run running replay running taken-over]" {
			t.Error(got)
		}
	})
}

func TestHeadersOfOtherMiddlewareAreNotReplayed(t *testing.T) {
	n := 0
	h := abatehttp.NewHandler(newGate(t, once()), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "private")
		w.Header().Set("X-Order", "1")
	}))
	outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		w.Header().Set("X-Request-Id", fmt.Sprint(n))
		w.Header().Set("Cache-Control", "no-cache")
		h.ServeHTTP(w, r)
	})
	for n := 1; n < 3; n++ {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("Idempotency-Key", "k")
		w := httptest.NewRecorder()
		outer.ServeHTTP(w, r)
		if got := w.Header(); got.Get("X-Request-Id") != fmt.Sprint(n) || got.Get("X-Order") != "1" ||
			len(got["Cache-Control"]) != 1 || got.Get("Cache-Control") != "private" {
			t.Errorf("%v", got)
		}
	}
}

func TestAnAnswerWithoutABodyIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		status int
	}{
		"nothing at all": {func(http.ResponseWriter, *http.Request) {}, 200},
		"204": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(204)
			if _, err := io.WriteString(w, "x"); err != http.ErrBodyNotAllowed {
				t.Error(err)
			}
		}, 204},
	} {
		b, _, _ := protect(t, once(), c.handle)
		for n := range 2 {
			if resp := post(t, b.URL, "k", ""); resp.StatusCode != c.status || read(t, resp) != "" ||
				(resp.Header.Get("Idempotency-Replayed") != "") != (n == 1) {
				t.Errorf("%s, try %d: status %d, header %v", name, n, resp.StatusCode, resp.Header)
			}
		}
	}
}

// Answers that are held back while they are written take a bounded memory. One for which there is none left passes as
// it comes, whole, and is not done again.
func TestAnAnswerThatThereIsNoMemoryForPassesAndIsNotDoneTwice(t *testing.T) {
	const free, all = 64 << 10, 64 << 20
	var others serving.Hold
	defer others.Shrink()
	if !others.Grow(0, free+all) {
		t.Fatal("there is no memory though nobody has any")
	}
	p := once()
	p.Idempotency.MaxAnswer = 1 << 20
	for size, repeat := range map[int]int{free: 200, 2 * free: 409} {
		b, _, _ := protect(t, p, func(w http.ResponseWriter, r *http.Request) {
			for range 2 {
				w.Write(make([]byte, size/2))
			}
		})
		if resp := post(t, b.URL, "k", ""); resp.StatusCode != 200 || len(read(t, resp)) != size {
			t.Errorf("%d bytes: status %d", size, resp.StatusCode)
		}
		if resp := post(t, b.URL, "k", ""); resp.StatusCode != repeat {
			t.Errorf("%d bytes: the repeat got %d", size, resp.StatusCode)
		}
	}
	if !new(serving.Hold).Grow(0, free) || new(serving.Hold).Grow(0, free+1) {
		t.Error("what was not to be had was given back")
	}
}

func TestTheMemoryOfAnAnswerIsGivenBack(t *testing.T) {
	const free, all = 64 << 10, 64 << 20
	p := once()
	p.Idempotency.MaxAnswer = 1 << 20
	for name, end := range map[string]func(w http.ResponseWriter){
		"an end": func(http.ResponseWriter) {}, "a panic": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"a stream": func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
	} {
		g, err := inbound.NewGate("shop", p)
		if err != nil {
			t.Fatal(err)
		}
		h := abatehttp.NewHandler(g, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Write(make([]byte, 2*free))
			end(w)
		}))
		func() {
			defer func() { _ = recover() }()
			r := httptest.NewRequest("POST", "/", nil)
			r.Header.Set("Idempotency-Key", "k")
			h.ServeHTTP(httptest.NewRecorder(), r)
		}()
		var rest serving.Hold
		if !rest.Grow(0, free+all) {
			t.Errorf("after %s some is missing", name)
		}
		rest.Shrink()
	}
}
