package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/importer"
)

const manager = `"@type": "type.googleapis.com/envoy.extensions.filters.network.` +
	`http_connection_manager.v3.HttpConnectionManager"`

// accepting are files with a finding, and how a comment is written in them.
var accepting = map[string]struct{ text, above, behind string }{
	"lb/nginx.conf": {"http {\n  upstream orders { server a:80; server b:80; }\n  server {\n    location / {\n" +
		"      proxy_pass http://orders;\n      proxy_next_upstream error http_500 non_idempotent;\n    }\n  }\n}\n",
		"# %s", " # %s"},
	"lb/haproxy.cfg": {"frontend f\n  bind :80\n  default_backend orders\nbackend orders\n  mode http\n  retries 4\n" +
		"  retry-on all-retryable-errors\n  server a orders:80\n", "# %s", " # %s"},
	"shop/src/main/resources/application.properties": {"spring.application.name=shop\n" +
		"resilience4j.retry.instances.orders.maxAttempts=4\nresilience4j.retry.instances.orders.waitDuration=1s\n",
		"! %s", ""},
	"mesh/envoy.json": {`{"static_resources": {"listeners": [{"name": "l", "filter_chains": [{"filters": [{` +
		`"name": "envoy.filters.network.http_connection_manager", "typed_config": {` + manager + `,
  "route_config": {"virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {
  "cluster": "orders", "retry_policy": {
  "retry_on": "5xx",
  "num_retries": 4 } } } ] } ] } } } ] } ] } ], "clusters": [ { "name": "orders" } ] } }
`, `"//": "%s",`, ""},
}

func states(files []importer.File, rule string) (all []audit.Finding) {
	for _, f := range audit.Run(files, audit.Options{}).Findings {
		if f.Rule == rule {
			all = append(all, f)
		}
	}
	return all
}

func TestACommentAcceptsAFindingInEveryFormat(t *testing.T) {
	for name, c := range accepting {
		r := audit.Run([]importer.File{{Name: name, Data: []byte(c.text)}}, audit.Options{})
		at := slices.IndexFunc(r.Findings, func(f audit.Finding) bool { return f.At.File == name && f.At.Line > 1 })
		if at < 0 {
			t.Fatalf("%s has no finding: %+v", name, r.Findings)
		}
		found := r.Findings[at]
		for comment, want := range map[string]audit.State{
			"abate:ignore " + found.Rule + " it is meant so": audit.Suppressed,
			"abate:ignore " + found.Rule:                     audit.New, // no reason
			"abate:ignore F999 it is meant so":               audit.New,
		} {
			lines := strings.Split(c.text, "\n")
			above := slices.Insert(slices.Clone(lines), found.At.Line-1, fmt.Sprintf(c.above, comment))
			texts := []string{strings.Join(above, "\n")}
			if c.behind != "" {
				lines[found.At.Line-1] += fmt.Sprintf(c.behind, comment)
				texts = append(texts, strings.Join(lines, "\n"))
			}
			for _, text := range texts {
				got := states([]importer.File{{Name: name, Data: []byte(text)}}, found.Rule)
				if !slices.ContainsFunc(got, func(f audit.Finding) bool {
					return f.State == want && (want == audit.New || f.Reason == "it is meant so") && f.At.Column == found.At.Column
				}) {
					t.Errorf("%s, %s: %+v of\n%s", name, comment, got, text)
				}
			}
		}
	}
}

const annotatedRoute = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: orders%s
spec:
  hosts: [orders]
  http:
  - route: [{destination: {host: orders}}]
    timeout: 30s
    retries: {attempts: 4, retryOn: 5xx}
`

// Only the annotation of the object itself counts: not one in a comment, in a text, or of another object.
func TestAnAnnotationAcceptsFindingsOfItsObjectOnly(t *testing.T) {
	const own = "\n  annotations: {abate.dev/ignore: \"F301=orders are numbered; F999=x\"}"
	const folded = "\n  annotations:\n    abate.dev/ignore: >-\n      F301=orders are\n      numbered"
	plain := fmt.Sprintf(annotatedRoute, "")
	list := "apiVersion: v1\nkind: List\nitems:\n- metadata: {annotations: {abate.dev/ignore: F301=another}}\n" +
		"  kind: Service\n- " +
		strings.ReplaceAll(strings.TrimSpace(plain), "\n", "\n  ") + "\n"
	for text, want := range map[string]audit.State{
		fmt.Sprintf(annotatedRoute, own):                             audit.Suppressed,
		fmt.Sprintf(annotatedRoute, folded):                          audit.Suppressed,
		fmt.Sprintf(annotatedRoute, own) + "---\n" + "kind: Other\n": audit.Suppressed,
		plain: audit.New,
		"# abate.dev/ignore: F301=in a comment\n" + plain:                                    audit.New,
		fmt.Sprintf(annotatedRoute, "\n  labels: {x: \"abate.dev/ignore: F301=in a text\"}"): audit.New,
		fmt.Sprintf(annotatedRoute, "\n  annotations: {abate.dev/ignore: F301}"):             audit.New,
		"metadata: {annotations: {abate.dev/ignore: F301=another}}\nkind: X\n---\n" + plain:  audit.New,
		list: audit.New,
		strings.Replace(list, "  name: orders", "  name: orders\n    annotations: {abate.dev/ignore: F301=its own}",
			1): audit.Suppressed,
	} {
		got := states([]importer.File{{Name: "vs.yaml", Data: []byte(text)}}, "F301")
		if len(got) == 0 || got[0].State != want {
			t.Errorf("%+v, want state %d, of\n%s", got, want, text)
		}
	}
}

// Three copies of one Ingress have one finding about what none of them says.
func TestACopyThatDoesNotAcceptAFindingKeepsIt(t *testing.T) {
	const ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: one%s\nspec:\n" +
		"  ingressClassName: nginx\n  rules:\n  - http:\n      paths:\n" +
		"      - {path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}\n"
	const accepts = " # abate:ignore F107 it is meant so"
	for _, c := range []struct {
		comments [3]string
		at       string
		want     audit.State
	}{
		{[3]string{}, "a.yaml", audit.New},
		{[3]string{accepts}, "b.yaml", audit.New},
		{[3]string{accepts, accepts}, "c.yaml", audit.New},
		{[3]string{"", accepts, accepts}, "a.yaml", audit.New},
		{[3]string{accepts, accepts, accepts}, "a.yaml", audit.Suppressed},
	} {
		var files []importer.File
		for i, comment := range c.comments {
			files = append(files, importer.File{Name: string(rune('a'+i)) + ".yaml", Data: fmt.Appendf(nil, ingress, comment)})
		}
		got := states(files, "F107")
		if len(got) != 1 || got[0].State != c.want || got[0].At.File != c.at || len(got[0].Related) != 2 {
			t.Errorf("%q: %+v, want it at %s, state %v", c.comments, got, c.at, c.want)
		}
	}
}
