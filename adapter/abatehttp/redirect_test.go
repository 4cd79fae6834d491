package abatehttp_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/retry"
)

// signing is a transport that sends a copy of the request with a credential, and closes the body whatever becomes of
// it, as that of golang.org/x/oauth2 does.
type signing struct{ base http.RoundTripper }

func (s signing) RoundTrip(req *http.Request) (*http.Response, error) {
	signed := *req
	signed.Header = req.Header.Clone()
	signed.Header.Set("Authorization", "Bearer token")
	return s.base.RoundTrip(&signed)
}

// following is a transport that follows redirects by itself.
type following struct{ base http.RoundTripper }

func (f following) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	return (&http.Client{Transport: f.base}).Do(out)
}

// Whoever follows redirects, above the guard or below it, and whoever signs: each request that goes out is counted
// once, and has its body.
func TestRedirectsAreCountedOnceAndLoseNoBody(t *testing.T) {
	for name, c := range map[string]struct {
		chain func(*abate.Guard, http.RoundTripper) http.RoundTripper
		calls int // that the guard sees
		last  int // attempts at where it leads
	}{
		"above": {func(g *abate.Guard, b http.RoundTripper) http.RoundTripper { return abatehttp.NewTransport(b, g) }, 2, 3},
		"above, signed above": {func(g *abate.Guard, b http.RoundTripper) http.RoundTripper {
			return signing{abatehttp.NewTransport(b, g)}
		}, 2, 3},
		"above, signed below": {func(g *abate.Guard, b http.RoundTripper) http.RoundTripper {
			return abatehttp.NewTransport(signing{b}, g)
		}, 2, 3},
		"below": {func(g *abate.Guard, b http.RoundTripper) http.RoundTripper {
			return abatehttp.NewTransport(following{b}, g)
		}, 1, 3},
		"below, signed in between": {func(g *abate.Guard, b http.RoundTripper) http.RoundTripper {
			return abatehttp.NewTransport(signing{following{b}}, g)
		}, 1, 3},
	} {
		t.Run(name, func(t *testing.T) {
			last := 0
			b := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil || string(body) != "order" {
					t.Errorf("%s got %q, %v", r.URL.Path, body, err)
				}
				switch {
				case r.URL.Path == "/first":
					http.Redirect(w, r, "/last", http.StatusTemporaryRedirect)
				case last < 2:
					last++
					w.WriteHeader(503)
				default:
					last++
					io.WriteString(w, "done")
				}
			})
			g := guard(t, abate.Policy{
				Retry: abate.Retry{MaxRetries: 3, Backoff: retry.NoBackoff}, RetryBudget: budget.Config{
					Ratio: 0.5, Reserve: 10, Window: time.Hour,
				},
			})
			base := http.DefaultTransport.(*http.Transport).Clone()
			t.Cleanup(base.CloseIdleConnections)
			client := &http.Client{Transport: c.chain(g, base)}
			req := newRequest(t, "POST", b.URL+"/first", strings.NewReader("order"))
			req.Header.Set("Idempotency-Key", "k")
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if got := read(t, resp); got != "done" || last != c.last {
				t.Errorf("got %q after %d attempts", got, last)
			}
			if left, want := fmt.Sprintf("%.2f", g.Budget().Balance(core.Now())),
				fmt.Sprintf("%.2f", 10+float64(c.calls)/2-2); left != want {
				t.Errorf("the budget has %s left, want %s", left, want)
			}
		})
	}
}
