package discovery_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/abate-go/abate/proxy/discovery"
)

// zone is what a name server knows: the resources of a name and type. Without one it says that there is no such name.
type zone map[string][]dnsmessage.ResourceBody

// nameServer is a name server on loopback.
type nameServer struct {
	addr string
	mu   sync.Mutex
	zone zone
	ttl  uint32
	fail dnsmessage.RCode // instead of an answer
	big  bool             // answers do not fit a datagram
	seen atomic.Int64     // questions
}

func newNameServer(t testing.TB, z zone) *nameServer {
	t.Helper()
	u, l := bothKinds(t)
	s := &nameServer{addr: u.LocalAddr().String(), zone: z, ttl: 60}
	var done sync.WaitGroup
	done.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, from, err := u.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = u.WriteTo(s.answer(buf[:n], true), from)
		}
	})
	done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			done.Go(func() { s.serveTCP(c) })
		}
	})
	t.Cleanup(func() {
		u.Close()
		l.Close()
		done.Wait()
	})
	return s
}

// bothKinds listens at one port for both. Somebody else may have it of one kind.
func bothKinds(t testing.TB) (net.PacketConn, net.Listener) {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if u, err := net.ListenPacket("udp", l.Addr().String()); err == nil {
			return u, l
		}
		l.Close()
	}
	t.Fatal("no port is free")
	return nil, nil
}

func (s *nameServer) serveTCP(c net.Conn) {
	defer c.Close()
	size := make([]byte, 2)
	for {
		if _, err := io.ReadFull(c, size); err != nil {
			return
		}
		q := make([]byte, binary.BigEndian.Uint16(size))
		if _, err := io.ReadFull(c, q); err != nil {
			return
		}
		m := s.answer(q, false)
		out := binary.BigEndian.AppendUint16(nil, uint16(len(m)))
		for len(m) > 0 { // in pieces, which the reader has to put together
			n := min(len(m), 1000)
			if _, err := c.Write(append(out, m[:n]...)); err != nil {
				return
			}
			m, out = m[n:], nil
		}
	}
}

func (s *nameServer) answer(question []byte, udp bool) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.Add(1)
	var q dnsmessage.Message
	if err := q.Unpack(question); err != nil || len(q.Questions) != 1 {
		return nil
	}
	about := q.Questions[0]
	m := dnsmessage.Message{Questions: q.Questions,
		Header: dnsmessage.Header{ID: q.ID, Response: true, RecursionAvailable: true}}
	name := about.Name.String()
	found, ok := s.zone[name+" "+about.Type.String()]
	switch {
	case s.fail != 0:
		m.RCode = s.fail
	case s.big && udp:
		m.Truncated = true
	case ok:
		for i, r := range found {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: about.Name,
				Class: dnsmessage.ClassINET, TTL: s.ttl + uint32(i)}, Body: r})
		}
	case s.zone[name+" TypeA"] == nil && s.zone[name+" TypeAAAA"] == nil:
		m.RCode = dnsmessage.RCodeNameError
	}
	out, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return out
}

