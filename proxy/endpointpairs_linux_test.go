package proxy_test

import (
	"bufio"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy"
)

// What becomes of a call that arrives at a pod.
const (
	answers int32 = iota
	refuses       // with 503
	hangs
	breaks // the connection, without an answer
	manners
)

// pod is an endpoint of a town: an address of loopback, of which there are millions.
type pod struct {
	addr   netip.Addr
	zone   string
	manner atomic.Int32
	well   atomic.Bool  // its check says so
	closed atomic.Int64 // from which epoch on no call may be sent there; 0 while it may
	calls  atomic.Int64
	ending bool // its slice says that it terminates, and still serves
	mu     sync.Mutex
	gone   bool
	idle   map[net.Conn]bool // its connections; those that wait for a request
}

// town is a Service of Kubernetes whose pods come and go, and its API server.
type town struct {
	t    *testing.T
	rnd  *rand.Rand
	port int

	epoch atomic.Int64 // grows when the proxy is known to have heard of a change
	mu    sync.Mutex
	pods  map[netip.Addr]*pod
	seen  map[string]int64 // by call, the epoch in which it was seen last
	open  map[net.Conn]*pod
	past  map[netip.Addr]*pod // that lived there last

	api     *httptest.Server
	apiMu   sync.Mutex
	version int
	slices  [3]map[string]any
	log     []townEvent
	news    chan struct{} // closed at each change
	drop    chan struct{} // closed to end all watches
}

type townEvent struct {
	version int
	line    []byte
}

func newTown(t *testing.T, seed uint64) *town {
	w := &town{t: t, rnd: rand.New(rand.NewPCG(seed, 21)), pods: map[netip.Addr]*pod{}, seen: map[string]int64{},
		open: map[net.Conn]*pod{}, past: map[netip.Addr]*pod{}, version: 1, news: make(chan struct{}),
		drop: make(chan struct{})}
	l, err := net.Listen("tcp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	w.port = l.Addr().(*net.TCPAddr).Port
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { w.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		w.mu.Lock()
		for c := range w.open {
			c.Close()
		}
		w.mu.Unlock()
		all.Wait()
	})
	w.api = httptest.NewTLSServer(w)
	t.Cleanup(w.api.Close)
	return w
}

// account is a folder as Kubernetes gives it to a pod.
func (w *town) account() string {
	dir := w.t.TempDir()
	for name, text := range map[string]string{
		"ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.api.Certificate().Raw})),
		"token":  "secret", "namespace": "shop",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	host, port, _ := net.SplitHostPort(w.api.Listener.Addr().String())
	w.t.Setenv("KUBERNETES_SERVICE_HOST", host)
	w.t.Setenv("KUBERNETES_SERVICE_PORT", port)
	return dir
}

// ServeHTTP is the API server.
func (w *town) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.apiMu.Lock()
	if r.FormValue("watch") == "" {
		items := []any{}
		for _, s := range w.slices {
			if s != nil {
				items = append(items, s)
			}
		}
		list, _ := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": strconv.Itoa(w.version)},
			"items": items})
		w.apiMu.Unlock()
		_, _ = out.Write(list)
		return
	}
	from, _ := strconv.Atoi(r.FormValue("resourceVersion"))
	for drop := w.drop; ; {
		if len(w.log) > 0 && from < w.log[0].version-1 {
			w.apiMu.Unlock()
			fmt.Fprintln(out, `{"type":"ERROR","object":{"kind":"Status","code":410}}`)
			return
		}
		var lines []byte
		for _, e := range w.log {
			if e.version > from {
				lines, from = append(lines, e.line...), e.version
			}
		}
		news := w.news
		w.apiMu.Unlock()
		_, _ = out.Write(lines)
		out.(http.Flusher).Flush()
		select {
		case <-news:
		case <-drop:
			return
		case <-r.Context().Done():
			return
		}
		w.apiMu.Lock()
	}
}

