package proxy_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"

	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy"
)

const (
	anyOne     = "peers: [\"spiffe://example.org/*\"]"
	orders     = "peers: [\"spiffe://example.org/orders\"]"
	paymentsID = "spiffe://example.org/payments"
)

// own are the keys of a service's tls that show the files.
func (f files) own(more ...string) string {
	return "tls: {" + strings.Join(append(more, "certificate: "+f.cert, "key: "+f.key, "ca: "+f.ca), ", ") + "}"
}

// becomesPolicy reloads with another policy.
func (r *running) becomesPolicy(policyYAML string) {
	r.t.Helper()
	r.write(policyYAML)
	if err := r.proxy.Reload(); err != nil {
		r.t.Fatal(err)
	}
}

// A connection that was made when another identity was asked for is idle: a request on it would go to whom the policy
// has ruled out.
func TestAKeptConnectionIsNotUsedOnceTheServiceMustBeAnother(t *testing.T) {
	f := newFiles(t, trusted.issue(t, named("shop")), stranger)
	up, _ := asked(t, withID(paymentsID))
	r := start(t, single([]string{up}, f.own(anyOne), noRetries))
	if a := r.get("/"); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	eventually(t, "the connection is idle", func() bool { return r.guard().Endpoints[0].Idle == 1 })
	r.becomesPolicy(single([]string{up}, f.own(orders), noRetries))
	if a := r.get("/"); a.status != 502 || !strings.Contains(a.content, paymentsID+", not one of ") {
		t.Errorf("%d %s", a.status, a.content)
	}
}

// serveIdentified is a gRPC service that is payments, and wants a certificate of the trusted authority.
func serveIdentified(t *testing.T) (url string) {
	pool := x509.NewCertPool()
	pool.AddCert(trusted.cert)
	s := serveGRPC(t, repeatAll, grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{stranger.issue(t, withID(paymentsID))},
		ClientCAs:    pool, ClientAuth: tls.RequireAndVerifyClientCert,
	})))
	return "https://" + strings.TrimPrefix(s.url, "h2c://")
}

// The authorities of the system are not those that the policy asks for. Until its file can be read, only a service that
// spoke TLS before goes on, as it did.
func TestAReloadToAuthoritiesThatCannotBeReadDoesNotFallBackToTheSystems(t *testing.T) {
	f := newFiles(t, trusted.issue(t, named("shop")), stranger)
	broken := filepath.Join(t.TempDir(), "ca.pem")
	writeFile(t, broken, "nothing")
	up, _ := asked(t, withID(paymentsID))
	tls := "tls: {ca: " + broken + "}"
	r := start(t, single([]string{mirror(t).url}, noRetries))
	r.becomesPolicy(single([]string{up}, tls, noRetries))
	if a := r.get("/"); a.status != 502 || !strings.Contains(a.content, "the files of its tls could not be read") {
		t.Errorf("plain before: %d %s", a.status, a.content)
	}
	r.becomesPolicy(single([]string{up}, f.own(anyOne), noRetries))
	if a := r.get("/"); a.status != 200 {
		t.Errorf("good files: %d %s", a.status, a.content)
	}
	r.becomesPolicy(single([]string{up}, tls, noRetries))
	if a := r.get("/"); a.status != 200 {
		t.Errorf("TLS before: %d %s", a.status, a.content)
	}
}

// Over HTTP/2 the connections that there are serve until there is a new one. If there can be none, because the service
// is not who it must be, they are not for new calls.
func TestCallsEndAtAServiceThatMustBeAnother(t *testing.T) {
	f := newFiles(t, trusted.issue(t, named("shop")), stranger)
	url := serveIdentified(t)
	r := start(t, single([]string{url}, f.own(anyOne), noRetries, noBreaker))
	cc := dialGRPC(t, r.addr)
	stream := converse(t, cc, "/shop.Payment/Watch").say("a").hear("a")
	r.becomesPolicy(single([]string{url}, f.own(orders), noRetries, noBreaker))
	eventually(t, "calls are refused", func() bool {
		c := call(t, cc, "/shop.Payment/Get", "x")
		if c.code != codes.OK && !strings.Contains(c.message, paymentsID+", not one of ") {
			t.Fatalf("%+v", c)
		}
		return c.code == codes.Unavailable
	})
	stream.say("b").hear("b")
	stream.CloseSend()
}

