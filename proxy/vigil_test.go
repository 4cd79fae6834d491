package proxy_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A call that has failed while nothing but failures is known waits for a sign of life. If none comes its client gets
// the service's own answer, which is kept for it, also if it is longer than what was read with its head.
func TestACallThatWaitsForASignOfLifeEndsWithIt(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	long := strings.Repeat("out of order ", 20_000)
	for _, hedge := range []string{"", "hedge: {delay: 900ms}"} {
		for _, comes := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s comes %t", hedge, comes), func(t *testing.T) {
				t.Parallel()
				var down atomic.Bool
				s := upstream(t, func(c net.Conn, _ string) {
					if down.Load() {
						fmt.Fprintf(c, "HTTP/1.1 503 Own\r\nX-From: service\r\nContent-Length: %d\r\n\r\n%s", len(long), long)
						return
					}
					// a failure is quick beside that, also on a busy machine
					wait := time.NewTimer(150 * time.Millisecond)
					<-wait.C
					io.WriteString(c, ok("well"))
				})
				limit := "attemptTimeout: 20s"
				if !comes {
					limit = "attemptTimeout: 3s" // a busy machine must answer in that
				}
				r := start(t, single([]string{s.url}, quickRetry, "maxRetries: 3", "timeout: 60s", limit, hedge))
				for range 12 {
					if a := r.get("/"); a.status != 200 {
						t.Fatalf("got %+v", a)
					}
				}
				down.Store(true)
				got := make(chan reply, 1)
				began := time.Now()
				go func() { got <- r.get("/") }()
				if comes {
					eventually(t, "a third attempt", func() bool { return len(s.seen()) >= 15 })
					down.Store(false)
					eventually(t, "a sign of life", func() bool { return r.get("/").status == 200 && len(got) == 1 })
					if a := <-got; a.status != 200 || a.content != "well" {
						t.Errorf("got %d %.20q", a.status, a.content)
					}
					eventually(t, "the end of what the three long answers came on",
						func() bool { return s.connections()-s.open() >= 3 })
					return
				}
				a := <-got
				if a.status != 503 || a.header.Get("X-From") != "service" || a.content != long ||
					a.header.Get("Abate-Reason") != "retry-held-back" {
					t.Errorf("got %d, %d bytes of %d, %v", a.status, len(a.content), len(long), a.header)
				}
				if took := time.Since(began); took < 3*time.Second {
					t.Errorf("it has waited for %v, want three seconds", took)
				}
			})
		}
	}
}
