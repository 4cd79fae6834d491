//go:build unix

package proxy_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/loopback"
	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/proxy"
)

// childPolicy names the policy file of a proxy that a test has run in a process of its own, and childConnections its
// MaxConnections.
const (
	childPolicy      = "ABATE_TEST_PROXY_POLICY"
	childConnections = "ABATE_TEST_PROXY_CONNECTIONS"
)

// maxFiles is how many files that process may have open.
const maxFiles = 120

func init() { runChild = scarce }

// scarce is that process. It prints its address, and /guards when its standard input ends.
func scarce(policy string) error {
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: maxFiles, Max: maxFiles}); err != nil {
		return err
	}
	c := proxy.Config{
		Policy: policy, Log: slog.New(slog.DiscardHandler), ConnectTimeout: patience / 4, UpstreamIdleTimeout: time.Hour,
	}
	if _, err := fmt.Sscan(os.Getenv(childConnections), &c.MaxConnections); err != nil {
		return err
	}
	p, err := proxy.New(c)
	if err != nil {
		return err
	}
	l, err := loopback.Listen()
	if err != nil {
		return err
	}
	go func() { _ = p.Serve(l) }()
	fmt.Println(l.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	r := &running{proxy: p, admin: p.Admin()}
	_, err = io.WriteString(os.Stdout, r.adminGet("/guards"))
	return err
}

// small is a proxy that may have few files open.
type small struct {
	*running
	in  io.Closer
	out *bufio.Reader
}

// startSmall runs a proxy in a process of its own. connections is its MaxConnections.
func startSmall(t *testing.T, policyYAML string, connections int) *small {
	t.Helper()
	r := &running{t: t, file: t.TempDir() + "/policy.yaml"}
	r.write(policyYAML)
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childPolicy+"="+r.file, fmt.Sprintf("%s=%d", childConnections, connections))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	s := &small{r, in, bufio.NewReader(out)}
	line, err := s.out.ReadString('\n')
	if err != nil {
		t.Fatal("the proxy has not said its address: ", err)
	}
	r.addr = strings.TrimSpace(line)
	return s
}

// end ends the process, and returns its first guard as it was then.
func (s *small) end() guardState {
	s.t.Helper()
	s.in.Close()
	var report struct{ Services []guardState }
	if err := json.NewDecoder(s.out).Decode(&report); err != nil || len(report.Services) == 0 {
		s.t.Fatalf("/guards: %v", err)
	}
	return report.Services[0]
}

// idlers connects so many clients that ask for nothing.
func (s *small) idlers(n int) {
	s.t.Helper()
	for range n {
		nc, err := net.DialTimeout("tcp", s.addr, patience)
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { nc.Close() })
	}
}

// TestIdleClientsDoNotTakeTheDescriptorsOfServices: 300 of them, where 120 files may be open. Whoever asks is answered,
// and no circuit opens.
func TestIdleClientsDoNotTakeTheDescriptorsOfServices(t *testing.T) {
	needs.Whole(t)
	s := inTurn(t, ok("good"))
	r := startSmall(t, single([]string{s.url}), 0)
	kept := r.dial()
	if a := kept.get("/"); a.status != 200 {
		t.Fatalf("got %+v", a)
	}
	r.idlers(300)
	for i := range 60 {
		if a := r.get("/"); a.status != 200 || a.content != "good" {
			t.Errorf("request %d got %d %s", i, a.status, a.content)
		}
	}
	if g := r.end(); g.Breaker.Openings != 0 || g.Breaker.State != "closed" {
		t.Errorf("the circuit is %+v", g.Breaker)
	}
}

// TestOwnExhaustionIsNotTheServicesFailure: without a limit on clients nothing is left for the services. That is said,
// and held against nobody.
func TestOwnExhaustionIsNotTheServicesFailure(t *testing.T) {
	s := upstream(t, func(c net.Conn, req string) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\ngood")
	})
	for _, keys := range [][]string{{quickRetry}, {quickRetry, "hedge: {delay: 1h}"}} {
		r := startSmall(
			t, single([]string{s.url},
				append(keys, "circuitBreaker: {failureThreshold: 3}", "outlierDetection: {consecutiveFailures: 2}")...), -1)
		kept := r.dial()
		if a := kept.get("/"); a.status != 200 {
			t.Fatalf("got %+v", a)
		}
		before := len(s.seen())
		r.idlers(300)
		var a reply
		eventually(t, "nothing is left", func() bool { a = kept.get("/"); return a.status != 200 })
		for range 20 {
			if p := a.problem(t); a.status != 503 || p.Reason != "proxy-exhausted" || p.Attempts > 1 ||
				a.header.Get("Retry-After") == "" || a.header.Get("X-Should-Retry") != "" {
				t.Fatalf("got %+v", a)
			}
			a = kept.get("/")
		}
		budget := 0.0
		if g := r.end(); g.Breaker.Openings != 0 || g.Breaker.State != "closed" || g.Endpoints[0].Ejected {
			t.Errorf("held against the service: %+v", g)
		} else {
			budget = g.Budget
		}
		if budget < 10 {
			t.Errorf("%v are left of the budget", budget)
		}
		if n := len(s.seen()) - before; n > 5 {
			t.Logf("%d requests were served meanwhile", n)
		}
	}
}

