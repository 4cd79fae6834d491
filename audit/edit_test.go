package audit_test

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

const before = `# who calls whom
a: {retries: 3} # stays
b: "12"
c: 1
d: 1
e: 1
f: 1
g: 1
h: 1
i: ü 5`

func edit(line, column int, from, to string) audit.Edit {
	return audit.Edit{At: topology.Position{File: "f.yaml", Line: line, Column: column}, Old: from, New: to}
}

func TestEditsChangeNothingButTheNumbers(t *testing.T) {
	files := []importer.File{{Name: "f.yaml", Data: []byte(before)}, {Name: "g.yaml", Data: []byte("x")}}
	got, left := audit.Apply(files, []audit.Edit{edit(2, 14, "3", "0"), edit(3, 4, "12", "1"), edit(10, 6, "5", "10"),
		edit(4, 4, "7", "8"), edit(99, 1, "1", "2")})
	want := strings.NewReplacer("retries: 3", "retries: 0", `"12"`, `"1"`, "ü 5", "ü 10").Replace(before)
	if string(got[0].Data) != want || string(got[1].Data) != "x" {
		t.Errorf("got\n%s\nwant\n%s", got[0].Data, want)
	}
	if len(left) != 2 {
		t.Errorf("%d edits were left, want the two that found something else: %+v", len(left), left)
	}
	if string(files[0].Data) != before {
		t.Error("the file given has changed")
	}
}

func TestADiffIsWhatGitApplies(t *testing.T) {
	files := []importer.File{{Name: "f.yaml", Data: []byte(before)}}
	changed, _ := audit.Apply(files, []audit.Edit{edit(2, 14, "3", "0"), edit(3, 4, "12", "1"), edit(10, 6, "5", "10")})
	diff := audit.Diff("f.yaml", files[0].Data, changed[0].Data)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f.yaml"), files[0].Data, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("git", "apply", "-")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(diff)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v\n%s\n%s", err, out, diff)
	}
	got, err := os.ReadFile(filepath.Join(dir, "f.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(changed[0].Data) {
		t.Errorf("git made\n%s\nof\n%s", got, diff)
	}
	if audit.Diff("f.yaml", []byte(before), []byte(before)) != "" {
		t.Error("a file that has not changed has a diff")
	}
}

// gitApplies applies a diff in a folder below the top of a repository, as people do, and returns a file of it.
func gitApplies(t *testing.T, folder, name, diff string) string {
	t.Helper()
	cmd := exec.Command("git", "-C", folder, "apply", "-")
	cmd.Stdin = strings.NewReader(diff)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v\n%s\n%s", err, out, diff)
	}
	got, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

const deep = "calls:\n- {from: a, to: b, layers: [{kind: client, repeats: [{on: [\"503\"], tries: 9}]}]}\n"

func TestTheDiffOfFilesElsewhereIsOneThatGitTakes(t *testing.T) {
	for _, name := range []string{"x/y/calls.yaml", "../shop/calls.yaml", "../../calls.yaml", "/srv/shop/calls.yaml"} {
		files := []importer.File{{Name: name, Data: []byte(deep)}}
		r := audit.Run(files, audit.Options{})
		r.Propose(files, lint.Options{})
		top := t.TempDir()
		if out, err := exec.Command("git", "init", "-q", top).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		file := filepath.Base(name)
		if !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "/") {
			file = name
		} else if folder := filepath.Dir(name); !strings.Contains(r.Diff, "git -C \""+folder+"\" apply") {
			t.Errorf("%s: the diff does not say where it applies:\n%s", name, r.Diff)
		}
		place := filepath.Join(top, "below", file)
		if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(place, []byte(deep), 0o600); err != nil {
			t.Fatal(err)
		}
		got := gitApplies(t, filepath.Join(top, "below"), file, r.Diff)
		if want := strings.Replace(deep, "tries: 9", "tries: 1", 1); got != want {
			t.Errorf("%s: git made\n%s", name, got)
		}
	}
}

