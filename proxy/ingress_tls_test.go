package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy"
)

// files are a server's certificate, its key, and the authority of its clients.
type files struct{ cert, key, ca string }

func newFiles(t testing.TB, pair tls.Certificate, clients authority) files {
	dir := t.TempDir()
	f := files{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")}
	f.write(t, pair)
	writeFile(t, f.ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: clients.cert.Raw})))
	return f
}

// write replaces certificate and key.
func (f files) write(t testing.TB, pair tls.Certificate) {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(pair.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, f.key, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})))
	writeFile(t, f.cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
}

func writeFile(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tls are the keys of a policy for f.
func (f files) tls() string { return "tls: {certificate: " + f.cert + ", key: " + f.key + "}" }
func (f files) mutual() string {
	return "tls: {certificate: " + f.cert + ", key: " + f.key + ", clientCA: " + f.ca + "}"
}

// secure is a connection to a proxy that speaks TLS. The server must show a certificate of the trusted authority.
func (r *running) secure(change ...func(*tls.Config)) (*tls.Conn, error) {
	pool := x509.NewCertPool()
	pool.AddCert(trusted.cert)
	c := &tls.Config{RootCAs: pool}
	for _, f := range change {
		f(c)
	}
	nc, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", r.addr, c)
	if err == nil {
		nc.SetDeadline(time.Now().Add(patience))
		r.t.Cleanup(func() { nc.Close() })
	}
	return nc, err
}

// askTLS sends a GET over TLS.
func askTLS(nc net.Conn, path string) (a reply, err error) {
	if _, err := io.WriteString(nc, "GET "+path+" HTTP/1.1\r\nHost: s\r\n\r\n"); err != nil {
		return a, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, nil, string(body), resp.Close}, err
}

func TestIngressSpeaksTLS(t *testing.T) {
	f := newFiles(t, trusted.issue(t), trusted)
	r := protect(t, guardOf(mirror(t).url, f.tls()))
	if e := r.proxy.Entrances()[0]; !e.TLS {
		t.Errorf("%+v", e)
	}
	nc, err := r.secure()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if a, err := askTLS(nc, "/x"); err != nil || a.status != 200 || field(a.content, "X-Forwarded-Proto") != "https" ||
			field(a.content, "X-Forwarded-For") != "127.0.0.1" {
			t.Fatalf("%v: %+v", err, a)
		}
	}
	plain := r.dial().send("GET / HTTP/1.1\r\nHost: s\r\n\r\n")
	if a := plain.answer(); a.status != 400 || !strings.Contains(a.content, "https://") {
		t.Errorf("HTTP to a port with TLS: %+v", a)
	}
	rubbish := r.dial().send("\x16\x03\x01rubbish")
	if said, err := io.ReadAll(rubbish.in); err != nil || len(said) > 7 { // an alert
		t.Errorf("%q, %v", said, err)
	}
}

func TestHTTP2OverTLSGoesTheSameWay(t *testing.T) {
	f := newFiles(t, trusted.issue(t), trusted)
	r := protect(
		t, guardOf(mirror(t).url, f.mutual(), keys, "caller: mtls", "rateLimit: {limit: 3/1h, burst: 3, key: caller}"))
	pool := x509.NewCertPool()
	pool.AddCert(trusted.cert)
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{
		RootCAs: pool, Certificates: []tls.Certificate{client509(t, trusted)},
	}}
	defer transport.CloseIdleConnections()
	send := func() (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "POST", "https://"+r.addr+"/orders", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", "a")
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(body)
	}
	first, body := send()
	if first.ProtoMajor != 2 || first.StatusCode != 200 || field(body, "X-Forwarded-Proto") != "https" ||
		first.Header.Get("X-RateLimit-Remaining") != "2" {
		t.Errorf("%s %d %v %q", first.Proto, first.StatusCode, first.Header, body)
	}
	if again, same := send(); again.Header.Get("Idempotency-Replayed") != "true" || same != body {
		t.Errorf("%v %q", again.Header, same)
	}
	send()
	if over, body := send(); over.StatusCode != 429 || over.Header.Get("Retry-After") == "" ||
		!strings.Contains(body, `"code":"rate-limited"`) {
		t.Errorf("%d %v %q", over.StatusCode, over.Header, body)
	}
	if g := r.gate(); g.Shed.InFlight != 0 || g.RateLimit.Keys != 1 {
		t.Errorf("%+v", g)
	}
}

