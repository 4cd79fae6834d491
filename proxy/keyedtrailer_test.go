package proxy_test

import (
	"io"
	"net"
	"strings"
	"testing"
)

// An answer with a trailer is replayed to whoever comes: whole to those who know trailers, without it to those who
// cannot be told.
func TestAnAnswerWithATrailerIsReplayedToEveryClient(t *testing.T) {
	up := upstream(t, func(c net.Conn, _ string) {
		io.WriteString(c, "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\nTrailer: "+
			"X-Sum\r\n\r\n4\r\ndone\r\n0\r\nX-Sum: 7\r\n\r\n")
	})
	r := protect(t, guardOf(up.url, keys))
	for n := range 2 { // the first, and its repeat
		a := r.dial().send(post("a", "one")).answer()
		if a.status != 201 || a.content != "done" || a.trailer["X-Sum"] == nil ||
			(a.header.Get("Idempotency-Replayed") == "true") != (n == 1) {
			t.Errorf("HTTP/1.1, %d: %+v", n, a)
		}
	}
	nc, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	io.WriteString(nc, strings.Replace(post("a", "one"), "HTTP/1.1", "HTTP/1.0", 1))
	old, err := io.ReadAll(nc)
	if head, content, _ := strings.Cut(string(old), "\r\n\r\n"); err != nil || !strings.Contains(head, " 201 ") ||
		content != "done" || strings.Contains(strings.ToLower(head), "chunked") {
		t.Errorf("HTTP/1.0: %q, %v", old, err)
	}
	req := newRequest(t, "POST", "http://"+r.addr+"/orders?x=1", strings.NewReader("one"))
	req.Host = "s"
	req.Header.Set("Idempotency-Key", "a")
	resp, err := h2c.client(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 201 || string(content) != "done" || resp.Trailer.Get("X-Sum") != "7" ||
		resp.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("HTTP/2: %d %q %v, %v", resp.StatusCode, content, resp.Trailer, err)
	}
	if n := len(up.seen()); n != 1 {
		t.Errorf("done %d times", n)
	}
}
