package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy"
)

// wire is how two ends of a connection speak: HTTP/1.1, or HTTP/2 without TLS.
type wire struct {
	name, scheme string
	protocols    *http.Protocols
}

var http1, h2c = func() (wire, wire) {
	one, two := new(http.Protocols), new(http.Protocols)
	one.SetHTTP1(true)
	two.SetUnencryptedHTTP2(true)
	return wire{"HTTP1", "http", one}, wire{"h2c", "h2c", two}
}()

// eachWay runs a test for clients and upstreams that speak either.
func eachWay(t *testing.T, test func(t *testing.T, in, out wire)) {
	for _, in := range []wire{http1, h2c} {
		for _, out := range []wire{http1, h2c} {
			t.Run(in.name+" to "+out.name, func(t *testing.T) {
				t.Parallel()
				test(t, in, out)
			})
		}
	}
}

// serve runs an upstream that speaks only w, and returns its base URL.
func (w wire) serve(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	l := listen(t)
	s := &http.Server{Handler: h, Protocols: w.protocols}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // ends with ErrServerClosed
	}()
	t.Cleanup(func() {
		s.Close()
		<-done
	})
	return w.scheme + "://" + l.Addr().String()
}

// client is one that speaks only w.
func (w wire) client(t testing.TB) *http.Client {
	tr := &http.Transport{Protocols: w.protocols, DisableCompression: true, MaxIdleConnsPerHost: 100}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// begun is a request that is under way.
type begun struct {
	t      testing.TB
	answer chan *http.Response
	failed chan error
	resp   *http.Response
	in     *bufio.Reader
}

// begin sends a request. Its body may be written meanwhile.
func begin(t testing.TB, c *http.Client, req *http.Request) *begun {
	b := &begun{t: t, answer: make(chan *http.Response, 1), failed: make(chan error, 1)}
	go func() {
		if resp, err := c.Do(req); err != nil {
			b.failed <- err
		} else {
			b.answer <- resp
		}
	}()
	return b
}

// head waits for the head of the answer.
func (b *begun) head() *http.Response {
	b.t.Helper()
	if b.resp != nil {
		return b.resp
	}
	select {
	case b.resp = <-b.answer:
		b.in = bufio.NewReader(b.resp.Body)
		b.t.Cleanup(func() { b.resp.Body.Close() })
	case err := <-b.failed:
		b.t.Fatalf("no answer: %v", err)
	case <-time.After(patience):
		b.t.Fatalf("no answer in time; goroutines:\n%s", goroutinesLeft())
	}
	return b.resp
}

// line waits for a line of the answer's content.
func (b *begun) line(want string) {
	b.t.Helper()
	b.head()
	within(b.t, "the line "+want, func() {
		if got, err := b.in.ReadString('\n'); got != want+"\n" || err != nil {
			b.t.Errorf("got the line %q, %v; want %q", got, err, want)
		}
	})
}

// rest waits for what is left of the content, which must end well.
func (b *begun) rest(want string) {
	b.t.Helper()
	b.head()
	within(b.t, "the end of the answer", func() {
		if got, err := io.ReadAll(b.in); string(got) != want || err != nil {
			b.t.Errorf("the content goes on with %q, %v; want %q", got, err, want)
		}
	})
}

// within fails the test when f takes longer than anything should.
func within(t testing.TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("never: %s; goroutines:\n%s", what, goroutinesLeft())
	}
}

// wait waits for something that a handler tells.
func wait[T any](t testing.TB, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("never: %s; goroutines:\n%s", what, goroutinesLeft())
	}
	return v
}

// hold waits for c, or for the end of the test: an upstream must not outlive it.
func hold(t testing.TB, c <-chan struct{}) {
	select {
	case <-c:
	case <-t.Context().Done():
	}
}

