package abatehttp_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/shed"
)

// from is a request of a peer, with some headers.
func from(peer string, headers ...string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = peer
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// same reports whether two requests come out of one bucket.
func same(t *testing.T, p inbound.Protection, a, b *http.Request) bool {
	t.Helper()
	p.RateLimit.Config = perMinute(1)
	h := abatehttp.NewHandler(newGate(t, p), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	first, second := httptest.NewRecorder(), httptest.NewRecorder()
	h.ServeHTTP(first, a)
	h.ServeHTTP(second, b)
	if first.Code != 200 {
		t.Fatalf("status %d", first.Code)
	}
	return second.Code == 429
}

func TestWhoARequestIsFrom(t *testing.T) {
	const xff = "X-Forwarded-For"
	for name, c := range map[string]struct {
		request *http.Request
		want    string
	}{
		"the peer":                                  {from("192.0.2.1:1"), "192.0.2.1"},
		"the peer, without a port":                  {from("192.0.2.1"), "192.0.2.1"},
		"the peer over IPv6":                        {from("[2001:db8::1]:1"), "2001:db8::1"},
		"an untrusted peer that says otherwise":     {from("192.0.2.1:1", xff, "192.0.2.9"), "192.0.2.1"},
		"a trusted peer that says nothing":          {from("10.0.0.1:1"), "10.0.0.1"},
		"behind a trusted peer":                     {from("10.0.0.1:1", xff, "192.0.2.1"), "192.0.2.1"},
		"behind a trusted peer, with a port":        {from("10.0.0.1:1", xff, "192.0.2.1:99"), "192.0.2.1"},
		"behind a trusted peer over IPv6":           {from("10.0.0.1:1", xff, "2001:db8::1"), "2001:db8::1"},
		"behind a trusted peer over IPv6 with port": {from("10.0.0.1:1", xff, "[2001:db8::1]:99"), "2001:db8::1"},
		"behind a trusted peer over IPv6, brackets": {from("10.0.0.1:1", xff, "[2001:db8::1]"), "2001:db8::1"},
		"an IPv4 address in IPv6":                   {from("10.0.0.1:1", xff, "::ffff:192.0.2.1"), "192.0.2.1"},
		"a trusted peer, an IPv4 address in IPv6":   {from("[::ffff:10.0.0.1]:1", xff, "192.0.2.1"), "192.0.2.1"},
		"through two trusted hops":                  {from("10.0.0.1:1", xff, "192.0.2.1, 10.0.0.2"), "192.0.2.1"},
		"what the client invented is not looked at": {
			from("10.0.0.1:1", xff, "127.0.0.1, 192.0.2.9, 192.0.2.1,10.0.0.2"), "192.0.2.1",
		},
		"over several lines": {
			from("10.0.0.1:1", xff, "192.0.2.9, 192.0.2.1", xff, "10.0.0.2"), "192.0.2.1",
		},
		"empty elements say nothing":                 {from("10.0.0.1:1", xff, "192.0.2.9, 192.0.2.1, , ,"), "192.0.2.1"},
		"all hops are trusted":                       {from("10.0.0.1:1", xff, "10.0.0.3, 10.0.0.2"), "10.0.0.3"},
		"nonsense ends the search":                   {from("10.0.0.1:1", xff, "192.0.2.9, unknown, 10.0.0.2"), "10.0.0.2"},
		"nonsense at once":                           {from("10.0.0.1:1", xff, "192.0.2.9, unknown"), "10.0.0.1"},
		"a long nonsense":                            {from("10.0.0.1:1", xff, strings.Repeat("1", 10<<20)), "10.0.0.1"},
		"a socket without addresses":                 {from("@", xff, "192.0.2.9"), "@"},
		"a socket without addresses, and a name yet": {from("@", "X-Tenant", "a"), "@"},
	} {
		t.Run(name, func(t *testing.T) {
			p := inbound.Protection{TrustedPeers: []string{"10.0.0.0/8"}, RateLimit: inbound.ArrivalLimit{Key: "ip"}}
			if !same(t, p, c.request, from(c.want)) {
				t.Errorf("it is not from %s", c.want)
			}
			if same(t, p, from(c.want), from("198.51.100.7:1")) {
				t.Error("all are one")
			}
		})
	}
}

func TestCallersByHeaderAndCertificate(t *testing.T) {
	spiffe, _ := url.Parse("spiffe://x/web")
	certified := func(peer string, c x509.Certificate, verified bool) *http.Request {
		r := from(peer)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{&c}}
		if verified {
			r.TLS.VerifiedChains = [][]*x509.Certificate{{&c}}
		}
		return r
	}
	web := x509.Certificate{Subject: pkix.Name{CommonName: "web"}}
	for name, c := range map[string]struct {
		word string
		a, b *http.Request
		same bool
	}{
		"one tenant": {
			"header:X-Tenant", from("10.0.0.1:1", "X-Tenant", "a"), from("10.0.0.2:1", "X-Tenant", "a"), true,
		},
		"two tenants": {
			"header:X-Tenant", from("10.0.0.1:1", "X-Tenant", "a"), from("10.0.0.1:1", "X-Tenant", "b"), false,
		},
		"the nearest hop wrote the last": {
			"header:X-Tenant", from("10.0.0.1:1", "X-Tenant", "x", "X-Tenant", "a"), from("10.0.0.1:1", "X-Tenant", "a"), true,
		},
		"a tenant that nobody trusts": {
			"header:X-Tenant", from("192.0.2.1:1", "X-Tenant", "a"), from("192.0.2.1:1", "X-Tenant", "b"), true,
		},
		"no tenant": {"header:X-Tenant", from("10.0.0.1:1"), from("10.0.0.1:2", "X-Tenant", ""), true},
		"a tenant of 10 MB": {"header:X-Tenant", from("10.0.0.1:1", "X-Tenant", strings.Repeat("a", 10<<20)),
			from("10.0.0.1:1", "X-Tenant", "a"), false},
		"one certificate": {
			"mtls", certified("192.0.2.1:1", web, true), certified("192.0.2.2:1", web, true), true,
		},
		"one that was not verified": {
			"mtls", certified("192.0.2.1:1", web, false), certified("192.0.2.2:1", web, true), false,
		},
		"a URI before the name": {
			"mtls", certified("192.0.2.1:1", web, true),
			certified("192.0.2.1:1", x509.Certificate{URIs: []*url.URL{spiffe}, Subject: web.Subject}, true), false,
		},
		"a DNS name before the name": {
			"mtls", certified("192.0.2.1:1", web, true),
			certified("192.0.2.1:1", x509.Certificate{DNSNames: []string{"shop"}, Subject: web.Subject}, true), false,
		},
		"no certificate": {"mtls", from("192.0.2.1:1"), from("192.0.2.1:2"), true},
	} {
		t.Run(name, func(t *testing.T) {
			p := inbound.Protection{
				TrustedPeers: []string{"10.0.0.0/8"}, RateLimit: inbound.ArrivalLimit{Key: "caller"}, Caller: c.word,
			}
			if got := same(t, p, c.a, c.b); got != c.same {
				t.Errorf("the same: %v", got)
			}
		})
	}
}

func TestTheHandlersOwnFunctionsComeFirst(t *testing.T) {
	p := inbound.Protection{RateLimit: inbound.ArrivalLimit{Config: perMinute(1), Key: "caller"}}
	h := &abatehttp.Handler{Gate: newGate(t, p), Next: http.NotFoundHandler(), Caller: func(r *http.Request) string {
		return r.Header.Get("X-User")
	}}
	status := func(user, key string) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, from("192.0.2.1:1", "X-User", user, "X-Key", key))
		return w.Code
	}
	if status("ada", "") != 404 || status("bob", "") != 404 || status("ada", "") != 429 {
		t.Error("Caller does not tell callers apart")
	}
	h.Key = func(r *http.Request) string { return r.Header.Get("X-Key") }
	if status("ada", "1") != 404 || status("ada", "2") != 404 || status("eve", "2") != 429 {
		t.Error("Key does not choose the bucket")
	}
}

