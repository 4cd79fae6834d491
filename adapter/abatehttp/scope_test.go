package abatehttp_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/idempotency"
)

// countingRuns answers with how often it has run.
func countingRuns(t *testing.T, p inbound.Protection) (h *abatehttp.Handler, runs *int) {
	runs = new(int)
	return abatehttp.NewHandler(newGate(t, p), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		*runs++
		fmt.Fprint(w, "run ", *runs)
	})), runs
}

// posted is the answer to a POST with the key k from an address.
func posted(h http.Handler, addr string, fields ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/orders", strings.NewReader("order"))
	r.RemoteAddr = addr + ":1234"
	r.Header.Set("Idempotency-Key", "k")
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestTwoUsersBehindOneAddressDoNotGetEachOthersAnswers(t *testing.T) {
	h, _ := countingRuns(t, once())
	ann, bob := posted(h, "192.0.2.1", "Authorization", "Bearer ann"),
		posted(h, "192.0.2.1", "Authorization", "Bearer bob")
	if ann.Body.String() != "run 1" || bob.Body.String() != "run 2" {
		t.Errorf("%q and %q", ann.Body, bob.Body)
	}
	if again := posted(h, "192.0.2.1", "Authorization", "Bearer bob"); again.Body.String() != "run 2" ||
		again.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("the repeat of the second: %v %q", again.Header(), again.Body)
	}
}

func TestAUserWhoComesBackFromAnotherAddressIsNotServedTwice(t *testing.T) {
	for name, c := range map[string]struct {
		fields []string
		change func(*inbound.Protection, *abatehttp.Handler)
	}{
		"with a credential":    {fields: []string{"Authorization", "Bearer ann"}},
		"with an API key":      {fields: []string{"X-Api-Key", "ann"}},
		"without a credential": {},
		"known to the program": {change: func(_ *inbound.Protection, h *abatehttp.Handler) {
			h.Caller = func(*http.Request) string { return "ann" }
		}},
		"by a named cookie": {fields: []string{"Cookie", "sid=ann"},
			change: func(p *inbound.Protection, _ *abatehttp.Handler) {
				p.Idempotency.Scope = "cookie:sid"
			}},
	} {
		p := once()
		var h abatehttp.Handler
		if c.change != nil {
			c.change(&p, &h)
		}
		counted, runs := countingRuns(t, p)
		counted.Caller = h.Caller
		posted(counted, "192.0.2.1", c.fields...)
		if again := posted(counted, "198.51.100.7", c.fields...); again.Body.String() != "run 1" || *runs != 1 {
			t.Errorf("%s: %q after %d runs", name, again.Body, *runs)
		}
	}
}

func TestAKeyThatComesBackForAnotherHostIsNeitherAnsweredNorDone(t *testing.T) {
	h, runs := countingRuns(t, once())
	posted(h, "192.0.2.1", "Authorization", "Bearer ann")
	r := httptest.NewRequest("POST", "http://other.example/orders", strings.NewReader("order"))
	r.RemoteAddr = "192.0.2.1:1"
	r.Header.Set("Authorization", "Bearer ann")
	r.Header.Set("Idempotency-Key", "k")
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != 422 || *runs != 1 {
		t.Errorf("status %d after %d runs", w.Code, *runs)
	}
}

func TestAKeyThatComesBackWithAnotherSessionIsNeitherAnsweredNorDone(t *testing.T) {
	h, runs := countingRuns(t, once())
	posted(h, "192.0.2.1", "Cookie", "sid=ann")
	if other := posted(h, "192.0.2.1", "Cookie", "sid=bob"); other.Code != 422 || *runs != 1 {
		t.Errorf("%d %q after %d runs", other.Code, other.Body, *runs)
	}
}

// What a service is told of a user in another way than by the fields that make a principal is compared.
func TestAKeyThatComesBackForAnotherUserIsNeitherAnsweredNorDone(t *testing.T) {
	for _, who := range []string{
		"Private-Token", "X-User-Id", "X-Tenant", "X-Auth-Request-User", "X-Goog-Authenticated-User-Email", "X-Acme-Key",
		"X-Session-Auth", "Client-Secret", "X-HTTP-Method-Override", "X-Original-URL", "X-Forwarded-Host",
	} {
		for _, credential := range []string{"", "Bearer bff"} {
			h, runs := countingRuns(t, once())
			posted(h, "192.0.2.1", "Authorization", credential, who, "ann")
			if again := posted(h, "198.51.100.7", "Authorization", credential, who, "ann"); again.Body.String() != "run 1" {
				t.Errorf("%s: the repeat got %d %q", who, again.Code, again.Body)
			}
			for _, other := range [][]string{{who, "bob"}, nil} {
				fields := append([]string{"Authorization", credential}, other...)
				if w := posted(h, "192.0.2.1", fields...); w.Code != 422 || *runs != 1 {
					t.Errorf("%s: %v got %d %q after %d runs", who, fields, w.Code, w.Body, *runs)
				}
			}
		}
	}
}

