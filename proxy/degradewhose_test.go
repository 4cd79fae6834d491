package proxy_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/abate-go/abate/proxy"
)

// echoes is an upstream whose answers say what the fields of their requests said, as a server does that turns names
// into variables, and that can be switched off. cache is more fields of its answers.
func echoes(t *testing.T, more func() string) (url string, down *atomic.Bool) {
	down = new(atomic.Bool)
	return upstream(t, func(c net.Conn, req string) {
		if down.Load() {
			io.WriteString(c, status(503))
			return
		}
		head, _, _ := strings.Cut(req, "\r\n\r\n")
		var said []string
		for _, l := range strings.Split(head, "\r\n")[1:] {
			name, value, _ := strings.Cut(l, ": ")
			if begin := strings.ToLower(name); begin != "host" && begin != "via" && !strings.HasPrefix(begin, "x-envoy-") &&
				!strings.HasPrefix(begin, "abate-") {
				said = append(said, value)
			}
		}
		text := strings.Join(said, ",")
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s", more(), len(text), text)
	}).url, down
}

func public() string { return "Cache-Control: public\r\n" }

// TestStaleIfErrorKnowsByWhichFieldsProxiesAndServicesTellUsersApart: whatever the field is called by which the service
// knew A.
func TestStaleIfErrorKnowsByWhichFieldsProxiesAndServicesTellUsersApart(t *testing.T) {
	url, down := echoes(t, public)
	r := start(
		t, single([]string{url}, noRetries, noBreaker, noEjection, "fallback: {staleIfError: 1m, identity: [X-Shop]}"))
	for i, name := range []string{
		"X-Tenant", "X_Tenant", "X_User_Id", "X-Shop", "X_Shop", "x.shop", "Remote-User", "REMOTE_USER", "X-Remote-User",
		"X-Remote-Group", "X-Remote-Extra-Uid",
		"X-Forwarded-User", "X-Forwarded-Email", "X-Forwarded-Preferred-Username", "X-Auth-Request-User",
		"X-Forwarded-Client-Cert",
		"X-Client-Cert", "X-Client-Cert-Chain", "X-Client-Cert-Dn", "X-Client-Verify", "X-SSL-Client-S-DN",
		"X-SSL-Client-Verify", "X-Ssl-Cert", "SSL-Client-Cert", "Ssl-Client-Serial",
		"X-Amzn-Oidc-Identity", "X-Amzn-Oidc-Data", "X-Amzn-Mtls-Clientcert-Subject", "X-Ms-Client-Principal",
		"X-Ms-Client-Principal-Id", "X-Ms-Client-Principal-Name",
		"X-Goog-Authenticated-User-Email", "Cf-Access-Authenticated-User-Email", "Tailscale-User-Login",
		"Tailscale-User-Name", "X-Webauth-User", "X-Authentik-Uid",
		"X-Session-Id", "X-Sid", "X-Jwt", "X-Auth", "X-Consumer-Custom-Id", "X-Credential-Identifier", "X-Member-Id",
		"X-Company-Id", "X-Merchant-Id", "Stripe-Context", "Oidc-Claim-Sub",
	} {
		path := fmt.Sprint("/", i)
		down.Store(false)
		if a := r.ask("GET", path, name+": A"); a.content != "A" {
			t.Fatalf("%s: got %+v", name, a)
		}
		down.Store(true)
		if a := r.ask("GET", path, name+": B"); a.status != 503 {
			t.Errorf("%s: B got %d %q", name, a.status, a.content)
		}
		if a := r.ask("GET", path); a.status != 503 {
			t.Errorf("%s: nobody got %d %q", name, a.status, a.content)
		}
	}
}

// TestStaleIfErrorIsNotPoisoned: an answer to a request that steers what the service says is given to none that does
// not.
func TestStaleIfErrorIsNotPoisoned(t *testing.T) {
	url, down := echoes(t, public)
	r := start(t, single([]string{url}, noRetries, noBreaker, noEjection, "fallback: {staleIfError: 1m}"))
	for i, name := range []string{
		"X-Forwarded-Host", "X_Forwarded_Host", "X-Forwarded-Proto", "X-Forwarded-Scheme", "X-Forwarded-Port",
		"X-Forwarded-Prefix", "X-Forwarded-Server", "Forwarded", "X-Host",
		"X-Original-Url", "X-Original-Host", "X-Rewrite-Url", "X-Original-Uri", "X-Http-Method-Override",
		"X-Http-Host-Override", "X-Method-Override", "X-Scheme", "X-Url-Scheme",
	} {
		path := fmt.Sprint("/", i)
		down.Store(false)
		r.ask("GET", path, name+": evil.test")
		down.Store(true)
		if a := r.ask("GET", path); a.status != 503 {
			t.Errorf("%s: others got %d %q", name, a.status, a.content)
		}
	}
}

