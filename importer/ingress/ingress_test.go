package ingress_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/importer/ingress"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// ingressOf is an Ingress with one path to orders; meta is more of its metadata and class a line of its spec.
func ingressOf(meta, class string) string {
	return `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
  namespace: shop
` + meta + `spec:
` + class + `  rules:
  - host: shop.example.com
    http:
      paths:
      - path: /orders
        pathType: Prefix
        backend: {service: {name: orders, port: {number: 80}}}
`
}

const nginxClass = "  ingressClassName: nginx\n"

// annotations are those of ingress-nginx, as metadata.
func annotations(lines ...string) string {
	all := "  annotations:\n"
	for _, l := range lines {
		all += "    nginx.ingress.kubernetes.io/" + l + "\n"
	}
	return all
}

func readAs(t *testing.T, assume source.Assume, texts ...string) topology.Form {
	t.Helper()
	var docs []source.Document
	for i, text := range texts {
		all, _ := source.YAML(fmt.Sprintf("%d.yaml", i), []byte(text))
		for _, d := range all {
			if !ingress.Recognise(d) {
				t.Fatalf("it is not recognised: %s", d.Data)
			}
		}
		docs = append(docs, all...)
	}
	return ingress.Read(docs, assume)
}

func read(t *testing.T, texts ...string) topology.Form {
	t.Helper()
	return readAs(t, source.Assume{}, texts...)
}

// only returns the layer of the only call.
func only(t *testing.T, f topology.Form) topology.Layer {
	t.Helper()
	if len(f.Calls) != 1 || len(f.Calls[0].Layers) != 1 {
		t.Fatalf("%s", f.YAML())
	}
	return f.Calls[0].Layers[0]
}

// rules are the remarks, with their lines.
func rules(f topology.Form) (all []string) {
	for _, r := range f.Remarks {
		all = append(all, fmt.Sprintf("%s:%d", r.Rule, r.At.Line))
	}
	return all
}

