package abatehttp_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/ratelimit"
)

var trusting = inbound.Protection{TrustedPeers: []string{"10.0.0.0/8"}}

// handled hands one request to a Handler and returns the answer.
func handled(t testing.TB, p inbound.Protection, r *http.Request, handle http.HandlerFunc) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	abatehttp.NewHandler(newGate(t, p), handle).ServeHTTP(w, r)
	return w
}

func TestWhatARequestTellsOfItsCallTree(t *testing.T) {
	for name, c := range map[string]struct {
		request *http.Request
		tree    bool
		limited bool
		left    int
		owner   string
	}{
		"nothing":      {request: from("10.0.0.1:1")},
		"an allowance": {from("10.0.0.1:1", hops.Allowance, `2;owner="shop"`), true, true, 2, "shop"},
		"nothing left": {from("10.0.0.1:1", hops.Allowance, "0"), true, true, 0, ""},
		"several": {
			from("10.0.0.1:1", hops.Allowance, `5;owner="a"`, hops.Allowance, `1;owner="b"`), true, true, 1, "b",
		},
		"far too much": {
			from("10.0.0.1:1", hops.Allowance, "999999999999999"), true, true, core.MaxAllowance, "",
		},
		"nonsense":                       {from("10.0.0.1:1", hops.Allowance, "many"), true, false, 0, ""},
		"from somebody":                  {from("192.0.2.1:1", hops.Allowance, "2"), true, false, 0, ""},
		"an attempt of Envoy's":          {from("10.0.0.1:1", hops.AttemptCount, "2"), true, false, 0, ""},
		"an attempt of gRPC's":           {from("192.0.2.1:1", hops.GRPCAttempts, "1"), true, false, 0, ""},
		"an attempt of Rest.li's":        {from("192.0.2.1:1", hops.RestLiAttempts, "0"), true, false, 0, ""},
		"a deadline says nothing about ": {request: from("10.0.0.1:1", hops.TimeLeft, "1000")},
	} {
		handled(t, trusting, c.request, func(_ http.ResponseWriter, r *http.Request) {
			tree := core.CallTreeOf(r.Context())
			if tree == nil || !c.tree {
				if (tree != nil) != c.tree {
					t.Errorf("%s: tree %v", name, tree)
				}
				return
			}
			if a, limited := tree.Allowance(); limited != c.limited || a.Left != c.left || a.Owner != c.owner {
				t.Errorf("%s: %+v, %v", name, a, limited)
			}
		})
	}
}

// failing is a handler whose only call in its request's tree fails, under a policy.
func failing(t *testing.T, p abate.Policy, status int, below string) http.HandlerFunc {
	transport := abatehttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		h := http.Header{}
		if below != "" {
			h.Set(hops.Made, below)
		}
		return answer(r, 503, h, ""), nil
	}), guard(t, p))
	return func(w http.ResponseWriter, r *http.Request) {
		resp, err := transport.RoundTrip(newRequest(t, "GET", "http://leaf.test", nil).WithContext(r.Context()))
		if err == nil {
			resp.Body.Close()
		}
		if status != 0 {
			w.WriteHeader(status)
		}
	}
}

