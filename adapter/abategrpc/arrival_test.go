package abategrpc_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/shed"
)

// raw sends a call with any header fields, as no client of gRPC would, and returns the status in the answer.
func raw(t *testing.T, address string, fields http.Header) (code string) {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+address+"/shop.Payment/Charge",
		bytes.NewReader(make([]byte, 5)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = fields
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err = io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	if code = resp.Header.Get("Grpc-Status"); code == "" {
		code = resp.Trailer.Get("Grpc-Status")
	}
	return code
}

func TestMalformedTimeLimitsGetTheRightCodes(t *testing.T) {
	conn, _, _ := protect(t, trusting(inbound.Protection{}), func(ctx context.Context, _ *text) (*text, error) {
		if _, ok := ctx.Deadline(); ok && ctx.Err() == nil {
			return new(text), status.Error(codes.OutOfRange, "there is a time limit")
		}
		return new(text), ctx.Err()
	})
	for name, c := range map[string]struct {
		fields http.Header
		want   string
	}{
		"none":                  {http.Header{}, "0"},
		"a good one":            {http.Header{"Grpc-Timeout": {"20S"}}, "11"},
		"without a unit":        {http.Header{"Grpc-Timeout": {"20"}}, "13"},
		"negative":              {http.Header{"Grpc-Timeout": {"-1S"}}, "13"},
		"nine digits":           {http.Header{"Grpc-Timeout": {"999999999H"}}, "13"},
		"eight digits of hours": {http.Header{"Grpc-Timeout": {"99999999H"}}, "11"},
		"two, the first is bad": {http.Header{"Grpc-Timeout": {"x", "20S"}}, "13"},
		"Envoy's, negative":     {http.Header{"X-Envoy-Expected-Rq-Timeout-Ms": {"-1"}}, "0"},
		"Envoy's, overflowing":  {http.Header{"X-Envoy-Expected-Rq-Timeout-Ms": {"18446744073709551616"}}, "0"},
		"Envoy's, a day":        {http.Header{"X-Envoy-Expected-Rq-Timeout-Ms": {"999999999999999999"}}, "11"},
		"Envoy's, over":         {http.Header{"X-Envoy-Expected-Rq-Timeout-Ms": {"0"}}, "4"},
		"the least of both":     {http.Header{"Grpc-Timeout": {"20S"}, "X-Envoy-Expected-Rq-Timeout-Ms": {"x", "0"}}, "4"},
		"attempt numbers": {
			http.Header{"Grpc-Previous-Rpc-Attempts": {"-1", "x", "99999999999999999999"},
				"Abate-Retry-Allowance": {"-3", "9e9", `1;owner="`}}, "0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := raw(t, conn.Target(), c.fields); got != c.want {
				t.Errorf("grpc-status %s, want %s", got, c.want)
			}
		})
	}
}

// bucketOf is the bucket that a call falls into. Its one token goes to the first of its kind.
func sameBucket(t *testing.T, p inbound.Protection, one, other []string) bool {
	t.Helper()
	p.RateLimit = perMinute(1)
	p.RateLimit.Key = "caller"
	conn, _, _ := protect(t, p, echo)
	if a := charge(t.Context(), conn, "x", one...); a.err != nil {
		t.Fatal(a.err)
	}
	a := charge(t.Context(), conn, "x", other...)
	if a.err != nil && a.code() != codes.ResourceExhausted {
		t.Fatal(a.err)
	}
	return a.err != nil
}

func TestWhoACallIsFrom(t *testing.T) {
	tenant := inbound.Protection{Caller: "header:X-Tenant"}
	for name, c := range map[string]struct {
		protection inbound.Protection
		one, other []string
		same       bool
	}{
		"one address": {inbound.Protection{}, nil, nil, true},
		"two clients behind a peer": {trusting(inbound.Protection{}), []string{"x-forwarded-for", "203.0.113.1"},
			[]string{"x-forwarded-for", "203.0.113.2"}, false},
		"what a stranger says of clients": {
			inbound.Protection{}, []string{"x-forwarded-for", "203.0.113.1"}, []string{"x-forwarded-for", "203.0.113.2"}, true,
		},
		"what the client invented": {trusting(inbound.Protection{}), []string{"x-forwarded-for", "1.1.1.1, 203.0.113.1"},
			[]string{"x-forwarded-for", "2.2.2.2,203.0.113.1"}, true},
		"behind two trusted hops": {trusting(inbound.Protection{}), []string{
			"x-forwarded-for", "203.0.113.1, 127.0.0.1",
		}, []string{"x-forwarded-for", "203.0.113.2, 127.0.0.1"}, false},
		"one customer's network": {trusting(inbound.Protection{}), []string{"x-forwarded-for", "2001:db8::1"},
			[]string{"x-forwarded-for", "[2001:db8::2]:80"}, true},
		"what is no address": {trusting(inbound.Protection{}), []string{"x-forwarded-for", "unknown"}, nil, true},
		"two tenants":        {trusting(tenant), []string{"x-tenant", "a"}, []string{"x-tenant", "b"}, false},
		"one tenant": {
			trusting(tenant), []string{"x-tenant", "a"}, []string{"x-tenant", "forged", "x-tenant", "a"}, true,
		},
		"tenants that strangers invent": {tenant, []string{"x-tenant", "a"}, []string{"x-tenant", "b"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sameBucket(t, c.protection, c.one, c.other); got != c.same {
				t.Errorf("one bucket: %v", got)
			}
		})
	}
}

