package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/abate-go/abate/proxy"
	"github.com/abate-go/abate/proxy/proxyproto"
)

const hello = "GET /x HTTP/1.1\r\nHost: s\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n"

func TestATrustedPeerSaysWhoItsClientIs(t *testing.T) {
	up := mirror(t)
	r := protect(t, guardOf(up.url, trustLoop, "proxyProtocol: true"))
	for _, tt := range []struct{ name, header, from string }{
		{"text", "PROXY TCP4 192.0.2.1 198.51.100.7 4711 443\r\n", "192.0.2.1"},
		{"text, IPv6", "PROXY TCP6 2001:db8::1 ::1 4711 443\r\n", "2001:db8::1"},
		{"binary", v2("192.0.2.2:1"), "192.0.2.2"},
		// nobody knows who that is: what it says is not believed, though the peer is trusted
		{"nobody", "PROXY UNKNOWN\r\n", "0.0.0.0"},
		// the peer's own: it is believed
		{"local", string(proxyproto.Append(nil, proxyproto.Header{Local: true}, 2)), "203.0.113.9"},
	} {
		c := r.dial()
		for range 2 {
			a := c.send(tt.header + hello).answer()
			if from := strings.Split(field(a.content, "X-Forwarded-For"), ",")[0]; a.status != 200 || from != tt.from {
				t.Errorf("%s: %d from %q, want %s", tt.name, a.status, from, tt.from)
			}
			tt.header = ""
		}
	}
	for name, sent := range map[string]string{"nothing": hello, "rubbish": "PROXY TCP4 x\r\n" + hello, "HTTP/2": string(
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")} {
		nc, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(nc, sent)
		if got, _ := io.ReadAll(nc); len(got) > 0 { // an error is a reset, with which it may end
			t.Errorf("%s: answered %q", name, got)
		}
		nc.Close()
	}
	if n := len(up.seen()); n != 10 {
		t.Errorf("the service has seen %d requests", n)
	}
}

// v2 is a header of version 2 for a client.
func v2(source string) string {
	return string(proxyproto.Append(nil, proxyproto.Header{Source: netip.MustParseAddrPort(source),
		Destination: netip.MustParseAddrPort("198.51.100.7:443")}, 2))
}

func TestAStrangerCannotSayWhoItIs(t *testing.T) {
	up := mirror(t)
	r := protect(t, guardOf(up.url, "trustedPeers: [10.0.0.0/8]", "proxyProtocol: true"))
	if a := r.dial().send(v2("192.0.2.1:1") + hello).answer(); a.status != 400 {
		t.Errorf("%+v", a)
	}
	if a := r.dial().send("PROXY TCP4 192.0.2.1 198.51.100.7 4711 443\r\n" + hello).answer(); a.status != 400 {
		t.Errorf("%+v", a)
	}
	if a := r.dial().send(hello).answer(); a.status != 200 || field(a.content, "X-Forwarded-For") != "127.0.0.1" {
		t.Errorf("%+v", a)
	}
}

// Two entries share an address: whoever is to be believed there must be trusted by both.
func TestWhoAnnouncesClientsIsTrustedByAllGatesThere(t *testing.T) {
	up := mirror(t)
	l := listen(t)
	at := l.Addr().String()
	l.Close()
	r := start(
		t,
		fmt.Sprintf("protect:\n  a: {listen: %q, upstreams: [%q], proxyProtocol: true, trustedPeers: [127.0.0.1]}\n"+
			"  b: {listen: %q, upstreams: [%q], proxyProtocol: true, trustedPeers: [10.0.0.1], routes: [{path: /b}]}\n",
			at, up.url, at, up.url),
	)
	if err := r.proxy.Open(); err != nil {
		t.Fatal(err)
	}
	if a := dial(t, at).send(v2("192.0.2.1:1") + hello).answer(); a.status != 400 {
		t.Errorf("%+v", a)
	}
}

func TestTLSAndHTTP2ComeBehindAPROXYHeader(t *testing.T) {
	f := newFiles(t, trusted.issue(t), trusted)
	r := protect(t, guardOf(mirror(t).url, trustLoop, "proxyProtocol: true", f.mutual(), "caller: mtls"))
	tr := &http.Transport{DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		io.WriteString(nc, v2("192.0.2.1:1"))
		config := trustingConfig()
		config.ServerName, config.NextProtos = "127.0.0.1", []string{"h2"}
		config.Certificates = []tls.Certificate{client509(t, trusted)}
		return tls.Client(nc, config), nil
	}, Protocols: new(http.Protocols)}
	tr.Protocols.SetHTTP2(true)
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+r.addr+"/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.ProtoMajor != 2 || field(string(body), "X-Forwarded-For") != "192.0.2.1" {
		t.Errorf("%v %s %q", err, resp.Proto, body)
	}
}

