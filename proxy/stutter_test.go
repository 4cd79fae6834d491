package proxy_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/adapter/abateredis"
	"github.com/abate-go/abate/inbound"
	needsredis "github.com/abate-go/abate/internal/needs/redis"
	"github.com/abate-go/abate/policy/idempotency"
)

// Forty requests are being done when Redis holds its breath for longer than its timeout, just as they end. The leases
// go by. Nobody crashed, so nothing may be done twice: 25 to 37 of the 40 were, when the end of a try was told once.
// And nobody who has done his work may be refused for a breath: the forty get their answers, a little late.
func TestAStutterOfRedisRunsNothingAgain(t *testing.T) {
	const many, term = 40, 3 * time.Second
	s := needsredis.Start(t)
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var runs [many]atomic.Int64
	var working sync.WaitGroup
	release := make(chan struct{})
	handler := func() http.Handler {
		f, err := abateredis.Open(abateredis.Config{Addresses: []string{s.Addr()}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.Close)
		g, err := inbound.NewGate("shop", inbound.Protection{
			Store: f.Store(1000), Idempotency: idempotency.Config{Methods: []string{"POST"}, Lease: term},
		})
		if err != nil {
			t.Fatal(err)
		}
		return abatehttp.NewHandler(g, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var n int
			fmt.Sscan(r.Header.Get("Idempotency-Key"), &n)
			if runs[n].Add(1) == 1 {
				working.Done()
				<-release
			}
			fmt.Fprint(w, "done ", n)
		}))
	}
	first := handler()
	send := func(h http.Handler, n int) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest("POST", "/orders", nil), httptest.NewRecorder()
		r.Header.Set("Idempotency-Key", fmt.Sprint(n))
		h.ServeHTTP(w, r)
		return w
	}
	var answers [many]*httptest.ResponseRecorder
	var all sync.WaitGroup
	working.Add(many)
	for n := range many {
		all.Go(func() {
			for { // until the breaker in front of a busy machine's Redis lets it begin
				if answers[n] = send(first, n); runs[n].Load() > 0 {
					return
				}
			}
		})
	}
	working.Wait()
	fmt.Fprint(c, "CLIENT PAUSE 60 ALL\r\n")
	if said, err := bufio.NewReader(c).ReadString('\n'); said != "+OK\r\n" {
		t.Fatal(said, err)
	}
	close(release)
	all.Wait()
	told := [many]bool{}
	for n, w := range answers {
		told[n] = w.Code == 200
	}
	over := time.NewTimer(term + term/2) // the leases
	<-over.C
	second := handler()
	for n := range many {
		for i, h := range []http.Handler{first, second} {
			var w *httptest.ResponseRecorder
			eventually(t, "an answer to the repeat", func() bool { w = send(h, n); return w.Code == 200 })
			if w.Body.String() != fmt.Sprint("done ", n) || told[n] && w.Header().Get("Idempotency-Replayed") == "" {
				t.Errorf("repeat of %d at instance %d: %d %s, and the first try got %d", n, i, w.Code, w.Body, answers[n].Code)
			}
		}
	}
	again, acked := 0, 0
	for n := range many {
		if runs[n].Load() > 1 {
			again++
		}
		if told[n] {
			acked++
		}
	}
	t.Logf("%d of %d first tries were told that they were done, %d of %d ran again", acked, many, again, many)
	if again > 0 {
		t.Errorf("%d of %d ran again", again, many)
	}
	if acked < many {
		t.Errorf("%d of %d that were done were refused", many-acked, many)
	}
}