func newRequest(t testing.TB, method, url string, body io.Reader) *http.Request {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// flush has what was written so far sent.
func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// pieces sends the head of its answer at once, and every piece of the request back when it comes.
func pieces(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 has it anyway
	w.Header().Set("Content-Type", "application/octet-stream")
	flush(w)
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Body.Read(buf)
		if _, failed := w.Write(buf[:n]); failed != nil || err != nil {
			return
		}
		flush(w)
	}
}

func TestBothDirectionsFlowAtOnce(t *testing.T) {
	eachWay(t, func(t *testing.T, in, out wire) {
		r := start(t, single([]string{out.serve(t, pieces)}))
		body, send := io.Pipe()
		b := begin(t, in.client(t), newRequest(t, "POST", "http://"+r.addr+"/", body))
		b.head() // before anything of the body has been sent
		for _, l := range []string{"one", "two", "three"} {
			within(t, "sending "+l, func() { io.WriteString(send, l+"\n") })
			b.line(l)
		}
		send.Close()
		b.rest("")
	})
}

func TestTrailersPassBothWays(t *testing.T) {
	for _, held := range []bool{false, true} {
		t.Run(fmt.Sprintf("held %v", held), func(t *testing.T) {
			eachWay(t, func(t *testing.T, in, out wire) {
				r := start(t, single([]string{out.serve(t, func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Trailer", "X-Announced")
					body, err := io.ReadAll(r.Body)
					fmt.Fprintf(w, "%s %v", body, err)
					flush(w)
					w.Header().Set("X-Announced", r.Trailer.Get("X-Sum"))
					w.Header().Set(http.TrailerPrefix+"X-Late", "late")
				})}))
				body, send := io.Pipe()
				req := newRequest(t, "POST", "http://"+r.addr+"/", body)
				req.Trailer = http.Header{"X-Sum": nil}
				if held {
					req.Header.Set("Idempotency-Key", "k")
				} else {
					req.Header.Set("Te", "trailers")
				}
				b := begin(t, in.client(t), req)
				io.WriteString(send, "content")
				req.Trailer.Set("X-Sum", "42")
				send.Close()
				b.head()
				b.rest("content <nil>")
				if got := b.resp.Trailer; got.Get("X-Announced") != "42" || got.Get("X-Late") != "late" {
					t.Errorf("the answer's trailers are %v", got)
				}
			})
		})
	}
}

func TestAClientThatLeavesTakesItsRequestWithIt(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	for _, headFirst := range []bool{false, true} {
		t.Run(fmt.Sprintf("after the head %v", headFirst), func(t *testing.T) {
			eachWay(t, func(t *testing.T, in, out wire) {
				came, left := make(chan struct{}, 10), make(chan struct{}, 10)
				r := start(t, single([]string{out.serve(t, func(w http.ResponseWriter, r *http.Request) {
					if headFirst {
						flush(w)
					}
					came <- struct{}{}
					<-r.Context().Done()
					left <- struct{}{}
				})}, quickRetry))
				req := newRequest(t, "GET", "http://"+r.addr+"/", nil)
				ctx, cancel := context.WithCancel(req.Context())
				b := begin(t, in.client(t), req.WithContext(ctx))
				wait(t, "the request", came)
				if headFirst {
					b.head()
				}
				cancel()
				wait(t, "the upstream hears of it", left)
				eventually(t, "nothing pending", func() bool { return r.guard().Endpoints[0].Pending == 0 })
				if len(came) > 0 {
					t.Error("the request was sent again")
				}
				if g := r.guard(); g.Breaker.State != "closed" || !headFirst && g.Breaker.Calls != 0 {
					t.Errorf("the breaker took notice: %+v", g.Breaker)
				}
			})
		})
	}
}

func TestLargeBodiesPassBothWays(t *testing.T) {
	sent := bytes.Repeat([]byte("0123456789abcde\n"), 4<<20>>4)
	eachWay(t, func(t *testing.T, in, out wire) {
		r := start(t, single([]string{out.serve(t, pieces)}))
		for _, known := range []bool{true, false} {
			var body io.Reader = bytes.NewReader(sent)
			if !known {
				body = io.MultiReader(body) // nobody can see its length
			}
			b := begin(t, in.client(t), newRequest(t, "POST", "http://"+r.addr+"/", body))
			b.head()
			within(t, "the content", func() {
				if got, err := io.ReadAll(b.in); !bytes.Equal(got, sent) || err != nil {
					t.Errorf("known length %v: got %d bytes of %d, %v", known, len(got), len(sent), err)
				}
			})
		}
	})
}

