package abatehttp_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/inbound"
)

// pipes is a listener whose connections have no buffers: what nobody reads cannot be written.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// ask sends a request, or a part of one, over a connection of its own.
func (p pipes) ask(request string) net.Conn {
	mine, its := net.Pipe()
	p <- its
	go io.WriteString(mine, request)
	return mine
}

// answered returns the status of the answer to a request.
func (p pipes) answered(t *testing.T, request string) int {
	t.Helper()
	c := p.ask(request)
	defer c.Close()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// piped serves h over pipes, for as long as the test lasts.
func piped(t *testing.T, h http.Handler) (p pipes, end func()) {
	p = make(pipes)
	s := &http.Server{Handler: h}
	go s.Serve(p)
	return p, func() { s.Close() }
}

const (
	aGet  = "GET /%s HTTP/1.1\r\nHost: s\r\n\r\n"
	aPost = "POST /%s HTTP/1.1\r\nHost: s\r\nIdempotency-Key: \"k%d\"\r\nContent-Length: 100\r\n\r\n1234567890"
)

// slowly is a service all of whose requests but /fast have to do with what their clients send or take.
func slowly(t *testing.T) http.Handler {
	large := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	file := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(file, []byte(large), 0o600); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/fast", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "done") })
	mux.HandleFunc("/write", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(large)) })
	mux.HandleFunc("/rows", func(w http.ResponseWriter, _ *http.Request) {
		for err := error(nil); err == nil; {
			_, err = io.WriteString(w, "a row of a table\n")
		}
	})
	mux.HandleFunc("/copy", func(w http.ResponseWriter, _ *http.Request) {
		io.Copy(w, struct{ io.Reader }{strings.NewReader(large)})
	})
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) })
	mux.HandleFunc("/flush", func(w http.ResponseWriter, r *http.Request) { w.(http.Flusher).Flush() })
	for _, path := range []string{"/upload", "/keyed/upload"} {
		mux.HandleFunc(path, func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	}
	return mux
}

// tick is longer than an operation may take before it counts as waiting for its client.
const tick = 30 * time.Millisecond

func TestClientsThatAreSlowHoldNoSlots(t *testing.T) {
	for _, c := range []struct{ request, path string }{
		{aGet, "write"}, {aGet, "rows"}, {aGet, "copy"}, {aGet, "file"}, {aGet, "flush"}, {aPost, "upload"},
		{aPost, "keyed/upload"},
	} {
		for _, n := range []int{25, 500} {
			t.Run(fmt.Sprint(c.path, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { holdNoSlots(t, c.request, c.path, n) })
			})
		}
	}
}

// holdNoSlots has n clients be slow, ten of them at a time, and one fast one behind them.
func holdNoSlots(t *testing.T, request, path string, n int) {
	p, log := inbound.DefaultProtection(), new(gateLog)
	p.Observer = log
	if strings.HasPrefix(path, "keyed/") {
		p.Idempotency.Methods = []string{"POST"}
	}
	g := newGate(t, p)
	in, end := piped(t, abatehttp.NewHandler(g, slowly(t)))
	defer end()
	for i := range n {
		if args := []any{path, i}[:strings.Count(request, "%")]; true {
			defer in.ask(fmt.Sprintf(request, args...)).Close()
		}
		if i%10 == 9 {
			time.Sleep(tick)
		}
	}
	time.Sleep(tick)
	if st := g.State().Shed; st.InFlight != 0 || st.Queued != 0 {
		t.Errorf("%d clients are slow, and %+v", n, st)
	}
	if status := in.answered(t, fmt.Sprintf(aGet, "fast")); status != http.StatusOK {
		t.Errorf("the fast one gets %d", status)
	}
	for _, e := range log.all(inbound.RequestAdmitted) {
		if e.Delay > 0 {
			t.Errorf("one had to wait for %v", e.Delay)
		}
	}
	if refused := len(log.all(inbound.RequestRefused)); refused > 0 {
		t.Errorf("%d were refused", refused)
	}
}

