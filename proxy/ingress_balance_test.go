package proxy_test

import (
	"fmt"
	"io"
	"net"
	"testing"
)

// An endpoint that fails at once is never busy: without ejection it would get the most.
func TestBehindAGateAnEndpointThatFailsIsLeftOut(t *testing.T) {
	good := upstream(t, func(c net.Conn, _ string) { io.WriteString(c, ok("good")) })
	bad := upstream(t, func(c net.Conn, _ string) {
		io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
	})
	for keys, most := range map[string]int{"": 10, "outlierDetection: {disabled: true}": 200} {
		r := protect(t, fmt.Sprintf("protect:\n  s:\n    listen: 127.0.0.1:0\n    upstreams: [%q, %q]\n    %s\n",
			good.url, bad.url, keys))
		c, failed := r.dial(), 0
		for range 200 {
			if c.get("/").status != 200 {
				failed++
			}
		}
		if failed > most || most == 200 && failed < 50 {
			t.Errorf("with %q %d of 200 failed", keys, failed)
		}
	}
}