func TestHooksDecideWhoPaysAndHowMuch(t *testing.T) {
	p := inbound.Protection{RateLimit: perMinute(10), Authentication: inbound.Authentication{BearerTokens: "tokens"}}
	p.RateLimit.Key = "caller"
	one := func(md metadata.MD, name string) string {
		if v := md[name]; len(v) > 0 {
			return v[0]
		}
		return ""
	}
	server := &abategrpc.Server{
		Select: func(method string) *inbound.Gate { return nil },
		Caller: func(ctx context.Context, method string) string {
			md, _ := metadata.FromIncomingContext(ctx)
			return one(md, "user")
		},
		Cost: func(context.Context, string) float64 { return 10 },
	}
	g := newGate(t, p)
	conn := (&shop{charge: echo}).serve(t, server.Options()...)
	if a := charge(t.Context(), conn, "x"); a.err != nil {
		t.Errorf("a method without a gate: %v", a.err)
	}
	server = &abategrpc.Server{Gate: g, Caller: server.Caller, Cost: server.Cost}
	conn = (&shop{charge: echo}).serve(t, server.Options()...)
	for _, c := range []struct {
		user string
		want codes.Code
	}{{"", codes.Unauthenticated}, {"ann", codes.OK}, {"ann", codes.ResourceExhausted}, {"bob", codes.OK}} {
		if a := charge(t.Context(), conn, "x", "user", c.user); a.code() != c.want {
			t.Errorf("%q: %v", c.user, a.err)
		}
	}
	conn = (&shop{charge: echo}).serve(t, abategrpc.ServerOptions(g)...)
	if a := charge(t.Context(), conn, "x", "authorization", "Bearer x"); a.code() != codes.Unauthenticated {
		t.Errorf("nobody tells who it is: %v", a.err)
	}
}

// certificate makes one that signs itself.
func certificate(t *testing.T, c x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.NotAfter = big.NewInt(1), time.Now().Add(time.Hour)
	c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageDigitalSignature|x509.KeyUsageCertSign
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, &c, &c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func TestCallersByCertificate(t *testing.T) {
	own := certificate(t, x509.Certificate{DNSNames: []string{"payments"}})
	spiffe, _ := url.Parse("spiffe://shop/cart")
	callers := []tls.Certificate{
		certificate(t, x509.Certificate{URIs: []*url.URL{spiffe}}),
		certificate(t, x509.Certificate{DNSNames: []string{"cart.shop"}}),
		certificate(t, x509.Certificate{Subject: pkix.Name{CommonName: "cart"}}),
	}
	pool := x509.NewCertPool()
	for _, c := range callers {
		pool.AddCert(c.Leaf)
	}
	p := inbound.Protection{Caller: "mtls", RateLimit: perMinute(1)}
	p.RateLimit.Key = "caller"
	config := &tls.Config{
		Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
	}
	s := &shop{charge: echo}
	plain := s.serve(t, append(abategrpc.ServerOptions(newGate(t, p)), grpc.Creds(credentials.NewTLS(config)))...)
	roots := x509.NewCertPool()
	roots.AddCert(own.Leaf)
	for i, c := range callers {
		creds := credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: "payments", Certificates: []tls.Certificate{c}})
		conn := dial(t, plain.Target(), grpc.WithTransportCredentials(creds))
		for _, want := range []codes.Code{codes.OK, codes.ResourceExhausted} {
			if a := charge(t.Context(), conn, "x"); a.code() != want {
				t.Errorf("caller %d: %v, want %v", i, a.err, want)
			}
		}
	}
}

// FuzzMetadata has a server read whatever metadata there can be: it does not panic, and refuses only for the deadline
// or the key.
func FuzzMetadata(f *testing.F) {
	f.Add("abate-retry-allowance", `2;owner="edge"`, "x-forwarded-for", "1.1.1.1, 127.0.0.1", true)
	f.Add("x-envoy-expected-rq-timeout-ms", "-1", "grpc-previous-rpc-attempts", "999999", true)
	f.Add("idempotency-key", `"a\"b"`, "x-idempotency-key", "b", false)
	f.Add("abate-priority", "SHEDDABLE", "x-tenant", "\xff", true)
	f.Add("x-envoy-attempt-count", "0", "x-envoy-expected-rq-timeout-ms", "0", false)
	p := inbound.Protection{Caller: "header:x-tenant", Shed: shed.Config{Concurrency: shed.Gradient, MaxCallerShare: 0.9},
		Idempotency: keyed().Idempotency}
	p.RateLimit = perMinute(1_000_000_000)
	p.RateLimit.Key = "caller"
	strict := p
	p.TrustedPeers = []string{"127.0.0.1"}
	trusts := abategrpc.UnaryServerInterceptor(newGate(f, p))
	doubts := abategrpc.UnaryServerInterceptor(newGate(f, strict))
	f.Fuzz(func(t *testing.T, n1, v1, n2, v2 string, trusted bool) {
		ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}})
		ctx = metadata.NewIncomingContext(ctx, metadata.Pairs(n1, v1, n2, v2))
		ctx = grpc.NewContextWithServerTransportStream(ctx, costless{})
		intercept := doubts
		if trusted {
			intercept = trusts
		}
		resp, err := intercept(ctx, new(text), charging, func(ctx context.Context, _ any) (any, error) {
			if a, limited := core.CallTreeOf(ctx).Allowance(); limited &&
				(!trusted || a.Left < 0 || a.Left > core.MaxAllowance) {
				t.Errorf("allowance %+v", a)
			}
			return new(text), nil
		})
		switch c := status.Code(err); c {
		case codes.OK:
			if resp == nil {
				t.Error("no answer")
			}
		case codes.DeadlineExceeded, codes.InvalidArgument:
		default:
			t.Errorf("%q %q, %q %q: %v", n1, v1, n2, v2, err)
		}
	})
}
