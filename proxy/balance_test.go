package proxy_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
)

// member is one of several endpoints of a service.
type member struct {
	*server
	down atomic.Bool
}

func newMember(t *testing.T, name string) *member {
	m := new(member)
	m.server = upstream(t, func(c net.Conn, _ string) {
		if m.down.Load() {
			io.WriteString(c, status(503))
			return
		}
		io.WriteString(c, ok(name))
	})
	return m
}

// ejected reports which endpoints are out, in the order of the file.
func (r *running) ejected() (out []bool) {
	for _, e := range r.guard().Endpoints {
		out = append(out, e.Ejected)
	}
	return out
}

func TestEveryEndpointGetsRequests(t *testing.T) {
	a, b, c := newMember(t, "a"), newMember(t, "b"), newMember(t, "c")
	r := start(t, single([]string{a.url, b.url, c.url}))
	got := map[string]int{}
	for range 100 {
		got[r.get("/").content]++
	}
	for _, name := range []string{"a", "b", "c"} {
		if got[name] < 10 {
			t.Errorf("%s got %d of 100 requests: %v", name, got[name], got)
		}
	}
}

func TestAHeavyEndpointGetsMoreRequests(t *testing.T) {
	light, heavy := newMember(t, "light"), newMember(t, "heavy")
	r := start(t, single([]string{light.url, heavy.url}, "weights: [1, 9]"))
	got := map[string]int{}
	for range 200 {
		got[r.get("/").content]++
	}
	if got["light"] == 0 || got["heavy"] < 4*got["light"] {
		t.Errorf("with weights 1 and 9 they got %v of 200 requests", got)
	}
}

func TestABusyEndpointGetsFewerRequests(t *testing.T) {
	release := make(chan struct{})
	slow := upstream(t, func(c net.Conn, _ string) {
		hold(t, release)
		io.WriteString(c, ok("slow"))
	})
	quick := newMember(t, "quick")
	r := start(t, single([]string{slow.url, quick.url}))
	var waiting *client
	for len(slow.seen()) == 0 { // until one is caught by the slow one
		before := len(quick.seen())
		waiting = r.dial().send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")
		eventually(t, "it has arrived", func() bool { return len(slow.seen())+len(quick.seen()) > before })
	}
	for range 20 {
		eventually(t, "the other has nothing to do", func() bool { return r.guard().Endpoints[1].Pending == 0 })
		if a := r.get("/"); a.content != "quick" {
			t.Errorf("a request went to the endpoint that has one pending: %+v", a)
		}
	}
	close(release)
	if a := waiting.answer(); a.content != "slow" {
		t.Errorf("got %+v", a)
	}
}

func TestARetryGoesToAnotherEndpoint(t *testing.T) {
	for _, scheme := range []string{"an answer", "no connection"} {
		t.Run(scheme, func(t *testing.T) {
			bad, good := newMember(t, "bad"), newMember(t, "good")
			bad.down.Store(true)
			url := bad.url
			if scheme == "no connection" {
				l := listen(t)
				url = "http://" + l.Addr().String()
				l.Close()
			}
			r := start(t, single([]string{url, good.url}, quickRetry, "maxRetries: 1", noBreaker, noEjection,
				"retryBudget: {disabled: true}"))
			for range 30 {
				if a := r.get("/"); a.content != "good" {
					t.Fatalf("got %+v", a)
				}
			}
			for _, req := range bad.seen() {
				if field(req, "X-Envoy-Attempt-Count") != "1" {
					t.Error("the endpoint that had just failed was tried again")
				}
			}
		})
	}
}