// client509 is a client's certificate with a name for SPIFFE.
func client509(t testing.TB, a authority, change ...func(*x509.Certificate)) tls.Certificate {
	return a.issue(t, append([]func(*x509.Certificate){func(c *x509.Certificate) {
		c.URIs = []*url.URL{{Scheme: "spiffe", Host: "example.org", Path: "/shop"}}
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}}, change...)...)
}

func TestMutualTLSNamesTheCaller(t *testing.T) {
	f := newFiles(t, trusted.issue(t), trusted)
	var log lockedBuffer
	r := protect(t, guardOf(mirror(t).url, f.mutual(), "caller: mtls"), logTo(&log))
	for _, c := range []struct {
		name   string
		change func(*x509.Certificate)
		want   string
	}{
		{"a URI", func(*x509.Certificate) {}, "spiffe://example.org/shop"},
		{"a DNS name", func(c *x509.Certificate) {
			c.URIs, c.DNSNames = nil, []string{"shop.example", "other.example"}
		}, "shop.example"},
		{"a common name", func(c *x509.Certificate) {
			c.URIs, c.Subject = nil, pkix.Name{CommonName: "shop"}
		}, "caller=shop"},
		{"none of them", func(c *x509.Certificate) { c.URIs, c.Subject = nil, pkix.Name{} }, "caller=127.0.0.1"},
	} {
		nc, err := r.secure(func(conf *tls.Config) { conf.Certificates = []tls.Certificate{client509(t, trusted, c.change)} })
		if err != nil {
			t.Fatal(c.name, err)
		}
		if a, err := askTLS(nc, "/"); err != nil || a.status != 200 {
			t.Errorf("%s: %v %+v", c.name, err, a)
		}
		eventually(t, "the log names "+c.want, func() bool { return strings.Contains(log.String(), c.want) })
	}
	for name, certificates := range map[string][]tls.Certificate{"none": nil, "a stranger's": {client509(t, stranger)}} {
		nc, err := r.secure(func(conf *tls.Config) { conf.Certificates = certificates })
		if err == nil {
			_, err = askTLS(nc, "/")
		}
		if err == nil {
			t.Errorf("with %s certificate the request was answered", name)
		}
	}
	eventually(t, "the log tells of those who could not come in", func() bool {
		return strings.Count(log.String(), "handshake failed") == 2
	})
}

// logTo has every request logged to b.
func logTo(b io.Writer) func(*proxy.Config) {
	return func(c *proxy.Config) {
		c.Log = slog.New(slog.NewTextHandler(b, nil))
		c.AccessLog, c.LogAll = c.Log, true
	}
}

func TestANewCertificateIsTakenUpAndABadOneIsNot(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	f := newFiles(t, trusted.issue(t), trusted)
	var log lockedBuffer
	r := protect(t, guardOf(mirror(t).url, f.tls()), logTo(&log))
	serial := func() string {
		nc, err := r.secure()
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		return nc.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	old, err := r.secure()
	if err != nil {
		t.Fatal(err)
	}
	f.write(t, trusted.issue(t, func(c *x509.Certificate) { c.Subject.CommonName = "renewed" }))
	eventually(t, "the new certificate is shown", func() bool { return serial() == "renewed" })
	writeFile(t, f.cert, "-----BEGIN CERTIFICATE-----\nrubbish")
	eventually(t, "the bad one is reported", func() bool {
		return strings.Contains(log.String(), "protect.s.tls: certificate "+f.cert) &&
			strings.Contains(r.adminGet("/gates"), "protect.s.tls")
	})
	if serial() != "renewed" {
		t.Error("the last good certificate is not in force")
	}
	if a, err := askTLS(old, "/"); err != nil || a.status != 200 {
		t.Errorf("a connection from before: %v %+v", err, a)
	}
}

func TestATLSClientThatLeavesIsNoticed(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		up, came, ended := silentUpstream(t)
		r := protect(t, guardOf(up.url, newFiles(t, trusted.issue(t), trusted).tls()))
		nc, err := r.secure(func(c *tls.Config) { c.MaxVersion = version })
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(nc, "GET / HTTP/1.1\r\nHost: s\r\n\r\n")
		soon(t, "the service has the request", came)
		nc.Close()
		soon(t, "it is given up", ended)
		eventually(t, "the slot is free", func() bool { return r.gate().Shed.InFlight == 0 })
	}
}