func TestTheAnswerSaysWhatBecameOfTheTree(t *testing.T) {
	retries := func(n int) abate.Policy { p := eager(); p.MaxRetries = n; return p }
	const made, should, limited = hops.Made, "X-Should-Retry", hops.Ratelimited
	allow := func(n string, more ...string) *http.Request {
		return from("10.0.0.1:1", append([]string{hops.Allowance, n}, more...)...)
	}
	for name, c := range map[string]struct {
		request *http.Request
		handle  http.HandlerFunc
		want    map[string]string
	}{
		"no allowance, nothing said": {
			from("10.0.0.1:1"), failing(t, retries(2), 503, ""), map[string]string{made: "", should: "", limited: ""},
		},
		"a good answer": {
			allow("2"), func(http.ResponseWriter, *http.Request) {}, map[string]string{made: "0", should: ""},
		},
		"a good answer with a head": {allow("2"), func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(204)
		}, map[string]string{made: "0"}},
		"retried, and exhausted": {
			allow("9"), failing(t, retries(2), 503, ""), map[string]string{made: "2;final", should: "false", limited: ""},
		},
		"exhausted, but the answer is good": {
			allow("9"), failing(t, retries(2), 200, ""), map[string]string{made: "2", should: ""},
		},
		"exhausted, an answer without a word": {
			allow("9"), failing(t, retries(2), 0, ""), map[string]string{made: "2", should: ""},
		},
		"exhausted, and a client's mistake": {
			allow("9"), failing(t, retries(2), 404, ""), map[string]string{made: "2", should: ""},
		},
		"nothing left is not final": {allow("1"), failing(t, retries(2), 503, ""), map[string]string{made: "1", should: ""}},
		"final from below goes up": {
			allow("9"), failing(t, retries(2), 502, "3;final"), map[string]string{made: "3;final", should: "false"},
		},
		"many": {allow("900"), failing(t, retries(20), 503, ""), map[string]string{made: "20;final"}},
		"not believed, but reported": {from("192.0.2.1:1", hops.Allowance, "0", hops.AttemptCount, "1"),
			failing(t, retries(2), 503, ""), map[string]string{made: "2;final", should: "false", limited: ""}},
		"Envoy asks": {from("10.0.0.1:1", hops.AttemptCount, "1"), failing(t, retries(2), 503, ""),
			map[string]string{made: "", should: "false", limited: "true"}},
		"Envoy asks, and may retry": {from("10.0.0.1:1", hops.AttemptCount, "1"), failing(t, retries(0), 503, ""),
			map[string]string{made: "", should: "", limited: ""}},
		"the handler knows better": {allow("9"), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(should, "true")
			failing(t, retries(2), 503, "")(w, r)
		}, map[string]string{made: "2;final", should: "true"}},
		"what only forwards passes it on": {allow("9"), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(made, "4;final")
			w.WriteHeader(503)
		}, map[string]string{made: "4;final", should: "false"}},
	} {
		w := handled(t, trusting, c.request, c.handle)
		for header, want := range c.want {
			if got := w.Header().Values(header); len(got) > 1 || w.Header().Get(header) != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
	}
}

func TestRefusalsSayThatNothingWasMade(t *testing.T) {
	limit := func(n float64) inbound.Protection {
		p := trusting
		p.RateLimit = inbound.ArrivalLimit{
			Config: ratelimit.Config{Limit: ratelimit.Rate{Tokens: n, Per: time.Hour}, Burst: 1},
		}
		return p
	}
	locked := trusting
	locked.Authentication.BearerTokens = "tokens"
	keyed := trusting
	keyed.Idempotency = idempotency.Config{Methods: []string{"GET"}, Required: true}
	late := trusting
	late.Timeout = time.Nanosecond
	for name, c := range map[string]struct {
		protection inbound.Protection
		status     int
		made       string
	}{
		"for ever":         {limit(0), 429, "0;final"},
		"for now":          {limit(1), 429, "0"},
		"nobody known":     {locked, 401, "0"},
		"without a key":    {keyed, 400, "0"},
		"too late already": {late, 504, "0"},
	} {
		h := abatehttp.NewHandler(newGate(t, c.protection), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}))
		for _, headers := range [][]string{nil, {hops.Allowance, "2", hops.AttemptCount, "1"}} {
			if name == "for now" {
				ahead := httptest.NewRecorder()
				waiting := abatehttp.NewHandler(newGate(t, c.protection), plain)
				waiting.ServeHTTP(ahead, from("10.0.0.1:1"))
				h = waiting
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, from("10.0.0.1:1", headers...))
			made, final := "", c.made == "0;final"
			if headers != nil {
				made = c.made
			}
			if w.Code != c.status || w.Header().Get(hops.Made) != made ||
				(w.Header().Get("X-Should-Retry") == "false") != final {
				t.Errorf("%s: %d, %v", name, w.Code, w.Header())
			}
			if (w.Header().Get(hops.Ratelimited) == "true") != (final && headers != nil) {
				t.Errorf("%s: Envoy is told %q", name, w.Header().Get(hops.Ratelimited))
			}
		}
	}
}

func TestAReplaySaysThatNothingWasMadeThisTime(t *testing.T) {
	p := trusting
	p.Idempotency = idempotency.Config{Methods: []string{"GET"}}
	policy := eager()
	policy.MaxRetries = 1
	h := abatehttp.NewHandler(newGate(t, p), failing(t, policy, 200, ""))
	for _, want := range []string{"1", "0"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, from("10.0.0.1:1", "Idempotency-Key", `"k"`, hops.Allowance, "2"))
		if got := w.Header().Values(hops.Made); w.Code != 200 || len(got) != 1 || got[0] != want {
			t.Errorf("%d, made %q, want %q", w.Code, got, want)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, from("10.0.0.1:1", "Idempotency-Key", `"k"`))
	if got := w.Header().Values(hops.Made); len(got) != 0 {
		t.Errorf("a caller that asks for nothing is told %q", got)
	}
}

