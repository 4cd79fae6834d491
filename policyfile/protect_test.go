package policyfile_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/shed"
	"github.com/abate-go/abate/policyfile"
)

func TestAnEntryOfProtectStartsFromTheDefaultProtection(t *testing.T) {
	f := parseFile(t, "testdata/good/protect.yaml")
	names := make([]string, len(f.Protect))
	for i := range f.Protect {
		names[i] = f.Protect[i].Name
	}
	if want := []string{"orders", "closed", "rest", "secure", "library"}; !slices.Equal(names, want) {
		t.Fatalf("entries %q", names)
	}
	library, ok := f.Protection("library")
	if want := policyfile.DefaultProtection(); !ok || !reflect.DeepEqual(library, want) {
		t.Errorf("an empty entry is %+v, want %+v", library, want)
	}
	orders, _ := f.Protection("orders")
	limit := inbound.ArrivalLimit{Config: ratelimit.Config{
		Limit: ratelimit.Rate{Tokens: 100, Per: 10 * time.Second}, Burst: 20, MaxKeys: 1000,
	},
		Key: "caller", Cost: 0.5, Fleet: true, WhenAway: "closed", Reset: "epoch"}
	if orders.RateLimit != limit || orders.Caller != "header:X-Tenant" || orders.Timeout != 2*time.Second ||
		orders.Shed.Concurrency != shed.AIMD ||
		orders.Priority != (inbound.PriorityRule{Header: "X-Priority", Default: shed.SheddablePlus}) ||
		!orders.Authentication.Enabled() ||
		!slices.Equal(orders.Idempotency.Methods, []string{"POST", "PATCH"}) ||
		!slices.Equal(orders.TrustedPeers, []string{"10.0.0.0/8", "::1"}) {
		t.Errorf("orders: %+v", orders)
	}
	closed, _ := f.Protection("closed")
	if !closed.RateLimit.Enabled() || closed.RateLimit.Limit.Tokens != 0 || closed.Shed.Enabled() {
		t.Errorf("closed: %+v", closed)
	}
	secure, _ := f.Protection("secure")
	if !secure.TLS.Enabled() || secure.TLS.ClientCA != "ca.crt" {
		t.Errorf("secure: %+v", secure.TLS)
	}
	if _, ok := f.Protection("stranger"); ok {
		t.Error("the file protects what it does not list")
	}
}

func TestAProtectionIsTheCallersOwn(t *testing.T) {
	f := parseFile(t, "testdata/good/protect.yaml")
	for range 2 {
		p, _ := f.Protection("orders")
		if p.Upstreams[0] == "x" || p.TrustedPeers[0] == "x" || p.Idempotency.Methods[0] == "x" || p.Routes[0].Path == "x" {
			t.Fatal("a change of the first one reached the file")
		}
		p.Upstreams[0], p.TrustedPeers[0], p.Idempotency.Methods[0], p.Routes[0].Path = "x", "x", "x", "x"
	}
}

func TestTheRedisOfAFile(t *testing.T) {
	f := parseFile(t, "testdata/good/protect.yaml")
	want := policyfile.Redis{
		Addresses:    []string{"a:26379", "b:26379"},
		Master:       "mymaster",
		Username:     "u",
		PasswordFile: "/run/secret",
		Database:     3,
		Prefix:       "shop:",
		Timeout:      50 * time.Millisecond,
		TLS:          true,
	}
	if !reflect.DeepEqual(f.Redis, want) {
		t.Errorf("%+v", f.Redis)
	}
	set := load(t, write(t, "gatewayRetries: false\nredis: {embedded: true}\n"))
	if got, want := set.Redis(),
		(policyfile.Redis{Embedded: true, Prefix: "abate:", Timeout: 20 * time.Millisecond}); !reflect.DeepEqual(got, want) {
		t.Errorf("with defaults: %+v", got)
	}
	if got := load(t, write(t, "gatewayRetries: false\n")).Redis(); got.Enabled() ||
		!reflect.DeepEqual(got, policyfile.Redis{}) {
		t.Errorf("without one: %+v", got)
	}
}

