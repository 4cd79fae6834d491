package proxy_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy"
)

// entrances is a policy with a protected service at each address.
func entrances(upstream string, listens ...string) string {
	var b strings.Builder
	b.WriteString("protect:\n")
	for i, l := range listens {
		fmt.Fprintf(&b, "  s%d: {listen: %q, upstreams: [%q]}\n", i, l, upstream)
	}
	return b.String()
}

// vacant is an address of loopback that nobody listens at.
func vacant(t testing.TB) string {
	l := listen(t)
	defer l.Close()
	return l.Addr().String()
}

func TestEntrancesFollowThePolicyFile(t *testing.T) {
	up, one, two := echo(t), vacant(t), vacant(t)
	r := protect(t, entrances(up.url, one))
	idle, under := r.dial(), r.dial()
	idle.get("/")
	under.send("POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 5\r\n\r\nhe")
	r.write(entrances(up.url, two))
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	if a := dial(t, two).get("/x"); a.status != 200 {
		t.Errorf("at the new address: %+v", a)
	}
	idle.closed()
	if a := under.send("llo").answer(); a.status != 200 && a.status != 404 || !a.close {
		t.Errorf("a request that was under way: %+v", a)
	}
	under.closed()
	eventually(t, "nobody listens at the old address", func() bool {
		c, err := net.Dial("tcp", one)
		if err == nil {
			c.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	if e := r.proxy.Entrances(); len(e) != 1 || e[0].Listen != two || e[0].Gates[0].Name() != "s0" {
		t.Errorf("%+v", e)
	}
}

func TestAnAddressThatIsTakenIsAnErrorAtTheStart(t *testing.T) {
	taken := listen(t)
	defer taken.Close()
	free := vacant(t)
	r := start(t, entrances("http://127.0.0.1:1", free, taken.Addr().String()))
	err := r.proxy.Open()
	var at *proxy.ListenError
	if !errors.As(err, &at) || at.Key != "protect.s1.listen" || at.Address != taken.Addr().String() ||
		!errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("%v", err)
	}
	if c, err := net.Dial("tcp", free); err == nil {
		c.Close()
		t.Error("the other address is open")
	}
}

func TestAnAddressThatIsTakenAtAReloadIsTriedAgain(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	up := echo(t)
	taken, first := listen(t), vacant(t)
	var log lockedBuffer
	r := protect(t, entrances(up.url, first), logTo(&log))
	r.write(entrances(up.url, first, taken.Addr().String()))
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	if a := dial(t, first).get("/"); a.status != 200 {
		t.Errorf("the others serve on: %+v", a)
	}
	const problem = "protect.s1.listen"
	if !strings.Contains(log.String(), problem) || !strings.Contains(r.adminGet("/gates"), problem) {
		t.Errorf("nobody is told:\n%s", log.String())
	}
	taken.Close()
	eventually(t, "it is open", func() bool { return len(r.proxy.Entrances()) == 2 })
	if a := dial(t, taken.Addr().String()).get("/"); a.status != 200 {
		t.Errorf("%+v", a)
	}
	eventually(t, "it is over", func() bool {
		return strings.Contains(log.String(), "is over") && !strings.Contains(r.adminGet("/gates"), problem)
	})
}

func TestLimitsOutliveAReload(t *testing.T) {
	up := echo(t)
	r := protect(t, guardOf(up.url, "rateLimit: {limit: 2/1h, burst: 2}"))
	c := r.dial()
	c.get("/")
	r.write(guardOf(up.url, "rateLimit: {limit: 2/1h, burst: 2, key: ip}", "timeout: 1s"))
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	r.write(guardOf(up.url, "rateLimit: {limit: 2/1h, burst: 2}", "timeout: 2s"))
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	c.get("/")
	if a := c.get("/"); a.status != 429 {
		t.Errorf("got %d: the reload has filled the bucket", a.status)
	}
	r.write(guardOf(up.url, "rateLimit: {limit: 4/1h, burst: 2}"))
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	if a := c.get("/"); a.status != 429 || a.header.Get("RateLimit-Policy") != `"default";q=2;w=1800` {
		t.Errorf("under the new limit: %+v", a)
	}
	r.write("protect: {s: {listen: nonsense}}")
	if err := r.proxy.Reload(); err == nil {
		t.Error("a bad file was loaded")
	}
	if a := c.get("/"); a.status != 429 || !strings.Contains(a.header.Get("RateLimit-Policy"), "q=2") {
		t.Errorf("%+v", a)
	}
}

func TestConnectionsToTheServiceAreKept(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	up := echo(t)
	r := protect(t, guardOf(up.url))
	r.get("/")
	eventually(t, "the connection is idle", func() bool { return r.gate().Endpoints[0].Idle == 1 })
	r.write(guardOf(up.url, "timeout: 1s"))
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(150 * time.Millisecond)
	defer tick.Stop()
	for range 10 { // the proxy looks for idle connections once a second
		<-tick.C
		r.get("/")
		eventually(t, "the connection is idle again", func() bool { return r.gate().Endpoints[0].Idle > 0 })
	}
	if n := up.connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

func TestEmbeddedRedisKeepsLimitsAndKeysOfAFleet(t *testing.T) {
	up := numbering(t, "")
	r := protect(t, guardOf(up.url, "rateLimit: {limit: 3/1h, burst: 3, fleet: true}",
		"idempotency: {methods: [POST], fleet: true}")+"redis: {embedded: true, timeout: 10s}\n")
	c := r.dial()
	for i, replayed := range []string{"", "true"} {
		if a := c.send(post("a", "one")).answer(); a.content != "order 1" ||
			a.header.Get("Idempotency-Replayed") != replayed {
			t.Errorf("try %d: %+v", i+1, a)
		}
	}
	c.send(post("b", "one")).answer()
	if a := c.send(post("c", "one")).answer(); a.status != 429 {
		t.Errorf("%+v", a)
	}
	if page := r.adminGet("/gates"); !strings.Contains(page, `"instances": 1`) ||
		!strings.Contains(page, `"fleet": true`) {
		t.Error(page)
	}
	if page := r.adminGet("/metrics"); !strings.Contains(page, "abate_redis_duration_seconds_count") {
		t.Error("no metrics of Redis")
	}
	r.write(guardOf(up.url))
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	if a := c.send(post("a", "one")).answer(); a.content != "order 3" ||
		strings.Contains(r.adminGet("/gates"), "instances") {
		t.Errorf("without Redis: %+v", a)
	}
}

func TestARedisThatComesWithAReloadIsUsed(t *testing.T) {
	up := echo(t)
	r := protect(t, guardOf(up.url))
	r.write(guardOf(up.url, "rateLimit: {limit: 1/1h, burst: 1, fleet: true}") + "redis: {embedded: true, timeout: 10s}\n")
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	c := r.dial()
	if one, two := c.get("/"), c.get("/"); one.status != 200 || two.status != 429 {
		t.Errorf("%d and %d, want 200 and 429", one.status, two.status)
	}
	if !strings.Contains(r.adminGet("/metrics"), `abate_redis_duration_seconds_count{op="take"} `) {
		t.Error("Redis was not asked")
	}
}
