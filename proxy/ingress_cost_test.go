package proxy_test

import (
	"bytes"
	"net"
	"testing"
	"time"
)

// limits has limit and shed on, as the promise about what they cost has it.
const limits = `
protect:
  web:
    listen: 127.0.0.1:0
    upstreams: ["http://UPSTREAM"]
    timeout: 3s
    trustedPeers: [10.0.0.0/8, 192.168.0.0/16]
    rateLimit: {limit: RATE, burst: BURST, key: caller}
    shed: {concurrency: gradient, maxConcurrency: 1000, initialConcurrency: 200, minConcurrency: 200}
`

// newGateLoop is newLoop through a gate.
func newGateLoop(t testing.TB, rate, burst string) *loop {
	l := newLoop(t)
	upstream := listen(t)
	answer := append([]byte("HTTP/1.1 200 OK\r\nContent-Length: 1024\r\nContent-Type: text/plain\r\n\r\n"),
		bytes.Repeat([]byte("a"), 1024)...)
	go func() {
		for {
			c, err := upstream.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			go serveLoop(c, answer)
		}
	}()
	t.Cleanup(func() { upstream.Close() })
	policy := []byte(limits)
	for from, to := range map[string]string{"UPSTREAM": upstream.Addr().String(), "RATE": rate, "BURST": burst} {
		policy = bytes.ReplaceAll(policy, []byte(from), []byte(to))
	}
	c, err := net.Dial("tcp", protect(t, string(policy)).addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	l.client = c
	c.SetDeadline(time.Now().Add(5 * patience))
	return l
}

// refused sends the request, which is refused.
func (l *loop) refused(t testing.TB) {
	if _, err := l.client.Write(l.request); err != nil {
		t.Fatal(err)
	}
	for n := 0; ; {
		m, err := l.client.Read(l.back[n:])
		if err != nil {
			t.Fatal(err)
		}
		if n += m; bytes.HasSuffix(l.back[:n], []byte("}\n")) {
			return
		}
	}
}

func TestAnAdmittedRequestAllocatesNothing(t *testing.T) {
	if raceDetector {
		return // it allocates by itself
	}
	l := newGateLoop(t, "1000000000/s", "1000000000")
	for range 100 {
		l.once(t)
	}
	if n := allocations(2000, func() { l.once(t) }); n >= 1 {
		t.Errorf("an admitted request allocates %v times", n)
	}
}

func TestARefusedRequestAllocatesNothing(t *testing.T) {
	if raceDetector {
		return // it allocates by itself
	}
	l := newGateLoop(t, "1/1h", "1")
	l.once(t)
	for range 100 {
		l.refused(t)
	}
	if n := allocations(2000, func() { l.refused(t) }); n >= 1 {
		t.Errorf("a refused request allocates %v times", n)
	}
}

func BenchmarkAdmitted(b *testing.B) {
	l := newGateLoop(b, "1000000000/s", "1000000000")
	l.once(b)
	b.ReportAllocs()
	for b.Loop() {
		l.once(b)
	}
}

func BenchmarkRefused(b *testing.B) {
	l := newGateLoop(b, "1/1h", "1")
	l.once(b)
	b.ReportAllocs()
	for b.Loop() {
		l.refused(b)
	}
}