// TestWithTheAnswerWhatIsLeftGoesBack: what the caller was told is free again must not be used here.
func TestWithTheAnswerWhatIsLeftGoesBack(t *testing.T) {
	sent := 0
	transport := abatehttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		sent++
		return answer(r, 503, nil, ""), nil
	}), guard(t, eager()))
	w := handled(t, trusting, from("10.0.0.1:1", hops.Allowance, "2"), func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		resp, err := transport.RoundTrip(newRequest(t, "GET", "http://leaf.test", nil).WithContext(r.Context()))
		if err == nil {
			resp.Body.Close()
		}
	})
	if w.Header().Get(hops.Made) != "0" || sent != 1 {
		t.Errorf("made %q, and %d attempts after that", w.Header().Get(hops.Made), sent)
	}
}

// TestWhatIsStillOutCountsAsMade: a handler that answers while a call is in flight cannot know what that will use.
func TestWhatIsStillOutCountsAsMade(t *testing.T) {
	inFlight, answered := make(chan struct{}), make(chan struct{})
	first := true
	transport := abatehttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		if !first {
			close(inFlight)
			<-answered
		}
		first = false
		return answer(r, 200, http.Header{hops.Made: {"0"}}, ""), nil
	}), guard(t, eager()))
	call := func(r *http.Request) {
		if resp, err := transport.RoundTrip(newRequest(t, "GET", "http://leaf.test", nil).WithContext(r.Context())); err ==
			nil {
			resp.Body.Close()
		}
	}
	over := make(chan struct{})
	w := handled(t, trusting, from("10.0.0.1:1", hops.Allowance, "3"), func(w http.ResponseWriter, r *http.Request) {
		call(r) // it learns that the leaf speaks, and tells it 2 the next time
		go func() { call(r); close(over) }()
		<-inFlight
		w.WriteHeader(503)
	})
	close(answered)
	<-over
	if got := w.Header().Get(hops.Made); got != "2" {
		t.Errorf("made %q, want what the call in flight was told", got)
	}
}

func TestAHandlerThatIsTooLateReportsOnce(t *testing.T) {
	p := trusting
	p.Timeout = 20 * time.Millisecond
	w := handled(t, p, from("10.0.0.1:1", hops.Allowance, "2"), func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	})
	if got := w.Header().Values(hops.Made); w.Code != 504 || len(got) != 1 || got[0] != "0" {
		t.Errorf("%d, made %q", w.Code, got)
	}
}

// FuzzAllowanceOnArrival: whatever a caller sends, it never gets more than its header says, and strangers change
// nothing.
func FuzzAllowanceOnArrival(f *testing.F) {
	for _, v := range []string{"2", "-1", "", `1;owner="x\"y"`, "2;owner", "1e3", "0;call=\"a\"", "999999999999999", ";"} {
		f.Add(v, "1", true)
		f.Add("3", v, false)
	}
	gate := newGate(f, trusting)
	f.Fuzz(func(t *testing.T, one, other string, trusted bool) {
		peer := "192.0.2.1:1"
		if trusted {
			peer = "10.0.0.1:1"
		}
		r := from(peer)
		r.Header[hops.Allowance] = []string{one, other}
		w := httptest.NewRecorder()
		abatehttp.NewHandler(gate, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			a, limited := core.CallTreeOf(r.Context()).Allowance()
			least, ok := hops.LeastAllowance([]string{one, other})
			if limited != (ok && trusted) || limited && a.Left != least.Left || a.Left > core.MaxAllowance {
				t.Errorf("%q, %q: %+v, %v", one, other, a, limited)
			}
		})).ServeHTTP(w, r)
		if w.Header().Get(hops.Made) != "0" {
			t.Errorf("made %q", w.Header().Get(hops.Made))
		}
	})
}

func TestHandlersBehindEachOtherShareOneAllowance(t *testing.T) {
	attempts := 0
	p := eager()
	p.MaxRetries = 9
	transport := abatehttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		attempts++
		return answer(r, 503, nil, ""), nil
	}), guard(t, p))
	ask := func(r *http.Request) {
		if resp, err := transport.RoundTrip(newRequest(t, "GET", "http://leaf.test", nil).WithContext(r.Context())); err ==
			nil {
			resp.Body.Close()
		}
	}
	inner := abatehttp.NewHandler(newGate(t, trusting), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ask(r)
		w.WriteHeader(503)
	}))
	w := handled(t, trusting, from("10.0.0.1:1", hops.Allowance, "2"), func(w http.ResponseWriter, r *http.Request) {
		ask(r) // who it is
		inner.ServeHTTP(w, r)
	})
	if made := w.Header()[hops.Made]; attempts != 4 || len(made) != 1 || made[0] != "2" {
		t.Errorf("%d attempts of two calls that share 2 extra ones, want 4; the answer says %q", attempts, made)
	}
}