func TestAnEndpointThatFailsIsTakenOutAndComesBack(t *testing.T) {
	bad, good := newMember(t, "bad"), newMember(t, "good")
	bad.down.Store(true)
	out := func(d string) string {
		return fmt.Sprintf("outlierDetection: {consecutiveFailures: 3, baseEjectionTime: %s, maxEjectionTime: %[1]s}", d)
	}
	r := start(t, single([]string{bad.url, good.url}, noRetries, noBreaker, out("1h")))
	failed := 0
	eventually(t, "it is ejected", func() bool {
		if r.get("/").status != 200 {
			failed++
		}
		return r.ejected()[0]
	})
	if failed != 3 || r.ejected()[1] {
		t.Errorf("%d requests failed before, ejected are %v", failed, r.ejected())
	}
	if page := r.adminGet("/guards"); !strings.Contains(page, `"backIn": "`) {
		t.Errorf("/guards does not say when it comes back: %s", page)
	}
	before := len(bad.seen())
	for range 20 {
		if a := r.get("/"); a.content != "good" {
			t.Errorf("while it is out: %+v", a)
		}
	}
	if !r.ejected()[0] || len(bad.seen()) != before {
		t.Error("it got requests while it was out")
	}

	r = start(t, single([]string{bad.url, good.url}, noRetries, noBreaker, out("100ms")))
	eventually(t, "it is ejected for a short time", func() bool { r.get("/"); return r.ejected()[0] })
	bad.down.Store(false)
	eventually(t, "it is back", func() bool { return r.get("/").content == "bad" })
	if r.ejected()[0] {
		t.Error("it serves, and /guards says that it is out")
	}
}

// TestTheLastEndpointsStay: half of them may be out, so one of two.
func TestTheLastEndpointsStay(t *testing.T) {
	a, b := newMember(t, "a"), newMember(t, "b")
	a.down.Store(true)
	b.down.Store(true)
	r := start(t, single([]string{a.url, b.url}, noRetries, noBreaker, "outlierDetection: {consecutiveFailures: 1}"))
	for range 20 {
		if got := r.get("/"); got.status != 503 || got.header.Get("Content-Type") != "" {
			t.Errorf("a request was not sent: %+v", got)
		}
	}
	if out := r.ejected(); out[0] && out[1] {
		t.Errorf("ejected: %v, want one at most", out)
	}
}

func TestNothingIsEjectedWhenThePolicySaysSo(t *testing.T) {
	bad, good := newMember(t, "bad"), newMember(t, "good")
	bad.down.Store(true)
	r := start(t, single([]string{bad.url, good.url}, noRetries, noBreaker, noEjection))
	const most = 2000 // on a busy machine one of them may look slow for a while
	for i := 0; i < most && len(bad.seen()) < 10; i++ {
		r.get("/")
	}
	if out := r.ejected(); out[0] || out[1] {
		t.Errorf("ejected: %v", out)
	}
	if n := len(bad.seen()); n < 10 {
		t.Errorf("the failing one got %d of %d requests", n, most)
	}
}

// TestWhatAClientDoesIsNotItsEndpointsFault: clients that leave do not take an endpoint out.
func TestWhatAClientDoesIsNotItsEndpointsFault(t *testing.T) {
	came := make(chan struct{}, 10)
	s := upstream(t, func(net.Conn, string) { came <- struct{}{} })
	r := start(t, single([]string{s.url, s.url + "/b"},
		"outlierDetection: {consecutiveFailures: 1, baseEjectionTime: 1h, maxEjectionTime: 1h, maxEjectionShare: 1}"))
	for range 4 {
		c := r.dial().send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")
		wait(t, "the request", came)
		c.Close()
	}
	eventually(t, "they are gone", func() bool { e := r.guard().Endpoints; return e[0].Pending+e[1].Pending == 0 })
	if out := r.ejected(); out[0] || out[1] {
		t.Errorf("ejected: %v", out)
	}
}

// TestConnectionsToAServiceAreKeptForAWhile: used again, and closed when they have been idle for too long.
func TestConnectionsToAServiceAreKeptForAWhile(t *testing.T) {
	s := newMember(t, "a")
	r := start(t, single([]string{s.url}))
	for range 5 {
		r.get("/")
		eventually(t, "the connection is kept", func() bool { return r.guard().Endpoints[0].Idle == 1 })
	}
	if n := s.connections(); n != 1 {
		t.Errorf("%d connections", n)
	}
	s.drop() // the service closes it: the next request must not fall for it
	eventually(t, "it is closed", func() bool { return s.open() == 0 })
	if a := r.get("/"); a.content != "a" || s.connections() != 2 {
		t.Errorf("got %+v over %d connections", a, s.connections())
	}
}
