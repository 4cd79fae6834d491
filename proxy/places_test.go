package proxy_test

import (
	"net"
	"testing"
)

// A sidecar's program waits for what it calls with the slots of the gate in front of it. What goes through a gateway is
// called by others, who hold places of which it knows nothing.
func TestASidecarKnowsWhetherItsProgramHasSlotsLeft(t *testing.T) {
	for _, row := range []struct {
		name   string
		r      func(file string) *running
		scarce bool
	}{
		{"sidecar", func(file string) *running { return protect(t, file) }, true},
		{"gateway", func(file string) *running { return protect(t, file, asGateway) }, false},
	} {
		came, end := make(chan struct{}), make(chan struct{})
		program := upstream(t, func(c net.Conn, req string) {
			close(came)
			<-end
			c.Write([]byte(ok("")))
		})
		r := row.r("protect: {front: {listen: 127.0.0.1:0, upstreams: [" + program.url +
			"], shed: {concurrency: fixed, maxConcurrency: 1}}}\nservices: {bank: {upstreams: [" + program.url + "]}}\n")
		if r.proxy.Scarce("bank") {
			t.Errorf("%s: without a request little is left", row.name)
		}
		c := r.dial().send("GET / HTTP/1.1\r\nHost: front\r\n\r\n")
		<-came
		if got := r.proxy.Scarce("bank"); got != row.scarce {
			t.Errorf("%s: with a request in its only slot: %v", row.name, got)
		}
		close(end)
		if a := c.answer(); a.status != 200 || r.proxy.Scarce("bank") {
			t.Errorf("%s: %v", row.name, a)
		}
	}
}
