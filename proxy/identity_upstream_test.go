package proxy_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/abate-go/abate/proxy"
)

// asked is an upstream that wants a client certificate of the trusted authority, shows one of the stranger's, and
// answers with what it has seen: the SNI, and the name of its client.
func asked(t testing.TB, change ...func(*x509.Certificate)) (url string, cert tls.Certificate) {
	cert = stranger.issue(t, change...)
	pool := x509.NewCertPool()
	pool.AddCert(trusted.cert)
	l := listen(t)
	s := &http.Server{
		ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{cert},
			ClientCAs:    pool,
			ClientAuth:   tls.RequireAndVerifyClientCert,
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s from %s", r.TLS.ServerName, r.TLS.PeerCertificates[0].Subject.CommonName)
		}),
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
	return "https://" + l.Addr().String(), cert
}

// pemOf writes certificates into a file.
func pemOf(t testing.TB, path string, certs ...[]byte) string {
	t.Helper()
	var text []byte
	for _, der := range certs {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	writeFile(t, path, string(text))
	return path
}

func named(name string) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.Subject = pkix.Name{CommonName: name} }
}

func withDNS(names ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, names }
}

func withID(ids ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.IPAddresses = nil
		for _, id := range ids {
			u, err := url.Parse(id)
			if err != nil {
				panic(err)
			}
			c.URIs = append(c.URIs, u)
		}
	}
}

func TestAServiceIsToldWhoCallsAndMustShowWhoItIs(t *testing.T) {
	f := newFiles(t, trusted.issue(t, named("shop")), stranger)
	own := "certificate: " + f.cert + ", key: " + f.key
	ca := "ca: " + f.ca
	for _, tt := range []struct {
		name, tls string
		server    func(*x509.Certificate)
		want      string // "" for none
	}{
		{"its host", own + ", " + ca, func(*x509.Certificate) {}, " from shop"},
		{"a name", own + ", " + ca + ", serverName: payments.internal", withDNS("payments.internal"),
			"payments.internal from shop"},
		{"another name", own + ", " + ca + ", serverName: payments.internal", withDNS("orders.internal"), ""},
		{"not its host", own + ", " + ca, withDNS("payments.internal"), ""},
		{"no authority", own, func(*x509.Certificate) {}, ""},
		{"no certificate", ca, func(*x509.Certificate) {}, ""},
		{"out of date", own + ", " + ca, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }, ""},
		{"TLS 1.3", own + ", " + ca + ", minVersion: TLSv1.3", func(*x509.Certificate) {}, " from shop"},
		{"an identity", own + ", " + ca + ", peers: [\"spiffe://example.org/ns/*\"]",
			withID("spiffe://example.org/ns/pay"), " from shop"},
		{"an identity and a name", own + ", " + ca + ", peers: [pay.internal], serverName: x.internal",
			withDNS("pay.internal"), "x.internal from shop"},
		{"another identity", own + ", " + ca + ", peers: [\"spiffe://example.org/ns/pay\"]",
			withID("spiffe://example.org/ns/buy"), ""},
		{"an identity of a stranger", own + ", ca: " + pemOf(t, filepath.Join(t.TempDir(), "ca"), trusted.cert.Raw) +
			", peers: [\"spiffe://example.org/*\"]", withID("spiffe://example.org/ns/pay"), ""},
		{"two identities", own + ", " + ca + ", peers: [\"spiffe://example.org/*\"]",
			withID("spiffe://example.org/a", "spiffe://example.org/b"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			up, _ := asked(t, tt.server)
			r := start(t, single([]string{up}, "tls: {"+tt.tls+"}", noRetries))
			c := r.dial()
			for range 2 { // the second is over a kept connection, or a session that is resumed
				if a := c.get(
					"/",
				); tt.want != "" && (a.status != 200 || a.content != tt.want) ||
					tt.want == "" && a.status != 502 {
					t.Errorf("%d %q", a.status, a.content)
				}
			}
		})
	}
}

