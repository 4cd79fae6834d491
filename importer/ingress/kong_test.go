package ingress_test

import (
	"slices"
	"testing"

	"github.com/abate-go/abate/importer/ingress"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

const (
	kongClass = "  ingressClassName: kong\n"
	service   = "apiVersion: v1\nkind: Service\nmetadata:\n  name: orders\n  namespace: shop\n  annotations:\n"
	override  = `apiVersion: configuration.konghq.com/v1
kind: KongIngress
metadata: {name: slow, namespace: shop}
proxy:
  retries: 8
  read_timeout: 9000
`
)

func TestKongsControllerWritesFiveRetries(t *testing.T) {
	l := only(t, read(t, ingressOf("", kongClass)))
	if got, want := l.Repeats[0].Tries.String(), "6 (default of Kong Ingress Controller 3.5; 0.yaml:12:9)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if l.Tries(topology.Hang, topology.Safe).N != 6 || l.Tries(topology.Hang, topology.Unsafe).N != 1 ||
		l.Tries(topology.Refused, topology.Unsafe).N != 6 {
		t.Errorf("%+v", l.Repeats)
	}
}

func TestAnnotationsOfAServiceAreReadForKong(t *testing.T) {
	f := read(t, ingressOf("", kongClass), service+"    konghq.com/retries: \"1\"\n"+
		"    konghq.com/read-timeout: \"2000\"\n"+
		"    konghq.com/connect-timeout: 1s\n    konghq.com/write-timeout: \"3000\"\n    konghq.com/protocol: grpcs\n")
	l := only(t, f)
	for _, c := range []struct{ got, want string }{
		{l.Repeats[0].Tries.String(), "2 (1.yaml:7:25)"},
		{l.PerTry.String(), "2s (1.yaml:8:30)"},
		{l.Speaks.String(), "grpc (1.yaml:11:26)"},
		{l.Connect.String(), "1m0s (default of Kong Ingress Controller 3.5; 1.yaml:7:5)"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	if got := rules(f); !slices.Equal(got, []string{"F601:9"}) {
		t.Errorf("remarks %v", f.Remarks)
	}
}

func TestAKongIngressHoldsBeforeThree(t *testing.T) {
	named := service + "    konghq.com/override: slow\n    konghq.com/read-timeout: \"2000\"\n"
	old := source.Assume{Versions: map[string]string{"kong-ingress-controller": "2.12"}}
	f := readAs(t, old, ingressOf("", kongClass), named, override)
	l := only(t, f)
	if l.Repeats[0].Tries.String() != "9 (2.yaml:5:12)" || l.PerTry.String() != "2s (1.yaml:8:30)" || len(f.Remarks) > 0 {
		t.Errorf("%s", f.YAML())
	}
	f = read(t, ingressOf("", kongClass), named, override)
	if l := only(t, f); l.Repeats[0].Tries.V != 6 || !slices.Equal(rules(f), []string{"F602:5"}) ||
		f.Remarks[0].Assumed == "" {
		t.Errorf("%s", f.YAML())
	}
}

func FuzzIngressIsReadWithoutAPanic(f *testing.F) {
	f.Add([]byte(ingressOf(annotations("canary: \"true\"", "proxy-next-upstream: error http_503",
		"default-backend: a"), nginxClass)))
	f.Add([]byte(ingressOf("", kongClass) + "---\n" + service + "    konghq.com/override: slow\n---\n" + override))
	f.Add([]byte("kind: ConfigMap\nmetadata: {name: ingress-nginx}\ndata: {proxy-next-upstream-tries: \"0\", " +
		"location-snippet: \"grpc_next_upstream_tries 3;\"}\n---\n" +
		ingressOf(annotations("backend-protocol: GRPC"), nginxClass)))
	f.Add([]byte("apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: main, annotations: " +
		"{ingressclass.kubernetes.io/is-default-class: \"true\"}}\nspec: {controller: k8s.io/ingress-nginx}\n---\n" +
		ingressOf("", "")))
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, _ := source.YAML("f", data)
		for _, d := range docs {
			ingress.Recognise(d)
		}
		for _, c := range ingress.Read(docs, source.Assume{}).Calls {
			if c.To == "" || c.From == "" {
				t.Error("a call to nobody, or by nobody")
			}
		}
	})
}
