package proxy_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// limited is single with calls that are limited by their number, and by nothing else.
func limited(url string, keys ...string) string {
	return single([]string{url}, append(slices.Clone(countOnly), keys...)...)
}

// told are the allowances that an upstream got.
func told(s *server) (all []string) {
	for _, req := range s.seen() {
		all = append(all, field(req, allowance))
	}
	return all
}

func TestTheFirstOfATreeTellsTheServiceWhatIsLeft(t *testing.T) {
	for _, tt := range []struct {
		name    string
		keys    string
		answers []string
		want    []string
	}{
		{"a service that says nothing", "", []string{status(503)}, []string{"0", "0", "0"}},
		{"one that does", "", []string{status(503, made+": 0")}, []string{"0", "0", "0"}},
		{"and keeps one less of it each time", "maxRetries: 4", []string{status(503, made+": 0")},
			[]string{"0", "2", "1", "0", "0"}},
		{"and uses it", "maxRetries: 4", []string{status(503, made+": 0"), status(503, made+": 2")}, []string{"0", "2", "0"}},
		{"and uses more than that", "maxRetries: 4", []string{status(503, made+": 9")}, []string{"0"}},
		{"and is through", "", []string{status(503, made+": 0;final")}, []string{"0"}},
		{"the edge", "retryOwner: edge", []string{status(503, made+": 0")}, []string{"0", "0", "0"}},
		{"nobody", "retryOwner: none", []string{status(503, made+": 0")}, []string{"", "", ""}},
		{"who repeats nothing", noRetries, []string{status(503, made+": 0")}, []string{""}},
	} {
		for _, out := range []string{"http", "h2c"} {
			t.Run(tt.name+" over "+out, func(t *testing.T) {
				var n atomic.Int32
				var got []string
				wire := http1
				if out == "h2c" {
					wire = h2c
				}
				url := wire.serve(t, func(w http.ResponseWriter, r *http.Request) {
					got = append(got, strings.TrimSuffix(r.Header.Get(allowance), `;owner="s"`))
					raw := tt.answers[min(int(n.Add(1)), len(tt.answers))-1]
					if says := field(raw, made); says != "" {
						w.Header().Set(made, says)
					}
					w.WriteHeader(503)
				})
				keys := slices.Clone(countOnly)
				if name, _, _ := strings.Cut(tt.keys, ":"); tt.keys != "" {
					keys = append(slices.DeleteFunc(keys, func(k string) bool { return strings.HasPrefix(k, name) }), tt.keys)
				}
				a := start(t, single([]string{url}, keys...)).get("/")
				if !slices.Equal(got, tt.want) || a.header.Get(made) != "" {
					t.Errorf("the service was told %q, want %q; the client got %v", got, tt.want, a.header)
				}
			})
		}
	}
}

func TestAClientWithAnAllowanceIsToldWhatBecameOfIt(t *testing.T) {
	const circuit = "circuitBreaker: {failureThreshold: 1}"
	for _, tt := range []struct {
		name    string
		sends   string
		answers []string
		keys    []string
		want    string // status, made, X-Should-Retry, Abate-Reason
		reached int
	}{
		{"success", "2", []string{ok("x")}, nil, "200 0  ", 1},
		{"success at last", "2", []string{status(503), ok("x")}, nil, "200 1  ", 2},
		{"nothing left", "0", []string{status(503)}, nil, "503 0  tree-exhausted", 1},
		{"used up", "1", []string{status(503)}, nil, "503 1  tree-exhausted", 2},
		{"more than the policy allows", "1000", []string{status(503)}, nil, "503 2;final false attempts-exhausted", 3},
		{"final below", "1000", []string{status(503, made+": 1;final")}, nil, "503 1;final false ", 1},
		{"final below, as others say it", "1000", []string{status(503, "X-Should-Retry: false")}, nil, "503 0 false ", 1},
		{"circuit open", "2", []string{status(503)}, []string{circuit}, "503 0;final false circuit-open", 1},
		{"business", "2", []string{status(404)}, nil, "404 0  ", 1},
		{"final, but not a failure", "2", []string{status(404, made+": 2;final")}, nil, "404 2  ", 1},
		{"fallback", "1", []string{status(503)}, []string{"fallback: {status: 200, body: x, contentType: text/plain}"},
			"200 1  ", 2},
		{"nobody obeys", "0", []string{status(503)}, []string{"retryOwner: none"}, "503 2  attempts-exhausted", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := inTurn(t, tt.answers...)
			keys := slices.Clone(countOnly)
			if len(tt.keys) > 0 {
				name, _, _ := strings.Cut(tt.keys[0], ":")
				keys = append(slices.DeleteFunc(keys, func(k string) bool { return strings.HasPrefix(k, name) }), tt.keys...)
			}
			r := start(t, single([]string{s.url}, keys...))
			a := r.dial().send("GET / HTTP/1.1\r\nHost: s\r\n" + allowance + ": " + tt.sends + "\r\n\r\n").answer()
			got := fmt.Sprint(a.status, " ", strings.Join(a.header[http.CanonicalHeaderKey(made)], "+"), " ",
				strings.Join(a.header["X-Should-Retry"], "+"), " ", a.header.Get("Abate-Reason"))
			if got != tt.want || len(s.seen()) != tt.reached {
				t.Errorf("got %q after %d attempts, want %q after %d", got, len(s.seen()), tt.want, tt.reached)
			}
		})
	}
}