func TestACertificateOfAClientIsReplacedWithoutALostRequest(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	f := newFiles(t, trusted.issue(t, named("shop 1")), stranger)
	up, _ := asked(t)
	var said lockedBuffer
	r := start(
		t,
		single([]string{up}, "tls: {certificate: "+f.cert+", key: "+f.key+", ca: "+f.ca+"}", noRetries),
		logTo(&said),
	)
	c := r.dial()
	ask := func() string {
		a := c.get("/")
		if a.status != 200 {
			t.Fatalf("%+v\n%s", a, said.String())
		}
		return a.content
	}
	if got := ask(); got != " from shop 1" {
		t.Fatal(got)
	}
	f.write(t, trusted.issue(t, named("shop 2")))
	eventually(t, "the new one is shown", func() bool { return ask() == " from shop 2" })

	for _, bad := range []struct{ file, content, says string }{
		{f.cert, "rubbish",
			"services.s.tls: certificate " + f.cert + ": has no certificate in PEM: write one that begins with"},
		{f.ca, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
			"authorities " + f.ca + ": number 1 cannot be read"},
		{f.key, "rubbish", "key " + f.key + ": cannot be used"},
	} {
		good, err := os.ReadFile(bad.file)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, bad.file, bad.content)
		eventually(
			t,
			"it is said what is wrong with "+bad.file,
			func() bool { return strings.Contains(said.String(), bad.says) },
		)
		if got := ask(); got != " from shop 2" {
			t.Errorf("%s: the last good one is not in force: %s", bad.file, got)
		}
		writeFile(t, bad.file, string(good))
	}
	other := newFiles(t, trusted.issue(t, named("shop 3")), stranger)
	pair, err := os.ReadFile(other.key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, f.key, string(pair))
	eventually(t, "the pair does not fit", func() bool {
		return strings.Contains(said.String(), "key "+f.key+": does not fit the certificate in "+f.cert)
	})
	f.write(
		t,
		trusted.issue(t, named("shop 4"), func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }),
	)
	eventually(t, "the new one has ended", func() bool {
		return strings.Contains(said.String(), "certificate "+f.cert+": out of date since ")
	})
	if got := ask(); got != " from shop 2" {
		t.Error("the last good one is not in force:", got)
	}
	f.write(t, trusted.issue(t, named("shop 5")))
	eventually(t, "the good one is shown", func() bool { return ask() == " from shop 5" })
}

func TestTheEndOfACertificateIsAMetricAndIsSaidBefore(t *testing.T) {
	ends := time.Now().Add(40 * time.Minute).Truncate(time.Second)
	f := newFiles(t, trusted.issue(t, func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = ends.Add(-24*time.Hour), ends
	}), stranger)
	var said lockedBuffer
	r := start(
		t,
		single([]string{"https://127.0.0.1:1"}, "tls: {certificate: "+f.cert+", key: "+f.key+", ca: "+f.ca+"}"),
		logTo(&said),
	)
	metrics := r.adminGet("/metrics")
	for series, at := range map[string]time.Time{
		"expiry_timestamp_seconds{file=\"" + f.cert: ends, "expiry_timestamp_seconds{file=\"" + f.ca: stranger.cert.NotAfter,
		"start_timestamp_seconds{file=\"" + f.cert: ends.Add(-24 * time.Hour),
		"start_timestamp_seconds{file=\"" + f.ca:   stranger.cert.NotBefore,
	} {
		want := "abate_proxy_certificate_" + series + "\"} "
		_, rest, ok := strings.Cut(metrics, want)
		text, _, _ := strings.Cut(rest, "\n")
		if got, err := strconv.ParseFloat(text, 64); !ok || err != nil || int64(got) != at.Unix() {
			t.Errorf("%s%s, want %d", want, text, at.Unix())
		}
	}
	if text := said.String(); !strings.Contains(text, "ends soon, and has not been replaced") ||
		!strings.Contains(text, f.cert) {
		t.Error(text)
	}
}

func TestACertificateThatHasEndedDoesNotStopOtherServices(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	f := newFiles(t, trusted.issue(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }), stranger)
	var said lockedBuffer
	r := start(t, "services:\n  old: {upstreams: [\"https://127.0.0.1:1\"], tls: {certificate: "+f.cert+", key: "+f.key+
		", ca: "+f.ca+"}}\n"+strings.TrimPrefix(single([]string{mirror(t).url}), "services:\n"), logTo(&said))
	if a := r.get("/"); a.status != 200 {
		t.Errorf("%+v", a)
	}
	eventually(t, "it is said", func() bool {
		return strings.Contains(said.String(), "services.old.tls: certificate "+f.cert+": out of date since ")
	})
}

func TestFilesThatCannotBeReadAtAStartAreAllNamed(t *testing.T) {
	dir := t.TempDir()
	empty, missing := filepath.Join(dir, "empty.pem"), filepath.Join(dir, "missing.pem")
	writeFile(t, empty, "")
	policy := filepath.Join(dir, "policy.yaml")
	writeFile(
		t,
		policy,
		"services:\n  a: {upstreams: [\"https://a\"], tls: {ca: "+empty+"}}\n  b: {upstreams: [\"https://b\"], tls: {ca: "+
			missing+"}}\n",
	)
	_, err := proxy.New(proxy.Config{Policy: policy})
	if err == nil || !strings.Contains(err.Error(), "services.a.tls: authorities "+empty+": has no certificate in PEM") ||
		!strings.Contains(err.Error(), "services.b.tls: ") ||
		!strings.Contains(err.Error(), missing) {
		t.Error(err)
	}
}

