package proxy_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
)

// fields adds lines to the head of a request.
func fields(request string, lines ...string) string {
	return strings.Replace(request, "Host: s\r\n", "Host: s\r\n"+strings.Join(lines, "\r\n")+"\r\n", 1)
}

func TestTwoUsersBehindOneAddressDoNotGetEachOthersAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		settings string
		ann, bob []string
	}{
		"by Authorization":   {"", []string{"Authorization: Bearer ann"}, []string{"Authorization: Bearer bob"}},
		"by API key":         {"", []string{"X-Api-Key: ann"}, []string{"X-Api-Key: bob"}},
		"by a written-alike": {"", []string{"X_Api_Key: ann"}, []string{"X_Api_Key: bob"}},
		"with a borrowed one": {
			"", []string{"Authorization: x", "X-Api-Key: ann"}, []string{"Authorization: x", "X-Api-Key: bob"},
		},
		"by a named cookie":   {", scope: 'cookie:sid'", []string{"Cookie: a=1; sid=ann"}, []string{"Cookie: a=1; sid=bob"}},
		"by one with a comma": {", scope: 'cookie:sid'", []string{"Cookie: sid=v1,ann"}, []string{"Cookie: sid=v1,bob"}},
		"by a named header":   {", scope: 'header:X-User'", []string{"X-User: ann"}, []string{"X-User: bob"}},
		"pretending to be the other": {", scope: 'header:X-User'", []string{"X-User: ann", "Authorization: ann"},
			[]string{"X-User: ann", "Authorization: bob"}},
	} {
		t.Run(name, func(t *testing.T) {
			client := protect(t, guardOf(numbering(t, "").url, "idempotency: {methods: [POST]"+c.settings+"}")).dial()
			for _, turn := range []struct {
				who  []string
				want string
			}{{c.ann, "order 1"}, {c.bob, "order 2"}, {c.ann, "order 1"}, {c.bob, "order 2"}} {
				if a := client.send(fields(post("k", "one"), turn.who...)).answer(); a.status != 201 || a.content != turn.want {
					t.Errorf("%v got %d %q, want %q", turn.who, a.status, a.content, turn.want)
				}
			}
		})
	}
}

func TestAUserWhoComesBackFromAnotherAddressIsNotServedTwice(t *testing.T) {
	for name, who := range map[string][]string{
		"with a credential":          {"Authorization: Bearer ann"},
		"with a credential, session": {"Authorization: Bearer ann", "Cookie: sid=1"},
		"without any":                {"X-Nothing: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			up := numbering(t, "")
			c := protect(t, guardOf(up.url, keys, trustLoop)).dial() // the load balancer, which says where requests are from
			for _, addr := range []string{"192.0.2.1", "198.51.100.7", "2001:db8::1"} {
				if a := c.send(fields(post("k", "one"), append(who, "X-Forwarded-For: "+addr)...)).answer(); a.content !=
					"order 1" {
					t.Errorf("from %s: %d %q", addr, a.status, a.content)
				}
			}
			if n := len(up.seen()); n != 1 {
				t.Errorf("done %d times", n)
			}
		})
	}
}

func TestAKeyThatComesBackWithAnotherSessionIsNeitherAnsweredNorDone(t *testing.T) {
	up := numbering(t, "")
	c := protect(t, guardOf(up.url, keys)).dial()
	c.send(fields(post("k", "one"), "Cookie: sid=ann")).answer()
	refusedBy(t, c.send(fields(post("k", "one"), "Cookie: sid=bob")).answer(), 422, "idempotency-mismatch")
	if n := len(up.seen()); n != 1 {
		t.Errorf("done %d times", n)
	}
}

func TestAKeyThatComesBackForAnotherUserIsNeitherAnsweredNorDone(t *testing.T) {
	up := numbering(t, "")
	c := protect(t, guardOf(up.url, keys, trustLoop)).dial()
	for i, who := range []string{
		"Private-Token", "X-User-Id", "X_Tenant", "X-Auth-Request-User", "X-HTTP-Method-Override",
	} {
		key := fmt.Sprint("k", i)
		first := c.send(fields(post(key, "one"), who+": ann")).answer()
		again := c.send(fields(post(key, "one"), who+": ann")).answer()
		if first.status != 201 || again.content != first.content {
			t.Errorf("%s: %d %q, then %d %q", who, first.status, first.content, again.status, again.content)
		}
		for _, lines := range [][]string{{who + ": bob"}, {"X-Nothing: 1"}} {
			if a := c.send(fields(post(key, "one"), lines...)).answer(); a.status != 422 {
				t.Errorf("%s, then %v: %d %q", who, lines, a.status, a.content)
			}
		}
	}
}

func TestAKeyThatComesBackForAnotherHostIsNeitherAnsweredNorDone(t *testing.T) {
	up := numbering(t, "")
	c := protect(t, guardOf(up.url, keys)).dial()
	request := fields(post("k", "one"), "Authorization: Bearer ann")
	c.send(request).answer()
	refusedBy(t, c.send(strings.Replace(request, "Host: s\r\n", "Host: other.example\r\n", 1)).answer(), 422,
		"idempotency-mismatch")
	if n := len(up.seen()); n != 1 {
		t.Errorf("done %d times", n)
	}
}

