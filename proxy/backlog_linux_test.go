package proxy_test

import (
	"testing"

	"github.com/abate-go/abate/proxy"
)

// A client that the kernel has connected, and nobody has accepted yet, has come too.
func TestADrainAnswersWhatHasComeBeforeItWasAccepted(t *testing.T) {
	r := start(t, single([]string{echo(t).url}))
	const clients = 300
	conns := make([]*client, clients)
	for round := range 3 {
		for i := range conns {
			conns[i] = r.dial().send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")
		}
		if round == 2 {
			r.shutdown()
		}
		lost := 0
		for _, c := range conns {
			if _, err := c.read("GET"); err != nil {
				lost++
			}
		}
		if lost > 0 {
			t.Errorf("%d of %d requests were lost", lost, clients)
		}
	}
}

// So has one whom a balancer announces, with its announcement.
func TestADrainAnswersWhomABalancerHasAnnounced(t *testing.T) {
	r := protect(t, guardOf(echo(t).url, noShed, trustLoop, "proxyProtocol: true"))
	conns := make([]*client, 200)
	for i := range conns {
		conns[i] = r.dial().send("PROXY TCP4 192.0.2.1 198.51.100.7 4711 443\r\nGET / HTTP/1.1\r\nHost: s\r\n\r\n")
	}
	r.shutdown()
	lost := 0
	for _, c := range conns {
		if _, err := c.read("GET"); err != nil {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d requests were lost", lost, len(conns))
	}
}

// The kernel's count may have clients who are not there. A drain does not wait for them, least of all with the list of
// clients in its hands, and answers those who are.
func TestADrainWaitsForNobodyWhoIsOnlyInTheCount(t *testing.T) {
	r := start(t, single([]string{echo(t).url}))
	c := r.dial()
	if a := c.get("/"); a.status != 200 {
		t.Errorf("got %d", a.status)
	}
	t.Cleanup(proxy.Phantoms(1000))
	last := r.dial().send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")
	drained := r.begins(t)
	if a := last.answer(); a.status != 200 {
		t.Errorf("got %d", a.status)
	}
	c.closed()
	if err := wait(t, "the end of the drain", drained); err != nil {
		t.Error(err)
	}
}
