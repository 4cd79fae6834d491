package abateprom

import (
	"net/http"
	"strconv"
	"time"
)

// Requests returns an http.RoundTripper that counts what callers ask for. Put it around an abatehttp.Transport, or
// around any other. route names the service and the route of a request, and never its path; see Metrics.Endpoint. The
// time of a request ends with the header of its answer, as RoundTrip does. A nil base is http.DefaultTransport.
func (m *Metrics) Requests(base http.RoundTripper,
	route func(*http.Request) (service, endpoint string)) http.RoundTripper {
	return &requests{counted{m, base, route}}
}

// Attempts returns an http.RoundTripper that counts the attempts after the first. Put it under an abatehttp.Transport,
// as its Base: the attempt's number is in the header that one sets, so this counts nothing when OmitHeaders is set.
// route is as for Requests. A nil base is http.DefaultTransport.
func (m *Metrics) Attempts(base http.RoundTripper,
	route func(*http.Request) (service, endpoint string)) http.RoundTripper {
	return &attempts{counted{m, base, route}}
}

// counted is a base transport and how its requests are called.
type counted struct {
	metrics *Metrics
	next    http.RoundTripper
	route   func(*http.Request) (service, endpoint string)
}

func (c *counted) endpoint(req *http.Request) *Endpoint { return c.metrics.Endpoint(c.route(req)) }

func (c *counted) base() http.RoundTripper {
	if c.next == nil {
		return http.DefaultTransport
	}
	return c.next
}

// CloseIdleConnections closes the idle connections of the base, if it has any. http.Client.CloseIdleConnections calls
// it.
func (c *counted) CloseIdleConnections() {
	if closer, ok := c.base().(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

type requests struct{ counted }

// RoundTrip sends the request through the base, and counts it.
func (t *requests) RoundTrip(req *http.Request) (*http.Response, error) {
	e, status, began := t.endpoint(req), 0, time.Now()
	e.Began()
	defer func() { e.Ended(status, time.Since(began)) }() // also when the base panics
	resp, err := t.base().RoundTrip(req)
	if err == nil && resp != nil {
		status = resp.StatusCode
	}
	return resp, err
}

// attemptCountHeader is what abatehttp sets: the attempt's number, from 1.
const attemptCountHeader = "X-Envoy-Attempt-Count"

type attempts struct{ counted }

// RoundTrip sends the attempt through the base, and counts it if it is not the first of its request.
func (t *attempts) RoundTrip(req *http.Request) (*http.Response, error) {
	if v := req.Header[attemptCountHeader]; len(v) == 1 && v[0] != "1" {
		if n, err := strconv.Atoi(v[0]); err == nil && n > 1 {
			t.endpoint(req).Retried(n)
		}
	}
	return t.base().RoundTrip(req)
}