// TestOneClientMoreThanTheLimitWaits: for one that goes, and the limit holds through a reload and ends with the drain.
func TestOneClientMoreThanTheLimitWaits(t *testing.T) {
	release := make(chan struct{})
	s := upstream(t, func(c net.Conn, req string) {
		if strings.HasPrefix(line(req), "GET /slow") {
			<-release
		}
		io.WriteString(c, ok("good"))
	})
	r := start(t, single([]string{s.url}), func(c *proxy.Config) { c.MaxConnections = 2 })
	busy := []*client{r.dial(), r.dial()}
	for i, c := range busy {
		c.send("GET /slow HTTP/1.1\r\nHost: s.test\r\n\r\n")
		eventually(t, "it is asked", func() bool { return len(s.seen()) == i+1 })
	}
	third := r.dial().send("GET /third HTTP/1.1\r\nHost: s.test\r\n\r\n")
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	third.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if _, err := third.in.Peek(1); err == nil || len(s.seen()) != 2 {
		t.Errorf("a third client was served: %v, %d requests", err, len(s.seen()))
	}
	third.SetReadDeadline(time.Now().Add(patience))
	close(release)
	if a := third.answer(); a.content != "good" { // one of the two is idle by now
		t.Errorf("the third got %+v", a)
	}
	goes := 0
	for _, c := range busy {
		a := c.answer()
		if a.content != "good" {
			t.Errorf("a client that was there got %+v", a)
		}
		if a.close {
			goes++
		}
	}
	if goes == 0 {
		t.Error("no answer asked its client to make room")
	}
	over := []*client{r.dial(), r.dial(), r.dial()}
	r.shutdown()
	for _, c := range over {
		c.Close()
	}
}

// TestThatThereIsNoRoomIsSaidLessAndLessOften: the log of a bad night has to be readable.
func TestThatThereIsNoRoomIsSaidLessAndLessOften(t *testing.T) {
	each, want := make([]int, 500), make([]int, 500)
	for s := range 200 { // then it is over
		each[s] = 10
	}
	each[400] = 3
	for s, n := range map[int]int{1: 10, 2: 10, 4: 20, 8: 40, 16: 80, 32: 160, 64: 320, 124: 600, 184: 600, 244: 160,
		401: 3} {
		want[s-1] = n
	}
	if got := proxy.SaidOfFull(each); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestClientsThatWaitForAPlaceAreCounted: also those whom the proxy has not accepted yet, where the kernel tells.
func TestClientsThatWaitForAPlaceAreCounted(t *testing.T) {
	release := make(chan struct{})
	s := upstream(t, func(c net.Conn, req string) {
		<-release
		io.WriteString(c, ok("good"))
	})
	r := start(t, single([]string{s.url}), func(c *proxy.Config) { c.MaxConnections = 2 })
	var all []*client
	for i := range 6 {
		all = append(all, r.dial().send("GET / HTTP/1.1\r\nHost: s.test\r\nConnection: close\r\n\r\n"))
		if i < 2 {
			eventually(t, "it is asked", func() bool { return len(s.seen()) == i+1 })
		}
	}
	waiting := "abate_proxy_connections_waiting 1\n"
	if runtime.GOOS == "linux" && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64") {
		waiting = "abate_proxy_connections_waiting 4\n"
	}
	eventually(t, "four wait", func() bool {
		m := r.adminGet("/metrics")
		return strings.Contains(m, waiting) && strings.Contains(m, "abate_proxy_connections 2\n") &&
			strings.Contains(m, "abate_proxy_connections_limit 2\n") &&
			strings.Contains(m, "abate_proxy_connections_waited_total 1\n")
	})
	close(release)
	for _, c := range all {
		if a := c.answer(); a.content != "good" {
			t.Errorf("got %+v", a)
		}
	}
	eventually(t, "nobody is left", func() bool {
		m := r.adminGet("/metrics")
		return strings.Contains(m, "abate_proxy_connections_waiting 0\n") &&
			strings.Contains(m, "abate_proxy_connections 0\n")
	})
}
