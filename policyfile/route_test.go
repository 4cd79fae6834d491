package policyfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abate-go/abate/policyfile"
)

func TestRouteNamesTheRouteAsTheFileWritesIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	text := `services:
  payments:
    upstreams: ["http://payments:80/api", "h2c://payments-2:80"]
    routes: [{host: API.example, path: /pay/}, {path: /refunds}]
  stock: {upstreams: ["https://stock:443"]}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := policyfile.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		host, path, service, label string
		upstream                   bool
	}{
		{"api.example", "/pay/7", "payments", "API.example/pay/", false},
		{"anything", "/refunds", "payments", "/refunds", false},
		{"payments", "/api/x", "payments", "payments/api", true},
		{"payments:80", "/elsewhere", "payments", "payments", true},
		{"payments-2", "/", "payments", "payments-2", true},
		{"STOCK", "/a?b", "stock", "stock", true},
	} {
		d, ok := set.Route(c.host, c.path)
		if !ok || d.Guard.Name() != c.service || d.Label != c.label || d.Upstream != c.upstream {
			t.Errorf("Route(%q, %q) = %+v, %v; want %s, label %q, upstream %v", c.host, c.path, d, ok, c.service, c.label,
				c.upstream)
		}
	}
	if d, ok := set.Route("elsewhere", "/x"); ok || d.Guard != nil {
		t.Errorf("a request that belongs to no service was given to %+v", d)
	}
	first, _ := set.Route("anything", "/refunds/1")
	second, _ := set.Route("other", "/refunds/2")
	if first != second {
		t.Error("requests of one route have two destinations")
	}
	if n := testing.AllocsPerRun(100, func() { set.Route("api.example", "/pay/7") }); n != 0 {
		t.Errorf("a look-up allocates %v times", n)
	}
}

func TestMethodsOfOneServerMayHavePoliciesOfTheirOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	text := `services:
  charge: {upstreams: ["h2c://payments:9000"], routes: [{path: /shop.Payment/Charge}]}
  payments: {upstreams: ["h2c://payments:9000"]}
  refund: {upstreams: ["h2c://payments:9000"], routes: [{path: /shop.Payment/Refund}], maxRetries: 0}
  stock: {upstreams: ["h2c://stock:9000"], routes: [{path: /shop.Stock/Get}]}
  stock-list: {upstreams: ["h2c://stock:9000"], routes: [{path: /shop.Stock/List}]}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := policyfile.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ host, path, service string }{
		{"payments:9000", "/shop.Payment/Charge", "charge"},
		{"payments:9000", "/shop.Payment/Refund", "refund"},
		{"payments:9000", "/shop.Payment/List", "payments"},
		{"stock:9000", "/shop.Stock/List", "stock-list"},
		{"stock:9000", "/shop.Stock/Take", ""}, // nobody's: the file does not say whose
	} {
		got := ""
		if d, ok := set.Route(c.host, c.path); ok {
			got = d.Guard.Name()
		}
		if got != c.service {
			t.Errorf("%s%s belongs to %q, want %q", c.host, c.path, got, c.service)
		}
	}
}

func TestTheAuthorityOfAForwardedRequestDecides(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	text := `services:
  any: {upstreams: ["http://any:80"], routes: [{path: /}, {path: /v1/long}]}
  named: {upstreams: ["http://named:80"], routes: [{host: Api.Example., path: /v1}]}
  stock: {upstreams: ["http://stock:8080/base"]}
  secure: {upstreams: ["https://secure"]}
ambiguousPaths: refuse
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := policyfile.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ scheme, host, path, service string }{
		{"http", "elsewhere", "/v1/long", ""},
		{"http", "api.example", "/v1/long", "named"},
		{"http", "API.EXAMPLE.:8443", "/v1", "named"},
		{"http", "api.example", "/v2", ""},
		{"http", "stock:8080", "/base/x", "stock"},
		{"http", "stock:8080", "/elsewhere", "stock"},
		{"http", "stock", "/base", ""},
		{"http", "stock:8081", "/base", ""},
		{"https", "secure:443", "/", "secure"},
		{"https", "secure.", "/", "secure"},
		{"http", "secure:443", "/", ""},
		{"http", "any:80", "/x", "any"},
	} {
		d, ok := set.Forward(c.scheme, c.host, c.path)
		if ok != (c.service != "") || ok && d.Guard.Name() != c.service {
			t.Errorf("%s://%s%s belongs to %v, %v; want %q", c.scheme, c.host, c.path, d.Guard, ok, c.service)
		}
	}
	if got := set.PathRule(""); got != policyfile.Refuse {
		t.Errorf("paths of calls that go out: %s", got)
	}
	if !set.CaseDecides("", "elsewhere", "/V1/Long/x") || set.CaseDecides("", "elsewhere", "/v1/long/X") ||
		set.CaseDecides("", "elsewhere", "/V2") {
		t.Error("upper case decides only where a route has lower case")
	}
}

func TestTheStrictestPathRuleOfAListenerHolds(t *testing.T) {
	for _, c := range []struct{ one, other, want string }{
		{"", "", policyfile.Normalize},
		{"", "authentication: {bearerTokens: /tokens}", policyfile.Refuse},
		{"ambiguousPaths: keep", "", policyfile.Normalize},
		{"ambiguousPaths: keep", "ambiguousPaths: keep", policyfile.Keep},
		{"ambiguousPaths: keep", "authentication: {bearerTokens: /tokens}", policyfile.Refuse},
		{"ambiguousPaths: normalize", "authentication: {bearerTokens: /tokens}, ambiguousPaths: normalize",
			policyfile.Normalize},
		{"", "tls: {certificate: /c, key: /k, clientCA: /ca}", policyfile.Refuse},
	} {
		path := filepath.Join(t.TempDir(), "policy.yaml")
		tls := ""
		if strings.Contains(c.other, "tls:") {
			tls = "tls: {certificate: /c, key: /k, clientCA: /ca}, "
		}
		text := "protect:\n  one: {listen: ':1', upstreams: ['http://x'], " + tls + c.one +
			"}\n  other: {listen: ':1', upstreams: ['http://x'], routes: [{path: /o}], " + c.other + "}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		set, err := policyfile.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := set.PathRule(":1"); got != c.want {
			t.Errorf("%q and %q: %s, want %s", c.one, c.other, got, c.want)
		}
	}
}