func TestWhatChangesWithEachAttemptIsNotCompared(t *testing.T) {
	for _, name := range []string{
		"X-Idempotency-Token", "X-Csrf-Token", "X-Forwarded-For", "Forwarded", "X-Original-Forwarded-For", "X-Request-Id",
		"Traceparent", "X-Forwarded-Server", "X-Amzn-Oidc-Data", "User-Agent", "Abate-Attempt",
	} {
		h, runs := countingRuns(t, once())
		posted(h, "192.0.2.1", name, "1")
		if w := posted(h, "192.0.2.1", name, "2"); w.Body.String() != "run 1" || *runs != 1 {
			t.Errorf("%s: %d %q after %d runs", name, w.Code, w.Body, *runs)
		}
	}
}

func TestAScopeThatNamesTheUserNeedsNothingElseToBeTheSame(t *testing.T) {
	for scope, fields := range map[string][]string{"everybody": nil, "cookie:sid": {"Cookie", "sid=ann"}} {
		p := once()
		p.Idempotency.Scope = scope
		h, _ := countingRuns(t, p)
		posted(h, "192.0.2.1", append(fields, "Private-Token", "old")...)
		if w := posted(h, "192.0.2.1", append(fields, "Private-Token", "new")...); w.Body.String() != "run 1" {
			t.Errorf("%s: %d %q", scope, w.Code, w.Body)
		}
	}
}

func TestAHeaderThatAnybodyCanWriteDoesNotOpenAnothersAnswers(t *testing.T) {
	p := once()
	p.Idempotency.Scope = "header:X-User"
	h, _ := countingRuns(t, p)
	posted(h, "192.0.2.1", "X-User", "ann", "Authorization", "Bearer ann")
	if other := posted(h, "192.0.2.1", "X-User", "ann", "Authorization", "Bearer bob"); other.Body.String() != "run 2" {
		t.Errorf("%q", other.Body)
	}
}

func TestXIdempotencyKeyIsAKey(t *testing.T) {
	for name, c := range map[string]struct {
		standard, older string
		status          int
		body            string
	}{
		"the older name alone":    {"", "k", 200, "run 1"},
		"both the same":           {`"k"`, "k", 200, "run 1"},
		"both, and they disagree": {"k", "j", 400, ""},
		"both, one of them none":  {"k", "a b", 400, ""},
	} {
		h, runs := countingRuns(t, once())
		posted(h, "192.0.2.1")
		r := httptest.NewRequest("POST", "/orders", strings.NewReader("order"))
		if c.standard != "" {
			r.Header.Set("Idempotency-Key", c.standard)
		}
		r.Header.Set("X-Idempotency-Key", c.older)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status || *runs != 1 || c.body != "" && w.Body.String() != c.body {
			t.Errorf("%s: %d %q after %d runs", name, w.Code, w.Body, *runs)
		}
	}
}

func TestServerErrorsAreKeptIfTheProtectionSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		status int
		code   string
	}{
		"an answer of 500": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			io.WriteString(w, "half done")
		}, 500, ""},
		"a panic": {func(http.ResponseWriter, *http.Request) {
			panic("after the effect")
		}, 409, "idempotency-effect-unknown"},
		"429 says that nothing was done": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, runs := once(), 0
			p.Idempotency.KeepServerErrors = true
			h := abatehttp.NewHandler(newGate(t, p), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if runs++; runs == 1 {
					c.handle(w, r)
				}
			}))
			func() {
				defer func() { _ = recover() }()
				posted(h, "192.0.2.1")
			}()
			again := posted(h, "192.0.2.1")
			if again.Code != c.status || (runs == 1) != (c.status != 200) {
				t.Errorf("the repeat got %d %q after %d runs", again.Code, again.Body, runs)
			}
			if c.code != "" && problem(t, again.Result())["code"] != c.code {
				t.Errorf("%q", again.Body)
			}
		})
	}
}

func TestAnAnswerLargerThan64KiBIsReplayed(t *testing.T) {
	p := inbound.Protection{Idempotency: idempotency.Config{Methods: []string{"POST"}}}
	large := strings.Repeat("x", 3<<20)
	h := abatehttp.NewHandler(newGate(t, p), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, large)
	}))
	for n := range 2 {
		if w := posted(h, "192.0.2.1"); w.Code != 200 || w.Body.String() != large {
			t.Errorf("try %d: %d with %d bytes", n, w.Code, w.Body.Len())
		}
	}
}
