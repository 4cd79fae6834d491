package policyfile_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policyfile"
)

func TestGuardsFollowTheFile(t *testing.T) {
	path := write(t, "defaults: {maxRetries: 7}\nservices:\n  b: {maxRetries: 2}\n  a: {maxRetries: 1}\ngatewayRetries: "+
		"true\n")
	set := load(t, path)
	if got := set.Names(); !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("names %q", got)
	}
	for name, want := range map[string]int{"a": 1, "b": 2, "stranger": 7, "": 7} {
		g := set.Guard(name)
		if got := g.Describe().MaxRetries; got != want {
			t.Errorf("guard %q has maxRetries %d, want %d", name, got, want)
		}
		if set.Guard(name) != g {
			t.Errorf("guard %q was made twice", name)
		}
		if _, listed := set.Lookup(name); listed != (name == "a" || name == "b") {
			t.Errorf("Lookup(%q) says %v", name, listed)
		}
	}
	if !set.GatewayRetries() {
		t.Error("gatewayRetries was lost")
	}
}

func TestAReloadKeepsTheGuards(t *testing.T) {
	path := write(t, "defaults: {maxRetries: 7}\nservices: {stays: {maxRetries: 1}, goes: {maxRetries: 2}}\n")
	set := load(t, path)
	stays, goes, comes, never := set.Guard("stays"), set.Guard("goes"), set.Guard("comes"), set.Guard("never")
	replace(t, path, "defaults: {maxRetries: 8}\nservices: {stays: {maxRetries: 3}, comes: {maxRetries: 4}}\n")
	if err := set.Reload(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		was  *abate.Guard
		want int
	}{{"stays", stays, 3}, {"goes", goes, 8}, {"comes", comes, 4}, {"never", never, 8}, {"", set.Guard(""), 8}} {
		if set.Guard(c.name) != c.was {
			t.Errorf("%q got another guard", c.name)
		}
		if got := c.was.Describe().MaxRetries; got != c.want {
			t.Errorf("%q has maxRetries %d, want %d", c.name, got, c.want)
		}
	}
	if _, listed := set.Lookup("goes"); listed {
		t.Error("a service that has gone is still listed")
	}
}

func TestABadFileChangesNothing(t *testing.T) {
	path := write(t, "services: {a: {maxRetries: 1}, b: {maxRetries: 2}}\n")
	set := load(t, path)
	before := set.Status()
	for _, bad := range []string{
		"services: {a: {maxRetries: 5}, b: {maxRetries: 500}}\n", "", "services: [", strings.Repeat("#\n", 1<<20),
	} {
		replace(t, path, bad)
		err := set.Reload()
		status := set.Status()
		var list policyfile.Errors
		if !errors.As(err, &list) || !errors.As(status.Err, &list) {
			t.Errorf("Reload: %v, Status: %v", err, status.Err)
		}
		if status.Hash != before.Hash || !status.Loaded.Equal(before.Loaded) || status.Path != path {
			t.Errorf("status changed to %+v", status)
		}
		if a, b := set.Guard("a").Describe().MaxRetries, set.Guard("b").Describe().MaxRetries; a != 1 || b != 2 {
			t.Errorf("maxRetries are %d and %d: half a file was applied", a, b)
		}
	}
	replace(t, path, "services: {a: {maxRetries: 5}}\n")
	if err := set.Reload(); err != nil || set.Status().Err != nil || set.Status().Hash == before.Hash ||
		set.Guard("a").Describe().MaxRetries != 5 {
		t.Errorf("the next good file: %v, %+v", err, set.Status())
	}
}