const twoListens = `services: {orders: {upstreams: ["http://elsewhere"]}}
protect:
  orders: {listen: "127.0.0.1:8080", upstreams: ["http://127.0.0.1:9000", "http://127.0.0.1:9001"],
    routes: [{path: /orders/}, {host: Orders.example}], timeout: 1s}
  v2: {listen: "127.0.0.1:8080", upstreams: ["http://127.0.0.1:9002"], routes: [{path: /orders/v2}]}
  rest: {listen: "127.0.0.1:8080", upstreams: ["http://127.0.0.1:9003"]}
  admin: {listen: "127.0.0.1:8081", upstreams: ["http://127.0.0.1:9004"], routes: [{path: /admin}]}
  library: {}
`

func TestARequestThatArrivesFindsItsEntrance(t *testing.T) {
	set := load(t, write(t, twoListens))
	if got, want := set.GateNames(), []string{"orders", "v2", "rest", "admin", "library"}; !slices.Equal(got, want) {
		t.Errorf("gates %q", got)
	}
	listens := set.Listens()
	if want := []string{"127.0.0.1:8080", "127.0.0.1:8081"}; !slices.Equal(listens, want) {
		t.Fatalf("listens %q", listens)
	}
	const here, there = "127.0.0.1:8080", "127.0.0.1:8081"
	for _, c := range []struct{ listen, host, path, gate, label string }{
		{here, "any", "/orders", "orders", "/orders/"},
		{here, "any", "/orders/7", "orders", "/orders/"},
		{here, "ORDERS.example:8080", "/x", "orders", "Orders.example"},
		{here, "any", "/orders/v2/7", "v2", "/orders/v2"},
		{here, "any", "/orders/v20", "orders", "/orders/"},
		{here, "any", "/ordersx", "rest", "/"},
		{here, "127.0.0.1:9000", "/", "rest", "/"},
		{here, "", "", "rest", "/"},
		{there, "any", "/admin", "admin", "/admin"},
		{there, "any", "/orders", "", ""},
		{"127.0.0.1:8082", "any", "/orders", "", ""},
		{"", "any", "/", "", ""},
	} {
		e, ok := set.Entrance(c.listen, c.host, c.path)
		if ok != (c.gate != "") {
			t.Errorf("%+v: found is %v", c, ok)
		}
		if !ok {
			continue
		}
		gate, _ := set.Gate(c.gate)
		if e.Gate != gate || e.Gate.Name() != c.gate || e.Label != c.label || e.Upstream {
			t.Errorf("%+v: gate %q, label %q", c, e.Gate.Name(), e.Label)
		}
	}
	if n := testing.AllocsPerRun(100, func() { set.Entrance(here, "orders.example:8080", "/orders/v2/7") }); n != 0 {
		t.Errorf("a look-up allocates %v times", n)
	}
	if _, ok := set.Gate("stranger"); ok {
		t.Error("there is a gate that the file does not list")
	}
}

func TestBehindAnEntranceNothingIsDecidedTwice(t *testing.T) {
	set := load(t, write(t, twoListens))
	e, _ := set.Entrance("127.0.0.1:8080", "any", "/orders")
	if e.Guard.Name() != "orders (local)" || e.Guard == set.Guard("orders") {
		t.Errorf("the guard behind the gate is %q", e.Guard.Name())
	}
	var want policyfile.Policy
	want.Upstreams = []string{"http://127.0.0.1:9000", "http://127.0.0.1:9001"}
	want.OutlierDetection = policyfile.DefaultPolicy().OutlierDetection
	want = want.WithDefaults()
	if !reflect.DeepEqual(*e.Policy, want) || !reflect.DeepEqual(*e.Guard.Describe(), want.Policy) {
		t.Errorf("its policy is %+v", *e.Policy)
	}
	if e.Protection.Timeout != time.Second || e.Protection.Caller != "ip" || e.Protection.Shed.MaxConcurrency == 0 {
		t.Errorf("the protection is not written out: %+v", *e.Protection)
	}
	again, _ := set.Entrance("127.0.0.1:8080", "other", "/orders/9")
	if again != e {
		t.Error("requests of one route have two entrances")
	}
	if d, ok := set.Service("orders"); !ok || d.Guard == e.Guard {
		t.Error("what is called and what is protected under one name were mixed up")
	}
}

