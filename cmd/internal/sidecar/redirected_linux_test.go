package sidecar

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abate-go/abate/cmd/internal/clitest"
	"github.com/abate-go/abate/internal/needs"
)

const inNamespace = "ABATE_TEST_REDIRECTED"

// A network namespace of its own is another machine: what is redirected there touches nothing here.
func TestFirewallRedirectsTheCallsOfAProgram(t *testing.T) {
	if os.Getenv(inNamespace) != "" {
		redirectedHere(t)
		return
	}
	if testing.Short() {
		return // it starts itself again in a namespace
	}
	needs.Program(t, "iptables")
	needs.Program(t, "ip")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// sh runs a line of the shell in the namespace.
func sh(t *testing.T, line string) {
	t.Helper()
	if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
}

// redirectedHere is the test in its namespace: services at 10.1.1.1 and fd01::1, which a program calls without knowing
// of the proxy. The proxy's own connections are known by their mark: all users but one are missing here.
func redirectedHere(t *testing.T) {
	sh(t, "ip link set lo up; ip addr add 10.1.1.1/32 dev lo; ip -6 addr add fd01::1/128 dev lo nodad")
	answer := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s %s via %v", name, r.URL.Path, r.Header["Via"] != nil)
		}
	}
	serve := func(addr string, h http.Handler) {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: h}
		go func() { _ = s.Serve(l) }() // until Close
		t.Cleanup(func() { _ = s.Close() })
	}
	serve("10.1.1.1:8080", answer("four"))
	serve("[fd01::1]:8080", answer("six"))
	raw, err := net.Listen("tcp", "10.1.1.1:9090")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	go func() {
		for {
			c, err := raw.Accept()
			if err != nil {
				return
			}
			go func() { // a server that speaks first
				defer c.Close()
				_, _ = io.WriteString(c, "220 hello\n")
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	toldWhere(t, "10.1.1.1:7070")
	policy := clitest.Put(t, "policy.yaml", `services:
  four: {upstreams: ["http://10.1.1.1:8080"]}
  six: {upstreams: ["http://[fd01::1]:8080"]}
  raw: {upstreams: ["http://raw.test:9090"]}
  told: {upstreams: ["http://10.1.1.1:7070"], sendProxyProtocol: v1}
outside: {connect: ["10.1.1.1:9090"], passThrough: ["localhost:9090"]}
`)
	var printed, complaints bytes.Buffer
	code := Clients{}.ProxyCommand(t.Context(), []string{"-c", policy, "--print-iptables", "--redirected", "[::]:15006",
		"--proxy-uid", "4242", "--mark", "7"}, &printed, &complaints)
	if code != 0 {
		t.Fatalf("--print-iptables: %d %s", code, &complaints)
	}
	for line := range strings.Lines(printed.String()) {
		line = strings.TrimSpace(line)
		if !strings.Contains(line, "--uid-owner 4242") && !strings.HasPrefix(line, "#") { // a user that is not in here
			sh(t, line)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	var out, errs bytes.Buffer
	go func() {
		done <- Clients{}.ProxyCommand(ctx, []string{"-c", policy, "--listen", "127.0.0.1:15001", "--redirected",
			"[::]:15006", "--admin", "off", "--mark", "7", "--access-log", "all"}, &out, &errs)
	}()
	clitest.Eventually(t, "the proxy listens", func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:15001")
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	for url, want := range map[string]string{
		"http://10.1.1.1:8080/a": "four /a via true", "http://[fd01::1]:8080/b": "six /b via true",
		"http://10.1.1.1:7070/": "10.1.1.1 7070",
	} {
		resp, err := client.Get(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		if resp.Body.Close(); string(body) != want {
			t.Errorf("%s: %s, want %s", url, body, want)
		}
	}
	forged, err := http.NewRequestWithContext(t.Context(), "GET", "http://10.1.1.1:9090/", nil)
	if err != nil {
		t.Fatal(err)
	}
	forged.Host = "localhost:9090" // the list has the name, and says nothing of 10.1.1.1
	if resp, err := client.Do(forged); err != nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("a Host that is not that of the address: %v %v", resp, err)
	} else {
		resp.Body.Close()
	}
	c, err := net.Dial("tcp", "10.1.1.1:9090")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, len("220 hello\nping"))
	_, _ = io.WriteString(c, "")
	if _, err := io.ReadFull(c, buf[:10]); err != nil || string(buf[:10]) != "220 hello\n" {
		t.Errorf("what is no HTTP: %q, %v", buf[:10], err)
	}
	_, _ = io.WriteString(c, "ping")
	if _, err := io.ReadFull(c, buf[:4]); err != nil || string(buf[:4]) != "ping" {
		t.Errorf("what is no HTTP: %q, %v", buf[:4], err)
	}
	c.Close()
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("the proxy ended with %d", code)
	}
	for line := range strings.Lines(out.String() + errs.String()) {
		if strings.Contains(line, `method=""`) && strings.Contains(line, "service=") {
			t.Errorf("a connection that nobody has read is a service's: %s", line)
		}
	}
	if t.Failed() {
		t.Logf("out: %s\nerr: %s", &out, &errs)
	}
}

// toldWhere is a service whose connections begin with a PROXY header of version 1. It answers with where it says that
// the client wanted to go.
func toldWhere(t *testing.T, addr string) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				line, _ := in.ReadString('\n')
				if _, err := http.ReadRequest(in); err != nil {
					return
				}
				words := append(strings.Fields(line), "", "", "", "", "", "")
				text := words[3] + " " + words[5]
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
			}()
		}
	}()
}