// TestWhatTheProxyItselfSaysIsNoVariant: an answer that depends on a field which the proxy writes is kept for nobody.
func TestWhatTheProxyItselfSaysIsNoVariant(t *testing.T) {
	for _, name := range []string{"X-Forwarded-For", "Via", "X-Envoy-Attempt-Count", "accept, X-FORWARDED-FOR"} {
		url, down := echoes(t, func() string { return public() + "Vary: " + name + "\r\n" })
		r := start(t, single([]string{url}, noRetries, noBreaker, noEjection, "fallback: {staleIfError: 1m}"), asGateway)
		r.ask("GET", "/")
		down.Store(true)
		if a := r.ask("GET", "/"); a.status != 503 {
			t.Errorf("Vary: %s: got %d %q", name, a.status, a.content)
		}
	}
}

// TestAReloadThatSharesLessGivesNothingThatWasKeptBefore: who takes back a word that was wrong does it now, and not in
// a while.
func TestAReloadThatSharesLessGivesNothingThatWasKeptBefore(t *testing.T) {
	for _, tt := range []struct{ before, after, who, then string }{
		{", shared: true", "", "X-A: b", "X-A: b"},
		{", shared: true", ", shared: true, identity: [X-Shop]", "X-Shop: A", "X-A: b"},
		{", shared: true, identity: [Cookie]", ", shared: true", "X-A: b", "X-A: b"},
	} {
		url, down := echoes(t, func() string { return "" })
		policy := func(keys string) string {
			return single([]string{url}, noRetries, noBreaker, noEjection, "fallback: {staleIfError: 1m"+keys+"}")
		}
		r := start(t, policy(tt.before))
		if a := r.ask("GET", "/", tt.who); a.status != 200 {
			t.Fatalf("got %+v", a)
		}
		down.Store(true)
		if a := r.ask("GET", "/", tt.who); a.header.Get("Abate-Fallback") != "stale" {
			t.Fatalf("before the reload: %+v", a)
		}
		r.write(policy(tt.after))
		if err := r.proxy.Reload(); err != nil {
			t.Fatal(err)
		}
		if a := r.ask("GET", "/", tt.then); a.status != 503 {
			t.Errorf("%q, then %q: got %d %q", tt.before, tt.after, a.status, a.content)
		}
	}
}

// TestAnAnswerThatMayNoLongerBeKeptEndsTheOneThatIs: the service has said meanwhile that it is nobody else's.
func TestAnAnswerThatMayNoLongerBeKeptEndsTheOneThatIs(t *testing.T) {
	for _, now := range []string{
		"Cache-Control: private", "Cache-Control: no-store", "Cache-Control: no-cache", "Set-Cookie: me=1", "Vary: *",
	} {
		more := public()
		url, down := echoes(t, func() string { return more })
		r := start(t, single([]string{url}, noRetries, noBreaker, noEjection, "fallback: {staleIfError: 1m}"))
		r.ask("GET", "/", "X-A: first")
		more = now + "\r\n"
		r.ask("GET", "/", "X-A: second")
		down.Store(true)
		if a := r.ask("GET", "/", "X-A: third"); a.status != 503 {
			t.Errorf("after %s: got %d %q", now, a.status, a.content)
		}
	}
}

// TestAChangeEndsWhatIsKeptForAll: whoever changed it, and however it was written down whose request that was.
func TestAChangeEndsWhatIsKeptForAll(t *testing.T) {
	for _, change := range []string{"DELETE", "PUT", "POST", "PATCH"} {
		url, down := echoes(t, public)
		r := start(t, single([]string{url}, noRetries, noBreaker, noEjection, "fallback: {staleIfError: 1m}"),
			func(c *proxy.Config) {
				c.StaleMemory = 1 << 20
			})
		r.ask("GET", "/a", "X-Tenant: A")
		r.ask("GET", "/a")
		r.ask("GET", "/b")
		r.ask(change, "/a", "X-User-Id: operator", "Authorization: Bearer x", "Content-Length: 0")
		down.Store(true)
		for _, who := range []string{"X-Tenant: A", "X-A: b"} {
			if a := r.ask("GET", "/a", who); a.status != 503 {
				t.Errorf("after %s, %s got %d %q", change, who, a.status, a.content)
			}
		}
		if a := r.ask("GET", "/b"); a.status != 200 {
			t.Errorf("after %s of another resource: %+v", change, a)
		}
	}
}
