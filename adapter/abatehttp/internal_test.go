package abatehttp_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
)

// What is meant for services of one's own does not go to hosts that nobody has named, unless the policy says so; nor to
// where a redirect leads.
func TestInternalHeadersDoNotLeaveForHostsOutside(t *testing.T) {
	perHost := func(p abate.Policy) func(*testing.T) *abatehttp.Transport {
		return func(t *testing.T) *abatehttp.Transport {
			choose, err := abatehttp.PerHost(p, 0)
			if err != nil {
				t.Fatal(err)
			}
			return &abatehttp.Transport{Select: choose}
		}
	}
	named := func(p abate.Policy) func(*testing.T) *abatehttp.Transport {
		return func(t *testing.T) *abatehttp.Transport { return &abatehttp.Transport{Guard: guard(t, p)} }
	}
	says := func(p abate.Policy, what core.InternalHeaders) abate.Policy {
		p.InternalHeaders = what
		return p
	}
	outside := func(*testing.T) *abatehttp.Transport {
		return &abatehttp.Transport{Select: func(*http.Request) *abate.Guard { return nil }}
	}
	for _, c := range []struct {
		name      string
		transport func(*testing.T) *abatehttp.Transport
		path      string
		leave     bool
	}{
		{"a service that is named", named(eager()), "/", true},
		{"one whose policy omits them", named(says(eager(), core.OmitInternal)), "/", false},
		{"a host of many", perHost(eager()), "/", false},
		{"a host of many, whose policy sends them", perHost(says(eager(), core.SendInternal)), "/", true},
		{"a host without a guard", outside, "/", false},
		{"where a redirect leads", named(eager()), "/redirect", false},
		{"where a redirect leads, on the same host", named(eager()), "/home", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got http.Header
			transport := c.transport(t)
			transport.Base = roundTrip(func(r *http.Request) (*http.Response, error) {
				switch r.URL.Path {
				case "/redirect":
					return answer(r, 302, http.Header{"Location": {"http://elsewhere.test/"}}, ""), nil
				case "/home":
					return answer(r, 302, http.Header{"Location": {"/"}}, ""), nil
				}
				got = r.Header
				return answer(r, 200, nil, ""), nil
			})
			req := newRequest(t, "GET", "http://api.test"+c.path, nil)
			req.Header.Set("X-Envoy-Max-Retries", "1")
			req.Header.Set("X-Other", "kept")
			resp, err := (&http.Client{Transport: transport}).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			left := 0
			for name := range got {
				if strings.HasPrefix(name, "Abate-") || strings.HasPrefix(name, "X-Envoy-") {
					left++
				}
			}
			if (left > 0) != c.leave || got.Get("X-Other") != "kept" || req.Header.Get("X-Envoy-Max-Retries") != "1" {
				t.Errorf("sent %q of %q", got, req.Header)
			}
		})
	}
}
