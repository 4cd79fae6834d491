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

const keys = "idempotency: {methods: [POST]}"

// post is a POST with an idempotency key and a body.
func post(key, body string) string {
	return fmt.Sprintf("POST /orders?x=1 HTTP/1.1\r\nHost: s\r\nIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n%s",
		key, len(body), body)
}

// numbering answers POSTs with how many there have been, and with fields.
func numbering(t testing.TB, fields string) *server {
	var n atomic.Int64
	return upstream(t, func(c net.Conn, _ string) {
		content := fmt.Sprintf("order %d", n.Add(1))
		fmt.Fprintf(c, "HTTP/1.1 201 Created\r\nContent-Length: %d\r\n%s\r\n%s", len(content), fields, content)
	})
}

func TestARepeatedKeyIsAnsweredFromMemory(t *testing.T) {
	up := numbering(t, "Location: /orders/1\r\nX-Many: a\r\nX-Many: b\r\nSet-Cookie: session=1\r\nDate: Mon, 02 Jan "+
		"2006 15:04:05 GMT\r\n")
	r := protect(t, guardOf(up.url, keys, "rateLimit: {limit: 100/1h, burst: 100}"))
	c := r.dial()
	first := c.send(post(`"a"`, "one")).answer()
	if first.status != 201 || first.content != "order 1" || first.header.Get("Idempotency-Replayed") != "" ||
		first.header.Get("Set-Cookie") == "" {
		t.Fatalf("the first: %+v", first)
	}
	for _, key := range []string{`"a"`, "a"} {
		again := c.send(post(key, "one")).answer()
		if again.status != 201 || again.content != "order 1" || again.header.Get("Idempotency-Replayed") != "true" ||
			again.header.Get("Location") != "/orders/1" ||
			strings.Join(again.header["X-Many"], ",") != "a,b" || again.header.Get("Set-Cookie") != "" ||
			again.header.Get("Date") == first.header.Get("Date") {
			t.Errorf("the repeat with %s: %+v", key, again)
		}
	}
	if a := c.send(post(`"a"`, "one")).answer(); a.header.Get("X-RateLimit-Remaining") != "96" {
		t.Errorf("a replay takes a token too: %v", a.header)
	}
	if a := c.send(post(`"b"`, "one")).answer(); a.content != "order 2" {
		t.Errorf("another key: %+v", a)
	}
	if a := c.send(strings.Replace(post(`"c"`, "one"), "POST", "PUT", 1)).answer(); a.content != "order 3" {
		t.Errorf("another method: %+v", a)
	}
	if a := c.send("POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 0\r\n\r\n").answer(); a.content != "order 4" {
		t.Errorf("no key, none required: %+v", a)
	}
	if r.gate().Shed.InFlight != 0 {
		t.Errorf("%d in flight", r.gate().Shed.InFlight)
	}
}

// What a gate behind this one says of another try, or of retries, is true only once.
func TestWhatIsTrueOnlyOnceIsNotReplayed(t *testing.T) {
	var n atomic.Int64
	up := upstream(t, func(c net.Conn, _ string) {
		status := "201 Created"
		if n.Add(1) == 1 {
			status = "409 Conflict\r\nAbate-Reason: idempotency-running"
		}
		fmt.Fprintf(c, "HTTP/1.1 %s\r\nX-Envoy-Ratelimited: true\r\nContent-Length: 0\r\n\r\n", status)
	})
	c := protect(t, guardOf(up.url, keys, "trustedPeers: [127.0.0.0/8]")).dial()
	for i, want := range []int{409, 201, 201} {
		a := c.send(post("k", "one")).answer()
		if limited := a.header.Get("X-Envoy-Ratelimited"); a.status != want || (limited == "") != (i == 2) {
			t.Errorf("request %d: %+v", i, a)
		}
	}
}