func TestOnlyTrustedPeersSayPriorityAndAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		request  *http.Request
		priority shed.Priority
		attempt  int
	}{
		"trusted": {
			from("10.0.0.1:1", "Abate-Priority", "CRITICAL_PLUS", "X-Envoy-Attempt-Count", "3"), shed.CriticalPlus, 3,
		},
		"trusted, nothing": {from("10.0.0.1:1"), shed.SheddablePlus, 1},
		"trusted, nonsense": {
			from("10.0.0.1:1", "Abate-Priority", "URGENT", "X-Envoy-Attempt-Count", "-1"), shed.SheddablePlus, 1,
		},
		"trusted, over gRPC": {from("10.0.0.1:1", "Grpc-Previous-Rpc-Attempts", "1"), shed.SheddablePlus, 2},
		"trusted, the highest": {
			from("10.0.0.1:1", "X-Envoy-Attempt-Count", "1", "X-Number-Of-Retry-Attempts", "3"), shed.SheddablePlus, 4,
		},
		"untrusted": {from("192.0.2.1:1", "Abate-Priority", "CRITICAL_PLUS", "X-Envoy-Attempt-Count", "3"),
			shed.SheddablePlus, 1},
	} {
		log := new(gateLog)
		p := inbound.Protection{
			TrustedPeers: []string{"10.0.0.0/8"}, Priority: inbound.PriorityRule{Default: shed.SheddablePlus}, Observer: log,
		}
		h := abatehttp.NewHandler(newGate(t, p), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if got, ok := core.PriorityOf(r.Context()); !ok || got != c.priority {
				t.Errorf("%s: the handler sees %v, %v", name, got, ok)
			}
		}))
		h.ServeHTTP(httptest.NewRecorder(), c.request)
		if got := log.all(inbound.RequestAdmitted); len(got) != 1 || got[0].Priority != c.priority ||
			got[0].Attempt != c.attempt {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestPriorityAndDeadlineTravelOn(t *testing.T) {
	log := new(gateLog)
	trusting := inbound.Protection{TrustedPeers: []string{"127.0.0.1"}, Observer: log}
	var left string
	back := abatehttp.NewHandler(newGate(t, trusting), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		left = r.Header.Get("X-Envoy-Expected-Rq-Timeout-Ms")
	}))
	behind := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { back.ServeHTTP(w, r) })
	client, _ := newClient(t, guard(t, abate.Policy{}))
	for name, c := range map[string]struct {
		trusted []string
		say     string
		want    shed.Priority
	}{
		"said":                 {[]string{"127.0.0.1"}, "SHEDDABLE", shed.Sheddable},
		"not said":             {[]string{"127.0.0.1"}, "", shed.Critical},
		"said, but nobody's":   {nil, "CRITICAL_PLUS", shed.Critical},
		"not believed, passed": {nil, "SHEDDABLE", shed.Critical},
	} {
		front, _, _ := protect(t, inbound.Protection{TrustedPeers: c.trusted}, func(_ http.ResponseWriter, r *http.Request) {
			req, _ := http.NewRequestWithContext(r.Context(), "GET", behind.URL, nil)
			req.Header = r.Header.Clone() // as a proxy does
			resp, err := client.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
		})
		headers := []string{"Grpc-Timeout", "1H"}
		if c.say != "" {
			headers = append(headers, "Abate-Priority", c.say)
		}
		get(t, front.URL, headers...)
		if all := log.all(inbound.RequestAdmitted); len(all) == 0 || all[len(all)-1].Priority != c.want {
			t.Errorf("%s: %+v", name, all)
		}
		if !strings.HasPrefix(left, "35") && left != "3600000" {
			t.Errorf("%s: %q ms are left of an hour", name, left)
		}
	}
}
