package sidecar

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/abate-go/abate/cmd/internal/clitest"
	"github.com/abate-go/abate/proxy"
)

// limited is a proxy under a policy file, and where it listens.
func limited(t *testing.T, policy string) string {
	t.Helper()
	p, err := proxy.New(proxy.Config{Policy: clitest.Put(t, "policy.yaml", policy)})
	if err != nil {
		t.Fatal(err)
	}
	l := clitest.OnLoopback(t)
	go func() { _ = p.Serve(l) }() // until Shutdown
	t.Cleanup(func() { _ = p.Shutdown(context.WithoutCancel(t.Context())) })
	return l.Addr().String()
}

// What the README says does not work is refused or done just as it says, so that nobody has to find out.
func TestProxyRefusesToTunnel(t *testing.T) {
	conn, err := net.Dial("tcp", limited(t, "services: {s: {}}"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "CONNECT payments.test:443 HTTP/1.1\r\nHost: payments.test:443\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("CONNECT: %s, the README says 405", resp.Status)
	}
}

func TestRouteThatIsABaseURLKeepsItsPrefix(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.URL.Path)
	}))
	defer service.Close()
	addr := limited(t, "services: {s: {upstreams: ["+service.URL+"], routes: [{path: /payments}]}}")
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	a := ask(t, client, "GET", "http://"+addr+"/payments/42", "")
	if got := strings.TrimSpace(a.body); got != "/payments/42" {
		t.Errorf("the service got %q, the README says /payments/42", got)
	}
}