// publish has the slices say what there is. A pod is always in the same one.
func (w *town) publish() {
	var lists [3][]any
	w.mu.Lock()
	for _, p := range w.pods {
		n := int(p.addr.As4()[3]) % len(lists)
		lists[n] = append(lists[n], map[string]any{"addresses": []string{p.addr.String()}, "zone": p.zone,
			"conditions": map[string]any{"ready": !p.ending, "serving": true, "terminating": p.ending}})
	}
	w.mu.Unlock()
	w.apiMu.Lock()
	defer w.apiMu.Unlock()
	for n := range w.slices {
		w.version++
		kind := "MODIFIED"
		if w.slices[n] == nil {
			kind = "ADDED"
		}
		w.slices[n] = map[string]any{"addressType": "IPv4", "endpoints": lists[n],
			"metadata": map[string]any{"name": fmt.Sprint("s-", n), "resourceVersion": strconv.Itoa(w.version)},
			"ports":    []any{map[string]any{"name": "http", "port": w.port, "protocol": "TCP"}}}
		line, _ := json.Marshal(map[string]any{"type": kind, "object": w.slices[n]})
		w.log = append(w.log, townEvent{w.version, append(line, '\n')})
	}
	if len(w.log) > 60 {
		w.log = append([]townEvent(nil), w.log[len(w.log)-30:]...)
	}
	close(w.news)
	w.news = make(chan struct{})
}

// hangUp ends all watches.
func (w *town) hangUp() {
	w.apiMu.Lock()
	defer w.apiMu.Unlock()
	close(w.drop)
	w.drop = make(chan struct{})
}

// begin starts a pod at an address that nobody has.
func (w *town) begin() *pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		addr := netip.AddrFrom4([4]byte{127, byte(1 + w.rnd.IntN(3)), byte(w.rnd.IntN(16)), byte(1 + w.rnd.IntN(250))})
		if w.pods[addr] == nil {
			p := &pod{addr: addr, zone: string(rune('a' + w.rnd.IntN(3))), idle: map[net.Conn]bool{}}
			p.well.Store(true)
			w.pods[addr] = p
			return p
		}
	}
}

// end takes pods away of which the proxy does not know any more: from now on nothing may be sent there. Each serves to
// the end of what it has, and closes its connections.
func (w *town) end(pods []*pod) {
	e := w.epoch.Add(1)
	for _, p := range pods {
		p.closed.Store(e)
	}
	for _, p := range pods {
		p.mu.Lock()
		p.gone = true
		for c, idle := range p.idle {
			if idle {
				c.Close()
			}
		}
		p.mu.Unlock()
	}
}

// serve is a connection to a pod.
func (w *town) serve(c net.Conn) {
	defer c.Close()
	addr := netip.MustParseAddrPort(c.LocalAddr().String()).Addr()
	w.mu.Lock()
	p, past := w.pods[addr], w.past[addr]
	w.open[c] = p
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.open, c)
		w.mu.Unlock()
	}()
	if p == nil { // nobody lives there any more
		c.(*net.TCPConn).SetLinger(0)
		if req, err := readMessage(bufio.NewReader(c)); err == nil && !strings.HasPrefix(req, "GET /healthz ") {
			w.see(past, req)
		}
		return
	}
	wait := func(waits bool) (stays bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.idle[c] = waits
		return !p.gone
	}
	defer func() {
		p.mu.Lock()
		delete(p.idle, c)
		p.mu.Unlock()
	}()
	for in := bufio.NewReader(c); wait(true); {
		req, err := readMessage(in)
		if err != nil {
			return
		}
		wait(false)
		if !w.answer(p, c, req) {
			return
		}
	}
}

// answer is false if the connection ends.
func (w *town) answer(p *pod, c net.Conn, req string) bool {
	if strings.HasPrefix(req, "GET /healthz ") {
		if p.well.Load() {
			io.WriteString(c, ok("yes"))
		} else {
			io.WriteString(c, status(503))
		}
		return false
	}
	p.calls.Add(1)
	w.see(p, req)
	switch p.manner.Load() {
	case answers:
		io.WriteString(c, ok("good"))
	case refuses:
		io.WriteString(c, status(503))
	case hangs:
		_, _ = c.Read(make([]byte, 1)) // until the proxy gives up
		return false
	default:
		return false
	}
	return true
}

// see looks whether a call may come to a pod.
func (w *town) see(p *pod, req string) {
	call := field(req, "X-Call")
	from, _ := strconv.ParseInt(field(req, "X-Epoch"), 10, 64)
	w.mu.Lock()
	if e, again := w.seen[call]; again { // this attempt was chosen after that
		from = max(from, e)
	}
	w.seen[call] = w.epoch.Load()
	w.mu.Unlock()
	if e := p.closed.Load(); e != 0 && e <= from {
		w.t.Errorf("call %s of epoch %d went to %v, which had none to get from %d on", call, from, p.addr, e)
	}
}