func TestAGatewayIsToldWhoItsClientIs(t *testing.T) {
	r := start(t, single([]string{mirror(t).url}), func(c *proxy.Config) {
		c.Gateway, c.ProxyProtocol, c.TrustedPeers = true, true, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	if a := r.dial().send(v2("192.0.2.1:1") + hello).answer(); field(a.content, "X-Forwarded-For") != "192.0.2.1" {
		t.Errorf("%+v", a)
	}
}

// heralded is an upstream that reads a PROXY header from each connection, and answers with it and the connection's
// number. secure is nil without TLS.
func heralded(t testing.TB, secure *tls.Config) (addr string) {
	l := listen(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	conns := map[net.Conn]bool{}
	all.Go(func() {
		for n := 1; ; n++ {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns[nc] = true
			mu.Unlock()
			all.Go(func() {
				defer nc.Close()
				h, err := readHeader(nc)
				if err != nil {
					fmt.Fprintf(nc, "HTTP/1.1 400 no header\r\nContent-Length: 0\r\n\r\n")
					return
				}
				if secure != nil {
					nc = tls.Server(nc, secure)
				}
				for in := bufio.NewReader(nc); ; {
					if _, err := readMessage(in); err != nil {
						return
					}
					io.WriteString(nc, ok(fmt.Sprintf("%d %v %s %s", n, h.Local, h.Source, h.Destination)))
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for nc := range conns {
			nc.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return l.Addr().String()
}

func readHeader(nc net.Conn) (h proxyproto.Header, err error) {
	for b := []byte(nil); ; {
		h, more, err := proxyproto.Parse(b)
		if err != nil || more == 0 {
			return h, err
		}
		b = append(b, make([]byte, more)...)
		if _, err := io.ReadFull(nc, b[len(b)-more:]); err != nil {
			return h, err
		}
	}
}

func TestServicesAreToldWhoTheClientIs(t *testing.T) {
	cert := trusted.issue(t)
	for _, tt := range []struct {
		name, keys, scheme string
		secure             *tls.Config
	}{
		{"version 1", "sendProxyProtocol: v1", "http://", nil},
		{"version 2", "sendProxyProtocol: v2", "http://", nil},
		{"TLS behind it", "sendProxyProtocol: v2", "https://", &tls.Config{Certificates: []tls.Certificate{cert}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, single([]string{tt.scheme + heralded(t, tt.secure)}, tt.keys, noRetries))
			one, two := r.dial(), r.dial()
			for n := range 3 {
				for i, c := range []*client{one, two} {
					want := fmt.Sprintf("%d false %s %s", i+1, c.LocalAddr(), r.addr)
					if a := c.get("/"); a.status != 200 || a.content != want {
						t.Errorf("client %d, request %d: %d %q, want %q", i+1, n, a.status, a.content, want)
					}
				}
			}
		})
	}
}

// What came in a header goes out in one: a gate behind a load balancer.
func TestAPROXYHeaderIsPassedOn(t *testing.T) {
	r := protect(t, guardOf("http://"+heralded(t, nil), trustLoop, "proxyProtocol: true", "sendProxyProtocol: v2"))
	if a := r.dial().send(
		v2("192.0.2.1:4711") + hello,
	).answer(); a.content != "1 false 192.0.2.1:4711 198.51.100.7:443" {
		t.Errorf("%+v", a)
	}
}

// Clients share connections of HTTP/2: those say that they are the proxy's own.
func TestAConnectionOfManyClientsIsTheProxysOwn(t *testing.T) {
	l := listen(t)
	headers := make(chan proxyproto.Header, 10)
	s := grpc.NewServer(
		grpc.ForceServerCodec(rawCodec{}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			return repeatAll(&rpc{ServerStream: stream})
		}),
	)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(announcing{l, headers}) // ends with Stop
	}()
	defer func() {
		s.Stop()
		<-done
	}()
	r := start(t, single([]string{"h2c://" + l.Addr().String()}, "sendProxyProtocol: v2"))
	if c := call(t, dialGRPC(t, r.addr), "/shop.Payment/Get", "hello"); c.code != codes.OK || c.reply != "hello" {
		t.Errorf("%+v", c)
	}
	if h := <-headers; !h.Local {
		t.Errorf("%+v", h)
	}
}

// announcing is a listener that takes a PROXY header off each connection.
type announcing struct {
	net.Listener
	headers chan proxyproto.Header
}

func (l announcing) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	h, err := readHeader(nc)
	if err != nil {
		nc.Close()
		return nil, err
	}
	l.headers <- h
	return nc, nil
}
