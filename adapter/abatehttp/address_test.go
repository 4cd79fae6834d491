package abatehttp_test

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/inbound"
)

func TestAnIPv6CallerIsItsNetwork(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.7": "192.0.2.7", "::ffff:192.0.2.7": "192.0.2.7", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"fe80::1%eth0": "fe80::/64", "::1": "::/64",
	} {
		if got := string(hops.AppendCaller(nil, netip.MustParseAddr(text))); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}

func TestACallerCannotDodgeItsLimitInsideItsNetwork(t *testing.T) {
	p := inbound.Protection{RateLimit: limitOf(1)}
	p.RateLimit.Key = "ip"
	h := abatehttp.NewHandler(newGate(t, p), http.NotFoundHandler())
	for i, want := range []int{404, 429} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = netip.AddrPortFrom(netip.MustParseAddr("2001:db8::1"), 4711).String()
		if i > 0 {
			r.RemoteAddr = "[2001:db8::ffff]:1"
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("request %d: %d", i, w.Code)
		}
	}
}

func TestADeadlineFarAwayIsNone(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), math.MaxInt64)
	defer cancel()
	w := httptest.NewRecorder()
	abatehttp.NewHandler(newGate(t, inbound.Protection{}), http.NotFoundHandler()).ServeHTTP(
		w, httptest.NewRequest("GET", "/", nil).WithContext(ctx))
	if w.Code != 404 {
		t.Errorf("%d", w.Code)
	}
}

func limitOf(n int) inbound.ArrivalLimit {
	var l inbound.ArrivalLimit
	l.Limit.Tokens, l.Limit.Per, l.Burst = float64(n), time.Hour, n
	return l
}

func TestACertificateHasOneName(t *testing.T) {
	uri := &url.URL{Scheme: "spiffe", Host: "example.org", Path: "/a"}
	for _, c := range []struct {
		certificate x509.Certificate
		want        string
	}{
		{x509.Certificate{URIs: []*url.URL{uri, {Scheme: "x"}}, DNSNames: []string{"d"}, Subject: pkix.Name{CommonName: "c"}},
			"spiffe://example.org/a"},
		{x509.Certificate{DNSNames: []string{"d", "e"}, Subject: pkix.Name{CommonName: "c"}}, "d"},
		{x509.Certificate{Subject: pkix.Name{CommonName: "c"}}, "c"},
		{x509.Certificate{}, ""},
	} {
		if got := hops.CertificateName(&c.certificate); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
