package abatehttp_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/shed"
)

// hungUp is a writer whose client leaves: from then on, writing fails.
type hungUp struct {
	*httptest.ResponseRecorder
	left bool
}

func (w *hungUp) Write(p []byte) (int, error) {
	if w.left {
		return 0, errors.New("broken pipe")
	}
	return w.ResponseRecorder.Write(p)
}

func (w *hungUp) FlushError() error {
	if w.left {
		return errors.New("broken pipe")
	}
	return nil
}

// A handler ends early when it cannot write. What it has written by then must not be taken for the whole answer.
func TestAStreamIsKeptWholeWhenItsClientLeaves(t *testing.T) {
	for name, copies := range map[string]func(io.Writer) error{
		"Write":    func(w io.Writer) error { _, err := w.Write([]byte("two")); return err },
		"a string": func(w io.Writer) error { _, err := io.WriteString(w, "two"); return err },
		"a copy":   func(w io.Writer) error { _, err := io.Copy(w, strings.NewReader("two")); return err },
		"a flush": func(w io.Writer) error {
			io.WriteString(w, "two")
			return http.NewResponseController(w.(http.ResponseWriter)).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := &hungUp{ResponseRecorder: httptest.NewRecorder()}
			h := abatehttp.NewHandler(newGate(t, once()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "one ")
				w.(http.Flusher).Flush()
				client.left = true
				if copies(w) == nil {
					io.WriteString(w, " three")
				}
			}))
			r := httptest.NewRequest("POST", "/", nil)
			r.Header.Set("Idempotency-Key", "k")
			h.ServeHTTP(client, r)
			again := httptest.NewRecorder()
			h.ServeHTTP(again, r)
			if body := again.Body.String(); body != "one two three" || again.Header().Get("Idempotency-Replayed") != "true" {
				t.Errorf("the repeat got %d %q", again.Code, body)
			}
		})
	}
}

// An answer that is too large to be kept need not be written for nobody.
func TestAStreamThatIsNotKeptMayEndWithItsClient(t *testing.T) {
	client := &hungUp{ResponseRecorder: httptest.NewRecorder()}
	var err error
	h := abatehttp.NewHandler(newGate(t, once()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "one ")
		w.(http.Flusher).Flush()
		client.left = true
		for n := 0; err == nil && n < 10; n++ {
			_, err = io.WriteString(w, strings.Repeat("x", 500))
		}
	}))
	r := httptest.NewRequest("POST", "/", nil)
	r.Header.Set("Idempotency-Key", "k")
	h.ServeHTTP(client, r)
	again := httptest.NewRecorder()
	if h.ServeHTTP(again, r); err == nil || again.Code != 409 {
		t.Errorf("%v, and the repeat got %d", err, again.Code)
	}
}

func TestTheNearestHopSaysThePriority(t *testing.T) {
	r := from("10.0.0.1:1", "Abate-Priority", "CRITICAL_PLUS", "Abate-Priority", "SHEDDABLE")
	p := inbound.Protection{TrustedPeers: []string{"10.0.0.0/8"}}
	abatehttp.NewHandler(newGate(t, p), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if got, _ := core.PriorityOf(r.Context()); got != shed.Sheddable {
			t.Errorf("a client has made itself %v", got)
		}
	})).ServeHTTP(httptest.NewRecorder(), r)
}

func TestAClosedLimitNamesNoTime(t *testing.T) {
	p := inbound.Protection{RateLimit: inbound.ArrivalLimit{Config: ratelimit.Config{Limit: ratelimit.Rate{Per: 1e9}}}}
	w := httptest.NewRecorder()
	abatehttp.NewHandler(newGate(t, p), http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if h := w.Header(); w.Code != 429 || h.Get("RateLimit") != `"default";r=0` || h["X-Ratelimit-Reset"] != nil ||
		h.Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("%d %v", w.Code, h)
	}
}