func TestManyRequestsAtOnceGetTheirOwnAnswers(t *testing.T) {
	const many = 300 // more than the streams that a connection may have at once
	eachWay(t, func(t *testing.T, in, out wire) {
		var inside atomic.Int32
		full := make(chan struct{})
		r := start(t, single([]string{out.serve(t, func(w http.ResponseWriter, r *http.Request) {
			if inside.Add(1) == 100 { // they are there at the same time
				close(full)
			}
			<-full
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s", r.URL.Path, body)
		})}, noBreaker)) // which is right to open: who takes long to begin 100 calls has a service that answers none of them
		c := in.client(t)
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() {
				body := strings.Repeat(fmt.Sprint(i), 100)
				resp, err := c.Post(fmt.Sprintf("http://%s/%d", r.addr, i), "text/plain", strings.NewReader(body))
				if err != nil {
					t.Errorf("%d: %v", i, err)
					return
				}
				defer resp.Body.Close()
				if got, err := io.ReadAll(resp.Body); string(got) != fmt.Sprintf("/%d %s", i, body) || err != nil {
					t.Errorf("%d: got %s %.300q, %v", i, resp.Status, got, err)
				}
			})
		}
		within(t, "all answers", all.Wait)
	})
}

func TestAnswersWithoutContentKeepTheirHead(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/known":
			w.Header().Set("Content-Length", "1000")
		case "/unknown":
			flush(w) // Go's server knows the length otherwise
		case "/204":
			w.WriteHeader(204)
		case "/304":
			w.Header().Set("Etag", `"x"`)
			w.WriteHeader(304)
		}
	}
	eachWay(t, func(t *testing.T, in, out wire) {
		r, c := start(t, single([]string{out.serve(t, h)})), in.client(t)
		for _, tt := range []struct {
			method, path string
			status       int
			length       int64
		}{
			{"HEAD", "/known", 200, 1000},
			{"HEAD", "/unknown", 200, -1},
			{"GET", "/204", 204, 0},
			{"GET", "/304", 304, -1},
			{"GET", "/empty", 200, 0},
			{"GET", "/empty", 200, 0}, // the connection is still good
		} {
			b := begin(t, c, newRequest(t, tt.method, "http://"+r.addr+tt.path, nil))
			resp := b.head()
			b.rest("")
			length := resp.ContentLength
			if resp.Header.Get("Content-Length") == "" && tt.status == 304 {
				length = -1 // what Go makes of none differs between the two
			}
			if resp.StatusCode != tt.status || length != tt.length || tt.status == 304 && resp.Header.Get("Etag") != `"x"` {
				t.Errorf("%s %s: %d with length %d, want %d with %d; %v", tt.method, tt.path, resp.StatusCode, length, tt.status,
					tt.length, resp.Header)
			}
		}
	})
}

// TestNothingIsInvented: no User-Agent, no Accept-Encoding, no Content-Type that was not there.
func TestNothingIsInvented(t *testing.T) {
	eachWay(t, func(t *testing.T, in, out wire) {
		r := start(t, single([]string{out.serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Type"], w.Header()["Date"] = nil, nil
			fmt.Fprint(w, slices.Sorted(maps.Keys(r.Header)))
		})}))
		req := newRequest(t, "GET", "http://"+r.addr+"/", nil)
		req.Header.Set("User-Agent", "")
		req.Header.Set("X-Own", "1")
		b := begin(t, in.client(t), req)
		b.head()
		b.rest("[Abate-Retry-Allowance Via X-Envoy-Attempt-Count X-Own]")
		for name := range b.resp.Header {
			if name != "Content-Length" && name != "Date" {
				t.Errorf("the answer has got a %s: %v", name, b.resp.Header[name])
			}
		}
	})
}