// gRPC: a stream goes on over the connection that it has, and calls after it are from the new certificate.
func TestAGRPCServiceSeesTheNewCertificateAndStreamsGoOn(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	f := newFiles(t, trusted.issue(t, named("shop 1")), stranger)
	pool := x509.NewCertPool()
	pool.AddCert(trusted.cert)
	who := func(c *rpc) string {
		p, _ := peer.FromContext(c.Context())
		return p.AuthInfo.(credentials.TLSInfo).State.PeerCertificates[0].Subject.CommonName
	}
	s := serveGRPC(t, func(c *rpc) error {
		for {
			if _, err := c.receive(); err != nil {
				return nil
			}
			if err := c.send(who(c)); err != nil {
				return err
			}
		}
	}, grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{stranger.issue(t, withID("spiffe://example.org/pay"))},
		ClientCAs:    pool, ClientAuth: tls.RequireAndVerifyClientCert})))
	r := start(t, single([]string{"https://" + strings.TrimPrefix(s.url, "h2c://")},
		"tls: {certificate: "+f.cert+", key: "+f.key+", ca: "+f.ca+", peers: [\"spiffe://example.org/*\"]}", noRetries))
	cc := dialGRPC(t, r.addr)
	stream := converse(t, cc, "/shop.Payment/Watch").say("a").hear("shop 1")
	f.write(t, trusted.issue(t, named("shop 2")))
	eventually(t, "calls are from the new one", func() bool {
		c := call(t, cc, "/shop.Payment/Get", "who")
		if c.code != codes.OK {
			t.Fatalf("%+v", c)
		}
		return c.reply == "shop 2"
	})
	stream.say("b").hear("shop 1")
	stream.CloseSend()
}

// As spiffe-helper writes them: the SVID with its chain, a key in PKCS #8, and a bundle with several authorities.
func TestFilesOfSPIFFEAreTakenAsTheyAre(t *testing.T) {
	dir := t.TempDir()
	svid := trusted.issue(t, withID("spiffe://example.org/shop"), named("an SVID"))
	key, err := x509.MarshalPKCS8PrivateKey(svid.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert := pemOf(t, filepath.Join(dir, "svid.pem"), svid.Certificate[0], trusted.cert.Raw)
	writeFile(
		t,
		filepath.Join(dir, "svid_key.pem"),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
	)
	bundle := pemOf(t, filepath.Join(dir, "svid_bundle.pem"), trusted.cert.Raw, stranger.cert.Raw)
	up, _ := asked(t, withID("spiffe://example.org/pay"))
	files := "certificate: " + cert + ", key: " + filepath.Join(dir, "svid_key.pem")
	r := start(
		t,
		single([]string{up}, "tls: {"+files+", ca: "+bundle+", peers: [\"spiffe://example.org/pay\"]}", noRetries),
	)
	if a := r.get("/"); a.status != 200 || a.content != " from an SVID" {
		t.Errorf("%+v", a)
	}
	gate := protect(t, guardOf(up, "tls: {"+files+", clientCA: "+bundle+"}", "caller: mtls",
		"upstreamTLS: {"+files+", ca: "+bundle+", peers: [\"spiffe://example.org/pay\"]}"))
	nc, err := gate.secure(func(c *tls.Config) {
		c.Certificates, c.InsecureSkipVerify = []tls.Certificate{svid}, true // it has no host name
	})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := askTLS(nc, "/"); err != nil || a.status != 200 || a.content != " from an SVID" {
		t.Errorf("%v %+v", err, a)
	}
}

func TestProgramsReachTheProxyOverTLSAndAreNamed(t *testing.T) {
	f := newFiles(t, trusted.issue(t), trusted)
	var said lockedBuffer
	r := start(t, single([]string{mirror(t).url}), logTo(&said), func(c *proxy.Config) {
		c.ListenTLS.Certificate, c.ListenTLS.Key, c.ListenTLS.ClientCA = f.cert, f.key, f.ca
		c.ListenTLS.MinVersion = "TLSv1.3"
	})
	nc, err := r.secure(func(c *tls.Config) { c.Certificates = []tls.Certificate{client509(t, trusted)} })
	if err != nil {
		t.Fatal(err)
	}
	if a, err := askTLS(nc, "/x"); err != nil || a.status != 200 {
		t.Errorf("%v %+v", err, a)
	}
	eventually(
		t,
		"the log names the caller",
		func() bool { return strings.Contains(said.String(), "caller=spiffe://example.org/shop") },
	)
	for name, change := range map[string]func(*tls.Config){
		"without a certificate": func(*tls.Config) {},
		"a stranger":            func(c *tls.Config) { c.Certificates = []tls.Certificate{client509(t, stranger)} },
		"an old version": func(c *tls.Config) {
			c.Certificates, c.MaxVersion = []tls.Certificate{client509(t, trusted)}, tls.VersionTLS12
		},
	} {
		nc, err := r.secure(change)
		if err == nil { // TLS 1.3 tells a client only when it reads
			_, err = askTLS(nc, "/")
		}
		if err == nil {
			t.Errorf("%s: served", name)
		}
	}
}

// trustingConfig is that of a client that knows the trusted authority.
func trustingConfig() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(trusted.cert)
	return &tls.Config{RootCAs: pool}
}
