package abateprom_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
)

// repeater stands for an abatehttp.Transport: it sends each request n times, and numbers the attempts.
type repeater struct {
	base http.RoundTripper
	n    int
}

func (r repeater) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	for attempt := range r.n {
		again := req.Clone(req.Context())
		again.Header.Set("X-Envoy-Attempt-Count", strconv.Itoa(attempt+1))
		if resp != nil {
			resp.Body.Close()
		}
		resp, err = r.base.RoundTrip(again)
	}
	return resp, err
}

func byPath(req *http.Request) (service, endpoint string) { return "s", req.URL.Path }

func TestTransportsCountRequestsAndAttempts(t *testing.T) {
	m := metrics(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/busy" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, "hello")
	}))
	defer server.Close()
	client := &http.Client{Transport: m.Requests(repeater{m.Attempts(server.Client().Transport, byPath), 3}, byPath)}
	for _, path := range []string{"/good", "/good", "/busy"} {
		resp, err := client.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "hello" {
			t.Errorf("%s: %q, %v", path, body, err)
		}
		resp.Body.Close()
	}
	client.CloseIdleConnections()
	m.fetch(t).want(t, map[string]float64{
		`http_client_requests_total{endpoint="/good",service="s",status="200"}`:      2,
		`http_client_requests_total{endpoint="/busy",service="s",status="503"}`:      1,
		`http_client_retry_attempts_total{attempt="2",endpoint="/good",service="s"}`: 2,
		`http_client_retry_attempts_total{attempt="3",endpoint="/good",service="s"}`: 2,
		`http_client_retry_attempts_total{attempt="3",endpoint="/busy",service="s"}`: 1,
		`http_client_request_duration_seconds_count{endpoint="/good",service="s"}`:   2,
		`http_client_concurrent_requests{service="s"}`:                               0,
	})
}

// stub is a base transport that does as it is told.
type stub func(*http.Request) (*http.Response, error)

func (s stub) RoundTrip(req *http.Request) (*http.Response, error) { return s(req) }

func TestARequestWithoutAnAnswerHasStatus0(t *testing.T) {
	m := metrics(t)
	for name, base := range map[string]stub{
		"an error": func(*http.Request) (*http.Response, error) { return nil, errDown },
		"both":     func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 200}, errDown },
		"neither":  func(*http.Request) (*http.Response, error) { return nil, nil },
		"a panic":  func(*http.Request) (*http.Response, error) { panic(errDown) },
		"still in air": func(*http.Request) (*http.Response, error) {
			m.scrape(t).want(t, map[string]float64{`http_client_concurrent_requests{service="s"}`: 1})
			return nil, errDown
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if r := recover(); r != nil && r != any(errDown) {
					panic(r)
				}
			}()
			if _, err := m.Requests(base, byPath).RoundTrip(request(t, "/")); err != nil && !errors.Is(err, errDown) {
				t.Errorf("the base's error became %v", err)
			}
		})
	}
	m.scrape(t).want(t, map[string]float64{
		`http_client_requests_total{endpoint="/",service="s",status="0"}`: 5,
		`http_client_concurrent_requests{service="s"}`:                    0,
	})
}

func request(t testing.TB, path string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:1"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestWhatIsNoAttemptNumberIsNotCounted(t *testing.T) {
	m := metrics(t)
	attempts := m.Attempts(stub(func(*http.Request) (*http.Response, error) { return nil, errDown }), byPath)
	for _, values := range [][]string{nil, {}, {"1"}, {"0"}, {"-2"}, {"two"}, {""}, {"2", "2"}, {"99999999999999999999"}} {
		req := request(t, "/")
		req.Header["X-Envoy-Attempt-Count"] = values
		_, _ = attempts.RoundTrip(req)
	}
	if got := m.scrape(t).of("http_client_retry_attempts_total"); len(got) != 0 {
		t.Errorf("counted: %v", got)
	}
}

type closer struct {
	stub
	closed int
}

func (c *closer) CloseIdleConnections() { c.closed++ }

func TestIdleConnectionsOfTheBaseAreClosed(t *testing.T) {
	m, base := metrics(t), &closer{}
	(&http.Client{Transport: m.Requests(m.Attempts(base, byPath), byPath)}).CloseIdleConnections()
	if base.closed != 1 {
		t.Errorf("closed %d times", base.closed)
	}
	(&http.Client{Transport: m.Requests(stub(nil), byPath)}).CloseIdleConnections() // has none
}

func TestWithoutABaseItIsTheDefaultTransport(t *testing.T) {
	m := metrics(t)
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	client := &http.Client{Transport: m.Requests(m.Attempts(nil, byPath), byPath)}
	resp, err := client.Get(server.URL + "/x")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	client.CloseIdleConnections()
	if resp, err := m.Requests(nil, byPath).RoundTrip(request(t, "/refused")); err == nil {
		resp.Body.Close()
		t.Error("nobody listens, and somebody answered")
	}
	m.scrape(t).want(t, map[string]float64{
		`http_client_requests_total{endpoint="/x",service="s",status="404"}`:     1,
		`http_client_requests_total{endpoint="/refused",service="s",status="0"}`: 1,
	})
}
