package proxy_test

import "testing"

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
