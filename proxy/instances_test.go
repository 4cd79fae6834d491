package proxy_test

import (
	"bufio"
	"fmt"
	"net"
	"testing"

	needsredis "github.com/abate-go/abate/internal/needs/redis"
)

// A reload that names another Redis, or none, forgets no key of this process.
func TestAReloadOfTheRedisSectionForgetsNoKey(t *testing.T) {
	one, two := needsredis.Start(t), needsredis.Start(t)
	for i, c := range []struct{ to, addr, prefix string }{
		{"another Redis", two.Addr(), ""}, {"another prefix", one.Addr(), "b:"}, {"no Redis", "", ""},
	} {
		t.Run(c.to, func(t *testing.T) {
			up := numbering(t, "")
			section := func(addr, prefix string) string {
				keys := "idempotency: {methods: [POST], fleet: true}"
				if addr == "" {
					return guardOf(up.url, "idempotency: {methods: [POST]}")
				}
				return guardOf(up.url, keys) +
					fmt.Sprintf("redis: {addresses: [%q], timeout: 500ms, prefix: %q}\n", addr, prefix)
			}
			r := protect(t, section(one.Addr(), fmt.Sprint(i, ":")))
			eventually(t, "Redis is there", func() bool {
				return r.dial().send(post("a", "one")).answer().status == 201
			})
			r.write(section(c.addr, c.prefix))
			if err := r.proxy.Reload(); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				a := r.dial().send(post("a", "one")).answer()
				if n := len(up.seen()); n != 1 || a.header.Get("Idempotency-Replayed") != "true" {
					t.Errorf("acknowledged and done %d times: %d %s", n, a.status, a.header.Get("Abate-Reason"))
				}
			}
			if c.addr == "" {
				return
			}
			r.dial().send(post("b", "one")).answer()
			if got := keysIn(t, c.addr, c.prefix); got != "*1" {
				t.Errorf("new keys are not where the file says: %s", got)
			}
		})
	}
}

// keysIn asks a Redis for the idempotency keys under a prefix, and returns the first line of its answer.
func keysIn(t *testing.T, addr, prefix string) string {
	t.Helper()
	if prefix == "" {
		prefix = "abate:"
	}
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "KEYS %s*:key\r\n", prefix)
	answer := bufio.NewScanner(c)
	answer.Scan()
	return answer.Text()
}
