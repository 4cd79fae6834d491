package proxy_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// TestACallIsTriedElsewhereWhenItsConnectionIsCut under the default policy: one request in fifty meets an endpoint that
// closes its connection without an answer, as one does that is replaced. Other endpoints are well, so no call fails,
// however slow the machine makes them look.
func TestACallIsTriedElsewhereWhenItsConnectionIsCut(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	const clients, calls = 4, 1500
	var urls []string
	var asked, cut atomic.Int64
	for range 20 {
		s := upstream(t, func(c net.Conn, _ string) {
			if asked.Add(1)%50 == 0 {
				cut.Add(1)
				c.Close()
				return
			}
			io.WriteString(c, ok("x"))
		})
		urls = append(urls, "http://"+addrOf(s))
	}
	r := start(t, single(urls))
	var done sync.WaitGroup
	var failed atomic.Int64
	for range clients {
		done.Go(func() {
			c := r.dial()
			defer c.Close()
			for range calls {
				if a := c.get("/"); a.status != 200 {
					if failed.Add(1) < 5 {
						t.Errorf("%+v", a)
					}
				}
			}
		})
	}
	done.Wait()
	t.Logf("%d calls, %d connections cut, %d calls failed", clients*calls, cut.Load(), failed.Load())
}
