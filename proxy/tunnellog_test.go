package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/abate-go/abate/proxy"
)

// logAll writes all requests to the log that it returns.
func logAll(change func(func(*proxy.Config)) *running) (r *running, log *lockedBuffer) {
	log = new(lockedBuffer)
	r = change(func(c *proxy.Config) { c.AccessLog, c.LogAll = slog.New(slog.NewTextHandler(log, nil)), true })
	return r, log
}

// linesWith are those lines of the log that have this in them.
func linesWith(log *lockedBuffer, what string) (all []string) {
	for l := range strings.Lines(log.String()) {
		if strings.Contains(l, what) {
			all = append(all, l)
		}
	}
	return all
}

// A tunnel belongs to no service. What is used again for it was that of a request before, of this client or of another.
func TestTheAccessLogNamesNoServiceForATunnel(t *testing.T) {
	_, addr := echoing(t)
	s := mirror(t)
	r, log := logAll(func(with func(*proxy.Config)) *running {
		return start(t, single([]string{s.url})+"outside: {connect: ['"+addr+"']}\n", with)
	})
	for _, same := range []bool{true, false} {
		for range 4 {
			c := r.dial()
			c.send("GET /a HTTP/1.1\r\nHost: s.test\r\n\r\n").answer()
			if !same {
				c.Close()
				c = r.dial()
			}
			if status, said := c.connectTo(addr); status != 200 {
				t.Fatalf("CONNECT: %d %s", status, said)
			}
			c.CloseWrite()
			c.closed()
		}
	}
	r.shutdown()
	tunnels := linesWith(log, "method=CONNECT")
	if len(tunnels) != 8 {
		t.Errorf("%d tunnels in the log, want 8", len(tunnels))
	}
	for _, l := range tunnels {
		if strings.Contains(l, " service=") || strings.Contains(l, " route=") {
			t.Errorf("a tunnel is a service's: %s", l)
		}
	}
}

// The head of a request has gone on to other clients' requests when its tunnel ends.
func TestTheLogOfATunnelSaysWhatItsOwnClientSaid(t *testing.T) {
	other := strings.Repeat("b", 32)
	head := func(method, target, host, trace, caller string) string {
		return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nX-Caller: %s\r\n"+
			"Traceparent: 00-%s-00f067aa0ba902b7-01\r\n", method, target,
			host, caller, trace)
	}
	switches, _ := switching(t, func(c *net.TCPConn, in *bufio.Reader) {
		io.WriteString(c, agreeUpgrade)
		echoLines(c, in)
	})
	quick := mirror(t)
	_, echoes := echoing(t)
	gate := `protect:
  chat: {listen: "127.0.0.1:0", upstreams: [%q], caller: "header:x-caller", trustedPeers: ["127.0.0.0/8"]}
  rest: {listen: "127.0.0.1:0", upstreams: [%q], routes: [{path: /quick}], caller: "header:x-caller",
    trustedPeers: ["127.0.0.0/8"]}
`
	for name, tt := range map[string]struct {
		begin func(*testing.T, func(*proxy.Config)) *running
		ask   string
	}{
		"CONNECT": {func(t *testing.T, with func(*proxy.Config)) *running {
			return start(t, single([]string{quick.url})+"outside: {connect: ['"+echoes+"']}\n", with)
		}, head("CONNECT", echoes, echoes, traceID, "mine")},
		"an upgrade through a gate": {func(t *testing.T, with func(*proxy.Config)) *running {
			return protect(t, fmt.Sprintf(gate, switches.url, quick.url), with)
		}, head("GET", "/chat", "s.test", traceID, "mine") + "Connection: Upgrade\r\nUpgrade: echo\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r, log := logAll(func(with func(*proxy.Config)) *running { return tt.begin(t, with) })
			c := r.dial().send(tt.ask + "\r\n")
			if _, err := readMessage(c.in); err != nil {
				t.Fatal(err)
			}
			for range 30 {
				quick := r.dial().send(head("GET", "/quick", "s.test", other, "them") + "\r\n")
				if a := quick.answer(); a.status != 200 {
					t.Fatalf("another client: %d %s", a.status, a.content)
				}
				quick.Close()
			}
			c.CloseWrite()
			c.closed()
			r.shutdown()
			own := append(linesWith(log, "method=CONNECT"), linesWith(log, "path=/chat")...)
			if len(own) != 1 || !strings.Contains(own[0], " traceId="+traceID) {
				t.Errorf("the tunnel's line: %q", own)
			}
			if tt.ask[:3] == "GET" && (len(own) != 1 || !strings.Contains(own[0], " caller=mine")) {
				t.Errorf("the tunnel's line: %q", own)
			}
		})
	}
}
