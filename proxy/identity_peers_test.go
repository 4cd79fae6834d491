//go:build unix

package proxy_test

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abate-go/abate/internal/loopback"
	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/proxy"
)

// other starts a server of somebody else's, which runs command and listens at one of the addresses it was given.
func other(t *testing.T, at string, command ...string) *needs.Process {
	t.Helper()
	p, err := needs.NewProcess(filepath.Base(command[0]), "KILL")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.End(os.Kill, patience) })
	if err := p.Start(exec.Command(command[0], command[1:]...)); err != nil {
		t.Fatal(err)
	}
	if err := p.Await(func() bool {
		nc, err := net.Dial("tcp", at)
		if err == nil {
			nc.Close()
		}
		return err == nil
	}, patience); err != nil {
		t.Fatalf("%v: %s", err, p.Log())
	}
	return p
}

func port(t *testing.T) string {
	t.Helper()
	at, err := loopback.Address()
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// pemWithKey writes certificate and key into one file, as HAProxy wants them.
func pemWithKey(t *testing.T, path string, pair tls.Certificate) string {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(pair.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))+
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})))
	return path
}

// nginx as a service: mutual TLS with a name of its own, the PROXY protocol, and a Unix socket.
func TestNginxIsReachedByTLSThePROXYProtocolAndASocket(t *testing.T) {
	program := needs.Program(t, "nginx")
	secure, announced, socket := port(t), port(t), socketPath(t)
	server := newFiles(t, stranger.issue(t, withDNS("payments.internal")), trusted)
	conf := filepath.Join(t.TempDir(), "nginx.conf")
	writeFile(t, conf, fmt.Sprintf(`daemon off; master_process off; pid %[1]s.pid; error_log %[1]s.log;
events { worker_connections 64; }
http { access_log off; client_body_temp_path %[1]s.b; proxy_temp_path %[1]s.p;
fastcgi_temp_path %[1]s.f; uwsgi_temp_path %[1]s.u; scgi_temp_path %[1]s.s;
server { listen %[2]s ssl http2; ssl_certificate %[3]s; ssl_certificate_key %[4]s; ssl_client_certificate %[5]s;
ssl_verify_client on;
ssl_protocols TLSv1.2; location / { return 200 "$ssl_client_s_dn $ssl_server_name $ssl_protocol"; } }
server { listen %[6]s proxy_protocol; location / { return 200 "$proxy_protocol_addr:$proxy_protocol_port"; } }
server { listen unix:%[7]s; location / { return 200 "$host over a socket"; } } }
`, conf, secure, server.cert, server.key, server.ca, announced, socket))
	other(t, announced, program, "-c", conf)
	client := newFiles(t, trusted.issue(t, named("shop")), stranger)
	own := "tls: {certificate: " + client.cert + ", key: " + client.key + ", ca: " + client.ca +
		", serverName: payments.internal"
	r := start(t, "services:\n"+
		"  a: {upstreams: [\"https://"+secure+"\"], routes: [{path: /a}], "+own+"}}\n"+
		"  b: {upstreams: [\"https://"+secure+"\"], routes: [{path: /b}], maxRetries: 0, "+own+", minVersion: TLSv1.3}}\n"+
		"  c: {upstreams: [\"http://"+announced+"\"], routes: [{path: /c}], sendProxyProtocol: v1}\n"+
		"  d: {upstreams: [\"http://"+announced+"\"], routes: [{path: /d}], sendProxyProtocol: v2}\n"+
		"  e: {upstreams: [\"unix:"+socket+"?host=payments.internal\"], routes: [{path: /e}]}\n")
	c := r.dial()
	for range 2 {
		for path, want := range map[string]string{
			"/a": "CN=shop payments.internal TLSv1.2", "/c": c.LocalAddr().String(), "/d": c.LocalAddr().String(),
			"/e": "payments.internal over a socket",
		} {
			if a := c.get(path); a.status != 200 || a.content != want {
				t.Errorf("%s: %d %q, want %q", path, a.status, a.content, want)
			}
		}
		if a := c.get("/b"); a.status != 502 {
			t.Errorf("an old version of TLS: %+v", a)
		}
	}
}