// absent are files that leave out the number whose default makes most of the attempts: the name, the service that they
// belong to, the text, and what is to be found in it afterwards.
var absent = [][4]string{
	{"kong/kong.yaml", "kong", "_format_version: \"3.0\"\nservices:\n# the first\n- name: orders # main\n" +
		"  host: orders\n  port: 80\n\n- name: stock\n  host: stock\n  retries: 0\n", "name: orders # main\n" +
		"  retries: 0\n"},
	{"envoy/envoy.yaml", "envoy", "static_resources:\n  listeners:\n  - name: l\n    filter_chains:\n" +
		"    - filters:\n      - name: envoy.filters.network.http_connection_manager\n        typed_config:\n" +
		"          " + manager + "\n" +
		"          route_config:\n            virtual_hosts:\n            - name: v\n              domains: [\"*\"]\n" +
		"              routes:\n              - match: {prefix: /}\n                route:\n" +
		"                  cluster: orders\n                  retry_policy:\n                    # no number\n" +
		"                    retry_on: 5xx # all\n                    per_try_timeout: 1s\n  clusters:\n" +
		"  - name: orders\n    load_assignment:\n      endpoints:\n      - lb_endpoints:\n" +
		"        - endpoint: {address: {socket_address: {address: orders, port_value: 80}}}\n", "retry_on: 5xx # all\n" +
		"                    num_retries: 0\n"},
	{"envoy/envoy.json", "envoy", `{"static_resources": {"listeners": [{"name": "l", "filter_chains": [{"filters": [` +
		`{"name": "envoy.filters.network.http_connection_manager", "typed_config": {` + manager + `, "route_config": ` +
		`{"virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": ` +
		`{"cluster": "orders", "retry_policy": {"retry_on": "5xx"}}}]}]}}}]}]}], "clusters": [{"name": "orders"}]}}`,
		`{"num_retries": 0, "retry_on": "5xx"}`},
	{"vs.yaml", "shop", "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: orders}\n" +
		"spec:\n  hosts: [orders]\n  http:\n  - route:\n    - destination: {host: orders}\n    # slow\n" +
		"    timeout: 5s\n", "  - route:\n    - destination: {host: orders}\n    retries: {attempts: 0}\n"},
	{"shop/src/main/resources/application.yaml", "shop", "resilience4j:\n  retry:\n    instances:\n      orders:\n" +
		"        waitDuration: 1s # why\n", "orders:\n        maxAttempts: 1\n        waitDuration: 1s # why\n"},
	{"shop/src/main/resources/application.yaml", "shop", "resilience4j:\n  retry:\n    instances:\n" +
		"      orders: {}\n", "orders: {maxAttempts: 1}"},
	{"shop/src/main/resources/application.yaml", "shop", "resilience4j:\n  retry:\n" +
		"    instances: {orders: {waitDuration: 1s}}\n", "{orders: {maxAttempts: 1, waitDuration: 1s}}"},
	{"shop/src/main/resources/application.properties", "shop", "# r\n" +
		"resilience4j.retry.instances.orders.waitDuration=1s\n", "waitDuration=1s\n" +
		"resilience4j.retry.instances.orders.maxAttempts=1\n"},
	{"shop/nginx.conf", "shop", "http {\n  upstream orders { server a:80; server b:80; server c:80; }\n  server {\n" +
		"    location / {\n      proxy_pass http://orders; # here\n    }\n  }\n}\n", "orders; # here\n" +
		"      proxy_next_upstream_tries 1;\n"},
	{"shop/nginx.conf", "shop", "http {\n  proxy_next_upstream error timeout http_503;\n" +
		"  upstream orders { server a:80; server b:80; server c:80; }\n  server {\n    location / {\n" +
		"      proxy_pass http://orders; # here\n    }\n  }\n}\n", "http_503;\n  proxy_next_upstream_tries 1;\n"},
	{"shop/haproxy.cfg", "shop", "frontend f\n    bind :80\n    default_backend orders\n\n# the backend\n" +
		"backend orders\n    mode http\n    retry-on all-retryable-errors\n    server a orders:80\n",
		"backend orders\n    retries 0\n"},
	{"shop/policy.yaml", "shop", "services:\n  orders:\n    retryOn: [\"503\"]\n" +
		"    upstreams: [\"http://orders:80\"]\n", "  orders:\n    maxRetries: 0\n"},
	{"dapr.yaml", "shop", "apiVersion: dapr.io/v1alpha1\nkind: Resiliency\nmetadata: {name: r}\nspec:\n" +
		"  policies:\n    retries:\n      often:\n        policy: constant\n        duration: 1s\n  targets:\n" +
		"    apps:\n      orders: {retry: often}\n", "policy: constant\n        maxRetries: 0\n"},
	{"eg.yaml", "edge", traffic("  retry: {}\n"), "  retry: {numRetries: 0}\n"},
	{"eg.yaml", "edge", traffic("  retry: # why\n    perRetry: {timeout: 1s}\n  timeout: {http: {requestTimeout: 2s}}\n"),
		"  retry: # why\n    perRetry: {timeout: 1s}\n    numRetries: 0\n  timeout"},
	{"route.yaml", "edge", edge("eg", "    retry: {codes: [503]}\n"), "    retry: {attempts: 1, codes: [503]}\n"},
	{"route.yaml", "edge", edge("istio", "    retry:\n      codes: [503]\n"), "      codes: [503]\n      attempts: 1\n"},
	{"route.yaml", "edge", edge("istio", ""), "port: 8080}]\n    retry: {attempts: 1}\n"},
	{"ingress.yaml", "ingress-nginx", edgeOf("nginx", ""), "  name: orders\n" +
		"  annotations: {nginx.ingress.kubernetes.io/proxy-next-upstream-tries: \"1\"}\n"},
	{"ingress.yaml", "ingress-nginx", edgeOf("nginx", "  annotations:\n    a: b # c\n"), "    a: b # c\n" +
		"    nginx.ingress.kubernetes.io/proxy-next-upstream-tries: \"1\"\nspec"},
	{"ingress.yaml", "ingress-nginx", edgeOf("nginx", "  annotations: {a: b}\n"),
		"{nginx.ingress.kubernetes.io/proxy-next-upstream-tries: \"1\", a: b}\n"},
	{"ingress.yaml", "ingress-kong", edgeOf("kong", "") + "---\napiVersion: v1\nkind: Service\nmetadata:\n" +
		"  name: orders\n  annotations:\n    konghq.com/read-timeout: \"500\"\n", "    konghq.com/read-timeout: \"500\"\n" +
		"    konghq.com/retries: \"0\"\n"},
	{"kuma.yaml", "shop", "apiVersion: kuma.io/v1alpha1\nkind: MeshRetry\nmetadata: {name: p, namespace: kuma-system}\n" +
		"spec:\n  targetRef: {kind: Mesh}\n  to:\n  - targetRef: {kind: MeshService, name: orders}\n    default:\n" +
		"      grpc: {numRetries: 0}\n      http:\n        perTryTimeout: 1s\n",
		"        perTryTimeout: 1s\n        numRetries: 0\n"},
}

