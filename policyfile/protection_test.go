package policyfile_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policyfile"
)

func TestAProtectionNamesWhatIsWrongBesideTheGate(t *testing.T) {
	const address = `; allowed: host:port, for example "0.0.0.0:8080"`
	here := []string{"http://127.0.0.1:9000"}
	for _, row := range []struct {
		change func(*policyfile.Protection)
		want   string
	}{
		{func(p *policyfile.Protection) {
			p.Listen, p.Upstreams = "8080", here
		}, `listen: "8080" is not an address` + address},
		{func(p *policyfile.Protection) {
			p.Listen, p.Upstreams = ":http", here
		}, `listen: ":http" is not an address` + address},
		{func(p *policyfile.Protection) {
			p.Listen, p.Upstreams = ":65536", here
		}, `listen: ":65536" is not an address` + address},
		{func(p *policyfile.Protection) {
			p.Listen = ":8080"
		}, `listen: has no upstreams behind it; for example upstreams: ["http://127.0.0.1:9000"]`},
		{func(p *policyfile.Protection) {
			p.Upstreams = []string{"orders:80"}
		}, `upstreams[0]: "orders:80" is not a base URL; allowed: http, https or h2c with a host, for example ` +
			`"http://payments:8080"`},
		{func(p *policyfile.Protection) {
			p.Routes = []policyfile.Route{{Path: "/a"}, {}}
		}, "routes[1]: matches every request; give it a host, a path or both"},
		{func(p *policyfile.Protection) {
			p.Caller, p.Listen, p.Upstreams = "mtls", ":8080", here
		}, "caller: mtls needs client certificates; set tls.clientCA"},
		{func(p *policyfile.Protection) {
			p.TLS = policyfile.TLS{Certificate: "a"}
		}, "tls.key: is missing; set certificate and key together"},
		{func(p *policyfile.Protection) {
			p.TLS = policyfile.TLS{Key: "a"}
		}, "tls.certificate: is missing; set certificate and key together"},
		{func(p *policyfile.Protection) {
			p.TLS = policyfile.TLS{ClientCA: "a"}
		}, "tls.certificate: is missing; set certificate and key together"},
	} {
		p := policyfile.DefaultProtection()
		row.change(&p)
		err := p.Validate()
		if err == nil || err.Error() != row.want {
			t.Errorf("got  %v\nwant %s", err, row.want)
		}
		var field *abate.FieldError
		if !errors.As(err, &field) {
			t.Errorf("%v is no FieldError", err)
		}
	}
}

func TestProtectionsOfAFileThatAreFine(t *testing.T) {
	full := policyfile.Protection{
		Listen:     "[::1]:0",
		Upstreams:  []string{"h2c://a"},
		Routes:     []policyfile.Route{{Path: "/"}},
		TLS:        policyfile.TLS{Certificate: "a", Key: "b", ClientCA: "c"},
		Protection: inbound.Protection{Caller: "mtls"},
	}
	for _, p := range []policyfile.Protection{{}, policyfile.DefaultProtection(), full} {
		for _, p := range []policyfile.Protection{p, p.WithDefaults()} {
			if err := p.Validate(); err != nil {
				t.Errorf("%+v: %v", p, err)
			}
		}
		if err := p.Ineffective(); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
		if once := p.WithDefaults(); !reflect.DeepEqual(once.WithDefaults(), once) {
			t.Errorf("defaults are written out differently the second time: %+v", once)
		}
	}
	if (policyfile.Protection{}).WithDefaults().TLS.Enabled() {
		t.Error("defaults switch TLS on")
	}
}

func TestEveryMistakeOfAProtectionOfAFileIsReported(t *testing.T) {
	p := policyfile.Protection{Listen: "x", AmbiguousPaths: "maybe",
		Protection: inbound.Protection{Caller: "y", Timeout: -1}}
	err := p.Validate()
	for _, path := range []string{"timeout", "listen", "caller", "ambiguousPaths"} {
		if err == nil || !strings.Contains("\n"+err.Error(), "\n"+path+": ") {
			t.Errorf("nothing about %s in:\n%v", path, err)
		}
	}
}

func TestIneffectiveNamesWhatDoesNothingWithoutListen(t *testing.T) {
	p := policyfile.Protection{Upstreams: []string{"http://a"}, Routes: []policyfile.Route{{Path: "/"}},
		TLS: policyfile.TLS{Certificate: "a", Key: "b"}, AmbiguousPaths: "keep", IdentityHeaders: "keep"}
	const fix = ": has no effect; set listen, for example listen: 0.0.0.0:8080; in Go programs remove it"
	want := strings.Join([]string{"upstreams", "routes", "tls", "ambiguousPaths", "identityHeaders"}, fix+"\n") + fix
	if err := p.Ineffective(); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
