package proxy_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy"
)

// targets is a file in the form of Prometheus' file_sd.
type targets struct {
	t    testing.TB
	path string
}

func newTargets(t testing.TB, addrs ...string) *targets {
	f := &targets{t, filepath.Join(t.TempDir(), "s.json")}
	f.set(addrs...)
	return f
}

// set replaces the file, as the programs do that write such files.
func (f *targets) set(addrs ...string) {
	f.t.Helper()
	text := "[]"
	if len(addrs) > 0 {
		text = `[{"targets": ["` + strings.Join(addrs, `", "`) + `"], "labels": {"zone": "eu-1"}}]`
	}
	if err := os.WriteFile(f.path+".new", []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(f.path+".new", f.path); err != nil {
		f.t.Fatal(err)
	}
}

// policy is single with the file.
func (f *targets) policy(scheme string, keys ...string) string {
	return single([]string{scheme + "://s.test/base"}, append(keys, "discovery: {type: file, path: "+f.path+"}")...)
}

func addrOf(s *server) string { return strings.TrimPrefix(s.url, "http://") }

// becomes waits until the endpoints of the service are those.
func (r *running) becomes(addrs ...string) {
	r.t.Helper()
	want := map[string]bool{}
	for _, a := range addrs {
		want[a] = true
	}
	eventually(r.t, fmt.Sprintf("its endpoints are %v", addrs), func() bool {
		_, same := r.proxy.Endpoints("s", want)
		return same
	})
}

// TestEndpointsChangeWhileRequestsRun: those under way end where they are, new ones go to the new endpoints, and the
// connections to the old ones are closed. The Host is that of the upstream, and the path is below its own.
func TestEndpointsChangeWhileRequestsRun(t *testing.T) {
	came, release := make(chan struct{}, 10), make(chan struct{})
	old := upstream(t, func(c net.Conn, req string) {
		if strings.Contains(req, "/slow") {
			came <- struct{}{}
			hold(t, release)
		}
		io.WriteString(c, ok("old"))
	})
	next := newMember(t, "next")
	file := newTargets(t, addrOf(old))
	r := start(t, file.policy("http"))
	if a := r.get("/quick"); a.content != "old" {
		t.Fatalf("%+v", a)
	}
	if req := old.seen()[0]; field(req, "Host") != "s.test" || !strings.HasPrefix(req, "GET /base/quick ") {
		t.Errorf("the request was %q", req)
	}
	slow := r.dial().send("GET /slow HTTP/1.1\r\nHost: s.test\r\n\r\n")
	wait(t, "the slow request", came)
	file.set(addrOf(next.server))
	r.becomes(addrOf(next.server))
	for range 20 {
		if a := r.get("/"); a.content != "next" {
			t.Errorf("%+v", a)
		}
	}
	close(release)
	if a := slow.answer(); a.content != "old" {
		t.Errorf("the request under way: %+v", a)
	}
	eventually(t, "the connections to the old one are closed", func() bool { return old.open() == 0 })
	for _, want := range []string{`"from": "file ` + file.path, `"url": "http://` + addrOf(next.server) + `/base"`,
		`"zone": "eu-1"`, `"changed": "2`} {
		if page := r.adminGet("/guards"); !strings.Contains(page, want) {
			t.Errorf("/guards has no %s: %s", want, page)
		}
	}
}

// TestWhatIsKnownOfAnEndpointOutlivesAChangeOfTheOthers: it stays out although others come.
func TestWhatIsKnownOfAnEndpointOutlivesAChangeOfTheOthers(t *testing.T) {
	bad, good, more := newMember(t, "bad"), newMember(t, "good"), newMember(t, "more")
	bad.down.Store(true)
	file := newTargets(t, addrOf(bad.server), addrOf(good.server))
	r := start(t, file.policy("http", noRetries, noBreaker,
		"outlierDetection: {consecutiveFailures: 1, baseEjectionTime: 1h, maxEjectionTime: 1h}"))
	out := func() (n int) {
		for i, e := range r.guard().Endpoints {
			if e.Ejected {
				n += i + 1
			}
		}
		return n
	}
	eventually(t, "it is out", func() bool { r.get("/"); return out() > 0 })
	file.set(addrOf(bad.server), addrOf(good.server), addrOf(more.server))
	r.becomes(addrOf(bad.server), addrOf(good.server), addrOf(more.server))
	before := len(bad.seen())
	for range 30 {
		if a := r.get("/"); a.status != 200 {
			t.Errorf("%+v", a)
		}
	}
	if len(bad.seen()) != before || out() == 0 {
		t.Error("it is back, because another one came")
	}
}

// TestARetryGoesToAnEndpointThatHasComeMeanwhile: the one endpoint there was is gone.
func TestARetryGoesToAnEndpointThatHasComeMeanwhile(t *testing.T) {
	var file *targets
	var r *running
	next := newMember(t, "next")
	old := upstream(t, func(c net.Conn, _ string) {
		file.set(addrOf(next.server))
		r.becomes(addrOf(next.server))
		io.WriteString(c, status(503))
	})
	file = newTargets(t, addrOf(old))
	r = start(t, file.policy("http", quickRetry, "maxRetries: 1", noBreaker, "retryBudget: {disabled: true}"))
	if a := r.get("/"); a.content != "next" {
		t.Errorf("%+v", a)
	}
}

// A zone that nobody has prefers no endpoint. Which there are is said beside it, for it may be a mistake in writing.
func TestAZoneThatNobodyHasIsSaid(t *testing.T) {
	s := newMember(t, "a")
	file := newTargets(t, addrOf(s.server))
	r := start(t, file.policy("http"), func(c *proxy.Config) { c.Zone = "eu1" })
	if a := r.get("/"); a.content != "a" {
		t.Errorf("%+v", a)
	}
	const want = `zone \"eu1\": no endpoint is there, so none is preferred: look at --zone; theirs are eu-1`
	if page := r.adminGet("/guards"); !strings.Contains(page, want) {
		t.Errorf("/guards does not say it: %s", page)
	}
}

// TestAnEmptyFileKeepsTheEndpoints and says so where people look.
func TestAnEmptyFileKeepsTheEndpoints(t *testing.T) {
	s := newMember(t, "a")
	file := newTargets(t, addrOf(s.server))
	r := start(t, file.policy("http"))
	r.get("/")
	file.set()
	eventually(t, "/guards says it", func() bool {
		return strings.Contains(r.adminGet("/guards"), "it has no targets: write one at least") &&
			strings.Contains(r.adminGet("/guards"), "; the 1 endpoints of the last answer are kept")
	})
	if a := r.get("/"); a.content != "a" {
		t.Errorf("%+v", a)
	}
	page := r.adminGet("/metrics")
	for _, want := range []string{`abate_proxy_discovery_up{service="s"} 0`,
		`abate_proxy_discovery_endpoints{service="s"} 1`,
		`abate_proxy_discovery_last_change_timestamp_seconds{service="s"} 1`} {
		if !strings.Contains(page, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
}

// TestAServiceThatIsNotFoundSaysWhyAndLeavesOthersAlone over HTTP and at a gateway, which keeps addresses to itself.
func TestAServiceThatIsNotFoundSaysWhyAndLeavesOthersAlone(t *testing.T) {
	for _, gateway := range []bool{false, true} {
		s := newMember(t, "good")
		r := start(t, "services:\n  lost:\n    upstreams: [\"http://lost.test\"]\n    routes: [{path: /lost}]\n"+
			"    discovery: {type: file, path: /nowhere/lost.json}\n  good:\n    upstreams: [\""+s.url+"\"]\n"+
			"    routes: [{path: /}]\n", func(c *proxy.Config) { c.Gateway = gateway })
		a := r.get("/lost/x")
		p := a.problem(t)
		const why = "file /nowhere/lost.json has never been found: stat /nowhere/lost.json: no such file or directory"
		if a.status != 503 || p.Reason != "no-endpoints" || strings.Contains(p.Detail, why) == gateway ||
			a.header.Get("Retry-After") == "" {
			t.Errorf("%+v, %+v", a, p)
		}
		if a := r.get("/"); a.content != "good" {
			t.Errorf("the other: %+v", a)
		}
	}
}

// TestADiscoveredServiceBehindAGate is found like one that is called.
func TestADiscoveredServiceBehindAGate(t *testing.T) {
	s := newMember(t, "a")
	file := newTargets(t, addrOf(s.server))
	r := protect(t, guardOf("http://s.test", "discovery: {type: file, path: "+file.path+"}"))
	if a := r.get("/"); a.content != "a" {
		t.Errorf("%+v", a)
	}
	if page := r.adminGet("/gates"); !strings.Contains(page, `"from": "file `) {
		t.Errorf("/gates: %s", page)
	}
}

// TestAReloadThatChangesWhereToLookKeepsTheEndpointsUntilThereIsAnAnswer, and one that looks no more ends the looking.
func TestAReloadThatChangesWhereToLookKeepsTheEndpointsUntilThereIsAnAnswer(t *testing.T) {
	a, b := newMember(t, "a"), newMember(t, "b")
	one, two := newTargets(t, addrOf(a.server)), newTargets(t)
	r := start(t, one.policy("http"))
	r.get("/")
	r.write(two.policy("http"))
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if got := r.get("/"); got.content != "a" {
			t.Errorf("%+v", got)
		}
	}
	two.set(addrOf(b.server))
	r.becomes(addrOf(b.server))
	if got := r.get("/"); got.content != "b" {
		t.Errorf("%+v", got)
	}
	r.write(single([]string{a.url}))
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := r.get("/"); got.content != "a" || strings.Contains(r.adminGet("/guards"), "discovery") {
		t.Errorf("%+v", got)
	}
}

// pods are endpoints that come and go: each a server of its own.
type pods struct {
	t    testing.TB
	live []net.Listener
}

func (p *pods) begin(n int) {
	for range n {
		l := listen(p.t)
		p.live = append(p.live, l)
		go serveLoopback(p.t, l)
	}
}

// serveLoopback answers requests until the listener is closed, and closes its connections then, each between two
// requests.
func serveLoopback(t testing.TB, l net.Listener) {
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })}
	_ = s.Serve(l) // until l is closed
	if err := s.Shutdown(t.Context()); err != nil && t.Context().Err() == nil {
		t.Error(err)
	}
	_ = s.Close()
}