// A service that works holds its slot: also one that copies what comes slowly from elsewhere.
func TestAServiceThatWorksHoldsItsSlot(t *testing.T) {
	for name, handle := range map[string]http.HandlerFunc{
		"by itself":      func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) },
		"on what it has": func(_ http.ResponseWriter, r *http.Request) { io.ReadAll(r.Body); time.Sleep(time.Second) },
		"between rows": func(w http.ResponseWriter, _ *http.Request) {
			w.Write(make([]byte, 5000))
			time.Sleep(time.Second)
		},
		"on what it copies": func(w http.ResponseWriter, _ *http.Request) { io.Copy(w, &sleeper{n: 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(t, places(1, 0))
				in, end := piped(t, abatehttp.NewHandler(g, handle))
				defer end()
				c := in.ask("POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 2\r\n\r\nhi")
				go io.Copy(io.Discard, c)
				defer c.Close()
				for range 9 {
					time.Sleep(100 * time.Millisecond)
					if st := g.State().Shed; st.InFlight != 1 {
						t.Fatalf("at work: %+v", st)
					}
				}
				time.Sleep(time.Second)
				if st := g.State().Shed; st.InFlight != 0 {
					t.Errorf("in the end: %+v", st)
				}
			})
		})
	}
}

// sleeper is a source that takes a second for each of n pieces.
type sleeper struct{ n int }

func (s *sleeper) Read(p []byte) (int, error) {
	if s.n--; s.n < 0 {
		return 0, io.EOF
	}
	time.Sleep(time.Second)
	return copy(p, "a piece"), nil
}

// What a gate learns of a request is the service's time, and not that of its client.
func TestTheTimeOfASlowClientIsNotTheServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, log := places(1, 0), new(gateLog)
		p.Observer = log
		in, end := piped(t, abatehttp.NewHandler(newGate(t, p), http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) {
				io.ReadAll(r.Body)
				time.Sleep(70 * time.Millisecond)
				w.Write(make([]byte, 10000))
			})))
		defer end()
		c := in.ask("POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 2\r\n\r\nh")
		defer c.Close()
		time.Sleep(time.Minute)
		io.WriteString(c, "i")
		time.Sleep(time.Minute)
		go io.Copy(io.Discard, c)
		time.Sleep(tick)
		synctest.Wait()
		done := log.all(inbound.RequestDone)
		if len(done) != 1 || done[0].Latency < 70*time.Millisecond || done[0].Latency > 70*time.Millisecond+2*tick {
			t.Errorf("%+v", done)
		}
	})
}

// The body that a request came with is there again when the Handler is through with it.
func TestABodyIsLentToTheHandlerOnly(t *testing.T) {
	h := abatehttp.NewHandler(newGate(t, places(1, 0)), http.HandlerFunc(
		func(_ http.ResponseWriter, r *http.Request) { io.ReadAll(r.Body) }))
	r := newRequest(t, "POST", "http://s/", strings.NewReader("x"))
	before := r.Body
	if h.ServeHTTP(&costless{http.Header{}}, r); r.Body != before {
		t.Errorf("the body is a %T", r.Body)
	}
}

func TestReadingAndWritingAtAGateCostNoAllocation(t *testing.T) {
	large, body := make([]byte, 32<<10), strings.NewReader("x")
	r := newRequest(t, "POST", "http://s/", body)
	h := abatehttp.NewHandler(newGate(t, places(1, 0)), http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			r.Body.Read(large)
			for range 10 {
				w.Write(large)
			}
		}))
	w := &costless{http.Header{}}
	got := testing.AllocsPerRun(1000, func() {
		body.Reset("x")
		h.ServeHTTP(w, r)
	})
	if got > 1 { // the exchange
		t.Errorf("%v allocations", got)
	}
}