func TestBadKeysAreRefused(t *testing.T) {
	up := numbering(t, "")
	r := protect(t, guardOf(up.url, "idempotency: {methods: [POST], required: true, maxBody: 8}"))
	c := r.dial()
	c.send(post(`"used"`, "one")).answer()
	long := strings.Repeat("x", 9)
	for _, q := range []struct {
		name, request string
		status        int
		code          string
	}{
		{"none", "POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 0\r\n\r\n", 400, "idempotency-key-missing"},
		{"not closed", post(`"a`, "one"), 400, "idempotency-key-invalid"},
		{"too long", post(strings.Repeat("k", 300), "one"), 400, "idempotency-key-invalid"},
		{"two", "POST / HTTP/1.1\r\nHost: s\r\nIdempotency-Key: a\r\nIdempotency-Key: b\r\nContent-Length: 0\r\n\r\n", 400,
			"idempotency-key-invalid"},
		{"of another body", post(`"used"`, "two"), 422, "idempotency-mismatch"},
		{"of another path", strings.Replace(post(`"used"`, "one"), "x=1", "x=2", 1), 422, "idempotency-mismatch"},
		{"with a body that is too large", post(`"large"`, long), 413, "idempotency-body-too-large"},
		{"with chunks that are too large", "POST / HTTP/1.1\r\nHost: s\r\nIdempotency-Key: l\r\nTransfer-Encoding: " +
			"chunked\r\n\r\n9\r\n" + long + "\r\n0\r\n\r\n", 413, "idempotency-body-too-large"},
	} {
		t.Run(q.name, func(t *testing.T) {
			refusedBy(t, r.dial().send(q.request).answer(), q.status, q.code)
		})
	}
	if n := len(up.seen()); n != 1 {
		t.Errorf("the service got %d requests, want 1", n)
	}
}

func TestAKeyThatIsBeingDoneIsNotDoneTwice(t *testing.T) {
	up, came, answer := holding(t)
	t.Cleanup(func() { close(answer) })
	r := protect(t, guardOf(up.url, keys))
	first := r.dial()
	first.send(post("a", "one"))
	soon(t, "the service has it", came)
	a := r.dial().send(post("a", "one")).answer()
	if refusedBy(t, a, 409, "idempotency-running"); a.header.Get("Retry-After") == "" {
		t.Errorf("no Retry-After: %v", a.header)
	}
	answer <- ok("done")
	if a := first.answer(); a.content != "done" {
		t.Errorf("%+v", a)
	}
	if a := r.dial().send(post("a", "one")).answer(); a.content != "done" ||
		a.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%+v", a)
	}
}

func TestAnAnswerThatSaysLaterIsNotKept(t *testing.T) {
	var n atomic.Int64
	up := upstream(t, func(c net.Conn, _ string) {
		if n.Add(1) == 1 {
			io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
			return
		}
		io.WriteString(c, ok("now"))
	})
	c := protect(t, guardOf(up.url, keys)).dial()
	if a := c.send(post("a", "one")).answer(); a.status != 503 {
		t.Fatalf("%+v", a)
	}
	if a := c.send(post("a", "one")).answer(); a.content != "now" || a.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("%+v", a)
	}
}

func TestAnAnswerTooLargeToKeepIsNotDoneTwice(t *testing.T) {
	for name, answer := range map[string]string{
		"length": ok(strings.Repeat("x", 100)), "chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n" +
			strings.Repeat("x", 100) + "\r\n0\r\n\r\n",
		"trailer": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n1\r\nx\r\n0\r\nX-Sum: " +
			strings.Repeat("1", 64) + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			up := upstream(t, func(c net.Conn, _ string) { io.WriteString(c, answer) })
			c := protect(t, guardOf(up.url, "idempotency: {methods: [POST], maxAnswer: 64}")).dial()
			if a := c.send(post("a", "one")).answer(); a.status != 200 || len(a.content) == 0 {
				t.Fatalf("%+v", a)
			}
			refusedBy(t, c.send(post("a", "one")).answer(), 409, "idempotency-not-stored")
			if n := len(up.seen()); n != 1 {
				t.Errorf("done %d times", n)
			}
		})
	}
}

