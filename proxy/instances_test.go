package proxy_test

import (
	"fmt"
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
		})
	}
}
