package abatehttp_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/idempotency"
)

// A server of HTTP/2 waits for open streams, and not for handlers whose client has left: such a run would be cut off by
// the end of the process, and done again by the next try.
func TestDrainWaitsForARunWhoseClientHasLeft(t *testing.T) {
	for name, leave := range map[string]func(cancel func(), c *http.Transport){
		"the stream is reset":      func(cancel func(), _ *http.Transport) { cancel() },
		"the connection is closed": func(cancel func(), c *http.Transport) { cancel(); c.CloseIdleConnections() },
	} {
		t.Run(name, func(t *testing.T) {
			checkGoroutines(t)
			began, end, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
			p := once()
			store := idempotency.NewMemory(1<<20, core.Now)
			p.Store = store
			h := abatehttp.NewHandler(newGate(t, p), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				close(began)
				<-end
				io.WriteString(w, "done")
			}))
			var protocols http.Protocols
			protocols.SetUnencryptedHTTP2(true)
			server := &http.Server{Protocols: &protocols,
				Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					context.AfterFunc(r.Context(), func() { close(left) })
					h.ServeHTTP(w, r)
				})}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go server.Serve(l)
			transport := &http.Transport{Protocols: &protocols}
			ctx, cancel := context.WithCancel(t.Context())
			req := newRequest(t, "POST", "http://"+l.Addr().String(), strings.NewReader("order")).WithContext(ctx)
			req.Header.Set("Idempotency-Key", "k")
			gone := make(chan error, 1)
			go func() {
				_, err := transport.RoundTrip(req)
				gone <- err
			}()
			<-began
			leave(cancel, transport)
			<-gone
			transport.CloseIdleConnections()
			<-left
			if err := server.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			late, stop := context.WithCancel(t.Context())
			stop()
			if err := abatehttp.Drain(late); err != context.Canceled {
				t.Errorf("drained with a run under way: %v", err)
			}
			close(end)
			if err := abatehttp.Drain(t.Context()); err != nil {
				t.Error(err)
			}
			key := idempotency.StoreKey("payments", principalOf(req), "k")
			print := idempotency.FingerprintOf("POST", "/", []byte("order"))
			b, err := store.Begin(t.Context(), key, print, p.Idempotency.WithDefaults().Lease)
			if err != nil || b.State != idempotency.Replay || string(b.Response.Body) != "done" {
				t.Errorf("after the end of the process a repeat is told %v, %q, %v", b.State, b.Response.Body, err)
			}
		})
	}
}

// principalOf is whose the key of a request is that shows nothing.
func principalOf(r *http.Request) string {
	principal, _ := idempotency.Principal("", idempotency.Sender{Field: r.Header.Get})
	return principal
}

// A handler that panics behind the head of an answer for good has done its work, as far as anybody knows: so does a
// reverse proxy when the service behind it breaks off. The next try must not do it again.
func TestAnAnswerThatBreaksOffIsNotDoneTwice(t *testing.T) {
	var charged atomic.Int32
	service := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		charged.Add(1)
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(201)
		io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	to, err := url.Parse(service.URL)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(to)
	forward.Transport = &http.Transport{DisableKeepAlives: true}
	forward.ErrorLog = log.New(io.Discard, "", 0)
	for name, handle := range map[string]http.HandlerFunc{
		"reverse-proxy": forward.ServeHTTP,
		"panic": func(w http.ResponseWriter, _ *http.Request) {
			charged.Add(1)
			io.WriteString(w, "half")
			panic("oops")
		},
	} {
		t.Run(name, func(t *testing.T) {
			charged.Store(0)
			b, _, decided := protect(t, once(), handle)
			first, again := newRequest(t, "POST", b.URL, strings.NewReader("order")),
				newRequest(t, "POST", b.URL, strings.NewReader("order"))
			first.Header.Set("Idempotency-Key", "k")
			again.Header.Set("Idempotency-Key", "k")
			<-async(first)
			resp, err := http.DefaultClient.Do(again)
			if err != nil {
				t.Fatalf("%v, charged %d times; keys %v", err, charged.Load(), decided.details())
			}
			defer resp.Body.Close()
			if p := problem(t, resp); resp.StatusCode != 409 || p["code"] != "idempotency-not-stored" || charged.Load() != 1 {
				t.Errorf("the repeat got %d %v, charged %d times; keys %v", resp.StatusCode, p, charged.Load(), decided.details())
			}
		})
	}
}