// set changes what the server does.
func (s *nameServer) set(f func(*nameServer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func ip4(addrs ...string) (all []dnsmessage.ResourceBody) {
	for _, a := range addrs {
		all = append(all, &dnsmessage.AResource{A: netip.MustParseAddr(a).As4()})
	}
	return all
}

func srv(priority, weight, port uint16, target string) dnsmessage.ResourceBody {
	return &dnsmessage.SRVResource{Priority: priority, Weight: weight, Port: port, Target: dnsmessage.MustNewName(target)}
}

func (s *nameServer) dns(name string) discovery.Config {
	return discovery.Config{Service: "orders", Type: "dns", Name: name, Port: "8080", Server: s.addr}
}

func TestEachAddressOfANameIsAnEndpointAndTheLeastTTLCounts(t *testing.T) {
	s := newNameServer(t, zone{
		"orders.test. TypeA":    ip4("10.0.0.2", "10.0.0.1"),
		"orders.test. TypeAAAA": {&dnsmessage.AAAAResource{AAAA: netip.MustParseAddr("fd00::1").As16()}},
	})
	s.set(func(s *nameServer) { s.ttl = 17 })
	c := s.dns("orders.test.")
	list, ttl, err := c.Look()
	if err != nil || ttl != 17*time.Second || len(list) != 3 {
		t.Fatalf("%v, %v, %v", list, ttl, err)
	}
	becomes(t, watch(t, c), "10.0.0.1:8080 10.0.0.2:8080 [fd00::1]:8080")
}

// TestAnAnswerThatIsTooLongComesOverTCP: 1,000 pods of a headless service.
func TestAnAnswerThatIsTooLongComesOverTCP(t *testing.T) {
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("10.1.%d.%d", i/250, i%250))
	}
	s := newNameServer(t, zone{"orders.test. TypeA": ip4(many...)})
	s.set(func(s *nameServer) { s.big, s.ttl = true, 9 })
	c := s.dns("orders.test.")
	if list, ttl, err := c.Look(); len(list) != 1000 || ttl != 9*time.Second || err != nil {
		t.Errorf("%d addresses, %v, %v", len(list), ttl, err)
	}
}

func TestANameIsLookedUpAgainWhenItsTTLIsOver(t *testing.T) {
	s := newNameServer(t, zone{"orders.test. TypeA": ip4("10.0.0.1")})
	s.set(func(s *nameServer) { s.ttl = 0 })
	changes := make(chan string, 100)
	c := s.dns("orders.test.")
	var w atomic.Pointer[discovery.Watcher]
	c.Changed = func() { changes <- "" }
	w.Store(watch(t, c))
	becomes(t, w.Load(), "10.0.0.1:8080")
	s.set(func(s *nameServer) { s.zone["orders.test. TypeA"] = ip4("10.0.0.1", "10.0.0.3") })
	becomes(t, w.Load(), "10.0.0.1:8080 10.0.0.3:8080")
	if n := len(changes); n != 2 {
		t.Errorf("told of %d changes, want 2", n)
	}
}

// TestWhatWasKnownIsKeptWhenDNSFails and is said once, in one sentence; and that it is well again.
func TestWhatWasKnownIsKeptWhenDNSFails(t *testing.T) {
	for _, row := range []struct {
		name, want string
		fail       func(*nameServer)
	}{
		{"no such name", "no such host", func(s *nameServer) { s.zone = zone{} }},
		{"an empty answer", "no such host", func(s *nameServer) { s.zone["orders.test. TypeA"] = ip4() }},
		{"the server's failure", "server misbehaving", func(s *nameServer) { s.fail = dnsmessage.RCodeServerFailure }},
		{"a refusal", "server misbehaving", func(s *nameServer) { s.fail = dnsmessage.RCodeRefused }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newNameServer(t, zone{"orders.test. TypeA": ip4("10.0.0.1", "10.0.0.2")})
			s.set(func(s *nameServer) { s.ttl = 0 })
			var log lines
			c := s.dns("orders.test.")
			c.Log = slog.New(slog.NewTextHandler(&log, nil))
			w := watch(t, c)
			becomes(t, w, "10.0.0.1:8080 10.0.0.2:8080")
			s.set(row.fail)
			problem := fails(t, w)
			want := "DNS name orders.test.: " + row.want + " (asked " + s.addr + ")"
			if row.want == "no such host" {
				want += advice
			}
			want += "; the 2 endpoints of the last answer are kept"
			if problem != want || addrs(w.List()) != "10.0.0.1:8080 10.0.0.2:8080" {
				t.Errorf("%q, want %q; the list is %v", problem, want, w.List())
			}
			s.set(func(s *nameServer) { s.fail, s.zone = 0, zone{"orders.test. TypeA": ip4("10.0.0.2")} })
			becomes(t, w, "10.0.0.2:8080")
			eventually(t, "the log has it", func() bool { return strings.Contains(log.String(), "before=2 now=1") })
			if n := strings.Count(log.String(), "are kept"); n != 1 {
				t.Errorf("said %d times:\n%s", n, log.String())
			}
			if s := w.Status(); s.Failures == 0 || s.Problem() != "" {
				t.Errorf("%+v", s)
			}
		})
	}
}