func TestRulesRedirectThePortsOfTheServices(t *testing.T) {
	var out, errs bytes.Buffer
	policy := clitest.Put(t, "policy.yaml", `services:
  a: {upstreams: ["http://a", "h2c://a:9000"], routes: [{host: "x.test:8080", path: /}, {host: y.test}]}
  b: {upstreams: ["https://b"]}
  c: {upstreams: ["unix:/run/c.sock?host=c.test:9100"]}
`)
	if code := (Clients{}).ProxyCommand(t.Context(), []string{"-c", policy, "--print-iptables", "--proxy-uid", "7"}, &out,
		&errs); code != 0 {
		t.Fatalf("%d %s", code, &errs)
	}
	if !strings.Contains(out.String(), "# Over IPv6 they are refused: --redirected [::]:15006 takes those, too.\n") {
		t.Errorf("nothing is said of IPv6:\n%s", &out)
	}
	for _, program := range []string{"iptables", "ip6tables"} {
		want := program + " -t nat -N ABATE\n" + program + " -t nat -A ABATE -m owner --uid-owner 7 -j RETURN\n" + program +
			" -t nat -A ABATE -p tcp -m multiport --dports 80,8080,9000,9100 -j REDIRECT --to-ports 15006\n" + program +
			" -t nat -A OUTPUT -p tcp -j ABATE\n"
		if !strings.Contains(out.String(), want) {
			t.Errorf("got\n%s\nwant\n%s", &out, want)
		}
	}
	policy = clitest.Put(t, "none.yaml", "services: {a: {upstreams: [\"unix:/run/a.sock\"]}}\n") // nobody can ask for it
	if code := (Clients{}).ProxyCommand(t.Context(), []string{"-c", policy, "--print-iptables"}, &out, &errs); code != 1 ||
		!strings.Contains(errs.String(), "nothing to redirect") {
		t.Errorf("without services: %d %s", code, &errs)
	}
}

// The rules of a firewall know the ports that there were when they were made. A reload that brings another one says so:
// calls there go past the proxy, and nobody else would know.
func TestPortThatAReloadBringsIsNotRedirectedAndSaid(t *testing.T) {
	t.Parallel()
	const one = "services:\n  one: {upstreams: [\"http://127.0.0.1:8081\"]}\n"
	file := clitest.Put(t, "policy.yaml", one)
	p := launch(t, file, "--redirected", "127.0.0.1:0")
	const says = "calls there go past the proxy unless the firewall redirects them"
	rename(t, file, one+"  same: {upstreams: [\"http://127.0.0.2:8081\"]}\n")
	clitest.Eventually(t, "the first reload", func() bool {
		return strings.Contains(p.log.String(), "policy file loaded")
	})
	rename(t, file, one+"  two: {upstreams: [\"http://127.0.0.1:8082\", \"http://127.0.0.1:8083\"]}\n")
	clitest.Eventually(t, "the new ports are said", func() bool {
		return strings.Contains(p.log.String(), says) && strings.Contains(p.log.String(), `ports="[8082 8083]"`)
	})
	if n := strings.Count(p.log.String(), says); n != 1 {
		t.Errorf("said %d times:\n%s", n, p.log.String())
	}
}