func TestNoAnswerUnderAnEmptyTreeMayBeTriedAgain(t *testing.T) {
	silent := rawUpstream(t, func(c net.Conn, _ int) { io.Copy(io.Discard, c) })
	for _, c := range []struct {
		url, limit string
		want       int
	}{{"http://" + vacant(t), "attemptTimeout: 10s", 502}, {silent.url, "attemptTimeout: 50ms", 504}} {
		r := start(t, single([]string{c.url}, append(slices.Clone(countOnly[:5]), c.limit)...))
		for left, reason := range map[string]string{"0": "tree-exhausted", "9": "attempts-exhausted"} {
			a := r.dial().send("GET / HTTP/1.1\r\nHost: s\r\n" + allowance + ": " + left + "\r\n\r\n").answer()
			last := left == "9"
			if p := a.problem(t); a.status != c.want || p.Reason != reason ||
				(a.header.Get("X-Should-Retry") == "false") != last || strings.HasSuffix(a.header.Get(made), "final") != last {
				t.Errorf("%s left: %d %+v %v", left, a.status, p, a.header)
			}
		}
	}
}

// What a service was handed and never got comes back: else one that is down would be asked less often than it may be.
func TestAnAllowanceThatWasNotSentComesBack(t *testing.T) {
	for _, scheme := range []string{"http", "h2c"} {
		wire := http1
		if scheme == "h2c" {
			wire = h2c
		}
		url := wire.serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(made, "0") })
		gone := scheme + "://" + vacant(t)
		r := start(t, limited(url))
		r.get("/") // from here on it is known to speak
		r.write(limited(gone))
		if err := r.proxy.Reload(); err != nil {
			t.Fatal(err)
		}
		if p := r.get("/").problem(t); p.Attempts != 3 || p.Reason != "attempts-exhausted" {
			t.Errorf("%s: %+v", scheme, p)
		}
	}
}

func TestAnAllowanceThatVanishedIsUsedUp(t *testing.T) {
	var n atomic.Int32
	s := upstream(t, func(c net.Conn, _ string) {
		if n.Add(1) == 1 {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"+made+": 0\r\n\r\n")
			return
		}
		c.Close()
	})
	r := start(t, limited(s.url))
	r.get("/")
	r.get("/")
	if got := told(s)[1:]; !slices.Equal(got, []string{`1;owner="s"`, `0;owner="s"`}) {
		t.Errorf("the service was told %q: it may have made another attempt with the first", got)
	}
}

func TestAGatewayThatRepeatsNothingLeavesTheTreeAlone(t *testing.T) {
	const sent = `1;owner="edge";call="0123456789abcdef"`
	s := inTurn(t, status(503, made+": 7;final"))
	for _, more := range []string{"", "gatewayRetries: true\n"} {
		owns := more != ""
		r := start(t, limited(s.url)+more, asGateway)
		before := len(s.seen())
		a := r.dial().send("GET / HTTP/1.1\r\nHost: s\r\n" + allowance + ": " + sent + "\r\n\r\n").answer()
		want := []string{sent}
		if owns {
			want = []string{`0;owner="edge"`}
		}
		if got := told(s)[before:]; !slices.Equal(got, want) ||
			!slices.Equal(a.header[http.CanonicalHeaderKey(made)], []string{"7;final"}) {
			t.Errorf("owner %v: the service was told %q, the client %v", owns, got, a.header)
		}
		before = len(s.seen())
		a = r.get("/")
		if got := told(s)[before]; (got != "") != owns || (a.header.Get(made) == "") != owns {
			t.Errorf("owner %v: without an allowance the service was told %q, the client %v", owns, got, a.header)
		}
	}
	r := start(t, limited("http://"+vacant(t)), asGateway)
	for fields, want := range map[string]string{"": "false", allowance + ": 2\r\n": ""} {
		a := r.dial().send("GET / HTTP/1.1\r\nHost: s\r\n" + fields + "\r\n").answer()
		if a.status != 502 || a.header.Get("X-Should-Retry") != want || a.header.Get(made) != "" {
			t.Errorf("%q: %+v", fields, a)
		}
	}
}

