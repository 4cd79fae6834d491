package abatehttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/policy/hedge"
)

func TestRequestWithoutAGuardPassesThrough(t *testing.T) {
	var seen *http.Request
	base := roundTrip(func(req *http.Request) (*http.Response, error) {
		seen = req
		return answer(req, 503, nil, ""), nil
	})
	for name, transport := range map[string]*abatehttp.Transport{
		"no guard":      {Base: base},
		"none selected": {Base: base, Guard: guard(t, eager()), Select: func(*http.Request) *abate.Guard { return nil }},
		"NewTransport":  abatehttp.NewTransport(base, nil),
	} {
		req := newRequest(t, "GET", "http://payments.test", nil)
		if resp, err := transport.RoundTrip(req); err != nil || resp.StatusCode != 503 || seen != req {
			t.Errorf("%s: %v, %v", name, resp, err)
		}
	}
}

func TestZeroBaseIsTheDefaultTransport(t *testing.T) {
	b := serve(t, always(200))
	transport := &abatehttp.Transport{Guard: guard(t, eager())}
	client := &http.Client{Transport: transport}
	if status, _ := mustDo(t, client, newRequest(t, "GET", b.URL, nil)); status != 200 {
		t.Errorf("status %d", status)
	}
	client.CloseIdleConnections()
	if !settles(func() bool { return b.open.Load() == 0 }) {
		t.Error("CloseIdleConnections did not reach the base")
	}
}

func TestSelectChoosesTheGuard(t *testing.T) {
	b := serve(t, always(503))
	once, often := guard(t, abate.Policy{}), guard(t, eager())
	client, transport := newClient(t, nil)
	transport.Select = func(req *http.Request) *abate.Guard {
		if req.URL.Path == "/often" {
			return often
		}
		return once
	}
	mustDo(t, client, newRequest(t, "GET", b.URL+"/once", nil))
	mustDo(t, client, newRequest(t, "GET", b.URL+"/often", nil))
	if b.requests.Load() != 5 {
		t.Errorf("%d requests, want 1 + 4", b.requests.Load())
	}
}

func TestPerHostGivesEachHostAGuard(t *testing.T) {
	choose, err := abatehttp.PerHost(eager(), 0)
	if err != nil {
		t.Fatal(err)
	}
	at := func(u string) *abate.Guard { return choose(newRequest(t, "GET", u, nil)) }
	if g := at("http://a.test/x"); g == nil || g.Name() != "a.test" || g != at("http://A.test:80/y?z=1") ||
		g != at("https://a.test:443") {
		t.Errorf("one host, several guards")
	}
	if at("http://a.test") == at("http://b.test") || at("http://a.test") == at("http://a.test:8080") ||
		at("http://a.test:443") == at("https://a.test") {
		t.Error("two hosts, one guard")
	}
	if choose(&http.Request{}) != nil || choose(&http.Request{URL: new(url.URL)}) != nil {
		t.Error("a guard for no host")
	}
}

func TestPerHostIsBoundedAndForgetsTheLeastUsed(t *testing.T) {
	choose, err := abatehttp.PerHost(eager(), 3)
	if err != nil {
		t.Fatal(err)
	}
	at := func(host int) *abate.Guard {
		return choose(newRequest(t, "GET", fmt.Sprintf("http://h%d.test", host), nil))
	}
	first, second, third := at(1), at(2), at(3)
	at(1)
	at(4) // forgets 2, which is the one used least recently
	if at(1) != first || at(3) != third {
		t.Error("a guard in use was forgotten")
	}
	if at(2) == second {
		t.Error("more guards are kept than allowed")
	}
	for host := range 10_000 {
		at(host)
	}
}

func TestPerHostRefusesAnInvalidPolicy(t *testing.T) {
	p := eager()
	p.MaxRetries = -1
	var mistake *abate.FieldError
	if _, err := abatehttp.PerHost(p, 0); !errors.As(err, &mistake) {
		t.Errorf("error %v", err)
	}
}

// Nobody but the transport can close the answer of an attempt behind which the policy panics.
func TestAPanicOfThePolicyLeavesNoAnswerOpen(t *testing.T) {
	for name, hedge := range map[string]hedge.Config{"alone": {}, "hedged": {Delay: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			p := abate.Policy{Delay: func(int, abate.Outcome, uint64) time.Duration { panic("mine") }, Hedge: hedge}
			p.MaxRetries = 2
			g, err := abate.New("g", p)
			if err != nil {
				t.Fatal(err)
			}
			body := &closeNoted{Reader: strings.NewReader("no")}
			transport := abatehttp.NewTransport(roundTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 503, Header: http.Header{}, Body: body}, nil
			}), g)
			func() {
				defer func() {
					if recover() == nil {
						t.Error("the panic is gone")
					}
				}()
				_, _ = transport.RoundTrip(httptest.NewRequest("GET", "http://x/", nil))
			}()
			if !body.closed {
				t.Error("the body is never closed: its connection is lost")
			}
		})
	}
}

type closeNoted struct {
	io.Reader
	closed bool
}

func (b *closeNoted) Close() error { b.closed = true; return nil }