// take takes a token from the bucket of a gate and reports whether there was one.
func take(t *testing.T, g *inbound.Gate, now time.Duration) bool {
	t.Helper()
	var a inbound.Arrival
	step := g.Arrive(&a, now, inbound.Request{Deadline: core.NoDeadline, Attempt: 1})
	if step.Action == core.Handle {
		a.Done(now, abate.Success)
	}
	return step.Action == core.Handle
}

func TestAReloadKeepsWhatIsInTheBuckets(t *testing.T) {
	const text = "protect: {orders: {timeout: %s, rateLimit: {limit: 1/h, burst: 2}}}\n"
	path := write(t, fmt.Sprintf(text, "1s"))
	set := load(t, path)
	gate, _ := set.Gate("orders")
	for i, want := range []bool{true, true, false} {
		if take(t, gate, 0) != want {
			t.Fatalf("request %d of a bucket of two passes: %v", i+1, !want)
		}
	}
	replace(t, path, fmt.Sprintf(text, "2s"))
	reload(t, set)
	after, _ := set.Gate("orders")
	if after != gate || gate.Describe().Timeout != 2*time.Second || take(t, gate, 1) {
		t.Errorf("after a reload: same gate %v, timeout %v, or the bucket was filled", after == gate, gate.Describe().Timeout)
	}

	replace(t, path, "protect: {stock: {}}\n")
	reload(t, set)
	if _, ok := set.Gate("orders"); ok || !slices.Equal(set.GateNames(), []string{"stock"}) {
		t.Error("an entry that has gone still has a gate")
	}
	if gate.Describe().Timeout != 2*time.Second || take(t, gate, 2) {
		t.Error("a gate whose entry has gone lost its last protection")
	}
	replace(t, path, fmt.Sprintf(text, "3s"))
	reload(t, set)
	if back, _ := set.Gate("orders"); back != gate || take(t, gate, 3) || gate.Describe().Timeout != 3*time.Second {
		t.Error("an entry that came back has another gate, or a full bucket")
	}
}

