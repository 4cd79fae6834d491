package policyfile_test

import (
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"testing"

	"github.com/abate-go/abate/policyfile"
)

func TestAnAddressOfASocketHasAPathAndAMode(t *testing.T) {
	for listen, want := range map[string]struct {
		path string
		mode fs.FileMode
	}{
		"unix:/run/a.sock":                  {"/run/a.sock", 0o660},
		"unix:///run/a.sock":                {"/run/a.sock", 0o660},
		"unix:/run/a.sock?mode=0600":        {"/run/a.sock", 0o600},
		"unix:/run/a.sock?mode=777":         {"/run/a.sock", 0o777},
		"unix:/run/a%20b.sock":              {"/run/a b.sock", 0o660},
		"unix:/run/a.sock?mode=1777":        {},
		"unix:/run/a.sock?mode=u+rw":        {},
		"unix:/run/a.sock?owner=root":       {},
		"unix:/run/":                        {},
		"unix:run/a.sock":                   {},
		"unix://run/a.sock":                 {},
		"unix:/run/a.sock#x":                {},
		"tcp:/run/a.sock":                   {},
		"127.0.0.1:80":                      {},
		"unix:/" + strings.Repeat("a", 102): {"/" + strings.Repeat("a", 102), 0o660},
		"unix:/" + strings.Repeat("a", 103): {},
	} {
		path, mode, ok := policyfile.Socket(listen)
		if ok != (want.path != "") || ok && (path != want.path || mode != want.mode) {
			t.Errorf("%s: %q, %o, %v", listen, path, mode, ok)
		}
	}
}

// A service may inherit a tls that its upstreams have no use for: the file with every default written out says so in
// comments, and means the same.
func TestInheritedTLSIsWrittenSoThatItCanBeReadAgain(t *testing.T) {
	const text = `defaults: {tls: {ca: ca.crt, minVersion: TLSv1.3}}
services:
  a: {upstreams: ["https://a"], tls: {peers: ["spiffe://example.org/*"], serverName: a.internal}, sendProxyProtocol: v2}
  b: {upstreams: ["http://b"]}
  c: {upstreams: ["unix:/run/c.sock"], routes: [{path: /c}]}
protect:
  d: {listen: "unix:/run/d.sock?mode=0666", upstreams: ["https+unix:/run/e.sock?host=e"], upstreamTLS: {ca: ca.crt},
    proxyProtocol: true, trustedPeers: [unix]}
`
	file, err := policyfile.Parse("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := policyfile.UpstreamTLS{CA: "ca.crt", MinVersion: "TLSv1.3", ServerName: "a.internal",
		Peers: []string{"spiffe://example.org/*"}}
	if got := file.Services[0].Policy.TLS; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	again, err := policyfile.Parse("again.yaml", file.Format())
	if err != nil {
		t.Fatalf("%v\n%s", err, file.Format())
	}
	for i, s := range again.Services {
		if first := file.Services[i].Policy; s.Name != "b" && fmt.Sprint(s.Policy.TLS) != fmt.Sprint(first.TLS) ||
			s.Policy.SendProxyProtocol != first.SendProxyProtocol {
			t.Errorf("%s: %+v, before %+v", s.Name, s.Policy.TLS, first.TLS)
		}
	}
	one, two := file.Protect[0].Protection, again.Protect[0].Protection
	if one.Listen != two.Listen || fmt.Sprint(one.UpstreamTLS) != fmt.Sprint(two.UpstreamTLS) ||
		one.ProxyProtocol != two.ProxyProtocol {
		t.Errorf("%+v, before %+v", two, one)
	}
}

func TestARequestCanNameAServiceAtASocketByItsHost(t *testing.T) {
	path := write(t, "services: {a: {upstreams: [\"unix:/run/a.sock?host=a.internal\"]}, "+
		"b: {upstreams: [\"unix:/run/b.sock\"]}}\n")
	set, err := policyfile.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if g, ok := set.Match("a.internal", "/x"); !ok || g.Name() != "a" {
		t.Error(g, ok)
	}
	if g, ok := set.Match("localhost", "/x"); ok {
		t.Errorf("localhost is %s: a socket without a host has no name", g.Name())
	}
}
