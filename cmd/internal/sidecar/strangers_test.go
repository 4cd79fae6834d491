package sidecar

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/abate-go/abate/cmd/internal/clitest"
	"github.com/abate-go/abate/proxy"
)

// Programs call more than the services of the policy. A sidecar that is told so takes none of that away, follows the
// file where it says what CONNECT may reach, and is no way to this machine for others.
func TestSidecarPassesOnWhatItsProgramReachesByItself(t *testing.T) {
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.URL.Path)
	}))
	defer stranger.Close()
	const services = "services: {s: {upstreams: [\"http://s.test\"]}}\n"
	for words, want := range map[string]string{"": "404", "--strangers refuse": "404", "--strangers pass": "200 /a//b"} {
		policy := clitest.Put(t, "policy.yaml", services)
		f, err := parseProxyFlags(strings.Fields("-c " + policy + " " + words))
		if err != nil {
			t.Fatal(err)
		}
		p, err := proxy.New(f.config)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Shutdown(t.Context())
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = p.Serve(l) }() // until Shutdown
		through := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: l.Addr().String()})}
		defer through.CloseIdleConnections()
		resp, err := (&http.Client{Transport: through}).Get(stranger.URL + "/a//b")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if got := fmt.Sprint(resp.StatusCode, " ", string(body)); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
		addr := stranger.Listener.Addr().String()
		if err := os.WriteFile(policy, []byte(services+"outside: {connect: [\""+addr+"\"]}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := p.Reload(); err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", addr)
		if line, _ := bufio.NewReader(c).ReadString('\n'); !strings.Contains(line, "200") {
			t.Errorf("%q: CONNECT to what a reload lists: %q", words, line)
		}
	}
	for words, want := range map[string]string{
		"perhaps":                           `--strangers "perhaps" is not known: write pass or refuse`,
		"pass --gateway":                    "remove --gateway",
		"pass --listen :15001":              "write --listen 127.0.0.1:15001",
		"pass --listen 10.0.0.1:15001":      "write --listen 127.0.0.1:15001",
		"pass --listen [::ffff:1.2.3.4]:80": "write --listen 127.0.0.1:15001",
	} {
		if _, err := parseProxyFlags(strings.Fields("-c p --strangers " + words)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", words, err)
		}
	}
	for _, listen := range []string{"off", "[::1]:15001", "localhost:1", "unix:/run/abate.sock"} {
		if _, err := parseProxyFlags([]string{"-c", "p", "--strangers", "pass", "--listen", listen}); err != nil {
			t.Errorf("%s: %v", listen, err)
		}
	}
}