func TestAReloadMovesEntrancesAllAtOnce(t *testing.T) {
	path := write(t, `protect: {a: {listen: "127.0.0.1:1", upstreams: ["http://a:1"]}, b: {listen: "127.0.0.1:2", `+
		`upstreams: ["http://b:1"]}}`)
	set := load(t, path)
	before, _ := set.Entrance("127.0.0.1:1", "", "/")
	replace(t, path, `protect: {a: {listen: "127.0.0.1:2", upstreams: ["http://a:2"]}, b: {listen: "127.0.0.1:3", `+
		`upstreams: ["http://b:1"]}}`)
	reload(t, set)
	after, _ := set.Entrance("127.0.0.1:2", "", "/")
	if _, ok := set.Entrance("127.0.0.1:1", "", "/"); ok || after.Gate != before.Gate || after.Guard != before.Guard ||
		after.Load != before.Load+1 {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if got := after.Policy.Upstreams; !slices.Equal(got, []string{"http://a:2"}) ||
		!slices.Equal(before.Policy.Upstreams, []string{"http://a:1"}) {
		t.Errorf("upstreams %q", got)
	}
	if got := set.Listens(); !slices.Equal(got, []string{"127.0.0.1:2", "127.0.0.1:3"}) {
		t.Errorf("listens %q", got)
	}
}

func TestABadFileChangesNoGate(t *testing.T) {
	path := write(t, "services: {a: {maxRetries: 1}}\nprotect: {orders: {timeout: 1s}, stock: {timeout: 1s}}\nredis: "+
		"{embedded: true}\n")
	bad := ""
	set, err := policyfile.LoadWith(
		path, policyfile.Hooks{Protection: []func(string, *inbound.Protection){func(name string, p *inbound.Protection) {
			if name == bad {
				p.Caller = "nobody"
			}
		}}})
	if err != nil {
		t.Fatal(err)
	}
	unchanged := func(why string) {
		t.Helper()
		for _, name := range []string{"orders", "stock"} {
			if g, ok := set.Gate(name); !ok || g.Describe().Timeout != time.Second {
				t.Errorf("%s: %s has another protection", why, name)
			}
		}
		if set.Guard("a").Describe().MaxRetries != 1 || !set.Redis().Embedded {
			t.Errorf("%s: half of the file was applied", why)
		}
	}
	replace(t, path, "services: {a: {maxRetries: 2}}\nprotect: {orders: {timeout: 2s}, stock: {timeout: 2x}}\n")
	if err := set.Reload(); err == nil {
		t.Error("a bad file was loaded")
	}
	unchanged("a mistake in the file")
	replace(t, path, "services: {a: {maxRetries: 2}}\nprotect: {orders: {timeout: 2s}, stock: {timeout: 2s}, new: {}}\n")
	for _, bad = range []string{"stock", "new"} {
		var field *abate.FieldError
		if err := set.Reload(); !errors.As(err, &field) || field.Path != "caller" || !strings.Contains(err.Error(), bad) {
			t.Errorf("got %v", err)
		}
		unchanged("a hook's mistake about " + bad)
	}
	if _, ok := set.Gate("new"); ok {
		t.Error("a gate of a file that was refused is there")
	}
	bad = ""
	if err := set.Reload(); err != nil || set.Redis().Enabled() {
		t.Errorf("the good file: %v", err)
	}
}

func TestHooksSetWhatAFileCannotHold(t *testing.T) {
	path := write(t, "services: {orders: {maxRetries: 1}}\nprotect: {orders: {trustedPeers: [127.0.0.1]}, stock: {}}\n")
	var policies, protections []string
	events := map[string]int{}
	set, err := policyfile.LoadWith(path, policyfile.Hooks{
		Policy: []func(string, *abate.Policy){func(name string, _ *abate.Policy) { policies = append(policies, name) }},
		Protection: []func(string, *inbound.Protection){
			func(name string, p *inbound.Protection) {
				protections = append(protections, name)
				p.Observer = inbound.GateObserverFunc(func(e inbound.GateEvent) { events[e.Gate]++ })
			},
			func(name string, p *inbound.Protection) {
				if p.Observer == nil {
					t.Error("the second function does not see what the first did")
				}
				if len(p.TrustedPeers) > 0 {
					p.TrustedPeers[0] = "10.0.0.1" // a list of its own
				}
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range set.GateNames() {
		if g, _ := set.Gate(name); !take(t, g, 0) || events[name] == 0 {
			t.Errorf("%s: refused, or %d events", name, events[name])
		}
	}
	reload(t, set)
	if want := []string{"orders", "stock", "orders", "stock"}; !slices.Equal(protections, want) {
		t.Errorf("protections of %q were adjusted", protections)
	}
	if want := []string{"orders", "(unlisted)", "orders", "(unlisted)"}; !slices.Equal(policies, want) {
		t.Errorf("policies of %q were adjusted", policies)
	}
	if text := string(set.Format()); !strings.Contains(text, "trustedPeers: [\"127.0.0.1\"]") {
		t.Errorf("a hook changed the file:\n%s", text)
	}
}

func TestFormatOfAProtectionThatIsOffReadsBackAsOff(t *testing.T) {
	f := &policyfile.File{Defaults: policyfile.DefaultPolicy(), Protect: []policyfile.Protected{{Name: "a b: c"}}}
	text := f.Format()
	got, ok := parse(t, string(text)).Protection("a b: c")
	if !ok || got.Shed.Enabled() || got.RateLimit.Enabled() || got.Idempotency.Enabled() {
		t.Errorf("it came back on:\n%s", text)
	}
	for _, line := range []string{"tls: # off: no certificate", "authentication: # off: no bearerTokens",
		"rateLimit: # off: no limit",
		"shed: # off: disabled", "idempotency: # off: no methods", "  # default: not set (CRITICAL)"} {
		if !strings.Contains(string(text), "\n    "+line+"\n") {
			t.Errorf("no line %q in:\n%s", line, text)
		}
	}
}

func reload(t *testing.T, set *policyfile.Set) {
	t.Helper()
	if err := set.Reload(); err != nil {
		t.Fatal(err)
	}
}
