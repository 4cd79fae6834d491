package proxy_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// What an answer of a key is kept for goes out behind it: its head must be what it was, however the content comes, and
// wherever it is read to.
func TestTheHeadOfAKeptAnswerIsTheServicesOwn(t *testing.T) {
	for _, size := range []int{1000, 100 << 10, 900 << 10} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			up := upstream(t, func(c net.Conn, _ string) {
				fmt.Fprintf(c, "HTTP/1.1 201 Made For You\r\nX-Order: order-12345\r\nContent-Length: %d\r\n\r\n", size)
				for range 10 { // pieces, which are read one by one
					io.WriteString(c, strings.Repeat("x", size/10))
				}
			})
			c := protect(t, guardOf(up.url, "idempotency: {methods: [POST], maxAnswer: 1048576}")).dial()
			for i := range 20 {
				a := c.send(post(fmt.Sprint("k", i), "one")).answer()
				if a.status != 201 || a.header.Get("X-Order") != "order-12345" || len(a.content) != size/10*10 {
					t.Fatalf("answer %d: status %d, %q, %d bytes", i, a.status, a.header, len(a.content))
				}
			}
		})
	}
}
