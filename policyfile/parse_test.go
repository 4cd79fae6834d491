package policyfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/abate-go/abate/policyfile"
)

func TestEveryMistakeHasItsMessage(t *testing.T) {
	seen := map[string]bool{}
	for _, path := range glob(t, "testdata/*.bad.yaml") {
		file := filepath.Base(path)
		name := strings.TrimSuffix(file, ".bad.yaml")
		seen[name] = true
		t.Run(name, func(t *testing.T) {
			want, ok := mistakes[name]
			if !ok {
				t.Fatalf("%s is not in the table of mistakes", file)
			}
			f, err := policyfile.Parse(file, read(t, path))
			if f != nil || err == nil {
				t.Fatalf("%s is taken for a good file", file)
			}
			if got, want := err.Error(), file+strings.Join(want, "\n"+file); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
	for name := range maps.Keys(mistakes) {
		if !seen[name] {
			t.Errorf("the table has %s, testdata has not", name)
		}
	}
}

func TestTheIssuesSampleLoadsPlainAndInAConfigMap(t *testing.T) {
	for _, path := range []string{"testdata/good/issue.yaml", "testdata/good/issue-configmap.yaml"} {
		f := parseFile(t, path)
		want := policyfile.DefaultPolicy()
		want.MaxRetries, want.InitialDelay, want.MaxDelay, want.Multiplier = 3, 100*time.Millisecond, 10*time.Second, 2
		want.Jitter, want.JitterFactor = "factor", 0.5
		same(t, "defaults", f.Defaults, want)
		payment, inventory, notification := want, want, want
		payment.MaxRetries, payment.InitialDelay = 2, 200*time.Millisecond
		inventory.MaxRetries, inventory.MaxDelay = 5, 30*time.Second
		notification.MaxRetries = 1
		names := []string{"payment-service", "inventory-service", "notification-service"}
		for i, want := range []policyfile.Policy{payment, inventory, notification} {
			if f.Services[i].Name != names[i] {
				t.Errorf("service %d is %q", i, f.Services[i].Name)
			}
			same(t, names[i], f.Services[i].Policy, want)
		}
		if f.GatewayRetries || len(f.Services) != 3 {
			t.Errorf("gatewayRetries %v, %d services", f.GatewayRetries, len(f.Services))
		}
	}
}

func TestSectionsAreInheritedKeyByKeyAndListsReplaced(t *testing.T) {
	f := parseFile(t, "testdata/good/sections.yaml")
	payments, stock, search := f.Services[0].Policy, f.Services[1].Policy, f.Services[2].Policy
	if c := payments.CircuitBreaker; c.FailureRateThreshold != 0.4 || c.RampUp != 3*time.Second ||
		c.SlidingWindow != (breaker.Window{Calls: 100}) {
		t.Errorf("payments' breaker: %+v", c)
	}
	if b := payments.RetryBudget; b.Kind != "tokens" || b.MaxTokens != 20 || b.Ratio != 0.2 || b.Reserve != 5 {
		t.Errorf("payments' budget: %+v", b)
	}
	if payments.Timeout != 0 || stock.Timeout != 3*time.Second {
		t.Errorf("timeouts %v and %v, want an explicit zero and the default's 3s", payments.Timeout, stock.Timeout)
	}
	if !slices.Equal(payments.RetryOn, []string{"connect-failure"}) ||
		!slices.Equal(stock.RetryOn, []string{"gateway-error", "reset"}) || !slices.Equal(search.RetryOn, stock.RetryOn) {
		t.Errorf("retryOn: %q, %q, %q", payments.RetryOn, stock.RetryOn, search.RetryOn)
	}
	if !slices.Equal(stock.NeverRetryOn, []string{"501"}) || len(search.NeverRetryOn) != 0 {
		t.Errorf("neverRetryOn: %q, and %q where an empty list resets it", stock.NeverRetryOn, search.NeverRetryOn)
	}
	if stock.CircuitBreaker.Enabled() || stock.RetryBudget.Enabled() || stock.MaxRetries != 0 {
		t.Error("a section with disabled: true is on, or maxRetries: 0 retries")
	}
	if !stock.Bulkhead.Enabled() || !stock.Hedge.Enabled() || !search.Fallback.Enabled() {
		t.Error("a section that is set is off")
	}
}

func TestKafkaIsReadAndInheritedKeyByKey(t *testing.T) {
	f := parseFile(t, "testdata/good/kafka.yaml")
	payments, stock, orders := f.Services[0].Policy.Kafka, f.Services[1].Policy.Kafka, f.Services[2].Policy.Kafka
	if !payments.Enabled() || payments.Order != redelivery.ParkKey || payments.Concurrency != 16 ||
		!payments.ExactlyOnce || payments.Drain != (redelivery.Drain{Factor: 1.1, RampUp: 30 * time.Second, MaxRate: 500}) {
		t.Errorf("payments: %+v", payments)
	}
	if d := payments.Delays(); !slices.Equal(d, []time.Duration{30 * time.Second, 5 * time.Minute, 30 * time.Minute}) {
		t.Errorf("payments did not inherit the tiers: %v", d)
	}
	if d := stock.Delays(); !stock.Enabled() || !slices.Equal(d, []time.Duration{100 * time.Millisecond, time.Second}) ||
		stock.DLTStrategy != redelivery.DropLast {
		t.Errorf("stock: %v, %+v", d, stock)
	}
	if orders.Enabled() || len(orders.Tiers) != 3 {
		t.Errorf("orders did not inherit what is disabled: %+v", orders)
	}
}

func TestPoliciesShareNoLists(t *testing.T) {
	f := parse(t, "defaults: {retryOn: [reset], kafka: {tiers: [1s], retryErrors: [a], neverRetryErrors: "+
		"[b]}}\nservices: {a: , b: }")
	k := &f.Services[0].Policy.Kafka
	k.Tiers[0], k.RetryErrors[0], k.NeverRetryErrors[0] = time.Hour, "x", "x"
	if k := f.Services[1].Policy.Kafka; k.Tiers[0] != time.Second || k.RetryErrors[0] != "a" ||
		k.NeverRetryErrors[0] != "b" {
		t.Error("a change of one service's lists under kafka reached another")
	}
	f.Services[0].Policy.RetryOn[0] = "timeout"
	if f.Services[1].Policy.RetryOn[0] != "reset" || f.Defaults.RetryOn[0] != "reset" {
		t.Error("a change of one service's list reached another")
	}
}

func TestJitterFactorAloneMeansFactorAndZeroMeansNone(t *testing.T) {
	f := parseFile(t, "testdata/good/jitter.yaml")
	for i, want := range []struct {
		jitter string
		factor float64
	}{{"none", 0}, {"full", 0.3}, {"factor", 0.4}, {"equal", 0.9}} {
		if p := f.Services[i].Policy; string(p.Jitter) != want.jitter || p.JitterFactor != want.factor {
			t.Errorf("%s: jitter %q, factor %v", f.Services[i].Name, p.Jitter, p.JitterFactor)
		}
	}
	// A zero in the defaults is not sticky: who writes a factor later wants that factor.
	f = parse(t, "defaults: {jitterFactor: 0}\nservices: {a: {jitterFactor: 0.3}, b: }")
	if a, b := f.Services[0].Policy, f.Services[1].Policy; a.Jitter != "factor" || b.Jitter != "none" {
		t.Errorf("jitter %q and %q", a.Jitter, b.Jitter)
	}
}

func TestAnchorsAliasesAndMergeKeys(t *testing.T) {
	f := parseFile(t, "testdata/good/anchors.yaml")
	payments, stock, mail := f.Services[0].Policy, f.Services[1].Policy, f.Services[2].Policy
	if payments.MaxRetries != 1 || payments.Timeout != 2*time.Second || payments.MaxDelay != 2*time.Second ||
		payments.RetryOn[0] != "reset" {
		t.Errorf("payments: %+v", payments.Retry)
	}
	if stock.Timeout != 3*time.Second || stock.NeverRetryOn[0] != "reset" || mail.MaxDelay != 5*time.Second {
		t.Errorf("stock %v %q, mail %v", stock.Timeout, stock.NeverRetryOn, mail.MaxDelay)
	}
}

func TestSizeIsBoundedBeforeAnythingIsParsed(t *testing.T) {
	for _, size := range []int{policyfile.MaxBytes + 1, 10 << 20} {
		data := append([]byte("services: {}\n#"), bytes.Repeat([]byte("x"), size)...)
		_, err := policyfile.Parse("big.yaml", data)
		if err == nil || !strings.HasPrefix(err.Error(), "big.yaml:1:1: the file is larger than 1 MiB; ") {
			t.Errorf("%d bytes: %v", size, err)
		}
		if _, err := policyfile.Read("big.yaml", bytes.NewReader(data)); err == nil {
			t.Errorf("Read took %d bytes", size)
		}
	}
	exact := append([]byte("services: {}\n#"), bytes.Repeat([]byte("x"), policyfile.MaxBytes-14)...)
	if _, err := policyfile.Parse("big.yaml", exact); err != nil {
		t.Errorf("exactly 1 MiB: %v", err)
	}
}

func TestServicesAreBounded(t *testing.T) {
	services := func(n int) string {
		var b strings.Builder
		b.WriteString("services:\n")
		for i := range n {
			fmt.Fprintf(&b, "  service-%d: {maxRetries: 1}\n", i)
		}
		return b.String()
	}
	if f := parse(t, services(policyfile.MaxServices)); len(f.Services) != policyfile.MaxServices {
		t.Errorf("%d services", len(f.Services))
	}
	_, err := policyfile.Parse("p.yaml", []byte(services(policyfile.MaxServices+1)))
	if err == nil || err.Error() != "p.yaml:10002:3: services: 10001 services are too many; allowed: at most 10000" {
		t.Errorf("one too many: %v", err)
	}
}

func TestListsAreBounded(t *testing.T) {
	_, err := policyfile.Parse("p.yaml", []byte("defaults:\n  retryOn: ["+strings.Repeat("reset, ", 1_001)+"]"))
	if want := "p.yaml:2:12: defaults.retryOn: 1001 members are too many; allowed: at most 1000"; err == nil ||
		err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestTheBodyOfAFallbackMayBeAPage(t *testing.T) {
	text := func(size int) string {
		return "defaults: {fallback: {status: 200, body: " + strings.Repeat("x", size) + "}}"
	}
	parse(t, text(64<<10))
	_, err := policyfile.Parse("p.yaml", []byte(text(64<<10+1)))
	if want := "p.yaml:1:42: defaults.fallback.body: 65537 bytes are too long; allowed: at most 65536"; err == nil ||
		err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestAliasesCannotBlowTheWorkUp(t *testing.T) {
	var b strings.Builder
	b.WriteString("x-all: &all\n  <<:\n")
	for range 2_000 {
		b.WriteString("  - {maxRetries: 1, timeout: 1s, maxDelay: 2s}\n")
	}
	b.WriteString("services:\n")
	for i := range 9_000 {
		fmt.Fprintf(&b, "  s%d: *all\n", i)
	}
	_, err := policyfile.Parse("p.yaml", []byte(b.String()))
	if err == nil ||
		!strings.Contains(err.Error(), "the aliases in this file expand to more than 1000000 values; write fewer of them") {
		t.Errorf("got %v", err)
	}
}

func TestMistakesAreListedUpToABound(t *testing.T) {
	_, err := policyfile.Parse("p.yaml", []byte("services:\n"+strings.Repeat("  []: {}\n", 5_000)))
	var list policyfile.Errors
	if !errors.As(err, &list) || len(list) != 1001 {
		t.Fatalf("%d mistakes", len(list))
	}
	if got := list[1000].Error(); got != "p.yaml: and more: only the first 1000 mistakes are listed" {
		t.Errorf("the last line is %q", got)
	}
}

func TestDeepNestingIsRefused(t *testing.T) {
	for _, open := range []string{"[", "{a: ", "- ", "? "} {
		_, err := policyfile.Parse("p.yaml", []byte("services: "+strings.Repeat(open, 100_000)))
		if err == nil {
			t.Errorf("%q 100,000 times is taken for a good file", open)
		}
	}
	_, err := policyfile.Parse("p.yaml", []byte(strings.Repeat("[", 20_000)))
	if want := "p.yaml:1:1: not valid YAML: exceeded max depth of 10000; nothing in a policy is nested that deep"; err ==
		nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestErrorsAreFoundByAs(t *testing.T) {
	_, err := policyfile.Parse("p.yaml", []byte("services:\n  a: {maxRetries: -1, colour: red}\n"))
	err = fmt.Errorf("wrapped: %w", err)
	var list policyfile.Errors
	var first policyfile.Error
	if !errors.As(err, &list) || len(list) != 2 || !errors.As(err, &first) {
		t.Fatalf("got %v", err)
	}
	want := policyfile.Error{File: "p.yaml", Line: 2, Col: 19, Service: "a", Field: "maxRetries",
		Problem: "-1 is out of range", Fix: "allowed: 0 to 100; for example 3"}
	if first != want {
		t.Errorf("got  %+v\nwant %+v", first, want)
	}
}

func TestFormatReadsBackAsTheSamePolicy(t *testing.T) {
	for _, path := range glob(t, "testdata/good/*.yaml") {
		first := parseFile(t, path)
		text := first.Format()
		second, err := policyfile.Parse(path, text)
		if err != nil {
			t.Errorf("%s: %v\n%s", path, err, text)
			continue
		}
		samePrint(t, text, second.Format())
	}
}

func TestFormatOfOneServiceFitsUnderServices(t *testing.T) {
	p := policyfile.DefaultPolicy()
	p.Upstreams, p.Fallback = []string{"http://a:1"}, core.Fallback{Status: 200, Body: "{\"x\": [1,\n2]}\u2028<&>"}
	for _, name := range []string{"payments", "true", "~", "null", "8080", "a b", "with \"quotes\" and: colons", "größe"} {
		p.Fallback.ContentType = name
		text := "services:\n" + strings.ReplaceAll("\n"+string(p.Format(name)), "\n", "\n  ")
		f := parse(t, text)
		if f.Services[0].Name != name {
			t.Errorf("%q came back as %q", name, f.Services[0].Name)
		}
		same(t, name, f.Services[0].Policy.WithDefaults(), p.WithDefaults())
	}
}

func TestFormatSaysWhatIsNotSetAndWhyASectionIsOff(t *testing.T) {
	everything := policyfile.DefaultPolicy()
	everything.RetryOn, everything.RetryMethods = []string{"reset"}, []string{"PUT"}
	everything.Bulkhead.MaxConcurrentCalls, everything.Hedge.Delay, everything.Fallback.Status = 1, time.Second, 200
	for _, c := range []struct {
		policy policyfile.Policy
		want   []string
	}{
		{policyfile.DefaultPolicy(),
			[]string{"# retryOn: not set (what the adapter retries)", "# retryMethods: not set (GET, HEAD, OPTIONS, TRACE)",
				"retryBudget:", "circuitBreaker:", "bulkhead: # off: no maxConcurrentCalls", "hedge: # off: no delay or quantile",
				"fallback: # off: no status", "kafka: # off: no tiers or delay"}},
		{policyfile.Policy{}, []string{"retryBudget: # off: disabled", "circuitBreaker: # off: no threshold"}},
		{policyfile.Policy{Policy: abate.Policy{
			Hedge: hedge.Config{Disabled: true, Delay: time.Second}, CircuitBreaker: breaker.Config{Disabled: true},
		}},
			[]string{"circuitBreaker: # off: disabled", "hedge: # off: disabled"}},
		{everything, []string{"retryOn: [reset]", "neverRetryOn: []", "retryMethods: [PUT]", "retryBudget:",
			"circuitBreaker:", "bulkhead:", "hedge:", "fallback:"}},
	} {
		printed := string(c.policy.Format("a"))
		lines := strings.Split(printed, "\n")
		for _, want := range c.want {
			if !slices.Contains(lines, "  "+want) {
				t.Errorf("no line %q in:\n%s", want, printed)
			}
		}
		back := parse(t, "services:\n  "+strings.ReplaceAll(printed, "\n", "\n  ")).Services[0].Policy
		if got := back.Format("a"); string(got) != printed {
			t.Errorf("it came back as:\n%s\nfrom:\n%s", got, printed)
		}
		if b, p := back, c.policy; b.RetryBudget.Enabled() != p.RetryBudget.Enabled() ||
			b.CircuitBreaker.Enabled() != p.CircuitBreaker.Enabled() ||
			b.Bulkhead.Enabled() != p.Bulkhead.Enabled() || b.Hedge.Enabled() != p.Hedge.Enabled() ||
			b.Fallback.Enabled() != p.Fallback.Enabled() {
			t.Errorf("a section that is off came back on, or the other way round:\n%s", printed)
		}
	}
}

// FuzzParse: no input panics, takes for ever, or is taken for a good file that Format then writes as a bad one.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/*.bad.yaml", "testdata/good/*.yaml"} {
		for _, path := range glob(f, pattern) {
			f.Add(read(f, path))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := policyfile.Parse("f.yaml", data)
		if err != nil {
			var list policyfile.Errors
			if !errors.As(err, &list) || len(list) == 0 || file != nil {
				t.Fatalf("not a list of mistakes: %v", err)
			}
			for _, e := range list {
				if e.Problem == "" || len(e.Error()) > 8<<10 {
					t.Fatalf("mistake %+v", e)
				}
			}
			return
		}
		for i := range file.Services {
			if err := file.Services[i].Policy.Validate(); err != nil {
				t.Fatalf("service %q is invalid: %v", file.Services[i].Name, err)
			}
		}
		for i := range file.Protect {
			if err := errors.Join(file.Protect[i].Protection.Validate(), file.Protect[i].Protection.Ineffective()); err != nil {
				t.Fatalf("protection of %q is invalid: %v", file.Protect[i].Name, err)
			}
		}
		text := file.Format()
		if len(text) > policyfile.MaxBytes {
			return
		}
		again, err := policyfile.Parse("f.yaml", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		samePrint(t, text, again.Format())
	})
}

func BenchmarkParseTenServices(b *testing.B) {
	var text bytes.Buffer
	text.WriteString("defaults: {maxRetries: 3, timeout: 2s, circuitBreaker: {rampUp: 3s}}\nservices:\n")
	for i := range 10 {
		fmt.Fprintf(&text, "  service-%d: {maxRetries: 2, retryOn: [reset], bulkhead: {maxConcurrentCalls: 10}}\n", i)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := policyfile.Parse("p.yaml", text.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}

func glob(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %d files", pattern, err, len(files))
	}
	return files
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func parse(t testing.TB, text string) *policyfile.File {
	t.Helper()
	f, err := policyfile.Parse("policy.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return f
}

func parseFile(t testing.TB, path string) *policyfile.File {
	t.Helper()
	return parse(t, string(read(t, path)))
}

// samePrint compares a printed file with the print of what it was read as. They are equal but for keys that a service
// does not use: they are printed as not set, and on the way back inherited from the defaults, which use them.
func samePrint(t testing.TB, first, second []byte) {
	t.Helper()
	a, b := strings.Split(string(first), "\n"), strings.Split(string(second), "\n")
	if len(a) != len(b) {
		t.Fatalf("printed twice, it differs:\n%s\n%s", first, second)
	}
	for i := range a {
		if unset := strings.HasPrefix(strings.TrimSpace(a[i]), "# "); a[i] != b[i] && !unset {
			t.Errorf("printed twice, line %d differs: %q and %q", i+1, a[i], b[i])
		}
	}
}

// same compares what can stand in a file; an empty list is as good as none.
func same(t testing.TB, what string, got, want policyfile.Policy) {
	t.Helper()
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		t.Errorf("%s:\ngot  %s\nwant %s", what, g, w)
	}
}
