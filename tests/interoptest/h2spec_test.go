package interoptest_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	"github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"

	"github.com/abate-go/abate/proxy"
)

// deviation is a case of h2spec that the proxy does not pass, and why RFC 9113 has it so: h2spec tests its predecessor,
// RFC 7540.
type deviation struct {
	why       string
	plainOnly bool // over TLS it passes
}

var deviations = map[string]deviation{
	"http2/3.5/2": {"without TLS a listener speaks HTTP/1.1 too: what is not the preface of HTTP/2 is a request of " +
		"HTTP/1.1, which gets 400, and then the connection is closed; it has never been one of HTTP/2 (RFC 9113 §3.3, §3.4)",
		true},
	"http2/5.3.1/1": {
		"RFC 9113 §5.3.2 has no dependencies between streams any more: a HEADERS frame may name any stream, and nobody " +
			"looks at it", false,
	},
	"http2/5.3.1/2": {
		"RFC 9113 §5.3.2 and §6.3 have no dependencies between streams any more: a PRIORITY frame may name any stream, and " +
			"nobody looks at it", false,
	},
}

// eachCase calls f for every case of h2spec, strict ones too, by names such as "http2/6.5.2/1".
func eachCase(f func(id string, c *spec.TestCase)) {
	var each func(*spec.TestGroup)
	each = func(group *spec.TestGroup) {
		for i, c := range append(group.Tests, group.StrictTests...) {
			f(fmt.Sprintf("%s/%d", group.ID(), i+1), c)
		}
		for _, g := range group.Groups {
			each(g)
		}
	}
	for _, group := range []*spec.TestGroup{generic.Spec(), http2.Spec(), hpack.Spec()} {
		each(group)
	}
}

// pair writes a certificate that signs itself and its key into files.
func pair(t testing.TB) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	signed, err := x509.CreateCertificate(rand.Reader, form, form, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{
		certificate: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: der},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key
}

// listeners of the proxy that h2spec is pointed at. start returns the address.
var listeners = []struct {
	name  string
	tls   bool
	start func(t *testing.T, upstream string) string
}{
	{"egress, h2c", false, func(t *testing.T, upstream string) string { return manners[1].egress(t, upstream) }},
	{"gateway, h2c", false, func(t *testing.T, upstream string) string {
		return run(t, fmt.Sprintf("services: {s: {upstreams: ['%s'], routes: [{path: /}]}}\n", upstream),
			func(c *proxy.Config) {
				c.Gateway = true
			})
	}},
	{"ingress, h2c", false, func(t *testing.T, upstream string) string { return ingress(t, upstream) }},
	{"ingress, TLS", true, func(t *testing.T, upstream string) string {
		certificate, key := pair(t)
		return ingress(t, upstream, fmt.Sprintf("tls: {certificate: '%s', key: '%s'}", certificate, key))
	}},
}

func TestH2specPassesButForWhatRFC9113Changed(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "hello")
	}))
	t.Cleanup(service.Close)
	for i, l := range listeners {
		if testing.Short() && i > 0 {
			break // the others take seconds each
		}
		host, port, err := net.SplitHostPort(l.start(t, service.URL))
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		all, known := 0, 0
		eachCase(func(id string, test *spec.TestCase) {
			all++
			c := &config.Config{
				Host: host, Port: n, Path: "/", Timeout: patience / 2, MaxHeaderLen: 4000, Strict: true, TLS: l.tls, Insecure: true,
			}
			d, deviates := deviations[id]
			if deviates = deviates && !(d.plainOnly && l.tls); deviates {
				known++
				c.Timeout = time.Second // it is waited for in vain
			}
			t.Run(l.name+"/"+id, func(t *testing.T) {
				t.Parallel()
				conn, err := spec.Dial(c)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				switch err := test.Run(c, conn); {
				case deviates && err == nil:
					t.Errorf("%s: it passes: it is no deviation any more", test.Desc)
				case !deviates && err != nil:
					t.Errorf("%s: %s: %v", test.Desc, test.Requirement, err)
				}
			})
		})
		t.Logf("%s: %d cases, %d of them deviations", l.name, all, known)
		want := len(deviations)
		for _, d := range deviations {
			if d.plainOnly && l.tls {
				want--
			}
		}
		if known != want || all < 140 {
			t.Errorf("%s: h2spec has %d cases, among them %d of the %d deviations", l.name, all, known, want)
		}
	}
}
