package proxy_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// A hedge has the answer while the first copy still waits for a connection: the one that the answer holds. It must not
// wait for that copy, which nobody limits here.
func TestAHedgeThatHasWonDoesNotWaitForACopyWithoutASlot(t *testing.T) {
	open := make(chan struct{})
	s := upstream(t, func(c net.Conn, req string) {
		if strings.HasPrefix(req, "POST") {
			hold(t, open)
		}
		io.WriteString(c, ok("good"))
	})
	r := start(t, single([]string{s.url}, noRetries, "attemptTimeout: 0s", "timeout: 0s",
		"hedge: {delay: 10ms, maxHedges: 3}", "retryBudget: {disabled: true}"))
	waiting := r.proxy.UpstreamSlots(0) // the client's own is all
	c := h2c.client(t)
	begin := func(method string) <-chan error {
		done := make(chan error, 1)
		go func() {
			resp, err := c.Do(newRequest(t, method, "http://"+r.addr+"/", nil))
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					t.Error(method, resp.Status)
				}
			}
			done <- err
		}()
		return done
	}
	posted := begin("POST")
	eventually(t, "the slot is taken", func() bool { return len(s.seen()) == 1 })
	got := begin("GET")
	eventually(t, "all four copies wait", func() bool { return waiting() == 4 })
	close(open)
	if err := wait(t, "the POST", posted); err != nil {
		t.Error(err)
	}
	if err := wait(t, "the GET", got); err != nil {
		t.Error(err)
	}
}