// edge is a gateway of the Gateway API with a route of orders; keys are more of its one rule.
func edge(class, keys string) string {
	return "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: edge, namespace: shop}\n" +
		"spec: {gatewayClassName: " + class + "}\n---\n" +
		"apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: orders, namespace: shop}\nspec:\n" +
		"  parentRefs: [{name: edge}]\n  hostnames: [shop.example.com]\n  rules:\n" +
		"  - backendRefs: [{name: orders, port: 8080}]\n" + keys
}

// edgeOf is an Ingress of a class that leads to orders; metadata is more of that.
func edgeOf(class, metadata string) string {
	return "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: orders\n" + metadata + "spec:\n" +
		"  ingressClassName: " + class + "\n  defaultBackend: {service: {name: orders, port: {number: 80}}}\n"
}

// traffic is Envoy Gateway's policy for that route.
func traffic(retry string) string {
	return edge("eg", "") + "---\napiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\n" +
		"metadata: {name: p, namespace: shop}\nspec:\n" +
		"  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: orders}]\n" + retry
}

func TestANumberThatAFileLeavesOutIsWrittenIntoIt(t *testing.T) {
	old := audit.Options{Assume: source.Assume{Versions: map[string]string{"istio": "1.23", "nginx": "1.26"}}}
	for _, c := range absent {
		calls := "services: [{name: " + c[1] + ", answersWith: same}]\ncalls: [{from: " + c[1] +
			", to: orders}, {from: root, to: " +
			c[1] + ", layers: [{kind: client, repeats: [{on: [\"503\", \"502\", \"504\", \"500\"], " +
			"tries: \"5 (assumed: somebody said so)\"}]}]}]\n"
		files := []importer.File{{Name: "calls.yaml", Data: []byte(calls)}, {Name: c[0], Data: []byte(c[2])}}
		r := audit.Run(files, old)
		r.Propose(files, lint.Options{})
		changed, left := audit.Apply(files, r.Changes)
		if got := string(changed[1].Data); !strings.Contains(got, c[3]) || len(left) > 0 {
			t.Errorf("%s: no %q in\n%s\nleft %q", c[0], c[3], got, r.Left)
			continue
		}
		if again := audit.Run(changed, old); again.Worst == nil || again.Worst.Most != r.After.Most ||
			again.Worst.Most >= r.Worst.Most {
			t.Errorf("%s: %v attempts were promised of %v, and read again they are %v", c[0], r.After.Most, r.Worst.Most,
				again.Worst.Most)
		}
		dir := t.TempDir()
		place := filepath.Join(dir, c[0])
		if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(place, []byte(c[2]), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := gitApplies(t, dir, c[0], r.Diff); got != string(changed[1].Data) {
			t.Errorf("%s: git made\n%s\nof\n%s", c[0], got, r.Diff)
		}
	}
}

// A line that is added ends as those of its file do.
func TestALineThatIsAddedEndsAsTheOthersDo(t *testing.T) {
	text := strings.ReplaceAll("_format_version: \"3.0\"\nservices:\n- name: orders\n  host: orders\n", "\n", "\r\n")
	files := []importer.File{{Name: "kong.yaml", Data: []byte(text)}}
	r := audit.Run(files, audit.Options{})
	r.Propose(files, lint.Options{})
	changed, _ := audit.Apply(files, r.Changes)
	if got := string(changed[0].Data); !strings.Contains(got, "orders\r\n  retries: 0\r\n  host") {
		t.Errorf("got %q of %v", got, r.Changes)
	}
}

// ingress-nginx takes 0 for tries without a limit.
func TestANoughtThatMeansNoLimitIsMadeOneTry(t *testing.T) {
	const key = "nginx.ingress.kubernetes.io/proxy-next-upstream-tries: "
	files := []importer.File{{Name: "ingress.yaml", Data: []byte(edgeOf("nginx", "  annotations:\n    "+key+"\"0\"\n"))}}
	r := audit.Run(files, audit.Options{})
	if r.Worst == nil || !math.IsInf(r.Worst.Most, 1) {
		t.Fatalf("%+v, want tries without a limit", r.Worst)
	}
	r.Propose(files, lint.Options{})
	changed, left := audit.Apply(files, r.Changes)
	if got := string(changed[0].Data); !strings.Contains(got, key+"\"1\"\n") || len(left) > 0 {
		t.Errorf("got %s of %v, left %v", got, r.Changes, left)
	}
	if again := audit.Run(changed, audit.Options{}); again.Worst != nil {
		t.Errorf("then %+v, want one attempt", again.Worst)
	}
}

func TestGitTakesTheDiffOfANameWithALineEnd(t *testing.T) {
	const name = "a\n\x1b\"b\\ü.yaml"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("a: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	diff := audit.Diff(name, []byte("a: 1\n"), []byte("a: 2\n"))
	if got := gitApplies(t, dir, name, diff); got != "a: 2\n" {
		t.Errorf("git made %q of\n%s", got, diff)
	}
}
