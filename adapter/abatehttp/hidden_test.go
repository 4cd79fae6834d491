package abatehttp_test

import (
	"bufio"
	"io"
	"net"
	"net/http/httptrace"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/budget"
)

// dying answers the first request of each connection and hangs up on the second, as a server does that closes idle
// connections at just the wrong moment. Net/http then sends the request again on another one.
func dying(t *testing.T) string {
	return speak(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		if listen(r) {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			listen(r)
		}
	})
}

func TestHiddenRetriesAreCountedAndPaidFor(t *testing.T) {
	url := dying(t)
	p, events := watched(eager())
	p.RetryBudget = budget.Config{Ratio: 0.1, Reserve: 10}
	g := guard(t, p)
	client, transport := newClient(t, g)
	for call, want := range []uint64{0, 1, 2} {
		if status, body := mustDo(t, client, newRequest(t, "GET", url, nil)); status != 200 || body != "ok" {
			t.Errorf("%d %q", status, body)
		}
		if got := transport.HiddenRetries(); got != want {
			t.Errorf("after call %d: %d hidden retries, want %d", call+1, got, want)
		}
	}
	if n := len(events.all(abate.HiddenRetry)); n != 2 {
		t.Errorf("the observer was told of %d", n)
	}
	if left := g.State().Budget; left < 8 || left >= 9 {
		t.Errorf("%v of 10 extra attempts are left after two hidden ones", left)
	}
	if n := len(events.all(abate.AttemptBegan)); n != 3 {
		t.Errorf("the guard saw %d attempts: they were not hidden", n)
	}
}

func TestCallersClientTraceStaysInForce(t *testing.T) {
	url := dying(t)
	client, transport := newClient(t, guard(t, patient()))
	var got, first int
	for range 3 {
		trace := &httptrace.ClientTrace{
			GotConn:              func(httptrace.GotConnInfo) { got++ },
			GotFirstResponseByte: func() { first++ },
		}
		req := newRequest(t, "GET", url, nil)
		mustDo(t, client, req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	}
	if got != 5 || first != 3 {
		t.Errorf("%d connections and %d answers were traced, want 5 and 3", got, first)
	}
	// A trace that was used with the caller's hooks must not come back to a caller without.
	mustDo(t, client, newRequest(t, "GET", url, nil))
	if got != 5 || first != 3 || transport.HiddenRetries() != 3 {
		t.Errorf("%d connections, %d answers, %d hidden retries", got, first, transport.HiddenRetries())
	}
}
