package proxy_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/abate-go/abate/proxy/proxyproto"
)

// However many clients there are: each has a connection of its own to the service, again and again, until it goes.
func TestConnectionsThatTellOfAClientStayAsLongAsItDoes(t *testing.T) {
	const many = 520 // more than the idle connections that an endpoint keeps for everybody
	r := start(t, single([]string{"http://" + heralded(t, nil)}, "sendProxyProtocol: v2", noRetries))
	clients := make([]*client, many)
	for i := range clients {
		clients[i] = r.dial()
	}
	for n := range 3 {
		for i, c := range clients {
			want := fmt.Sprintf("%d false %s %s", i+1, c.LocalAddr(), r.addr)
			if a := c.get("/"); a.content != want {
				t.Fatalf("client %d, request %d: %q, want %q", i+1, n+1, a.content, want)
			}
		}
	}
	eventually(t, "all are idle", func() bool { return r.guard().Endpoints[0].Idle == many })
	for _, c := range clients {
		c.Close()
	}
	eventually(t, "none is left", func() bool { return r.guard().Endpoints[0].Idle == 0 })
}

// A program on another connection is another client, whatever address it has: it may have taken the place of one that
// has gone.
func TestAConnectionThatTellsOfAClientIsNotTheNextOnes(t *testing.T) {
	r := protect(t, guardOf("http://"+heralded(t, nil), trustLoop, "proxyProtocol: true", "sendProxyProtocol: v2"))
	for _, header := range []string{v2("192.0.2.1:4711"), "PROXY UNKNOWN\r\n"} {
		before := ""
		for range 2 {
			c := r.dial()
			c.send(header)
			first := c.get("/").content
			if again := c.get("/").content; again != first {
				t.Errorf("the same client: %q, then %q", first, again)
			}
			c.Close()
			if first == before {
				t.Errorf("two clients on one connection: %q", first)
			}
			before = first
		}
	}
}

// Nobody knows who the client is: that is what the service is told. Were the connection called the proxy's own, whoever
// trusts the proxy would believe whatever the client says.
func TestAClientThatNobodyKnowsIsNotTakenForTheProxy(t *testing.T) {
	const unknown = " false invalid AddrPort invalid AddrPort" // not local, and no addresses
	up := "http://" + heralded(t, nil)
	for _, version := range []string{"v1", "v2"} {
		r := protect(t, guardOf(up, trustLoop, "proxyProtocol: true", "sendProxyProtocol: "+version))
		if a := r.dial().send("PROXY UNKNOWN\r\n" + hello).answer(); !strings.HasSuffix(a.content, unknown) {
			t.Errorf("%s: %+v", version, a)
		}
	}
	path := socketPath(t)
	protect(t, strings.Replace(guardOf(up, "sendProxyProtocol: v2"), "127.0.0.1:0", "unix:"+path, 1))
	nc, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if a, err := askTLS(nc, "/"); err != nil || !strings.HasSuffix(a.content, unknown) {
		t.Errorf("a client at a Unix socket: %v %+v", err, a)
	}
}

// A reload with another version holds for HTTP/2, too, whose connections may last.
func TestConnectionsOfHTTP2BeginAsThePolicySaysNow(t *testing.T) {
	l := listen(t)
	headers := make(chan proxyproto.Header, 10)
	s := grpc.NewServer(grpc.ForceServerCodec(rawCodec{}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			return repeatAll(&rpc{ServerStream: stream})
		}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(announcing{l, headers}) // ends with Stop
	}()
	defer func() {
		s.Stop()
		<-done
	}()
	policy := func(version string) string {
		return single([]string{"h2c://" + l.Addr().String()}, "sendProxyProtocol: "+version, noRetries)
	}
	r := start(t, policy("v1"))
	cc := dialGRPC(t, r.addr)
	if c := call(t, cc, "/shop.Payment/Get", "hello"); c.code != codes.OK {
		t.Fatalf("%+v", c)
	}
	if h := <-headers; h.Local { // version 1 does not know that
		t.Errorf("%+v", h)
	}
	r.becomesPolicy(policy("v2"))
	eventually(t, "the new version is spoken", func() bool {
		if c := call(t, cc, "/shop.Payment/Get", "hello"); c.code != codes.OK {
			t.Fatalf("%+v", c)
		}
		select {
		case h := <-headers:
			return h.Local
		default:
			return false
		}
	})
}