// ready is those whom the proxy should know.
func (w *town) ready() (pods []*pod, addrs []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pods {
		if !p.ending {
			pods = append(pods, p)
			addrs = append(addrs, netip.AddrPortFrom(p.addr, uint16(w.port)).String())
		}
	}
	return pods, addrs
}

// policy is one of those that a platform may have, with checks or without.
func (w *town) policy(checks bool) string {
	pick := func(all ...string) string { return all[w.rnd.IntN(len(all))] }
	keys := []string{
		"discovery: {type: kubernetes, name: orders}", "maxRetries: 100", quickRetry, "maxDelay: 5ms", noBreaker,
		"retryBudget: {disabled: true}", "attemptTimeout: " + pick("150ms", "250ms"),
		fmt.Sprintf("outlierDetection: {consecutiveFailures: %s, baseEjectionTime: %s, maxEjectionShare: 0.3, "+
			"panicThreshold: %s, slowStart: %s}", pick("1", "3", "5"), pick("20ms", "500ms", "5s"), pick("0.2", "0.4"),
			pick("0s", "200ms")),
		"ignoreZones: " + pick("true", "false"),
	}
	if checks {
		keys = append(keys, "healthCheck: {kind: http, path: /healthz, "+quickCheck+"}")
	}
	return single([]string{"http://orders.shop"}, keys...)
}

// callers call until over is closed. No call may fail: half of the pods answer at any time.
func (w *town) callers(r *running, n int, over <-chan struct{}) (done *sync.WaitGroup, calls *atomic.Int64) {
	done, calls = new(sync.WaitGroup), new(atomic.Int64)
	var ids atomic.Int64
	for range n {
		done.Go(func() {
			for c := r.dial(); ; {
				select {
				case <-over:
					c.Close()
					return
				default:
				}
				id := strconv.FormatInt(ids.Add(1), 10)
				c.SetDeadline(time.Now().Add(patience))
				a, err := c.send(fmt.Sprintf("GET /call HTTP/1.1\r\nHost: s.test\r\nX-Call: %s\r\nX-Epoch: %d\r\n\r\n", id,
					w.epoch.Load())).read("GET")
				if err != nil || a.status != 200 {
					w.t.Errorf("call %s: %v, %+v", id, err, a)
					if err != nil {
						return
					}
				}
				w.mu.Lock()
				delete(w.seen, id)
				w.mu.Unlock()
				calls.Add(1)
			}
		})
	}
	return done, calls
}

// replace has so many pods replaced, in one of the ways in which pods go, and others change their manners.
func (w *town) replace(r *running, n int) {
	pods, _ := w.ready()
	w.rnd.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	old := pods[:n]
	for range n {
		w.begin()
	}
	w.mu.Lock()
	for _, p := range old {
		if p.ending = true; w.rnd.IntN(2) == 0 { // without a word
			w.bury(p)
		}
	}
	w.mu.Unlock()
	w.spoil()
	w.publish()
	_, addrs := w.ready()
	r.becomes(addrs...)
	w.end(old)
	w.mu.Lock()
	for _, p := range old {
		w.bury(p)
	}
	w.mu.Unlock()
}

// bury has nobody live where p did. mu is held.
func (w *town) bury(p *pod) {
	if w.pods[p.addr] == p {
		delete(w.pods, p.addr)
		w.past[p.addr] = p
	}
}

// spoil has less than half of the pods be bad, in any way, and some checks say no. It leaves a third as they are.
func (w *town) spoil() {
	pods, _ := w.ready()
	bad := 0
	for _, p := range pods {
		if w.rnd.IntN(3) > 0 {
			p.manner.Store(answers)
			p.well.Store(w.rnd.IntN(6) > 0)
			if w.rnd.IntN(3) == 0 {
				p.manner.Store(w.rnd.Int32N(manners))
			}
		}
		if p.manner.Load() != answers {
			if bad++; bad > len(pods)*2/5 {
				p.manner.Store(answers)
			}
		}
	}
}