func TestTheTargetArrivesAsItWasWritten(t *testing.T) {
	for _, out := range []wire{http1, h2c} {
		t.Run(out.name, func(t *testing.T) {
			r := start(t, single([]string{out.serve(t, func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, r.RequestURI)
			})})+"ambiguousPaths: keep\n")
			for _, target := range []string{
				"/", "/a|b", "/a%2Fb//c/../d?x=%zz;y", "//twice", "/?", "/a%20b?c?d", "/%E4%BD%A0", "/a%7eb/%2e%2e/..;/%2f",
			} {
				if a := r.get(target); a.content != target {
					t.Errorf("%s arrived as %s (%d)", target, a.content, a.status)
				}
			}
		})
	}
}

// grpcRequest begins a call. What is written to the pipe are its messages.
func grpcRequest(t *testing.T, r *running) (*http.Request, *io.PipeWriter) {
	body, send := io.Pipe()
	t.Cleanup(func() { send.Close() })
	req := newRequest(t, "POST", "http://"+r.addr+"/pkg.Service/Method", body)
	req.Header.Set("Content-Type", "application/grpc+proto")
	req.Header.Set("Te", "trailers")
	return req, send
}

// TestGRPCPassesToAnUpstreamWithAPlainURL: gRPC needs HTTP/2, so the upstream speaks it, whatever its URL says.
func TestGRPCPassesToAnUpstreamWithAPlainURL(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel() // it waits
	cancelled := make(chan struct{}, 1)
	h := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc+proto")
		in := bufio.NewReader(r.Body)
		l, _ := in.ReadString('\n')
		fmt.Fprintf(w, "%s %s\n", r.Header.Get("Te"), strings.TrimSuffix(l, "\n"))
		flush(w)
		switch {
		case l == "wait\n":
			<-r.Context().Done()
			cancelled <- struct{}{}
		case l == "all\n":
			for l, err := in.ReadString('\n'); err == nil; l, err = in.ReadString('\n') {
				io.WriteString(w, l)
				flush(w)
			}
		}
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "7")
		w.Header().Set(http.TrailerPrefix+"Grpc-Message", "denied")
	}
	url := strings.Replace(h2c.serve(t, h), "h2c://", "http://", 1)
	const limit = 3 * time.Second
	r := start(t, single([]string{url}, "attemptTimeout: "+limit.String()))
	c := h2c.client(t)
	call := func(first string) (*begun, *io.PipeWriter, context.CancelFunc) {
		req, send := grpcRequest(t, r)
		ctx, cancel := context.WithCancel(req.Context())
		b := begin(t, c, req.WithContext(ctx))
		within(t, "sending", func() { io.WriteString(send, first+"\n") })
		b.line("trailers " + first)
		return b, send, cancel
	}
	wantStatus := func(b *begun) {
		t.Helper()
		if s, m := b.resp.Trailer.Get("Grpc-Status"), b.resp.Trailer.Get("Grpc-Message"); s != "7" || m != "denied" {
			t.Errorf("the call ended with %q %q: %v", s, m, b.resp.Trailer)
		}
	}
	t.Run("streams both ways past the time limit of an attempt", func(t *testing.T) {
		b, send, cancel := call("all")
		defer cancel()
		tick := time.NewTicker(limit / 50)
		defer tick.Stop()
		for i := range 60 { // for longer than an attempt may take
			<-tick.C
			within(t, "sending", func() { fmt.Fprintln(send, i) })
			b.line(fmt.Sprint(i))
		}
		send.Close()
		b.rest("")
		wantStatus(b)
	})
	t.Run("a service that ends the call before its client has", func(t *testing.T) {
		b, _, cancel := call("enough")
		defer cancel()
		b.rest("")
		wantStatus(b)
	})
	t.Run("a client that cancels", func(t *testing.T) {
		b, _, cancel := call("wait")
		cancel()
		b.resp.Body.Close() // Go's client looks at one or the other
		wait(t, "the service hears of it", cancelled)
	})
}