// advice is what is said of a name that there is not.
const advice = ": look at the name in upstreams and discovery of the policy file, or at the server that is asked"

func TestANameThatNeverResolvesSaysSo(t *testing.T) {
	s := newNameServer(t, zone{})
	w := watch(t, s.dns("nobody.test."))
	<-w.First()
	want := "DNS name nobody.test. has never been found: no such host (asked " + s.addr + ")" + advice
	if got := w.Why(); got != want || w.List() != nil {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestASRVRecordHasPortsWeightsAndPriorities(t *testing.T) {
	z := zone{
		"_http._tcp.orders.test. TypeSRV": {srv(1, 0, 81, "a.test."), srv(1, 60000, 82, "b.test."),
			srv(1, 600, 83, "gone.test."), srv(2, 1, 84, "spare.test.")},
		"a.test. TypeA": ip4("10.0.0.1"), "b.test. TypeA": ip4("10.0.0.2", "10.0.0.3"), "spare.test. TypeA": ip4("10.0.0.9"),
	}
	s := newNameServer(t, z)
	c := discovery.Config{Type: "srv", Name: "_http._tcp.orders.test.", Server: s.addr}
	list, _, err := c.Look()
	want := "[{10.0.0.1:81  1} {10.0.0.2:82  1000} {10.0.0.3:82  1000}]"
	if got := fmt.Sprint(list); got != want || err != nil {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	s.set(func(*nameServer) {
		delete(z, "a.test. TypeA")
		delete(z, "b.test. TypeA")
	})
	if list, _, err = c.Look(); fmt.Sprint(list) != "[{10.0.0.9:84  1}]" || err != nil {
		t.Errorf("of the second priority: %v, %v", list, err)
	}
	s.set(func(*nameServer) { delete(z, "spare.test. TypeA") })
	if _, _, err = c.Look(); err == nil || err.Error() != "the answer has no address" {
		t.Errorf("without any: %v", err)
	}
}

func TestWaitsBetweenLooks(t *testing.T) {
	const s = time.Second
	for _, row := range []struct {
		ttls, least, most []time.Duration
	}{
		{[]time.Duration{30 * s, 30 * s}, []time.Duration{27 * s, 27 * s}, []time.Duration{30 * s, 30 * s}},
		{[]time.Duration{0}, []time.Duration{900 * time.Millisecond}, []time.Duration{s}},
		{[]time.Duration{86400 * s}, []time.Duration{77760 * s}, []time.Duration{86400 * s}},
		{[]time.Duration{-1, -1, -1, -1, -1, -1, -1, 10 * s, -1}, // a success makes it patient again
			[]time.Duration{s / 2, s, 2 * s, 4 * s, 8 * s, 15 * s, 15 * s, 9 * s, s / 2},
			[]time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s, 10 * s, s}},
	} {
		for _, rnd := range []uint64{0, 1 << 63, 1<<64 - 1} {
			for i, got := range discovery.Pace(rnd, row.ttls...) {
				if got < row.least[i] || got > row.most[i] {
					t.Errorf("%v, wait %d: %v, want %v to %v", row.ttls, i, got, row.least[i], row.most[i])
				}
			}
		}
	}
}

func FuzzTTL(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x00\x01\x80\x00\x00\x00\x00\x01\x00\x00\x00\x00" +
		"\xc0\x00\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04\x7f\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, message []byte) {
		if ttl := discovery.TTL(message); ttl < 0 || ttl > (1<<32)*time.Second {
			t.Errorf("TTL %v", ttl)
		}
	})
}
