//go:debug x509usefallbackroots=1

package proxy_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy"
)

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// trusted is the authority that the system of the tests knows, stranger one that it does not.
var trusted, stranger = newAuthority(), newAuthority()

func init() {
	pool := x509.NewCertPool()
	pool.AddCert(trusted.cert)
	x509.SetFallbackRoots(pool) // with the go:debug line above they replace the system's
}

func newAuthority() authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err == nil {
		c, err = x509.ParseCertificate(der)
	}
	if err != nil {
		panic(err)
	}
	return authority{c, key}
}

// issue makes a certificate for loopback, or for what change makes of it.
func (a authority) issue(t testing.TB, change ...func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "a service"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:    time.Now().Add(-24 * time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
	}
	for _, f := range change {
		f(c)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// serveTLS runs an upstream with that certificate. accepted counts its connections.
func serveTLS(t testing.TB, cert tls.Certificate, protocols *http.Protocols, h http.HandlerFunc) (
	url string, accepted *atomic.Int32) {
	t.Helper()
	accepted = new(atomic.Int32)
	l := counted{listen(t), accepted}
	s := &http.Server{
		Handler: h, Protocols: protocols, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.ServeTLS(l, "", "") // ends with ErrServerClosed
	}()
	t.Cleanup(func() {
		s.Close()
		<-done
	})
	return "https://" + l.Addr().String(), accepted
}

type counted struct {
	net.Listener
	n *atomic.Int32
}

func (l counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.n.Add(1)
	}
	return c, err
}

func TestAnUpstreamIsReachedOverTLS(t *testing.T) {
	for _, in := range []wire{http1, h2c} {
		t.Run(in.name, func(t *testing.T) {
			url, accepted := serveTLS(t, trusted.issue(t), http1.protocols, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slow" { // for longer than the proxy waits without looking after its client
					tick := time.NewTicker(300 * time.Millisecond)
					defer tick.Stop()
					<-tick.C
				}
				w.Header().Set("X-Seen", fmt.Sprint(r.Host, r.TLS.ServerName, r.Proto))
				pieces(w, r)
			})
			r := start(t, single([]string{url}))
			c := in.client(t)
			for _, tt := range []struct {
				path string
				size int
			}{{"/", 0}, {"/slow", 10}, {"/", 1 << 20}, {"/", 1}} {
				sent := bytes.Repeat([]byte("x"), tt.size)
				b := begin(t, c, newRequest(t, "POST", "http://"+r.addr+tt.path, bytes.NewReader(sent)))
				b.head()
				b.rest(string(sent))
				if got, want := b.resp.Header.Get("X-Seen"), strings.TrimPrefix(url, "https://")+"HTTP/1.1"; got != want {
					t.Errorf("the service saw %q, want %q", got, want)
				}
				// the next may come over another connection: an answer that begins before its request has ended closes one
				eventually(t, "the connection is kept", func() bool { return r.guard().Endpoints[0].Idle == 1 })
			}
			if n := accepted.Load(); n != 1 {
				t.Errorf("%d connections for requests one after the other", n)
			}
		})
	}
}

func TestGRPCPassesOverTLS(t *testing.T) {
	url, _ := serveTLS(t, trusted.issue(t), http2Only(), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.Proto, body)
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	})
	r := start(t, single([]string{url}))
	req, send := grpcRequest(t, r)
	b := begin(t, h2c.client(t), req)
	io.WriteString(send, "message")
	send.Close()
	b.head()
	b.rest("HTTP/2.0 message")
	if s := b.resp.Trailer.Get("Grpc-Status"); s != "0" {
		t.Errorf("grpc-status %q", s)
	}
}

func http2Only() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP2(true)
	return p
}

// problem is a body of application/problem+json.
type problem struct {
	Type, Title, Detail, Service, Reason string

	Status, Attempts, UpstreamStatus, RetryAfter int
}