// TestAGRPCStreamMayBeIdle: one that waits for news has nothing to send for hours.
func TestAGRPCStreamMayBeIdle(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel()
	const stall = time.Second
	url := h2c.serve(t, func(w http.ResponseWriter, r *http.Request) {
		pieces(w, r)
	})
	r := start(t, single([]string{url}), func(c *proxy.Config) { c.StallTimeout, c.IdleTimeout = stall, stall })
	req, send := grpcRequest(t, r)
	b := begin(t, h2c.client(t), req)
	b.head()
	tick := time.NewTicker(2 * stall)
	defer tick.Stop()
	for _, l := range []string{"one", "two"} {
		<-tick.C
		within(t, "sending "+l, func() { io.WriteString(send, l+"\n") })
		b.line(l)
	}
	send.Close()
	b.rest("")
}

func TestGRPCAnswerOfTrailersOnly(t *testing.T) {
	url := h2c.serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Status", "12")
	})
	r := start(t, single([]string{url}))
	req, send := grpcRequest(t, r)
	send.Close()
	b := begin(t, h2c.client(t), req)
	b.head()
	b.rest("")
	if s := b.resp.Header.Get("Grpc-Status"); s != "12" {
		t.Errorf("grpc-status %q: %v", s, b.resp.Header)
	}
}

func TestAFailedAttemptIsRepeatedWithItsBody(t *testing.T) {
	eachWay(t, func(t *testing.T, in, out wire) {
		var bodies []string
		r := start(t, single([]string{out.serve(t, func(w http.ResponseWriter, r *http.Request) { // one at a time
			body, err := io.ReadAll(r.Body)
			bodies = append(bodies, fmt.Sprintf("%s %s %v", r.Header.Get("X-Envoy-Attempt-Count"), body, err))
			if len(bodies) < 3 {
				w.WriteHeader(503)
				io.WriteString(w, strings.Repeat("busy ", 1000))
				return
			}
			io.WriteString(w, "good")
		})}, quickRetry))
		req := newRequest(t, "POST", "http://"+r.addr+"/",
			io.MultiReader(strings.NewReader("con"), strings.NewReader("tent")))
		req.Header.Set("Idempotency-Key", "k")
		b := begin(t, in.client(t), req)
		b.head()
		b.rest("good")
		if got, want := fmt.Sprint(bodies), "[1 content <nil> 2 content <nil> 3 content <nil>]"; got != want {
			t.Errorf("the upstream got %s, want %s", got, want)
		}
	})
}

// TestASlowAttemptGetsACopy: the copy wins with an answer whose content is still to come, and the slow one is
// cancelled.
func TestASlowAttemptGetsACopy(t *testing.T) {
	eachWay(t, func(t *testing.T, in, out wire) {
		came, cancelled, goOn := make(chan struct{}), make(chan struct{}, 1), make(chan struct{})
		r := start(t, single([]string{out.serve(t, func(w http.ResponseWriter, r *http.Request) {
			attempt := r.Header.Get("X-Envoy-Attempt-Count")
			if attempt == "1" { // which need not be the first to come
				close(came)
				<-r.Context().Done()
				cancelled <- struct{}{}
				return
			}
			hold(t, came) // else it could win before the other has set out
			io.WriteString(w, "first\n")
			flush(w)
			hold(t, goOn)
			io.WriteString(w, attempt)
		})}, "hedge: {delay: 20ms}", "attemptTimeout: 20s"))
		b := begin(t, in.client(t), newRequest(t, "GET", "http://"+r.addr+"/", nil))
		b.line("first")
		wait(t, "the slow attempt hears that it has lost", cancelled)
		close(goOn)
		b.rest("2")
		if g := r.guard(); g.Breaker.State != "closed" {
			t.Errorf("the breaker is %s", g.Breaker.State)
		}
	})
}