func TestCopiesShareTheAllowanceToo(t *testing.T) {
	eachWay(t, func(t *testing.T, in, out wire) {
		var got atomic.Int32
		url := out.serve(t, func(w http.ResponseWriter, r *http.Request) {
			if n := got.Add(1); r.Header.Get(allowance) != `0;owner="edge"` {
				t.Errorf("copy %d was told %q", n, r.Header.Values(allowance))
			} else if n == 1 {
				<-r.Context().Done()
			}
		})
		for left, copies := range []int32{1, 2, 2} {
			got.Store(int32(min(left, 1)) - 1) // without a second copy the first has to answer
			if left == 0 {
				got.Store(1)
			}
			before := got.Load()
			r := start(t, limited(url, "hedge: {delay: 5ms, maxHedges: 1}"))
			req := newRequest(t, "GET", "http://"+r.addr+"/", nil)
			req.Header.Set(allowance, fmt.Sprint(left)+`;owner="edge"`)
			resp := begin(t, in.client(t), req).head()
			if n := got.Load() - before; n != copies || resp.Header.Get(made) != fmt.Sprint(copies-1) {
				t.Errorf("%d left: %d copies, and the client was told %v", left, n, resp.Header)
			}
		}
	})
}

func TestTheAllowanceGoesBothWaysOverHTTP2(t *testing.T) {
	eachWay(t, func(t *testing.T, in, out wire) {
		var n atomic.Int32
		url := out.serve(t, func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Values(allowance); len(got) != 1 || got[0] != `0;owner="edge"` {
				t.Errorf("told %q", got)
			}
			n.Add(1)
			w.WriteHeader(503)
		})
		r := start(t, limited(url))
		req := newRequest(t, "GET", "http://"+r.addr+"/", nil)
		req.Header.Set(allowance, `1;owner="edge"`)
		resp := begin(t, in.client(t), req).head()
		if n.Load() != 2 || resp.Header.Get(made) != "1" || resp.Header.Get("X-Should-Retry") != "" {
			t.Errorf("%d attempts, and then %v", n.Load(), resp.Header)
		}
	})
}

func TestAPageThatIsNotThereMadeNoAttempts(t *testing.T) {
	r := start(t, "services:\n  s:\n    upstreams: [\"http://127.0.0.1:1\"]\n    routes: [{path: /there}]\n")
	a := r.dial().send("GET /here HTTP/1.1\r\nHost: s\r\n" + allowance + ": 2\r\n\r\n").answer()
	if a.status != 404 || a.header.Get(made) != "0" {
		t.Errorf("%+v", a)
	}
}

func TestAGoodAnswerIsKeptWithoutWhatWasMadeForIt(t *testing.T) {
	s := inTurn(t, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nCache-Control: max-age=0\r\n"+made+": 3\r\n\r\nx",
		status(503, made+": 0"))
	r := start(t, single([]string{s.url}, quickRetry, noBreaker, noEjection, "maxRetries: 1",
		"fallback: {staleIfError: 1m, shared: true}"))
	for _, want := range []string{"3", "1"} {
		a := r.dial().send("GET / HTTP/1.1\r\nHost: s\r\n" + allowance + ": 9\r\n\r\n").answer()
		if got := a.header[http.CanonicalHeaderKey(made)]; a.status != 200 || !slices.Equal(got, []string{want}) {
			t.Errorf("want %s: %+v", want, a)
		}
	}
}

func TestAReplayedAnswerMadeNoAttempts(t *testing.T) {
	s := inTurn(t, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n"+made+": 3\r\n\r\nx")
	r := protect(t, guardOf(s.url, trustLoop, noShed, keys))
	for _, want := range []string{"3", "0"} {
		a := r.dial().send("POST / HTTP/1.1\r\nHost: s\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n" + allowance +
			": 9\r\n\r\n").answer()
		if got := a.header[http.CanonicalHeaderKey(made)]; a.status != 200 || !slices.Equal(got, []string{want}) {
			t.Errorf("want %s: %+v", want, a)
		}
	}
}
