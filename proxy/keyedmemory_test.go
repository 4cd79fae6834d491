package proxy_test

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
)

// The answer of a request with a key is as large as idempotency.maxAnswer says. A connection that is idle afterwards
// must not keep it: the bounds on memory do not know of that.
func TestAnIdleConnectionDoesNotKeepTheAnswerOfItsLastKey(t *testing.T) {
	const clients, size = 24, 1 << 20
	large := ok(strings.Repeat("x", size-4096))
	up := upstream(t, func(c net.Conn, req string) {
		if strings.HasPrefix(req, "POST") {
			io.WriteString(c, large)
		} else {
			io.WriteString(c, ok("s"))
		}
	})
	r := protect(t, guardOf(up.url, "idempotency: {methods: [POST], maxMemory: 2097152, maxAnswer: 1048576}"))
	var all []*client
	for i := range clients {
		c := r.dial()
		if a := c.send(post(fmt.Sprint("k", i), "one")).answer(); a.status != 200 {
			t.Fatal(a.status)
		}
		all = append(all, c)
	}
	behind := heap()
	for _, c := range all {
		c.send("GET /s HTTP/1.1\r\nHost: s\r\n\r\n").answer()
	}
	if kept := behind - heap(); kept > clients*size/2 {
		t.Errorf("%d idle connections kept %d KiB until their next request", clients, kept>>10)
	}
}

// The copy of a request that a hedged call is made with is as large as what is held for repeats. It ends with the call.
func TestAnIdleConnectionDoesNotKeepTheCopyOfAHedgedRequest(t *testing.T) {
	const clients, size = 200, 60 << 10
	up := upstream(t, func(c net.Conn, _ string) { io.WriteString(c, ok("s")) })
	r := start(t, single([]string{up.url}, "hedge: {delay: 1m}", "retryMethods: [PUT]"))
	put := fmt.Sprintf("PUT / HTTP/1.1\r\nHost: s.test\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("x", size))
	var all []*client
	for range clients {
		c := r.dial()
		if a := c.send(put).answer(); a.status != 200 {
			t.Fatal(a.status)
		}
		all = append(all, c)
	}
	behind := heap()
	for _, c := range all {
		c.send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n").answer()
	}
	if kept := behind - heap(); kept > clients*size/2 {
		t.Errorf("%d idle connections kept %d KiB until their next request", clients, kept>>10)
	}
}

// heap returns how many bytes are in use.
func heap() int64 {
	for range 3 { // what pools hold goes with the second
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
