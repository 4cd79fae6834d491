package proxy_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abate-go/abate/proxy"
)

// Fields in which proxies tell services who a user is, and some that only look so.
const (
	toldOfUsers = "Remote-User REMOTE_USER X-Remote-User X-Remote-Extra-Scopes X-Auth-Request-User X-Auth-Request-Email " +
		"X-Authenticated-Userid X-WebAuth-User X-Client-Cert Client-Cert Client-Cert-Chain " +
		"X-SSL-Client-S-DN X-SSL-Client-Verify Ssl-Client-Cert X_SSL_Client_Cert x.ssl.cert X-Tls-Client-Cert " +
		"X-Amzn-Oidc-Identity X-Amzn-Oidc-Data X-Amzn-Mtls-Clientcert-Leaf X-Ms-Client-Principal " +
		"X-Ms-Client-Principal-Name X-Goog-Authenticated-User-Email X-Goog-Iap-Jwt-Assertion " +
		"Cf-Access-Authenticated-User-Email Tailscale-User-Login OIDC_CLAIM_sub SM_USER iv-user $WSRU X-Consumer-Username " +
		"Shib-Identity"
	alwaysTold = "X-Forwarded-User X-Forwarded-Client-Cert X-Forwarded-Email X_Forwarded_Groups x.forwarded.for"
	ownWords   = "X-Auth-Token X-Auth-User X-Auth-Email X-Api-Key X-User-Id Remote-Users-Guide Client-Certificate-Help " +
		"X-Consumer Tailscale X-Clients Accept Cf-Access-Client-Id Sm-Size"
)

// TestStrangersDoNotSayWhoAUserIs: what other proxies put into headers is believed by services, so that only trusted
// peers may send it where callers have to prove who they are, and elsewhere if the file says so.
func TestStrangersDoNotSayWhoAUserIs(t *testing.T) {
	up := mirror(t)
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("ops secret-of-the-operators\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	known := "authentication: {bearerTokens: " + tokens + "}"
	for _, tt := range []struct {
		name    string
		keys    []string
		more    string // another entry at the same address
		removed bool
	}{
		{"authentication", []string{known}, "", true},
		{"authentication, and the file says keep", []string{known, "identityHeaders: keep"}, "", false},
		{"authentication of a trusted peer", []string{known, trustLoop}, "", false},
		{"nothing", nil, "", false},
		{"the file says remove", []string{"identityHeaders: remove"}, "", true},
		{"authentication beside it", nil, "  other: {listen: '127.0.0.1:0', upstreams: ['" + up.url +
			"'], routes: [{path: /admin}], " + known + "}\n", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := protect(t, guardOf(up.url, append(tt.keys, noShed)...)+tt.more)
			a := r.dial().send(strangeRequest("Authorization: Bearer secret-of-the-operators")).answer()
			checkTold(t, a.content, toldOfUsers, !tt.removed)
			checkTold(t, a.content, alwaysTold, strings.Contains(tt.name, "trusted"))
			checkTold(t, a.content, ownWords, true)
		})
	}
}

// TestAGatewayBelievesWhomItIsTold: fields of proxies from anybody else do not reach the services.
func TestAGatewayBelievesWhomItIsTold(t *testing.T) {
	up := mirror(t)
	for _, tt := range []struct {
		name, peers string
		gateway     bool
		believed    bool
	}{
		{"nobody has said whom", "", true, true}, {"a stranger", "192.0.2.0/24", true, false},
		{"a peer", "127.0.0.0/8", true, true}, {"a sidecar", "192.0.2.0/24", false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, single([]string{up.url}), func(c *proxy.Config) {
				if c.Gateway = tt.gateway; tt.peers != "" {
					c.TrustedPeers = []netip.Prefix{netip.MustParsePrefix(tt.peers)}
				}
			})
			a := r.dial().send(strangeRequest("X-Forwarded-For: 192.0.2.7", "Abate-Priority: CRITICAL")).answer()
			checkTold(t, a.content, toldOfUsers+" "+alwaysTold+" Abate-Priority", tt.believed)
			checkTold(t, a.content, ownWords, true)
			if told := strings.Contains(a.content, "X-Forwarded-For: 192.0.2.7"); told != tt.believed {
				t.Errorf("the service was told of 192.0.2.7: %v", told)
			}
			if tt.gateway && !strings.Contains(a.content, "X-Forwarded-For: 127.0.0.1") {
				t.Error("the service was not told who asked")
			}
		})
	}
}

// strangeRequest has all of these fields.
func strangeRequest(more ...string) string {
	lines := append([]string{"GET / HTTP/1.1", "Host: s"}, more...)
	for _, name := range strings.Fields(toldOfUsers + " " + alwaysTold + " " + ownWords) {
		lines = append(lines, name+": mallory")
	}
	return strings.Join(lines, "\r\n") + "\r\n\r\n"
}

// checkTold checks whether a service was told these fields.
func checkTold(t *testing.T, request, names string, want bool) {
	t.Helper()
	for _, name := range strings.Fields(names) {
		if got := strings.Contains(request, "\n"+name+": "); got != want {
			t.Errorf("%s was told: %v, want %v", name, got, want)
		}
	}
}