func TestAClientThatLeavesFindsTheAnswerLater(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	for _, way := range leaving {
		t.Run(way.name, func(t *testing.T) {
			up, came, answer := holding(t)
			t.Cleanup(func() { close(answer) })
			r := protect(t, guardOf(up.url, keys))
			first := r.dial()
			first.send(post("a", "one"))
			soon(t, "the service has it", came)
			way.leave(first)
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for range 7 { // the proxy looks for the client a few times a second
				<-tick.C
				refusedBy(t, r.dial().send(post("a", "one")).answer(), 409, "idempotency-running")
			}
			answer <- ok("done")
			var a reply
			eventually(t, "the answer is there", func() bool {
				a = r.dial().send(post("a", "one")).answer()
				return a.status == 200
			})
			if a.content != "done" || a.header.Get("Idempotency-Replayed") != "true" || len(up.seen()) != 1 {
				t.Errorf("%+v, done %d times", a, len(up.seen()))
			}
		})
	}
}

func TestALongRunKeepsItsKeyAndACrashedOneLosesIt(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel() // it waits
	up, came, answer := holding(t)
	t.Cleanup(func() { close(answer) })
	r := protect(t, guardOf(up.url, "idempotency: {methods: [POST], lease: 3s}"))
	first := r.dial()
	first.send(post("a", "one"))
	soon(t, "the service has it", came)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range 75 { // two leases and a half
		<-tick.C
		refusedBy(t, r.dial().send(post("a", "one")).answer(), 409, "idempotency-running")
	}
	up.drop() // the service crashes: nobody knows whether it has done it
	if a := first.answer(); a.status != 502 {
		t.Errorf("%+v", a)
	}
	answer <- "nobody reads this"
	refusedBy(t, r.dial().send(post("a", "one")).answer(), 409, "idempotency-running")
	var answered chan reply
	eventually(t, "its lease is over and the service has it again", func() bool {
		<-tick.C
		answered = make(chan reply, 1)
		second := r.dial().send(post("a", "one"))
		go func(to chan<- reply) {
			a, _ := second.read("POST")
			to <- a
		}(answered)
		select {
		case <-came:
			return true
		case a := <-answered:
			refusedBy(t, a, 409, "idempotency-running")
			return false
		}
	})
	answer <- ok("second")
	if a := <-answered; a.content != "second" {
		t.Errorf("%+v", a)
	}
}

func TestATryThatNeverReachedTheServiceLetsItsKeyGo(t *testing.T) {
	l := listen(t)
	url := "http://" + l.Addr().String()
	l.Close()
	c := protect(t, guardOf(url, keys)).dial()
	for range 2 {
		if a := c.send(post("a", "one")).answer(); a.status != 502 {
			t.Errorf("got %d %q, want 502 both times", a.status, a.content)
		}
	}
}

func TestAnswersThatBreakOffAreNotDoneTwice(t *testing.T) {
	up := rawUpstream(t, func(c net.Conn, _ int) {
		c.Read(make([]byte, 4096))
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
	})
	r := protect(t, guardOf(up.url, keys))
	if _, err := r.dial().send(post("a", "one")).read("POST"); err == nil {
		t.Error("half an answer was taken for a whole")
	}
	refusedBy(t, r.dial().send(post("a", "one")).answer(), 409, "idempotency-not-stored")
}

func TestKeysOfDifferentCallersDoNotMeet(t *testing.T) {
	c := protect(t, guardOf(numbering(t, "").url, keys, trustLoop, `caller: "header:X-Tenant"`)).dial()
	for i, tenant := range []string{"one", "two"} {
		a := c.send(strings.Replace(post("a", "x"), "Host: s", "Host: s\r\nX-Tenant: "+tenant, 1)).answer()
		if want := fmt.Sprintf("order %d", i+1); a.content != want {
			t.Errorf("%s got %q, want %q", tenant, a.content, want)
		}
	}
}

func TestAFullStoreRefuses(t *testing.T) {
	c := protect(t, guardOf(numbering(t, "").url, "idempotency: {methods: [POST], maxMemory: 65536}")).dial()
	var last reply
	for i := range 1000 {
		if last = c.send(post(fmt.Sprint("k", i), "one")).answer(); last.status != 201 {
			break
		}
	}
	if refusedBy(t, last, 503, "idempotency-unavailable"); last.header.Get("Retry-After") == "" {
		t.Errorf("%v", last.header)
	}
}
