package abatehttp_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"testing"

	"github.com/abate-go/abate/core"
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

// reuses returns the request so that *reused tells in the end whether it was sent on a connection that had been used
// before: on a busy machine net/http may drop one that it could use again.
func reuses(req *http.Request) (_ *http.Request, reused *bool) {
	reused = new(bool)
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { *reused = *reused || info.Reused }}
	return req.WithContext(httptrace.WithClientTrace(req.Context(), trace)), reused
}

func TestHiddenRetriesAreCountedAndPaidFor(t *testing.T) {
	url := dying(t)
	p, events := watched(eager())
	p.RetryBudget = budget.Config{Ratio: 0.1, Reserve: 10}
	g := guard(t, p)
	client, transport := newClient(t, g)
	calls, hidden := 0, uint64(0)
	for ; hidden < 2; calls++ {
		req, reused := reuses(newRequest(t, "GET", url, nil))
		if status, body := mustDo(t, client, req); status != 200 || body != "ok" {
			t.Errorf("%d %q", status, body)
		}
		if *reused {
			hidden++
		}
		if got := transport.HiddenRetries(); got != hidden {
			t.Errorf("after call %d: %d hidden retries, want %d", calls+1, got, hidden)
		}
	}
	if n := len(events.all(core.HiddenRetry)); n != 2 {
		t.Errorf("the observer was told of %d", n)
	}
	if left, earned := g.State().Budget, 0.1*float64(calls); left < 8 || left > 8+earned+1e-9 {
		t.Errorf("%v of 10 extra attempts and %v earned ones are left after two hidden ones", left, earned)
	}
	if n := len(events.all(core.AttemptBegan)); n != calls {
		t.Errorf("the guard saw %d attempts of %d calls: they were not hidden", n, calls)
	}
}

func TestCallersClientTraceStaysInForce(t *testing.T) {
	url := dying(t)
	client, transport := newClient(t, guard(t, patient()))
	var got, first, calls, again int
	for ; again < 2; calls++ {
		trace := &httptrace.ClientTrace{
			GotConn: func(info httptrace.GotConnInfo) {
				if got++; info.Reused {
					again++
				}
			},
			GotFirstResponseByte: func() { first++ },
		}
		req := newRequest(t, "GET", url, nil)
		mustDo(t, client, req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	}
	if got != calls+2 || first != calls {
		t.Errorf("%d connections and %d answers were traced, want %d and %d", got, first, calls+2, calls)
	}
	// A trace that was used with the caller's hooks must not come back to a caller without.
	for n := 0; n < 100 && transport.HiddenRetries() == 2; n++ {
		mustDo(t, client, newRequest(t, "GET", url, nil))
	}
	if got != calls+2 || first != calls || transport.HiddenRetries() != 3 {
		t.Errorf("%d connections, %d answers, %d hidden retries", got, first, transport.HiddenRetries())
	}
}