// HAProxy on both sides: in front of a gate, with headers of version 2 and their extensions, over TCP, TLS and a Unix
// socket; and behind it, as the service.
func TestHAProxyIsUnderstoodOnBothSides(t *testing.T) {
	program := needs.Program(t, "haproxy")
	plain, mutual, socket := port(t), port(t), socketPath(t)
	service, front := port(t), [3]string{port(t), port(t), port(t)}
	dir := t.TempDir()
	server := newFiles(t, trusted.issue(t), trusted)
	ca := pemOf(t, filepath.Join(dir, "ca.pem"), trusted.cert.Raw)
	shown := pemWithKey(t, filepath.Join(dir, "service.pem"), trusted.issue(t, withID("spiffe://example.org/pay")))
	client := pemWithKey(t, filepath.Join(dir, "client.pem"), client509(t, trusted))
	conf := filepath.Join(dir, "haproxy.cfg")
	writeFile(t, conf, fmt.Sprintf(`defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend service
  bind %[1]s accept-proxy ssl crt %[2]s ca-file %[3]s verify required
  http-request return status 200 content-type text/plain lf-string "%%[ssl_c_s_dn(cn)] %%[src]:%%[src_port]"
listen tcp
  bind %[4]s
  server s %[5]s send-proxy-v2 proxy-v2-options crc32c,unique-id
listen tls
  bind %[6]s
  server s %[7]s send-proxy-v2-ssl-cn proxy-v2-options crc32c,ssl ssl verify required ca-file %[3]s crt %[8]s
listen socket
  bind %[9]s
  server s unix@%[10]s send-proxy
`, service, shown, ca, front[0], plain, front[1], mutual, client, front[2], socket))
	own := newFiles(t, trusted.issue(t, named("gate")), trusted)
	keys := "upstreams: [\"https://" + service + "\"], trustedPeers: [127.0.0.1, unix], proxyProtocol: true, " +
		"sendProxyProtocol: v2, upstreamTLS: {certificate: " + own.cert + ", key: " + own.key + ", ca: " + ca +
		", peers: [\"spiffe://example.org/*\"]}"
	var said lockedBuffer
	r := start(
		t,
		"protect:\n  a: {listen: \""+plain+"\", "+keys+"}\n  b: {listen: \""+mutual+"\", "+keys+", caller: mtls, "+
			server.mutual()+"}\n  c: {listen: \"unix:"+socket+"\", "+keys+"}\n",
		logTo(&said),
	)
	if err := r.proxy.Open(); err != nil {
		t.Fatal(err)
	}
	other(t, front[0], program, "-db", "-f", conf)
	for _, at := range front {
		c := dial(t, at)
		for range 2 {
			if a := c.get("/x"); a.status != 200 || a.content != "gate "+c.LocalAddr().String() {
				t.Errorf("%s: %d %q, want gate %s\n%s", at, a.status, a.content, c.LocalAddr(), said.String())
			}
		}
	}
	if !strings.Contains(said.String(), "caller=spiffe://example.org/shop") {
		t.Error(said.String())
	}
}

// curl and OpenSSL as clients of every address: the one for programs, a gate, and the admin page.
func TestCurlAndOpenSSLAreServedEverywhere(t *testing.T) {
	curl, openssl := needs.Program(t, "curl"), needs.Program(t, "openssl")
	f := newFiles(t, trusted.issue(t), trusted)
	gate, socket := port(t), socketPath(t)
	up := mirror(t)
	r := start(
		t,
		single(
			[]string{up.url},
		)+"protect:\n  a: {listen: \""+gate+"\", upstreams: [\""+up.url+"\"], trustedPeers: [127.0.0.1], "+
			"proxyProtocol: true, "+f.mutual()+"}\n  b: {listen: \"unix:"+socket+"\", upstreams: [\""+up.url+"\"]}\n",
		func(c *proxy.Config) { c.ListenTLS.Certificate, c.ListenTLS.Key = f.cert, f.key },
	)
	if err := r.proxy.Open(); err != nil {
		t.Fatal(err)
	}
	client := pemWithKey(t, filepath.Join(t.TempDir(), "client.pem"), client509(t, trusted))
	for _, args := range [][]string{
		{"--cacert", f.ca, "https://" + r.addr + "/x"},
		{"--cacert", f.ca, "--http1.1", "https://" + r.addr + "/x"},
		{"--proxy-cacert", f.ca, "--proxy", "https://" + r.addr, up.url + "/x"},
		{"--cacert", f.ca, "--cert", client, "--haproxy-protocol", "https://" + gate + "/x"},
		{"--unix-socket", socket, "http://b/x"},
	} {
		out, err := exec.Command(curl, append([]string{"-sS", "-f", "-m", "30"}, args...)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "/x HTTP/1.1") {
			t.Errorf("curl %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	out, err := exec.Command(
		openssl,
		"s_client",
		"-connect",
		r.addr,
		"-CAfile",
		f.ca,
		"-alpn",
		"h2",
		"-verify_return_error",
		"-brief",
	).
		CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Verification: OK") {
		t.Errorf("openssl: %v: %s", err, out)
	}
	if _, err := os.Stat(socket); err != nil {
		t.Error(err)
	}
}