// judge waits until the proxy knows what the checks say, a share of which is no. Then nobody whom they speak against
// may get a call, unless there are so many that they are not believed: then all get some.
func (w *town) judge(r *running, share float64, calls *atomic.Int64) {
	pods, _ := w.ready()
	want := map[string]string{}
	var sick []*pod
	for i, p := range pods {
		p.manner.Store(answers)
		p.well.Store(float64(i) >= share*float64(len(pods)))
		want["http://"+netip.AddrPortFrom(p.addr, uint16(w.port)).String()] = "healthy"
		if !p.well.Load() {
			sick = append(sick, p)
			want["http://"+netip.AddrPortFrom(p.addr, uint16(w.port)).String()] = "not healthy"
		}
	}
	eventually(w.t, "the proxy knows what all checks say", func() bool { return r.agrees(want) })
	e, from := w.epoch.Add(1), calls.Load()
	got := make([]int64, len(sick))
	for i, p := range sick {
		if got[i] = p.calls.Load(); share < 0.5 {
			p.closed.Store(e)
		}
	}
	eventually(w.t, "calls go on", func() bool { return calls.Load() > from+50 })
	if share >= 0.5 {
		eventually(w.t, "all get calls again, since so many checks are not believed", func() bool {
			for i, p := range sick {
				if p.calls.Load() == got[i] {
					return false
				}
			}
			return true
		})
	}
	for _, p := range sick {
		p.closed.Store(0)
	}
}

// agrees reports whether that is what /guards says of the health of all endpoints, none of which is ejected.
func (r *running) agrees(want map[string]string) bool {
	var report struct {
		Services []struct {
			Endpoints []struct {
				URL     string `json:"url"`
				Health  string `json:"health"`
				Ejected bool   `json:"ejected"`
			} `json:"endpoints"`
		} `json:"services"`
	}
	if json.Unmarshal([]byte(r.adminGet("/guards")), &report) != nil || len(report.Services) == 0 {
		return false
	}
	for _, e := range report.Services[0].Endpoints {
		if want[e.URL] != e.Health || e.Ejected {
			return false
		}
	}
	return len(report.Services[0].Endpoints) == len(want)
}

// TestPodsThatComeAndGoUnderChecksEjectionsZonesAndReloadsLoseNoCall: all at once, by chance. Half of the pods answer
// at any time, so no call may fail; none may go to a pod of which the proxy knows that it has gone, or that its check
// says no; and nothing may be left of those that have gone.
func TestPodsThatComeAndGoUnderChecksEjectionsZonesAndReloadsLoseNoCall(t *testing.T) {
	if testing.Short() {
		return // it takes half a minute
	}
	pods, each, rounds := 60, 25, 400
	if raceDetector {
		pods, each, rounds = 30, 12, 120
	}
	w := newTown(t, 1)
	for range pods {
		w.begin()
	}
	w.publish()
	r := start(t, w.policy(true), func(c *proxy.Config) { c.ServiceAccount, c.Zone = w.account(), "a" })
	_, addrs := w.ready()
	r.becomes(addrs...)
	over := make(chan struct{})
	done, calls := w.callers(r, 6, over)
	for round := range rounds {
		w.replace(r, each)
		switch w.rnd.IntN(8) {
		case 0:
			r.becomesPolicy(w.policy(w.rnd.IntN(3) > 0))
		case 1:
			w.hangUp()
		}
		if round%(rounds/6) == rounds/6-1 {
			r.becomesPolicy(w.policy(true))
			w.judge(r, []float64{0.15, 0.9}[round/(rounds/6)%2], calls)
		}
		at := calls.Load()
		eventually(t, "calls go on", func() bool { return calls.Load() >= at+int64(each)/4 })
	}
	t.Logf("%d calls, %d pods replaced", calls.Load(), rounds*each)
	close(over)
	done.Wait()
	w.isClean(r)
}

// isClean looks for what is left of pods that have gone.
func (w *town) isClean(r *running) {
	t := w.t
	old, _ := w.ready()
	for range 5 {
		w.begin()
	}
	w.mu.Lock()
	for _, p := range old {
		w.bury(p)
	}
	w.mu.Unlock()
	w.publish()
	_, addrs := w.ready()
	r.becomes(addrs...)
	w.end(old)
	eventually(t, "no connection is left to those that have gone", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, p := range w.open {
			if p == nil || w.pods[p.addr] != p {
				return false
			}
		}
		return true
	})
	eventually(t, "only those are asked that are there", func() bool { return r.proxy.Examined("s") <= 5 })
	for _, e := range r.guard().Endpoints {
		if e.Pending != 0 {
			t.Errorf("%+v has calls pending", e)
		}
	}
	eventually(t, "no goroutines are left", func() bool { return runtime.NumGoroutine() < 80 })
}