// problem reads the answer as one of the proxy's own.
func (a reply) problem(t testing.TB) (p problem) {
	t.Helper()
	if ct := a.header.Get("Content-Type"); ct != "application/problem+json" {
		t.Errorf("%d with Content-Type %q: %s", a.status, ct, a.content)
	}
	if err := json.Unmarshal([]byte(a.content), &p); err != nil {
		t.Errorf("%q: %v", a.content, err)
	}
	if p.Status != a.status || p.Title != http.StatusText(a.status) || p.Reason != a.header.Get("Abate-Reason") {
		t.Errorf("the body %+v does not say what the head says: %d %v", p, a.status, a.header)
	}
	return p
}

// TestAnUpstreamThatCannotBeTrustedIsNotAskedAgain: another attempt would find the same.
func TestAnUpstreamThatCannotBeTrustedIsNotAskedAgain(t *testing.T) {
	for _, tt := range []struct {
		name string
		cert tls.Certificate
		says string
	}{
		{"unknown authority", stranger.issue(t), "unknown authority"},
		{"expired", trusted.issue(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }), "expired"},
		{"another host", trusted.issue(t, func(c *x509.Certificate) {
			c.IPAddresses, c.DNSNames = nil, []string{"other.test"}
		}), "127.0.0.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, accepted := serveTLS(t, tt.cert, http1.protocols, func(http.ResponseWriter, *http.Request) {
				t.Error("a request reached the service")
			})
			r := start(t, single([]string{url}, quickRetry))
			a := r.get("/")
			p := a.problem(t)
			if a.status != 502 || p.Reason != "upstream-error" || p.Attempts != 1 || p.Service != "s" ||
				a.header.Get("X-Should-Retry") != "false" {
				t.Errorf("got %d %+v", a.status, p)
			}
			if !strings.Contains(p.Detail, tt.says) || !strings.Contains(p.Detail, "certificate") {
				t.Errorf("the detail does not say what is wrong (%s): %s", tt.says, p.Detail)
			}
			if n := accepted.Load(); n != 1 {
				t.Errorf("%d connections, want 1", n)
			}
		})
	}
}

func TestAnUpstreamWithoutTLSGetsAClearAnswer(t *testing.T) {
	l := rawUpstream(t, func(c net.Conn, _ int) {
		c.Read(make([]byte, 1000))
		io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
	})
	r := start(t, single([]string{strings.Replace(l.url, "http:", "https:", 1)}, quickRetry))
	if a := r.get("/"); a.status != 502 || !strings.Contains(a.problem(t).Detail, "TLS") || l.connections() != 1 {
		t.Errorf("got %d %s after %d connections", a.status, a.content, l.connections())
	}
}

// TestATLSHandshakeHasATimeLimit: the connect timeout, and then the attempt is repeated elsewhere.
func TestATLSHandshakeHasATimeLimit(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel() // it waits
	silent := rawUpstream(t, func(c net.Conn, _ int) { _, _ = io.Copy(io.Discard, c) })
	url := strings.Replace(silent.url, "http:", "https:", 1)
	quick := func(c *proxy.Config) { c.ConnectTimeout = long }
	r := start(t, single([]string{url}, quickRetry, "maxRetries: 1"), quick)
	a := r.get("/")
	if p := a.problem(t); a.status != 504 || p.Attempts != 2 || silent.connections() != 2 ||
		!strings.Contains(p.Detail, "TLS handshake") {
		t.Errorf("got %d %+v after %d connections", a.status, p, silent.connections())
	}
	good, _ := serveTLS(t, trusted.issue(t), http1.protocols, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "good")
	})
	r = start(t, single([]string{url, good}, quickRetry, noEjection), quick)
	for before := silent.connections(); silent.connections() == before; { // until it was the first to be asked
		if a := r.get("/"); a.content != "good" {
			t.Fatalf("got %d %s", a.status, a.content)
		}
	}
}