// TestAnAnswerThatBreaksOffIsNotTakenForComplete: the client must see that something is missing.
func TestAnAnswerThatBreaksOffIsNotTakenForComplete(t *testing.T) {
	eachWay(t, func(t *testing.T, in, out wire) {
		r := start(t, single([]string{out.serve(t, func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "half")
			flush(w)
			panic(http.ErrAbortHandler)
		})}))
		b := begin(t, in.client(t), newRequest(t, "GET", "http://"+r.addr+"/", nil))
		b.head()
		within(t, "the end", func() {
			if got, err := io.ReadAll(b.in); string(got) != "half" || err == nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	})
}

// frames is a connection on which a test speaks HTTP/2 by hand: RFC 9113 §4.
type frames struct {
	net.Conn
	t testing.TB
}

// Types of frames and codes of errors that the tests use.
const (
	dataFrame, headersFrame, resetFrame, settingsFrame, pingFrame, goAwayFrame = 0, 1, 3, 4, 6, 7

	ack, endStream, endHeaders = 1, 1, 4
	refusedStream              = 7
)

// statusOK is ":status: 200" in the static table of RFC 7541.
var statusOK = []byte{0x88}

func (f *frames) write(kind, flags byte, stream uint32, payload []byte) {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	b = binary.BigEndian.AppendUint32(append(b, flags), stream)
	_, _ = f.Write(append(b, payload...)) // the other end may have gone
}

func (f *frames) read() (kind, flags byte, stream uint32, payload []byte, err error) {
	var h [9]byte
	if _, err = io.ReadFull(f, h[:]); err != nil {
		return 0, 0, 0, nil, err
	}
	payload = make([]byte, binary.BigEndian.Uint32(h[:4])>>8)
	_, err = io.ReadFull(f, payload)
	return h[3], h[4], binary.BigEndian.Uint32(h[5:]), payload, err
}

// rawHTTP2 is an upstream that answers the nth request, over all its connections, by hand. It returns its URL.
func rawHTTP2(t testing.TB, answer func(f *frames, stream uint32, n int)) string {
	var requests atomic.Int32
	s := rawUpstream(t, func(c net.Conn, _ int) {
		f := &frames{c, t}
		if _, err := io.ReadFull(c, make([]byte, 24)); err != nil { // the preface
			return
		}
		f.write(settingsFrame, 0, 0, nil)
		for {
			kind, flags, stream, payload, err := f.read()
			switch {
			case err != nil:
				return
			case kind == settingsFrame && flags&ack == 0:
				f.write(settingsFrame, ack, 0, nil)
			case kind == pingFrame && flags&ack == 0:
				f.write(pingFrame, ack, 0, payload)
			case kind == headersFrame:
				answer(f, stream, int(requests.Add(1)))
			}
		}
	})
	return strings.Replace(s.url, "http://", "h2c://", 1)
}

// A request that a service has refused unread may be sent again whatever its method. That is another attempt, which the
// budget pays for; one that was on its way to a connection that was ending is not.
func TestARequestThatWasRefusedUnreadIsSentAgain(t *testing.T) {
	for name, c := range map[string]struct {
		refuse   func(f *frames, stream uint32)
		attempts string
	}{
		"REFUSED_STREAM": {func(f *frames, stream uint32) {
			f.write(resetFrame, 0, stream, binary.BigEndian.AppendUint32(nil, refusedStream))
		}, "2"},
		"GOAWAY": {func(f *frames, stream uint32) {
			f.write(goAwayFrame, 0, 0, make([]byte, 8)) // no request was taken, no error
			f.Close()
		}, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			var served atomic.Int32
			url := rawHTTP2(t, func(f *frames, stream uint32, n int) {
				if n == 1 {
					c.refuse(f, stream)
					return
				}
				served.Add(1)
				f.write(headersFrame, endHeaders, stream, statusOK)
				f.write(dataFrame, endStream, stream, []byte("good"))
			})
			r := start(t, single([]string{url}, quickRetry))
			before := r.guard().Budget
			a := r.dial().send("POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 4\r\n\r\nbody").answer()
			if a.status != 200 || a.content != "good" || served.Load() != 1 {
				t.Errorf("got %d %q, %d answers", a.status, a.content, served.Load())
			}
			counted := strings.Contains(r.adminGet("/metrics"),
				`http_client_retry_attempts_total{attempt="2",endpoint="/",service="s"} 1`)
			if after := r.guard().Budget; counted != (c.attempts == "2") || counted != (after < before-0.5) {
				t.Errorf("counted as an attempt: %v; budget %v before, %v after", counted, before, after)
			}
		})
	}
}

