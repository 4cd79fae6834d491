package abatehttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
)

// serveHTTP2 starts a server and returns its address and a base transport that speaks HTTP/2 with it and knows its
// settings.
func serveHTTP2(t *testing.T, handle http.HandlerFunc) (string, http.RoundTripper) {
	t.Helper()
	s := httptest.NewUnstartedServer(handle)
	s.EnableHTTP2 = true
	s.Config.MaxHeaderBytes = 4 << 10
	s.StartTLS()
	t.Cleanup(s.Close)
	resp, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if resp.ProtoMajor != 2 {
		t.Fatalf("protocol %s", resp.Proto)
	}
	return s.URL, s.Client().Transport
}

func TestMistakesOfCallersOfHTTP2AreNotHeldAgainstTheServer(t *testing.T) {
	url, base := serveHTTP2(t, func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	for name, spoil := range map[string]func(*http.Request){
		"header longer than the server takes": func(r *http.Request) { r.Header.Set("X-Big", strings.Repeat("a", 1<<20)) },
		"header that HTTP/2 does not have":    func(r *http.Request) { r.Header.Set("Transfer-Encoding", "gzip") },
		"body longer than its length":         func(r *http.Request) { r.ContentLength = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			p, events := watched(eager())
			req := newRequest(t, "PUT", url, strings.NewReader("content"))
			req.Header.Set("Idempotency-Key", "k1")
			spoil(req)
			resp, err := abatehttp.NewTransport(base, guard(t, p)).RoundTrip(req)
			if err == nil {
				resp.Body.Close()
				t.Fatalf("status %d", resp.StatusCode)
			}
			if ended := events.all(core.AttemptEnded); len(ended) != 1 || ended[0].Class != abate.Ignored {
				t.Errorf("error %v, attempts %+v", err, ended)
			}
		})
	}
}

func TestHTTP2AnswersWithoutABodyEndTheAttemptAtOnce(t *testing.T) {
	url, inner := serveHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "GET" {
			w.WriteHeader(204)
		}
	})
	for _, method := range []string{"GET", "HEAD"} {
		var attempt context.Context
		base := roundTrip(func(req *http.Request) (*http.Response, error) {
			attempt = req.Context()
			return inner.RoundTrip(req)
		})
		resp, err := abatehttp.NewTransport(base, guard(t, patient())).RoundTrip(newRequest(t, method, url, nil))
		if err != nil {
			t.Fatal(err)
		}
		if attempt.Err() == nil {
			t.Errorf("%s: the context goes on", method)
		}
		resp.Body.Close()
	}
}

func TestRetriesReplayBodyAndTrailerOverHTTP2(t *testing.T) {
	n := 0
	url, base := serveHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		if n++; n < 4 { // the first was without a guard
			w.WriteHeader(503)
			return
		}
		w.Header().Set("Trailer", "X-Sum")
		w.Write(content)
		w.Header().Set("X-Sum", "42")
	})
	req := newRequest(t, "PUT", url, strings.NewReader("content"))
	req.Header.Set("Idempotency-Key", "k1")
	resp, err := abatehttp.NewTransport(base, guard(t, patient())).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if content, err := io.ReadAll(resp.Body); string(content) != "content" || err != nil ||
		resp.Trailer.Get("X-Sum") != "42" || n != 4 {
		t.Errorf("%q after %d requests, trailer %v, error %v", content, n, resp.Trailer, err)
	}
}