// An address may have become another's: then the others of the service have its calls, those too that may not be
// repeated, because nothing was sent.
func TestAnotherEndpointHasTheCallIfOneIsNotWhoItMustBe(t *testing.T) {
	f := newFiles(t, trusted.issue(t, named("shop")), stranger)
	good, _ := serveTLS(t, stranger.issue(t, withID("spiffe://example.org/orders")), http1.protocols,
		func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "good") })
	unreached := func(http.ResponseWriter, *http.Request) { t.Error("a request has reached the wrong one") }
	another, n := serveTLS(t, stranger.issue(t, withID(paymentsID)), http1.protocols, unreached)
	unknown, m := serveTLS(t, trusted.issue(t), http1.protocols, unreached)
	wants, k := servesOnly(t, trusted)
	for _, tt := range []struct {
		name, url string
		asked     *atomic.Int32
	}{{"another identity", another, n}, {"an unknown authority", unknown, m}, {"it does not take ours", wants, k}} {
		t.Run(tt.name, func(t *testing.T) {
			g := newFiles(t, stranger.issue(t, named("shop")), stranger)
			r := start(t, single([]string{tt.url, good}, g.own(orders), quickRetry, noEjection))
			for before := tt.asked.Load(); tt.asked.Load() < before+3; { // until it was the first to be asked
				a := r.dial().send("POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 1\r\n\r\nx").answer()
				if a.status != 200 || a.content != "good" {
					t.Fatalf("%d %s", a.status, a.content)
				}
			}
		})
	}
	alone := start(t, single([]string{another}, f.own(orders), quickRetry))
	if a := alone.get("/"); a.status != 502 || a.problem(t).Attempts != 1 {
		t.Errorf("alone, it is asked again: %d %s", a.status, a.content)
	}
}

