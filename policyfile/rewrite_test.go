package policyfile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abate-go/abate/internal/pathform"
	"github.com/abate-go/abate/policyfile"
)

func fromText(t testing.TB, text string) *policyfile.Set {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := policyfile.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

const rewriting = `services:
  payments:
    upstreams: ["http://payments:80/api"]
    routes: [{path: /payments, rewrite: /}, {path: /payments/v1, rewrite: /v2}, {path: /pay/, rewrite: /charge/}]
  stock: {upstreams: ["http://stock:80"], routes: [{path: /stock}]}
protect:
  orders: {listen: "127.0.0.1:0", upstreams: ["http://127.0.0.1:9000"], routes: [{path: /orders, rewrite: /}]}
`

func TestRouteReplacesItsPrefix(t *testing.T) {
	set := fromText(t, rewriting)
	for path, want := range map[string]string{
		"/payments": "/", "/payments/": "/", "/payments?a=/b": "/?a=/b", "/payments/42": "/42", "/payments/42/?x": "/42/?x",
		"/payments/v1": "/v2", "/payments/v1/x": "/v2/x", "/payments/v1x": "/v1x", "/payments/%2Fx": "/%2Fx",
		"/pay": "/charge", "/pay/": "/charge/", "/pay/7?y": "/charge/7?y", "/stock/1": "/stock/1",
	} {
		bare, _, _ := strings.Cut(path, "?")
		d, ok := set.Route("anything", bare)
		if got := string(d.Rewrite.Append(nil, []byte(path))); !ok || got != want {
			t.Errorf("%s arrives as %s, want %s", path, got, want)
		}
		if rest, only := d.Rewrite.Strip([]byte(path)); only && string(rest) != want {
			t.Errorf("%s arrives as %s if it is only stripped, want %s", path, rest, want)
		}
	}
	if d, ok := set.Route("payments", "/api/x"); !ok || !d.Upstream || !d.Rewrite.Nothing() {
		t.Errorf("a request that names the upstream is rewritten: %+v", d)
	}
	e, ok := set.Entrance("127.0.0.1:0", "any", "/orders/1")
	if !ok || string(e.Rewrite.Append(nil, []byte("/orders/1"))) != "/1" {
		t.Errorf("the route of protect does not rewrite: %+v", e)
	}
	d, _ := set.Route("any", "/payments/v1")
	room, path := make([]byte, 0, 64), []byte("/payments/v1/x")
	if n := testing.AllocsPerRun(100, func() { d.Rewrite.Append(room, path) }); n != 0 {
		t.Errorf("rewriting allocates %v times", n)
	}
}

func TestWhatIsLetOutsideStaysTheSameOverReloads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("defaults: {}\noutside: {connect: [a.example]}\n")
	set, err := policyfile.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	first := set.Outside()
	if connect, pass := first.Lists(); !connect.May("a.example", 443) || !pass.Empty() {
		t.Errorf("%+v allows something else", first)
	}
	write("defaults: {maxRetries: 1}\noutside: {connect: [a.example]}\n")
	if err := set.Reload(); err != nil || set.Outside() != first {
		t.Errorf("%v: a file that says the same gives another list", err)
	}
	write("defaults: {maxRetries: 1}\noutside: {connect: [b.example]}\n")
	if err := set.Reload(); err != nil || set.Outside() == first {
		t.Errorf("%v: a file that says something else gives the same list", err)
	}
}

// FuzzRewrittenPathIsInOneForm: what a service gets is in the form in which it was matched, whatever was asked for.
func FuzzRewrittenPathIsInOneForm(f *testing.F) {
	for _, s := range []string{"/payments//x", "/payments/../x", "/payments/%2e%2e/x", "/payments/.", "/pay", "/pay/?a//b",
		"/x"} {
		f.Add(s)
	}
	set := fromText(f, rewriting)
	f.Fuzz(func(t *testing.T, asked string) {
		if !strings.HasPrefix(asked, "/") {
			return
		}
		path, query, _ := strings.Cut(asked, "?")
		matched := pathform.Canonical([]byte(path))
		d, ok := set.Route("any", string(matched))
		if !ok {
			return
		}
		sent := d.Rewrite.Append(nil, append(bytes.Clone(matched), "?"+query...))
		got, _, _ := bytes.Cut(sent, []byte("?"))
		if len(got) == 0 || got[0] != '/' || bytes.HasPrefix(got, []byte("//")) && pathform.Doubt(matched) == "" {
			t.Fatalf("%q arrives as %q", asked, sent)
		}
		if pathform.Doubt(matched) == "" && string(pathform.Canonical(bytes.Clone(got))) != string(got) {
			t.Errorf("%q arrives as %q, which is not in its plain form", asked, got)
		}
	})
}