func TestIngressNginxTriesThreeTimes(t *testing.T) {
	f := read(t, ingressOf("", nginxClass))
	l := only(t, f)
	for _, c := range []struct{ got, want string }{
		{f.Calls[0].From + " " + f.Calls[0].To + " " + f.Calls[0].At.String(), "ingress-nginx orders.shop 0.yaml:12:9"},
		{l.Repeats[0].Tries.String(), "3 (default of ingress-nginx 1.15; 0.yaml:4:3)"},
		{l.Match.Host + l.Match.Path, "shop.example.com/orders*"},
		{l.PerTry.String(), "1m0s (default of ingress-nginx 1.15; 0.yaml:4:3)"},
		{l.Connect.String(), "5s (default of ingress-nginx 1.15; 0.yaml:4:3)"},
		{l.Overall.String(), "none (default of ingress-nginx 1.15; 0.yaml:4:3)"},
		{fmt.Sprintln(f.Services[0].Proxy, f.Services[0].AnswersWith.V, len(f.Remarks)), "true same 0\n"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	for _, c := range []struct {
		o    topology.Outcome
		m    topology.Methods
		want int
	}{{topology.Refused, topology.Unsafe, 3}, {topology.Hang, topology.Safe, 3}, {topology.Hang, topology.Unsafe, 1},
		{topology.ResetSent, topology.Unsafe, 1}, {topology.S503, topology.Safe, 1}} {
		if got := l.Tries(c.o, c.m).N; got != c.want {
			t.Errorf("%v %v: %d tries, want %d", c.o, c.m, got, c.want)
		}
	}
	if longest, _ := l.Longest(topology.Hang, topology.Safe); longest != 3*time.Minute {
		t.Errorf("a hang lasts %v", longest)
	}
}

func TestAnnotationsOfIngressNginxAreRead(t *testing.T) {
	f := read(t, ingressOf(annotations("proxy-next-upstream: error timeout http_503 non_idempotent",
		"proxy-next-upstream-tries: \"5\"", "proxy-next-upstream-timeout: \"9\"", "proxy-read-timeout: \"7\"",
		"proxy-connect-timeout: \"2\"", "proxy-send-timeout: \"8\"", "service-upstream: \"true\""), nginxClass))
	l := only(t, f)
	for _, c := range []struct{ got, want string }{
		{l.Repeats[0].Tries.String(), "5 (0.yaml:8:60)"},
		{l.Overall.String(), "9s (0.yaml:9:62)"},
		{l.PerTry.String(), "7s (0.yaml:10:53)"},
		{l.Connect.String(), "2s (0.yaml:11:56)"},
		{l.Repeats[len(l.Repeats)-1].Word + " " + l.Repeats[len(l.Repeats)-1].At.String(), "http_503 0.yaml:7:68"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	if l.Tries(topology.S503, topology.Unsafe).N != 5 || l.Tries(topology.S502, topology.Safe).N != 1 ||
		l.Tries(topology.Hang, topology.Safe).N != 2 || !l.StartsOnly || len(f.Remarks) > 0 {
		t.Errorf("%s", f.YAML())
	}
}

func TestZeroTriesOfIngressNginxAreWithoutALimit(t *testing.T) {
	l := only(t, read(t, ingressOf(annotations("proxy-next-upstream-tries: \"0\""), nginxClass)))
	if n := l.Tries(topology.Refused, topology.Safe).N; n != topology.Unbounded {
		t.Errorf("%d tries", n)
	}
	off := only(t, read(t, ingressOf(annotations("proxy-next-upstream: \"off\""), nginxClass)))
	if n := off.Tries(topology.Refused, topology.Safe).N; n != 1 {
		t.Errorf("%d tries of what is off", n)
	}
}

func TestWhatIngressNginxCannotReadLeavesItsDefault(t *testing.T) {
	f := read(t, ingressOf(annotations("proxy-read-timeout: 30s", "proxy-next-upstream: error, timeout",
		"proxy-next-upstream-tries: \"{{ .Values.tries }}\""), nginxClass))
	l := only(t, f)
	if got := rules(f); !slices.Equal(got, []string{"F601:7", "F702:9", "F601:8"}) || l.PerTry.V != time.Minute ||
		!l.Repeats[0].Tries.IsUnknown() || len(l.Repeats) != 3 {
		t.Errorf("%v\n%s", got, f.YAML())
	}
}

func TestCallsOfGRPCAreRepeatedWithoutALimit(t *testing.T) {
	f := read(t, ingressOf(annotations("backend-protocol: grpc", "proxy-next-upstream-tries: \"2\""), nginxClass))
	l := only(t, f)
	if got := rules(f); !slices.Equal(got, []string{"F602:8"}) || l.Tries(topology.Refused,
		topology.Unsafe).N != topology.Unbounded || l.Tries(topology.Hang, topology.Unsafe).N != 1 ||
		l.Tries(topology.ResetSent, topology.Unsafe).N != 1 || l.Speaks.String() != "grpc (0.yaml:7:51)" {
		t.Errorf("%v\n%s", got, f.YAML())
	}
	l = only(t, read(t, ingressOf(annotations("backend-protocol: GRPCS", "configuration-snippet: |")+
		"      grpc_next_upstream_tries 4;\n", nginxClass)))
	if l.Repeats[0].Tries.String() != "4 (0.yaml:8:56)" {
		t.Errorf("with a snippet %s", l.Repeats[0].Tries)
	}
}

func TestTheConfigMapOfIngressNginxHoldsForEveryIngress(t *testing.T) {
	const config = `apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: ingress-nginx}
data:
  proxy-next-upstream-tries: "2"
  proxy-read-timeout: "5"
  proxy-next-upstream: error
  retry-non-idempotent: "true"
`
	f := read(t, ingressOf(annotations("proxy-read-timeout: \"7\""), nginxClass), config)
	l := only(t, f)
	if l.Repeats[0].Tries.String() != "2 (inherited from the ConfigMap of ingress-nginx; 1.yaml:5:30)" ||
		l.PerTry.String() != "7s (0.yaml:7:53)" || l.Tries(topology.ResetSent, topology.Unsafe).N != 2 ||
		l.Tries(topology.Hang, topology.Safe).N != 1 {
		t.Errorf("%s", f.YAML())
	}
	for text, want := range map[string]bool{
		config: true,
		"kind: ConfigMap\nmetadata: {name: web}\ndata: {proxy-read-timeout: \"60s\"}\n":                false,
		"kind: ConfigMap\nmetadata: {name: nginx-configuration}\ndata: {proxy-read-timeout: \"60\"}\n": true,
		"apiVersion: config.openshift.io/v1\nkind: Ingress\nmetadata: {name: cluster}\n":               false,
		"apiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: {name: old}\n":                       true,
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\n":                                         false,
		"apiVersion: v1\nkind: Service\nmetadata: {name: a, annotations: {konghq.com/retries: \"1\"}}": true,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ingress-nginx}\ndata: {tcp: \"9000\"}\n":    false,
		"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: deny}\nspec: {}\n":    false,
		"apiVersion: networking.internal.knative.dev/v1alpha1\nkind: Ingress\nmetadata: {name: hello}": false,
	} {
		docs, _ := source.YAML("f", []byte(text))
		if got := ingress.Recognise(docs[0]); got != want {
			t.Errorf("recognised %v: %s", got, text)
		}
	}
}

func TestTheClassSaysWhoServesAnIngress(t *testing.T) {
	class := func(controller, more string) string {
		return "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: main" + more +
			"}\nspec: {controller: " + controller + "}\n"
	}
	const byDefault = ", annotations: {ingressclass.kubernetes.io/is-default-class: \"true\"}"
	for _, c := range []struct {
		from, product string
		texts         []string
	}{
		{"ingress-nginx", "ingress-nginx", []string{
			ingressOf("  annotations: {kubernetes.io/ingress.class: nginx}\n", "")}},
		{"ingress-nginx-internal", "ingress-nginx", []string{ingressOf("", "  ingressClassName: nginx-internal\n")}},
		{"ingress-main", "ingress-nginx", []string{ingressOf("", "  ingressClassName: main\n"),
			class("k8s.io/ingress-nginx", "")}},
		{"ingress-main", "ingress-nginx", []string{ingressOf("", ""), class("k8s.io/internal-ingress-nginx", byDefault)}},
		{"ingress-main", "kong-ingress-controller", []string{ingressOf("", "  ingressClassName: main\n"),
			class("ingress-controllers.konghq.com/kong", "")}},
		{"ingress-main", "", []string{ingressOf("", "  ingressClassName: main\n"),
			class("traefik.io/ingress-controller", "")}},
		{"ingress", "", []string{ingressOf("", ""), class("k8s.io/ingress-nginx", "")}},
		{"ingress", "", []string{ingressOf("", "  ingressClassName: \"{{ .Values.class }}\"\n")}},
		{"ingress-nginx", "ingress-nginx", []string{ingressOf(annotations("use-regex: \"true\""), "")}},
		{"ingress-nginx", "", []string{
			ingressOf("  annotations: {nginx.org/mergeable-ingress-type: master}\n", nginxClass)}},
		{"ingress-kong", "kong-ingress-controller", []string{ingressOf("", "  ingressClassName: kong\n")}},
		{"traefik", "", []string{ingressOf("", "  ingressClassName: traefik\n")}},
		{"ingress-nginx-plus", "", []string{ingressOf("", "  ingressClassName: nginx-plus\n")}},
		{"ingress-alb", "", []string{ingressOf("", "  ingressClassName: alb\n")}},
		{"ingress-haproxy", "", []string{ingressOf("", "  ingressClassName: haproxy\n")}},
	} {
		f := read(t, c.texts...)
		product := ""
		for _, l := range f.Calls[0].Layers {
			product = l.Product
		}
		if f.Calls[0].From != c.from || f.Calls[0].To != "orders.shop" || product != c.product || len(f.Remarks) > 0 ||
			!f.Services[0].Proxy {
			t.Errorf("from %s by %q, want %s by %q; remarks %v", f.Calls[0].From, product, c.from, c.product, f.Remarks)
		}
	}
}

// The controller of NGINX Inc. serves the same class. Its image says so, unless the other runs too.
func TestTheImageOfAControllerSaysWhoseAClassIs(t *testing.T) {
	inc, other := topology.Write("3.6", topology.Position{}), topology.Write("1.12", topology.Position{})
	for want, images := range []map[string]topology.Value[string]{
		{"nginx-ingress": inc}, {"nginx-ingress": inc, "ingress-nginx": other},
	} {
		f := readAs(t, source.Assume{Images: images}, ingressOf("", nginxClass))
		if got := len(f.Calls[0].Layers); got != want {
			t.Errorf("%v: %d layers, want %d", images, got, want)
		}
	}
}

// Each Ingress leaves a limit out for itself: a change, or a comment that accepts it, is about that one.
func TestADefaultLimitStandsAtItsOwnIngress(t *testing.T) {
	for _, class := range []string{nginxClass, kongClass} {
		f := read(t, ingressOf("", class), ingressOf("", class))
		first, second := f.Calls[0].Layers[0], f.Calls[1].Layers[0]
		if first.PerTry.At.File != "0.yaml" || second.PerTry.At.File != "1.yaml" {
			t.Errorf("%s", f.YAML())
		}
	}
}

func TestAnIngressWithMiddlewaresIsReadByTraefiksImporter(t *testing.T) {
	f := read(t, ingressOf("  annotations:\n"+
		"    traefik.ingress.kubernetes.io/router.middlewares: a-b@kubernetescrd\n", ""))
	if len(f.Calls)+len(f.Services) > 0 {
		t.Errorf("%s", f.YAML())
	}
}

func TestOldIngressesAndDefaultBackEndsLeadSomewhere(t *testing.T) {
	f := read(t, `apiVersion: extensions/v1beta1
kind: Ingress
metadata:
  name: old
  annotations:
    kubernetes.io/ingress.class: nginx
    nginx.ingress.kubernetes.io/default-backend: sorry
spec:
  backend: {serviceName: rest, servicePort: 80}
  rules:
  - http:
      paths:
      - backend: {serviceName: orders, servicePort: 80}
      - path: /redirect
        backend: {serviceName: redirect, servicePort: use-annotation}
`)
	var to []string
	for _, c := range f.Calls {
		to = append(to, c.To+" "+c.Layers[0].Match.Path+c.Layers[0].Match.Other)
	}
	want := []string{"orders ", "rest ", "sorry while no endpoint of the service is ready"}
	if !slices.Equal(to, want) || len(f.Remarks) > 0 {
		t.Errorf("%q, want %q; %v", to, want, f.Remarks)
	}
}

func TestThePathOfARuleIsTheConditionOfItsCalls(t *testing.T) {
	for _, c := range []struct{ metadata, class, path, kind, want string }{
		{"", nginxClass, "/orders", "Prefix", "/orders*"},
		{"", nginxClass, "/orders", "Exact", "/orders"},
		{"", nginxClass, "/", "Prefix", ""},
		{annotations("use-regex: \"true\""), nginxClass, "/o(/|$)(.*)", "ImplementationSpecific", "~/o(/|$)(.*)"},
		{"", kongClass, "/~/o/\\d+", "ImplementationSpecific", "~/o/\\d+"},
	} {
		text := strings.NewReplacer("path: /orders", "path: "+c.path, "Prefix",
			c.kind).Replace(ingressOf(c.metadata, c.class))
		if got := only(t, read(t, text)).Match.Path; got != c.want {
			t.Errorf("%s %s: %q, want %q", c.kind, c.path, got, c.want)
		}
	}
}

func TestACanaryIsTriedAsTheIngressBesideIt(t *testing.T) {
	main := ingressOf(annotations("proxy-next-upstream-tries: \"2\""), nginxClass)
	canary := func(more ...string) string {
		text := ingressOf(annotations(append([]string{"canary: \"true\""}, more...)...), nginxClass)
		return strings.NewReplacer("name: web", "name: next", "name: orders", "name: orders-next").Replace(text)
	}
	f := read(t, canary("canary-weight: \"10\"", "proxy-next-upstream-tries: \"9\""), main)
	if len(f.Calls) != 2 || f.Calls[1].To != "orders-next.shop" || f.Calls[1].Layers[0].Repeats[0].Tries.V != 2 ||
		f.Calls[1].Layers[0].At.File != "0.yaml" || !slices.Equal(rules(f), []string{"F602:9"}) {
		t.Errorf("%v\n%s", rules(f), f.YAML())
	}
	// The same host in two namespaces is mostly that of two clusters.
	at := func(namespace, text string) string {
		return strings.Replace(text, "namespace: shop", "namespace: "+namespace, 1)
	}
	own := at("stage", ingressOf(annotations("proxy-next-upstream-tries: \"4\""), nginxClass))
	for _, texts := range [][]string{{main, own, at("stage", canary())}, {own, main, at("stage", canary())}} {
		f := read(t, texts...)
		if got := f.Calls[len(f.Calls)-1]; got.To != "orders-next.stage" || got.Layers[0].Repeats[0].Tries.V != 4 {
			t.Errorf("a canary beside an Ingress of its namespace: %s", f.YAML())
		}
	}
	if f := read(t, main, at("stage", canary())); f.Calls[1].Layers[0].Repeats[0].Tries.V != 2 { // as its controller does
		t.Errorf("a canary beside an Ingress of another namespace only: %s", f.YAML())
	}
	if f := read(t, canary("canary-weight: \"0\""), main); len(f.Calls) != 1 {
		t.Errorf("a canary that gets nothing is called: %s", f.YAML())
	}
	if f := read(t, canary("canary-by-header: x")); len(f.Calls) != 1 || len(f.Calls[0].Layers) != 0 {
		t.Errorf("a canary whose Ingress is in no file: %s", f.YAML())
	}
	if f := read(t, ingressOf(annotations("permanent-redirect: https://example.com"), nginxClass)); len(f.Calls) > 0 {
		t.Errorf("a redirect calls: %s", f.YAML())
	}
}

func TestBadIngressesAreSaid(t *testing.T) {
	const head = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a}\nspec:\n"
	for text, want := range map[string]string{
		head + "  tls: []\n":                                                           "F702:1",
		head + "  rules: {host: a}\n":                                                  "F606:5",
		head + "  rules: \"{{ .Values.rules }}\"\n":                                    "F702:5",
		head + "  rules:\n  - http: {paths: none}\n":                                   "F606:6",
		head + "  rules:\n  - http: {paths: [{path: /}]}\n":                            "F606:6",
		head + "  defaultBackend:\n    service: {port: {number: 80}}\n":                "F606:6",
		head + "  defaultBackend:\n    service: {name: \"{{ .Release.Name }}-web\"}\n": "F702:6",
		head + "  defaultBackend:\n    resource: {kind: Bucket, name: icons}\n":        "F702:6",
		head + "  rules: [{host: example.com}]\n":                                      "",
	} {
		f := read(t, text)
		if got := strings.Join(rules(f), " "); got != want || len(f.Calls) > 0 {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	if f := read(t, head+"  tls: []\n", ingressOf("", "")+"---\n"+strings.Replace(head, "a}", "web}", 1)+
		"  ingressClassName: x\n"); len(f.Remarks) != 1 {
		t.Errorf("the patch of an Ingress is one without rules: %v", f.Remarks)
	}
}

// Which files come first decides nothing: names of files order what contradicts.
func TestTheOrderOfFilesChangesNothing(t *testing.T) {
	const class = "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: %s, annotations: " +
		"{ingressclass.kubernetes.io/is-default-class: \"true\"}}\nspec: {controller: %s}\n"
	texts := []string{ingressOf(annotations(`proxy-next-upstream-tries: "5"`), nginxClass),
		ingressOf(annotations(`proxy-next-upstream-tries: "4"`), nginxClass),
		ingressOf(annotations(`canary: "true"`), nginxClass), ingressOf("", ""),
		fmt.Sprintf(class, "one", "k8s.io/ingress-nginx"), fmt.Sprintf(class, "two", "ingress-controllers.konghq.com/kong"),
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {proxy-next-upstream-timeout: \"7\"}\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {proxy-next-upstream-timeout: \"8\"}\n"}
	var docs []source.Document
	for i, text := range texts {
		all, _ := source.YAML(fmt.Sprintf("%d.yaml", i), []byte(text))
		docs = append(docs, all...)
	}
	want := fmt.Sprintf("%+v", ingress.Read(docs, source.Assume{}))
	slices.Reverse(docs)
	if got := fmt.Sprintf("%+v", ingress.Read(docs, source.Assume{})); got != want {
		t.Errorf("from the last file to the first\n%s\nand else\n%s", got, want)
	}
}
