package proxy_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoSpellingOfAHostIsAWayAroundItsGate: a service that knows its virtual hosts by name, as nginx does, takes no
// request for the host of the operators that another gate has let in.
func TestNoSpellingOfAHostIsAWayAroundItsGate(t *testing.T) {
	s := upstream(t, func(c net.Conn, req string) { io.WriteString(c, ok(field(req, "Host"))) })
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("ops secret-of-the-operators\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := protect(t, fmt.Sprintf(`protect:
  public: {listen: "127.0.0.1:0", upstreams: [%[1]q]}
  admin: {listen: "127.0.0.1:0", upstreams: [%[1]q], routes: [{host: admin.test}, {host: "[2001:db8::1]"}, {host: "port.test:8443"}, {host: 192.0.2.1}], authentication: {bearerTokens: %[2]s}}
`, s.url, tokens))
	for _, host := range []string{
		"admin.test", "ADMIN.Test", "admin.test.", "admin.test..", "admin.test...", "admin.test.:80", "admin.test..:80",
		"admin.test:", "admin.test:0", "admin.test:00080", "admin.test:99999",
		"admin.test:80:80", "admin.test:http", "admin.test:-1", "a@admin.test", "admin.test@a", "admin%2etest",
		"%61dmin.test", "admin.test%00", "admin.test%20", "admin.test,a", "a,admin.test",
		"admin.test/", "admin.test/x", "admin.test?x", "admin.test#x", "admin.test\\x", "admin.test;", ".admin.test",
		"admin..test", " admin.test", "admin.test ", "admin.test\t", "xn--admin-.test",
		"admin\u3002test", "\u24b6dmin.test", "[2001:db8::1]", "[2001:DB8::1]", "[2001:db8:0:0:0:0:0:1]", "[2001:0db8::0001]",
		"[2001:db8::0.0.0.1]", "[2001:db8::1%25eth0]", "[2001:db8::1]:", "[2001:db8::1]x",
		"2001:db8::1", "[2001:db8::1]:080", "port.test:8443", "port.test:08443", "port.test.:8443", "PORT.test:8443",
		"192.0.2.1", "192.0.2.1.", "192.0.2.1..", "192.0.2.01", "3221225985", "0xc0.0.2.1", "192.0.513", "",
	} {
		for name, a := range map[string]reply{
			"Host":         hostReply(t, r, "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n"),
			"absolute":     hostReply(t, r, "GET http://"+host+"/ HTTP/1.1\r\nHost: public.test\r\n\r\n"),
			"absolute 1.0": hostReply(t, r, "GET http://"+host+"/ HTTP/1.0\r\nHost: public.test\r\n\r\n"),
			"OPTIONS":      hostReply(t, r, "OPTIONS * HTTP/1.1\r\nHost: "+host+"\r\n\r\n"),
			"HTTP/1.0":     hostReply(t, r, "GET / HTTP/1.0\r\nHost: "+host+"\r\n\r\n"),
			"CONNECT":      hostReply(t, r, "CONNECT "+host+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n"),
		} {
			if seen := strings.ToLower(a.content); a.status == 200 && !otherHosts[host] {
				t.Errorf("%s %q reached the service as %q", name, host, seen)
			}
		}
	}
}

// otherHosts are hosts that only look like one of the operators, for every server.
var otherHosts = map[string]bool{
	"xn--admin-.test": true, "192.0.2.01": true, "3221225985": true, "0xc0.0.2.1": true, "192.0.513": true, "": true,
}

// hostReply sends a request as it is; a connection that ends without an answer is a status of 0.
func hostReply(t *testing.T, r *running, req string) reply {
	t.Helper()
	c := r.dial()
	defer c.Close()
	a, _ := c.send(req).read("GET")
	return a
}