func TestBearerTokensLetCallersIn(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	path := filepath.Join(t.TempDir(), "tokens")
	writeFile(t, path, "# callers\nshop 0123456789abcdef\nback-office fedcba9876543210==\n")
	var log lockedBuffer
	up := mirror(t)
	r := protect(t, guardOf(up.url, "authentication: {bearerTokens: "+path+"}", "caller: token",
		"rateLimit: {limit: 2/1h, burst: 2, key: caller}"), logTo(&log))
	c := r.dial()
	with := func(authorization string) reply {
		return c.send("GET / HTTP/1.1\r\nHost: s\r\n" + authorization + "\r\n").answer()
	}
	if a := with("Authorization: Bearer 0123456789abcdef\r\n"); a.status != 200 ||
		a.header.Get("X-RateLimit-Remaining") != "1" {
		t.Fatalf("%+v", a)
	}
	if a := with("authorization: bearer fedcba9876543210==\r\n"); a.status != 200 ||
		a.header.Get("X-RateLimit-Remaining") != "1" {
		t.Errorf("%+v", a)
	}
	for _, bad := range []string{"", "Authorization: Bearer 0123456789abcdeF\r\n",
		"Authorization: Basic 0123456789abcdef\r\n", "Authorization: Bearer\r\n", "Authorization: 0123456789abcdef\r\n",
		"Authorization: Bearer " + strings.Repeat("x", 5000) + "\r\n",
		"Authorization: Bearer 0123456789abcdef\r\nAuthorization: Bearer fedcba9876543210==\r\n"} {
		a := with(bad)
		if refusedBy(t, a, 401, "unauthenticated"); a.header.Get("WWW-Authenticate") != "Bearer" ||
			a.header.Get("X-RateLimit-Remaining") != "" {
			t.Errorf("%q: %v", bad, a.header)
		}
	}
	writeFile(t, path, "shop a-new-token-of-the-shop\n")
	eventually(t, "the new token is good and the old one is not", func() bool {
		return with("Authorization: Bearer 0123456789abcdef\r\n").status == 401 &&
			with("Authorization: Bearer a-new-token-of-the-shop\r\n").status != 401
	})
	writeFile(t, path, "shop short\n")
	eventually(t, "a bad file is reported", func() bool {
		return strings.Contains(log.String(), path+":1: the token has 5 characters")
	})
	if a := with("Authorization: Bearer a-new-token-of-the-shop\r\n"); a.status == 401 {
		t.Error("the last good tokens are not in force")
	}
	if text := log.String(); strings.Contains(text, "0123456789abcde") || strings.Contains(text, "a-new-token") ||
		!strings.Contains(text, "caller=shop") || !strings.Contains(text, "reason=unauthenticated") ||
		!strings.Contains(text, "gate=s") {
		t.Errorf("the log shows a token, or not the caller:\n%s", text)
	}
	if n := len(up.seen()); n < 2 {
		t.Errorf("the service got %d requests", n)
	}
}

func TestFilesThatCannotBeReadAreAllNamedAtTheStart(t *testing.T) {
	dir := t.TempDir()
	tokens, policy := filepath.Join(dir, "tokens"), filepath.Join(dir, "policy.yaml")
	writeFile(t, tokens, "shop short\nshop\n")
	writeFile(t, policy, guardOf("http://127.0.0.1:1", "authentication: {bearerTokens: "+tokens+"}",
		"tls: {certificate: /nowhere/tls.crt, key: /nowhere/tls.key}"))
	_, err := proxy.New(proxy.Config{Policy: policy, AdminTokens: "/nowhere/admin", AdminTLS: policyfile.TLS{
		Certificate: "/nowhere/a.crt", Key: "/nowhere/a.key",
	}, Log: slog.New(slog.DiscardHandler)})
	for _, want := range []string{"protect.s.authentication.bearerTokens", tokens + ":1: ", tokens + ":2: ",
		"protect.s.tls", "/nowhere/tls.crt", "/nowhere/admin", "/nowhere/a.crt"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("lacks %q: %v", want, err)
		}
	}
}