func (p *pods) addrs() (all []string) {
	for _, l := range p.live {
		all = append(all, l.Addr().String())
	}
	return all
}

// TestAThousandEndpointsOfWhichATenthIsReplacedAgainAndAgain under load: no call fails, and nothing grows.
func TestAThousandEndpointsOfWhichATenthIsReplacedAgainAndAgain(t *testing.T) {
	n, rounds := 1000, 30
	if testing.Short() || raceDetector {
		n, rounds = 100, 10 // the same with less of everything
	}
	p := &pods{t: t}
	p.begin(n)
	file := newTargets(t, p.addrs()...)
	r := start(t, file.policy("http")) // the default policy
	r.becomes(p.addrs()...)
	var calls, failed atomic.Int64
	var clients sync.WaitGroup
	over := make(chan struct{})
	for range 4 {
		clients.Go(func() {
			c := r.dial()
			defer c.Close()
			for {
				select {
				case <-over:
					return
				default:
				}
				if a := c.get("/"); a.status != 200 {
					failed.Add(1)
					t.Errorf("%+v", a)
				}
				calls.Add(1)
			}
		})
	}
	for round := range rounds {
		before := p.live
		p.live = append([]net.Listener(nil), before[n/10:]...)
		p.begin(n / 10)
		p.live[round%len(p.live)].Close() // one dies without a word: its calls go to others
		p.begin(1)
		p.live = append(p.live[:round%len(p.live)], p.live[round%len(p.live)+1:]...)
		file.set(p.addrs()...)
		r.becomes(p.addrs()...)
		for _, l := range before[:n/10] {
			l.Close()
		}
		at := calls.Load()
		eventually(t, "calls go on", func() bool { return calls.Load() >= at+int64(n/4) })
	}
	close(over)
	clients.Wait()
	t.Logf("%d calls, %d failed, %d goroutines", calls.Load(), failed.Load(), runtime.NumGoroutine())
	// Each endpoint has a goroutine that accepts, and one for a connection that is kept to it; the clients have theirs.
	eventually(t, "nothing is left of those that are gone", func() bool { return runtime.NumGoroutine() < 3*n+100 })
	for _, l := range p.live {
		l.Close()
	}
}