// servesOnly is a service, orders, that wants a client certificate of an authority, and counts connections.
func servesOnly(t *testing.T, clients authority) (url string, accepted *atomic.Int32) {
	pool := x509.NewCertPool()
	pool.AddCert(clients.cert)
	accepted = new(atomic.Int32)
	l := counted{listen(t), accepted}
	config := &tls.Config{Certificates: []tls.Certificate{stranger.issue(t, withID("spiffe://example.org/orders"))},
		ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			s := tls.Server(nc, config)
			_, _ = s.Read(make([]byte, 1)) // the handshake, which fails, and tells the client so
			nc.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return "https://" + l.Addr().String(), accepted
}

// In TLS 1.3 a service refuses a certificate only behind the handshake: nothing was asked of it, whatever was sent.
func TestAServiceThatDoesNotTakeTheCertificateSaysSo(t *testing.T) {
	f := newFiles(t, stranger.issue(t, named("shop")), stranger)
	up, asked := servesOnly(t, trusted)
	r := start(t, single([]string{up}, f.own(anyOne), quickRetry))
	for i, request := range []string{"GET / HTTP/1.1\r\nHost: s\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 1\r\n\r\nx"} {
		a := r.dial().send(request).answer()
		if p := a.problem(t); a.status != 502 || p.Attempts != 1 || asked.Load() != int32(i+1) ||
			!strings.Contains(p.Detail, "TLS handshake with "+strings.TrimPrefix(up, "https://")) ||
			!strings.Contains(p.Detail, "see certificate and key in its tls") {
			t.Errorf("%d %+v", a.status, p)
		}
	}
	r = start(t, single([]string{serveIdentified(t)}, f.own(anyOne), quickRetry))
	if c := call(t, dialGRPC(t, r.addr), "/shop.Payment/Get", "x"); c.code != codes.Unavailable ||
		!strings.Contains(c.message, "see certificate and key in its tls") || strings.Contains(c.message, "attempts") {
		t.Errorf("%+v", c)
	}
}

// A bundle has the next authority before it is in force: the present one is enough.
func TestABundleMayHaveTheNextAuthority(t *testing.T) {
	f := newFiles(t, trusted.issue(t, named("shop")), stranger)
	next := *stranger.cert
	next.Subject = pkix.Name{CommonName: "the next"}
	next.NotBefore, next.NotAfter = time.Now().Add(24*time.Hour), time.Now().Add(240*time.Hour)
	der, err := x509.CreateCertificate(nil, &next, &next, &stranger.key.PublicKey, stranger.key)
	if err != nil {
		t.Fatal(err)
	}
	pemOf(t, f.ca, stranger.cert.Raw, der)
	up, _ := asked(t)
	var said lockedBuffer
	r := start(t, single([]string{up}, f.own(), noRetries), logTo(&said))
	r.becomesPolicy(single([]string{up}, f.own("minVersion: TLSv1.3"), noRetries)) // the problems are told
	if a := r.get("/"); a.status != 200 || strings.Contains(said.String(), "valid from") {
		t.Errorf("%d %s\n%s", a.status, a.content, said.String())
	}
	pemOf(t, filepath.Join(filepath.Dir(f.ca), "next.crt"), der)
	f.ca = filepath.Join(filepath.Dir(f.ca), "next.crt")
	r.becomesPolicy(single([]string{up}, f.own(), noRetries))
	if !strings.Contains(said.String(), "next.crt: valid from ") {
		t.Error("one that is not valid by itself is not told of")
	}
}

// Whoever came in without a certificate, or with one that is not believed any more, has no further request behind the
// one under way.
func TestClientsComeInAnewWhenOthersAreLetIn(t *testing.T) {
	f := newFiles(t, trusted.issue(t), trusted)
	came, release := make(chan struct{}, 10), make(chan struct{})
	up := upstream(t, func(c net.Conn, req string) {
		if came <- struct{}{}; strings.HasPrefix(req, "GET /slow ") {
			<-release
		}
		io.WriteString(c, ok(""))
	})
	l := listen(t)
	at := l.Addr().String()
	l.Close()
	policy := func(keys ...string) string { return strings.Replace(guardOf(up.url, keys...), "127.0.0.1:0", at, 1) }
	r := protect(t, policy())
	idle, busy := r.dial(), r.dial()
	if a := idle.get("/"); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	busy.send("GET /slow HTTP/1.1\r\nHost: s\r\n\r\n")
	soon(t, "the first is there", came)
	soon(t, "the second is there", came)
	r.becomesPolicy(policy(f.mutual(), "caller: mtls"))
	idle.closed()
	close(release)
	if a := busy.answer(); a.status != 200 || !a.close {
		t.Errorf("under way: %+v", a)
	}
	busy.closed()

	known := func(c *tls.Config) { c.Certificates = []tls.Certificate{client509(t, trusted)} }
	nc, err := r.secure(known)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := askTLS(nc, "/"); err != nil || a.status != 200 {
		t.Fatalf("%v %+v", err, a)
	}
	f.write(t, trusted.issue(t, named("another certificate"))) // of its own: nobody has to go for that
	r.becomesPolicy(policy(f.mutual(), "caller: mtls"))
	if a, err := askTLS(nc, "/"); err != nil || a.status != 200 {
		t.Fatalf("%v %+v", err, a)
	}
	pemOf(t, f.ca, stranger.cert.Raw, stranger.cert.Raw)
	r.becomesPolicy(policy(f.mutual(), "caller: mtls"))
	if n, err := nc.Read(make([]byte, 1)); n > 0 || err != io.EOF {
		t.Errorf("whose authority is not believed any more: %d, %v", n, err)
	}
}

// A connection to the page may be kept for long: whose authority is withdrawn has no further request there.
func TestAWithdrawnAuthorityIsNotBelievedOnAKeptConnectionOfThePage(t *testing.T) {
	f := newFiles(t, trusted.issue(t), trusted)
	r := start(t, single([]string{"http://127.0.0.1:1"}), func(c *proxy.Config) {
		c.AdminTLS = policyfile.TLS{Certificate: f.cert, Key: f.key, ClientCA: f.ca}
	})
	server := httptest.NewUnstartedServer(r.admin)
	server.Listener.Close()
	server.Listener = tls.NewListener(listen(t), r.proxy.AdminTLS())
	server.Start()
	defer server.Close()
	nc, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{RootCAs: trustingConfig().RootCAs,
		Certificates: []tls.Certificate{client509(t, trusted)}})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	in := bufio.NewReader(nc)
	get := func() int {
		fmt.Fprintf(nc, "GET /guards HTTP/1.1\r\nHost: %s\r\n\r\n", server.Listener.Addr())
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	if got := get(); got != http.StatusOK {
		t.Errorf("got %d", got)
	}
	pemOf(t, f.ca, stranger.cert.Raw, stranger.cert.Raw)
	if err := r.proxy.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := get(); got != http.StatusForbidden {
		t.Errorf("with a certificate of a withdrawn authority: got %d", got)
	}
}