func TestXIdempotencyKeyIsAKey(t *testing.T) {
	c := protect(t, guardOf(numbering(t, "").url, keys)).dial()
	older := strings.Replace(post("k", "one"), "Idempotency-Key: k", "X-Idempotency-Key: k", 1)
	for name, request := range map[string]string{
		"the older name": older, "the standard one": post("k", "one"),
		"both": fields(post("k", "one"), "X-Idempotency-Key: \"k\""),
	} {
		if a := c.send(request).answer(); a.status != 201 || a.content != "order 1" {
			t.Errorf("%s: %d %q", name, a.status, a.content)
		}
	}
	refusedBy(t, c.send(fields(post("k", "one"), "X-Idempotency-Key: j")).answer(), 400, "idempotency-key-invalid")
}

func TestAnswersAreReplayedWithTheirTrailers(t *testing.T) {
	up := upstream(t, func(c net.Conn, _ string) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: "+
			"42\r\n\r\n")
	})
	c := protect(t, guardOf(up.url, keys)).dial()
	for n := range 2 {
		a := c.send(fields(post("k", "one"), "TE: trailers", "Connection: TE")).answer()
		if a.status != 200 || a.content != "abc" || a.trailer.Get("X-Sum") != "42" ||
			(a.header.Get("Idempotency-Replayed") == "true") != (n == 1) {
			t.Errorf("try %d: %+v", n, a)
		}
	}
}

func TestAnAnswerLargerThan64KiBIsReplayed(t *testing.T) {
	large := strings.Repeat("x", 3<<20)
	up := upstream(t, func(c net.Conn, _ string) { io.WriteString(c, ok(large)) })
	c := protect(t, guardOf(up.url, keys)).dial()
	for n := range 2 {
		if a := c.send(post("k", "one")).answer(); a.content != large {
			t.Errorf("try %d: %d with %d bytes", n, a.status, len(a.content))
		}
	}
	if n := len(up.seen()); n != 1 {
		t.Errorf("done %d times", n)
	}
}

func TestServerErrorsAreKeptIfTheFileSaysSo(t *testing.T) {
	const keeping = "idempotency: {methods: [POST], keepServerErrors: true}"
	t.Run("an answer", func(t *testing.T) {
		up := upstream(t, func(c net.Conn, _ string) {
			io.WriteString(c, "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\nhalf")
		})
		c := protect(t, guardOf(up.url, keeping)).dial()
		for n := range 2 {
			if a := c.send(post("k", "one")).answer(); a.status != 500 || a.content != "half" ||
				(a.header.Get("Idempotency-Replayed") == "true") != (n == 1) {
				t.Errorf("try %d: %+v", n, a)
			}
		}
		if n := len(up.seen()); n != 1 {
			t.Errorf("done %d times", n)
		}
	})
	t.Run("no answer from a service that has the request", func(t *testing.T) {
		up := rawUpstream(t, func(c net.Conn, _ int) { c.Read(make([]byte, 4096)) })
		r := protect(t, guardOf(up.url, "idempotency: {methods: [POST], keepServerErrors: true, lease: 100ms}"))
		if a := r.dial().send(post("k", "one")).answer(); a.status != 502 {
			t.Fatalf("%+v", a)
		}
		refusedBy(t, r.dial().send(post("k", "one")).answer(), 409, "idempotency-effect-unknown")
	})
	t.Run("a service that was never reached", func(t *testing.T) {
		l := listen(t)
		url := "http://" + l.Addr().String()
		l.Close()
		c := protect(t, guardOf(url, keeping)).dial()
		for range 2 {
			if a := c.send(post("k", "one")).answer(); a.status != 502 {
				t.Errorf("got %d %q, want 502 both times", a.status, a.content)
			}
		}
	})
}

func TestTheServiceLearnsThatATryTookOver(t *testing.T) {
	var n atomic.Int64
	up := upstream(t, func(c net.Conn, request string) {
		if n.Add(1) == 1 {
			c.Close() // after it has the request: nobody knows what came of it
			return
		}
		io.WriteString(c, ok(request))
	})
	r := protect(t, guardOf(up.url, "idempotency: {methods: [POST], lease: 100ms}", trustLoop))
	forged := []string{"Abate-Idempotency-Taken-Over: forged", "Abate-Idempotency-Token: 999"}
	if a := r.dial().send(fields(post("k", "one"), forged...)).answer(); a.status != 502 {
		t.Fatalf("%+v", a)
	}
	first := up.seen()[0]
	if strings.Contains(first, "Taken-Over") || strings.Contains(first, "999") ||
		!strings.Contains(first, "Abate-Idempotency-Token: 1\r\n") {
		t.Errorf("the first try got %q", first)
	}
	var second reply
	eventually(t, "the lease of the first is over", func() bool {
		second = r.dial().send(fields(post("k", "one"), forged...)).answer()
		return second.status != 409
	})
	if second.status != 200 || !strings.Contains(second.content, "Abate-Idempotency-Taken-Over: true\r\n") ||
		strings.Contains(second.content, "forged") {
		t.Errorf("%+v", second)
	}
	var token int
	if _, after, _ := strings.Cut(second.content, "Abate-Idempotency-Token: "); true {
		fmt.Sscan(after, &token)
	}
	if token <= 1 || token == 999 {
		t.Errorf("its token is %d, want more than that of the first", token)
	}
}

func TestAStrangerCannotSayThatATryTookOver(t *testing.T) {
	up := mirror(t)
	c := protect(t, guardOf(up.url)).dial()
	a := c.send(fields(post("k", "one"), "Abate-Idempotency-Taken-Over: true", "Abate_Idempotency_Token: 7")).answer()
	if low := strings.ToLower(a.content); strings.Contains(low, "taken-over") || strings.Contains(low, "token") {
		t.Errorf("the service got %q", a.content)
	}
}