// TestTheFirstRequestWaitsForTheFirstAnswer of a name server that takes its time.
func TestTheFirstRequestWaitsForTheFirstAnswer(t *testing.T) {
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	s := newMember(t, "a")
	_, port, _ := net.SplitHostPort(addrOf(s.server))
	asked, answer := make(chan struct{}, 100), make(chan struct{})
	go serveNames(u, asked, answer)
	r := start(t, single([]string{"http://s.test.:" + port},
		"discovery: {type: dns, server: \""+u.LocalAddr().String()+"\"}"))
	wait(t, "the question", asked)
	c := r.dial().send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")
	eventually(t, "the request is there", func() bool { return r.proxy.Clients() == 1 })
	close(answer)
	if a := c.answer(); a.content != "a" {
		t.Errorf("%+v", a)
	}
	if e := r.guard().Endpoints; len(e) != 1 || e[0].URL != "http://127.0.0.1:"+port {
		t.Errorf("%+v", e)
	}
}

// serveNames answers each question with 127.0.0.1, once answer is closed.
func serveNames(u net.PacketConn, asked chan<- struct{}, answer <-chan struct{}) {
	buf := make([]byte, 512)
	for {
		n, from, err := u.ReadFrom(buf)
		if err != nil {
			return
		}
		asked <- struct{}{}
		<-answer
		q := buf[12:n] // one question: name, type, class; and what EDNS adds
		end := 0
		for q[end] != 0 {
			end += int(q[end]) + 1
		}
		question := q[:end+5]
		m := append([]byte{buf[0], buf[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
		if question[end+2] == 1 { // A
			m[7] = 1
			m = append(m, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1)
		}
		_, _ = u.WriteTo(m, from)
	}
}

var _ = time.Second

// TestARetryGoesToAnEndpointThatHasComeMeanwhileThoughThePolicyIsAnotherToo: the one endpoint there was is gone, and
// the file has been reloaded.
func TestARetryGoesToAnEndpointThatHasComeMeanwhileThoughThePolicyIsAnotherToo(t *testing.T) {
	var file *targets
	var r *running
	next := newMember(t, "next")
	keys := []string{quickRetry, "maxRetries: 3", noBreaker, "retryBudget: {disabled: true}"}
	old := upstream(t, func(c net.Conn, _ string) {
		file.set(addrOf(next.server))
		r.becomes(addrOf(next.server))
		r.becomesPolicy(file.policy("http", append(keys, "attemptTimeout: 1h")...))
		io.WriteString(c, status(503))
	})
	file = newTargets(t, addrOf(old))
	r = start(t, file.policy("http", keys...))
	if a := r.get("/"); a.content != "next" || len(old.seen()) != 1 {
		t.Errorf("%+v after %d calls of the one that has gone", a, len(old.seen()))
	}
}