func TestTheAdminPageAsksWhoWantsToKnow(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	writeFile(t, tokens, "prometheus 0123456789abcdef\n")
	f := newFiles(t, trusted.issue(t), trusted)
	r := start(t, guardOf("http://127.0.0.1:1"), func(c *proxy.Config) {
		c.AdminTokens, c.AdminTLS = tokens, policyfile.TLS{Certificate: f.cert, Key: f.key, ClientCA: f.ca}
	})
	server := httptest.NewUnstartedServer(r.admin)
	server.Listener.Close()
	server.Listener = tls.NewListener(listen(t), r.proxy.AdminTLS())
	server.Start()
	defer server.Close()
	pool := x509.NewCertPool()
	pool.AddCert(trusted.cert)
	get := func(path, token string, certificates ...tls.Certificate) int {
		t.Helper()
		transport := &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: certificates}, DialTLSContext: nil,
		}
		defer transport.CloseIdleConnections()
		req, err := http.NewRequestWithContext(context.Background(), "GET",
			strings.Replace(server.URL, "http:", "https:", 1)+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	mine, others := client509(t, trusted), client509(t, trusted)
	for path, open := range map[string]bool{"/healthz": true, "/readyz": true, "/metrics": false, "/guards": false,
		"/gates": false, "/policy": false, "/": false} {
		for _, c := range []struct {
			got, want int
		}{{get(path, ""), 401}, {get(path, "0123456789abcdeX", mine), 401}, {get(path, "0123456789abcdef"), 403},
			{get(path, "0123456789abcdef", others), 200}} {
			if want := c.want; open && c.got != 200 || !open && c.got != want {
				t.Errorf("%s: got %d, want %d (open to all: %v)", path, c.got, want, open)
			}
		}
	}
}

// lockedBuffer is a buffer that can be read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestAProtocolIsSwitchedToOverTLS(t *testing.T) {
	up := rawUpstream(t, func(nc net.Conn, _ int) {
		readHead(bufio.NewReader(nc))
		io.WriteString(nc, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		io.Copy(nc, nc)
	})
	r := protect(t, guardOf(up.url, newFiles(t, trusted.issue(t), trusted).tls()))
	nc, err := r.secure()
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(nc, "GET / HTTP/1.1\r\nHost: s\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	in := bufio.NewReader(nc)
	if head, err := wellFormedHead(in); err != nil || !strings.HasPrefix(head, "HTTP/1.1 101 ") {
		t.Fatal(head, err)
	}
	io.WriteString(nc, "hello")
	got := make([]byte, 5)
	if _, err := io.ReadFull(in, got); err != nil || string(got) != "hello" {
		t.Errorf("%q, %v", got, err)
	}
	nc.CloseWrite()
	if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
}

// Who has agreed on HTTP/2 in the handshake and then sends something else is told in HTTP/2, and is not served: behind
// it may stand another parser that reads it otherwise.
func TestWhoHasAgreedOnHTTP2SpeaksNothingElse(t *testing.T) {
	f := newFiles(t, trusted.issue(t), trusted)
	service := mirror(t)
	r := protect(t, guardOf(service.url, f.tls()))
	for _, sent := range []string{
		"GET / HTTP/1.1\r\nHost: s\r\n\r\n", "INVALID CONNECTION PREFACE\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSN",
	} {
		nc, err := r.secure(func(c *tls.Config) { c.NextProtos = []string{"h2"} })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Write([]byte(sent)); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(nc)
		if err != nil || bytes.Contains(got, []byte("HTTP/1.1")) ||
			!bytes.Contains(got, []byte("does not begin with the preface of HTTP/2")) {
			t.Errorf("%q: %q, %v; want a GOAWAY", sent, got, err)
		}
	}
	if n := len(service.seen()); n != 0 {
		t.Errorf("the service was asked %d times", n)
	}
}