func TestLoadRefusesWhatIsNoFile(t *testing.T) {
	if _, err := policyfile.Load(filepath.Join(t.TempDir(), "missing.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := policyfile.Load(t.TempDir()); err == nil {
		t.Error("a folder is taken for a policy")
	}
	huge := write(t, "")
	if err := os.Truncate(huge, 10<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := policyfile.Load(huge); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("10 MB file: %v", err)
	}
}

func TestAdjustSetsWhatAFileCannotHold(t *testing.T) {
	path := write(t, "defaults: {retryOn: [reset, timeout]}\nservices: {a: , b: }\n")
	var mu sync.Mutex
	var seen []string
	events := map[string]int{}
	observer := abate.ObserverFunc(func(e abate.Event) { mu.Lock(); events[e.Guard]++; mu.Unlock() })
	set := load(t, path, func(service string, p *abate.Policy) {
		seen = append(seen, service)
		p.Observer = observer
	}, func(service string, p *abate.Policy) {
		if p.Observer == nil {
			t.Error("the second function does not see what the first did")
		}
		p.RetryOn[0] = service + "!" // a list of its own, or the next policy is invalid already here
		p.RetryOn[0] = "503"
	})
	for _, name := range []string{"a", "b", "c"} {
		if err := call(set.Guard(name), nil); err != nil || events[name] == 0 {
			t.Errorf("%q: %v, %d events", name, err, events[name])
		}
	}
	seen = nil
	if err := set.Reload(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(seen)
	if !slices.Equal(seen, []string{"(unlisted)", "a", "b", "c"}) {
		t.Errorf("at the reload adjust saw %q", seen)
	}
}

func TestAnAdjustmentThatIsInvalidChangesNothing(t *testing.T) {
	path := write(t, "services: {a: {maxRetries: 1}, b: {maxRetries: 1}}\n")
	bad := false
	set := load(t, path, func(service string, p *abate.Policy) {
		if bad && service == "b" {
			p.Multiplier = 0.1
		}
	})
	bad = true
	replace(t, path, "services: {a: {maxRetries: 2}, b: {maxRetries: 2}}\n")
	var field *abate.FieldError
	if err := set.Reload(); !errors.As(err, &field) || field.Path != "multiplier" {
		t.Errorf("got %v", err)
	}
	if got := set.Guard("a").Describe().MaxRetries; got != 1 {
		t.Errorf("half of it was applied: maxRetries %d", got)
	}
}

func TestOnlyGuardsWhosePolicyChangedAreTold(t *testing.T) {
	path := write(t, "services: {a: {maxRetries: 1}, b: {maxRetries: 1}}\n")
	var changed []string
	observer := &recorder{func(e abate.Event) {
		if e.Kind == core.PolicyChanged {
			changed = append(changed, e.Guard)
		}
	}}
	set := load(t, path, func(_ string, p *abate.Policy) { p.Observer = observer })
	replace(t, path, "services: {a: {maxRetries: 1}, b: {maxRetries: 2}}\n")
	if err := set.Reload(); err != nil || !slices.Equal(changed, []string{"b"}) {
		t.Errorf("%v, told %q", err, changed)
	}
}

func TestUnlistedNamesAreBounded(t *testing.T) {
	set := load(t, write(t, "defaults: {maxRetries: 5}\n"))
	shared := set.Guard("")
	for i := range 1_000 {
		if g := set.Guard(fmt.Sprint("name-", i)); g == shared || g.Name() != fmt.Sprint("name-", i) {
			t.Fatalf("name %d has guard %q", i, g.Name())
		}
	}
	if g := set.Guard("one-too-many"); g != shared || g.Describe().MaxRetries != 5 {
		t.Errorf("name 1,001 has a guard of its own: %q", g.Name())
	}
	if set.Guard("name-17") == shared {
		t.Error("an early name lost its guard")
	}
}

func TestMatch(t *testing.T) {
	set := load(t, write(t, `services:
  any-pay: {routes: [{path: /pay}]}
  pay: {routes: [{host: API.example.com, path: /pay/}, {host: pay.example.com}]}
  pay-v2: {routes: [{host: api.example.com, path: /pay/v2}]}
  admin: {routes: [{host: "api.example.com:8443"}]}
  stock: {upstreams: ["http://stock:80", "https://[::1]:9000/base"]}
  api: {upstreams: ["http://gw:8080/api"]}
  web: {upstreams: ["http://gw:8080"]}
  four: {upstreams: ["http://10.0.0.7:8080", "http://10.0.0.8"]}
`))
	for _, c := range []struct{ host, path, want string }{
		{"api.example.com", "/pay", "pay"},
		{"api.example.com:443", "/pay/", "pay"},
		{"API.EXAMPLE.COM", "/pay/x", "pay"},
		{"api.example.com", "/pay/v2/charges", "pay-v2"},
		{"api.example.com", "/pay/v20", "pay"},
		{"api.example.com", "/payment", ""},
		{"api.example.com:8443", "/payment", "admin"},
		{"api.example.com:8443", "/pay/v2", "pay-v2"},
		{"elsewhere", "/pay/v2", "any-pay"},
		{"pay.example.com", "", "pay"},
		{"pay.example.com", "*", "pay"},
		{"pay.example.com", "/pay", "any-pay"},
		{"stock", "/anything", "stock"},
		{"stock:80", "/anything", "stock"},
		{"[::1]:9000", "/base/x", "stock"},
		{"[::1]:9000", "/other", "stock"},
		{"[::1]:9001", "/base", ""},
		{"[::ffff:10.0.0.7]:8080", "/", "four"},
		{"[0:0:0:0:0:FFFF:a00:7]:8080", "/", "four"},
		{"[::ffff:10.0.0.8]", "/", "four"},
		{"[::ffff:10.0.0.7]:8081", "/", ""},
		{"gw:8080", "/api/x", "api"},
		{"gw:8080", "/apis", "web"},
		{"gw:8080", strings.Repeat("/", 100_000), "web"},
		{"gw:9090", "/api", ""},
		{"stock", "/pay", "any-pay"},
		{"", "", ""},
		{"::1", "/", ""},
	} {
		g, ok := set.Match(c.host, c.path)
		if got := nameOf(g); got != c.want || ok != (c.want != "") {
			t.Errorf("%q %.40q belongs to %q, want %q", c.host, c.path, got, c.want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { set.Match("api.example.com:443", "/pay/v2/charges") }); n != 0 {
		t.Errorf("Match allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { set.Guard("stock") }); n != 0 {
		t.Errorf("Guard allocates %v times", n)
	}
}

func BenchmarkMatch(b *testing.B) {
	set := load(
		b, write(b, "services: {a: {routes: [{host: api.example.com, path: /a}]}, b: {upstreams: [\"http://b\"]}}\n"))
	b.ReportAllocs()
	for b.Loop() {
		set.Match("api.example.com:443", "/a/b/c")
	}
}

// recorder is an observer that can be compared.
type recorder struct{ f func(abate.Event) }

func (r *recorder) Observe(e abate.Event) { r.f(e) }

func nameOf(g *abate.Guard) string {
	if g == nil {
		return ""
	}
	return g.Name()
}

func call(g *abate.Guard, err error) error {
	_, got := abate.Do(context.Background(), g, func(context.Context) (int, error) { return 0, err })
	return got
}

func write(t testing.TB, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// replace writes a file as editors do: a new one, renamed over the old.
func replace(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func load(t testing.TB, path string, adjust ...func(string, *abate.Policy)) *policyfile.Set {
	t.Helper()
	set, err := policyfile.Load(path, adjust...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// eventually waits for something that another goroutine is about to do.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("waited 20 s in vain for: %s", what)
		}
	}
}