// TestAResetStreamIsAFailureThatIsRepeated: INTERNAL_ERROR after the request has been taken.
func TestAResetStreamIsAFailureThatIsRepeated(t *testing.T) {
	url := rawHTTP2(t, func(f *frames, stream uint32, n int) {
		if n == 1 {
			f.write(resetFrame, 0, stream, binary.BigEndian.AppendUint32(nil, 2))
			return
		}
		f.write(headersFrame, endHeaders|endStream, stream, statusOK)
	})
	r := start(t, single([]string{url}, quickRetry))
	if a := r.get("/"); a.status != 200 {
		t.Errorf("got %d %s", a.status, a.content)
	}
	if m := r.adminGet("/metrics"); !strings.Contains(
		m, `http_client_retry_attempts_total{attempt="2",endpoint="/",service="s"} 1`) {
		t.Errorf("metrics:\n%s", grep(m, "retr"))
	}
}

// grep returns the lines with a word in them.
func grep(page, word string) string {
	var found strings.Builder
	for l := range strings.Lines(page) {
		if strings.Contains(l, word) && !strings.HasPrefix(l, "#") {
			found.WriteString(l)
		}
	}
	return found.String()
}

// TestAnUpstreamThatIsNoHTTP2ServerGetsAClearAnswer: h2c:// in front of a server of HTTP/1.1.
func TestAnUpstreamThatIsNoHTTP2ServerGetsAClearAnswer(t *testing.T) {
	url := strings.Replace(http1.serve(t, pieces), "http://", "h2c://", 1)
	r := start(t, single([]string{url}, noRetries))
	if a := r.get("/"); a.status != 502 || !strings.Contains(a.content, "HTTP/2") &&
		!strings.Contains(a.content, "http2") {
		t.Errorf("got %d %s", a.status, a.content)
	}
}

// TestTheAnswerOfHTTP2EndsWithItsStream: a client may go on sending to a service that has answered already.
func TestTheAnswerOfHTTP2EndsWithItsStream(t *testing.T) {
	eachWay(t, func(t *testing.T, in, out wire) {
		r := start(t, single([]string{out.serve(t, func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex()
			w.Header().Set("Connection", "close")
			io.WriteString(w, "early")
		})}))
		body, send := io.Pipe()
		defer send.Close()
		b := begin(t, in.client(t), newRequest(t, "POST", "http://"+r.addr+"/", body))
		b.head()
		b.rest("early")
		if errors.Is(b.resp.Request.Context().Err(), context.Canceled) {
			t.Error("cancelled")
		}
	})
}

// The trailer of a request is that of no other on the same connection.
func TestATrailerBelongsToOneRequest(t *testing.T) {
	url := h2c.serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, r.Trailer.Get("X-Sum"))
	})
	for _, method := range []string{"POST", "PUT"} { // sent on as it comes, and held
		c := start(t, single([]string{url})).dial()
		head := method + " / HTTP/1.1\r\nHost: s.test\r\nTE: trailers\r\n"
		first := c.send(head + "Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 7\r\n\r\n").answer()
		c.send(head + "Trailer: X-Sum\r\nContent-Length: 100000\r\n\r\n")
		if next := c.send(strings.Repeat("b", 100000)).answer(); first.content != "7" || next.content != "" {
			t.Errorf("%s: trailers %q and then %q", method, first.content, next.content)
		}
	}
}
