package proxy_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	needsredis "github.com/abate-go/abate/internal/needs/redis"
	keeping "github.com/abate-go/abate/internal/serving"
)

// Whoever has an answer that is not recorded may see its request done again by the next try.
func TestAnAnswerThatIsNotRecordedIsNotGivenOut(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		repeat  int
	}{"small": {"done", 200}, "too large to keep": {strings.Repeat("x", 5000), 409}} {
		for _, loses := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", and Redis has forgotten the key"}[loses], func(t *testing.T) {
				t.Parallel() // it waits
				s := needsredis.Start(t)
				up, came, answer := holding(t)
				t.Cleanup(func() { close(answer) })
				r := protect(t, guardOf(up.url, "idempotency: {methods: [POST], fleet: true, lease: 2s, maxAnswer: 1000}")+
					"redis: {addresses: [\""+s.Addr()+"\"], timeout: 500ms}\n")
				first := r.dial()
				first.send(post("a", "one"))
				soon(t, "the service has it", came)
				if loses {
					s.Crash()
				} else {
					s.Pause()
				}
				answer <- ok(c.content)
				refusedBy(t, first.answer(), 503, "idempotency-unrecorded")
				if !loses {
					s.Resume()
				} else if err := s.Start(); err != nil {
					t.Fatal(err)
				}
				var a reply
				eventually(t, "the answer is recorded", func() bool {
					again := r.dial()
					defer again.Close()
					a = again.send(post("a", "one")).answer()
					return a.status == c.repeat && a.header.Get("Abate-Reason") != "idempotency-running"
				})
				if c.repeat == 200 && (a.content != c.content || a.header.Get("Idempotency-Replayed") != "true") ||
					len(up.seen()) != 1 {
					t.Errorf("%+v, done %d times", a, len(up.seen()))
				}
			})
		}
	}
}

// What answers take that are held back is bounded for all together, and is given back when they are out.
func TestAnAnswerThatThereIsNoMemoryForPassesAndIsNotDoneTwice(t *testing.T) {
	const free, all = 64 << 10, 64 << 20
	up := upstream(t, func(c net.Conn, _ string) { io.WriteString(c, ok(strings.Repeat("x", 2*free))) })
	c := protect(t, guardOf(up.url, "idempotency: {methods: [POST]}")).dial()
	var others keeping.Hold
	defer others.Shrink()
	for i, repeat := range []int{409, 200} {
		key := fmt.Sprint(i)
		if repeat == 409 && !others.Grow(0, free+all) {
			t.Fatal("there is no memory though nobody has any")
		}
		if a := c.send(post(key, "one")).answer(); a.status != 200 || len(a.content) != 2*free {
			t.Errorf("status %d, %d bytes", a.status, len(a.content))
		}
		if a := c.send(post(key, "one")).answer(); a.status != repeat {
			t.Errorf("the repeat got %d, want %d", a.status, repeat)
		}
		others.Shrink()
	}
	eventually(t, "all is given back", func() bool {
		var rest keeping.Hold
		defer rest.Shrink()
		return rest.Grow(0, free+all)
	})
}

func TestTheProxyWarnsOfKeysThatAFailoverCanForget(t *testing.T) {
	const keys, others = "idempotency: {methods: [POST], fleet: true}", "rateLimit: {limit: 1/s, fleet: true}"
	for _, c := range []struct {
		section, redis string
		warns          bool
	}{{keys, "cluster: true", true}, {keys, "master: m", true}, {keys, "master: m, replicas: 1", false},
		{others, "master: m", false}, {keys, "", false}} {
		var log lockedBuffer
		redis := "redis: {addresses: [\"127.0.0.1:1\"], " + c.redis + "}\n"
		r := start(t, guardOf("http://127.0.0.1:1", c.section)+redis, logTo(&log))
		if err := r.proxy.Open(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), "redis.replicas is 0"); got != c.warns {
			t.Errorf("%s, %s: warns: %t", c.section, c.redis, got)
		}
	}
}
