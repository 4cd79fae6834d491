//go:build unix

package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/abate-go/abate/proxy"
)

func TestASocketFileHasItsModeAndGoesWithTheListener(t *testing.T) {
	path := socketPath(t)
	for address, mode := range map[string]os.FileMode{"unix:" + path: 0o660, "unix:" + path + "?mode=0600": 0o600} {
		l, err := proxy.Listen(address)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(path)
		if err != nil || info.Mode().Perm() != mode || info.Mode()&os.ModeSocket == 0 {
			t.Errorf("%s: %v, %v", address, info.Mode(), err)
		}
		if _, err := proxy.Listen(address); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("a second listener: %v", err)
		}
		l.Close()
		l.Close()
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("the file is left: %v", err)
		}
	}
}

func TestOnlyADeadSocketIsRemoved(t *testing.T) {
	path := socketPath(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false) // as after kill -9
	dead.Close()
	l, err := proxy.Listen("unix:" + path)
	if err != nil {
		t.Fatal(err)
	}
	// somebody takes the path over: his file is not removed by the first one's end
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	other, err := proxy.Listen("unix:" + path)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the file of another was removed: %v", err)
	}
	other.Close()
	writeFile(t, path, "precious")
	if _, err := proxy.Listen("unix:" + path); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Errorf("a file in the way: %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("it was removed: %v", err)
	}
}

// overSocket is a server at a Unix socket.
func overSocket(t testing.TB, h http.HandlerFunc) (path string) {
	t.Helper()
	path = socketPath(t)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // ends with ErrServerClosed
	}()
	t.Cleanup(func() {
		s.Close()
		<-done
	})
	return path
}

func TestServicesAreReachedOverUnixSockets(t *testing.T) {
	path := overSocket(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %d %v", r.Host, r.URL.Path, len(body), err)
	})
	for _, tt := range []struct{ upstream, host string }{
		{"unix:" + path, "localhost"}, {"http+unix:" + path + "?host=payments.internal", "payments.internal"},
	} {
		r := start(t, single([]string{tt.upstream}))
		c := r.dial()
		for _, size := range []int{0, 10, 1 << 20} {
			a := c.send(fmt.Sprintf("POST /x HTTP/1.1\r\nHost: s\r\nContent-Length: %d\r\n\r\n%s", size,
				strings.Repeat("x", size))).answer()
			if want := fmt.Sprintf("%s /x %d <nil>", tt.host, size); a.status != 200 || a.content != want {
				t.Errorf("%d %q, want %q", a.status, a.content, want)
			}
		}
		eventually(t, "one connection is kept", func() bool { return r.guard().Endpoints[0].Idle == 1 })
	}
	named := start(t, "services: {s: {upstreams: [\"unix:"+path+"?host=payments.internal\"]}}")
	if a := named.dial().send(
		"GET http://payments.internal/y HTTP/1.1\r\nHost: payments.internal\r\n\r\n",
	).answer(); a.content !=
		"payments.internal /y 0 <nil>" {
		t.Errorf("by its name: %+v", a)
	}
	gone := start(t, single([]string{"unix:" + path + ".gone"}, noRetries))
	if a := gone.get("/"); a.status != 502 {
		t.Errorf("%+v", a)
	}
}

func TestGRPCServicesAreReachedOverUnixSockets(t *testing.T) {
	path := socketPath(t)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(
		grpc.ForceServerCodec(rawCodec{}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			return repeatAll(&rpc{ServerStream: stream})
		}),
	)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // ends with Stop
	}()
	defer func() {
		s.Stop()
		<-done
	}()
	r := start(t, single([]string{"h2c+unix:" + path}))
	if c := call(t, dialGRPC(t, r.addr), "/shop.Payment/Get", "hello"); c.code != codes.OK || c.reply != "hello" {
		t.Errorf("%+v", c)
	}
}

// Programs, gates and the page: all three listen at sockets, and speak HTTP/1.1, HTTP/2 and TLS there.
func TestClientsComeInOverUnixSockets(t *testing.T) {
	out, in := socketPath(t), socketPath(t)
	up := mirror(t)
	f := newFiles(t, trusted.issue(t), trusted)
	r := start(
		t,
		single([]string{up.url})+"protect:\n  g:\n    listen: unix:"+in+"?mode=0666\n    upstreams: [\""+up.url+
			"\"]\n    trustedPeers: [unix]\n    caller: \"header:X-Tenant\"\n"+
			"    rateLimit: {limit: 1/1h, burst: 1, key: caller}\n"+
			"  h:\n    listen: unix:"+in+"2\n    upstreams: [\""+up.url+"\"]\n    "+f.tls()+"\n",
	)
	if err := r.proxy.Open(); err != nil {
		t.Fatal(err)
	}
	l, err := proxy.Listen("unix:" + out)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- r.proxy.Serve(l) }()
	get := func(path, url string, header ...string) *http.Response {
		t.Helper()
		tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}, TLSClientConfig: trustingConfig(), Protocols: new(http.Protocols)}
		tr.Protocols.SetHTTP1(true)
		tr.Protocols.SetHTTP2(true)
		t.Cleanup(tr.CloseIdleConnections)
		req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp
	}
	if a := get(out, "http://s/x"); a.StatusCode != 200 {
		t.Error(a.Status)
	}
	for tenant, want := range map[string]int{"a": 200, "b": 200} {
		if a := get(in, "http://g/x", "X-Tenant", tenant); a.StatusCode != want {
			t.Errorf("tenant %s: %s", tenant, a.Status)
		}
		if a := get(in, "http://g/x", "X-Tenant", tenant); a.StatusCode != 429 {
			t.Errorf("tenant %s again: %s", tenant, a.Status)
		}
	}
	if a := get(in+"2", "https://127.0.0.1/x"); a.StatusCode != 200 || a.ProtoMajor != 2 {
		t.Error(a.Status, a.Proto)
	}
	r.shutdown()
	if err := <-served; err != nil {
		t.Error(err)
	}
	for _, path := range []string{out, in, in + "2"} {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
}

// A program that leaves is noticed at a socket too, so that its call ends.
func TestAClientThatLeavesASocketIsNoticed(t *testing.T) {
	up, came, ended := silentUpstream(t)
	path := socketPath(t)
	protect(t, strings.Replace(guardOf(up.url), "127.0.0.1:0", "unix:"+path, 1))
	nc, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(nc, "GET / HTTP/1.1\r\nHost: s\r\n\r\n")
	soon(t, "the service has the request", came)
	nc.Close()
	soon(t, "it is given up", ended)
}

// Whoever tidies up /tmp, or /run, does not take the service away for good.
func TestASocketFileThatWasRemovedComesBack(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	out, in := socketPath(t), socketPath(t)
	up := mirror(t)
	var said lockedBuffer
	r := start(t, single([]string{up.url})+strings.Replace(guardOf(up.url), "127.0.0.1:0", "unix:"+in, 1), logTo(&said))
	if err := r.proxy.Open(); err != nil {
		t.Fatal(err)
	}
	l, err := proxy.Listen("unix:" + out)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- r.proxy.Serve(l) }()
	for _, path := range []string{out, in} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "it is there", func() bool {
		nc, err := net.Dial("unix", in)
		if err != nil {
			return false
		}
		defer nc.Close()
		a, err := askTLS(nc, "/")
		return err == nil && a.status == 200
	})
	// that of a flag belongs to whoever has made the listener
	eventually(t, "it is said", func() bool {
		return strings.Contains(said.String(), "unix:"+out+": its file has been removed, so nobody can connect")
	})
	r.shutdown()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
