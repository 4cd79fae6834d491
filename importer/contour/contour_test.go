package contour_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abate-go/abate/importer/contour"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// proxy is an HTTPProxy with one route, which has more keys.
func proxy(keys string) string {
	return `apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: shop, namespace: shop}
spec:
  virtualhost: {fqdn: shop.example.com}
  routes:
  - services: [{name: orders, port: 80}]
` + keys
}

func read(t testing.TB, version string, texts ...string) topology.Form {
	t.Helper()
	var all []source.Document
	for i, text := range texts {
		docs, remarks := source.YAML(fmt.Sprintf("f%d.yaml", i), []byte(text))
		if len(remarks) > 0 {
			t.Fatalf("%v in\n%s", remarks, text)
		}
		for _, d := range docs {
			if !contour.Recognise(d) {
				t.Fatalf("not recognised:\n%s", text)
			}
		}
		all = append(all, docs...)
	}
	return contour.Read(all, source.Assume{Versions: map[string]string{"contour": version}})
}

func only(t testing.TB, f topology.Form) topology.Layer {
	t.Helper()
	if len(f.Calls) != 1 || len(f.Calls[0].Layers) != 1 {
		t.Fatalf("want one call with one layer in\n%s", f.YAML())
	}
	return f.Calls[0].Layers[0]
}

// What Contour gives Envoy was read in its documentation and threads, and what Envoy does with it measured.
func TestTriesByPolicy(t *testing.T) {
	outcomes := []topology.Outcome{topology.Refused, topology.ResetSent, topology.Hang, topology.S500, topology.S503,
		topology.S429}
	for _, c := range []struct {
		keys, version string
		want          []int
	}{
		{"", "", []int{1, 1, 1, 1, 1, 1}},
		{"    retryPolicy: {}", "", []int{2, 2, 1, 2, 2, 1}},
		{"    retryPolicy: {count: 0}", "", []int{2, 2, 1, 2, 2, 1}},
		{"    retryPolicy: {count: -1}", "1.33", []int{1, 1, 1, 1, 1, 1}},
		{"    retryPolicy: {count: -1}", "1.32", []int{2, 2, 1, 2, 2, 1}},
		{"    retryPolicy: {count: 3, perTryTimeout: 150ms}", "", []int{4, 4, 4, 4, 4, 1}},
		{"    retryPolicy: {count: 3, retryOn: [gateway-error]}", "", []int{4, 4, 1, 1, 4, 1}},
		{"    retryPolicy: {count: 3, retryOn: [retriable-status-codes], retriableStatusCodes: [429]}", "",
			[]int{1, 1, 1, 1, 1, 4}},
	} {
		l := only(t, read(t, c.version, proxy(c.keys)))
		for i, o := range outcomes {
			if got := l.Tries(o, topology.Unsafe); got.N != c.want[i] || !got.Known {
				t.Errorf("%s of Contour %q, %v: %+v, want %d", c.keys, c.version, o, got, c.want[i])
			}
		}
	}
}

func TestLimits(t *testing.T) {
	for keys, want := range map[string]string{
		"":                                  "15s (default of Contour 1.33; f0.yaml:7:5)",
		"    timeoutPolicy: {response: 4s}": "4s (f0.yaml:8:31)",
		"    timeoutPolicy: {response: infinity}": "none (f0.yaml:8:31)",
		"    timeoutPolicy: {response: 0s}":       "15s (default of Contour 1.33; f0.yaml:7:5)",
	} {
		if got := only(t, read(t, "1.33", proxy(keys))).Overall.String(); got != want {
			t.Errorf("%s: %s, want %s", keys, got, want)
		}
	}
	l := only(t, read(t, "1.33", proxy("")))
	if got := l.Budget.Concurrent.String(); got != "3 (default of Contour 1.33; f0.yaml:7:5)" {
		t.Errorf("%s retries at once", got)
	}
	l = only(t, read(t, "1.33", proxy(""), "apiVersion: v1\nkind: Service\nmetadata:\n  name: orders\n  annotations:\n"+
		"    projectcontour.io/max-retries: '9'\n"))
	if got := l.Budget.Concurrent.String(); got != "9 (f1.yaml:6:36)" {
		t.Errorf("%s retries at once", got)
	}
}

func TestRoutesOfIncludedProxiesHaveTheHostOfTheirRoot(t *testing.T) {
	root := `apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: root, namespace: shop}
spec:
  virtualhost: {fqdn: www.example.com}
  includes: [{name: shop, conditions: [{prefix: /api}]}]
`
	inner := strings.Replace(proxy("    conditions: [{prefix: /v1}, {header: {name: ':method', exact: GET}}]\n"),
		"  virtualhost: {fqdn: shop.example.com}\n", "", 1)
	f := read(t, "", inner, root)
	l := only(t, f)
	if l.Match.Host != "www.example.com" || l.Match.Path != "/api/v1*" || l.Match.Methods[0] != "GET" {
		t.Errorf("%+v", l.Match)
	}
	if f.Calls[0].To != "orders.shop" || f.Services[0].Aliases[0] != "www.example.com" {
		t.Errorf("%s", f.YAML())
	}
	if l := only(t, read(t, "", inner)); l.Match.Host != "" {
		t.Errorf("without its root: %+v", l.Match)
	}
}

func TestWhatMeansSomethingElseIsRemarked(t *testing.T) {
	for _, c := range []struct{ keys, version, rule, fix string }{
		{"    retryPolicy: {count: 0}", "", "F604", "-1"},
		{"    retryPolicy: {count: -1}", "1.32", "F604", "update"},
		{"    timeoutPolicy: {response: 0s}", "", "F604", "infinity"},
		{"    retryPolicy: {retryOn: ['5xxx']}", "", "F601", "5xx"},
		{"    retryPolicy: {numRetries: 3}", "", "F601", "count"},
		{"    retryPolicy: {retriableStatusCodes: [429]}", "", "F601", "retriable-status-codes"},
	} {
		f := read(t, c.version, proxy(c.keys))
		if len(f.Remarks) != 1 || f.Remarks[0].Rule != c.rule || !strings.Contains(f.Remarks[0].Fix, c.fix) ||
			f.Remarks[0].At.Line != 8 {
			t.Errorf("%s: %+v", c.keys, f.Remarks)
		}
	}
}

func FuzzReadingDoesNotPanic(f *testing.F) {
	f.Add([]byte(proxy("    retryPolicy: {count: 3, retryOn: ['5xx']}\n    timeoutPolicy: {response: infinity}\n")))
	f.Add([]byte("apiVersion: projectcontour.io/v1\nkind: HTTPProxy\nmetadata: {name: a}\n" +
		"spec: {includes: [{name: a}, {name: a}]}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, _ := source.YAML("f.yaml", data)
		for _, d := range docs {
			contour.Recognise(d)
		}
		joined, _ := contour.Read(docs, source.Assume{}).Join()
		joined.YAML()
	})
}

func TestWebsocketsAreAnUpgrade(t *testing.T) {
	for keys, want := range map[string]bool{"    enableWebsockets: true\n": true, "    enableWebsockets: false\n": false} {
		if got := only(t, read(t, "", proxy(keys))).Upgrades.Or(false); got != want {
			t.Errorf("%s: %v", keys, got)
		}
	}
}
