package lint_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

func TestAFixOfWhatAMeshDoesByItselfNamesWhereItIsSet(t *testing.T) {
	call := func(product string, tries topology.Value[int]) topology.Form {
		return topology.Form{Calls: []topology.Call{{From: "shop", To: "orders", Layers: []topology.Layer{{
			Kind: topology.SidecarOut, Product: product,
			Repeats: []topology.Repeat{{On: []topology.Outcome{topology.S503}, Tries: tries}}}}}}}
	}
	for _, c := range []struct {
		form       topology.Form
		rule, want string
	}{
		{call("istio", topology.DefaultOf(3, "Istio", topology.Position{})), "F107",
			"VirtualService for orders (retries: {attempts: 0})"},
		{call("linkerd", topology.DefaultOf(topology.Unbounded, "Linkerd", topology.Position{})), "F108",
			"retry.linkerd.io/limit"},
		{call("kong-ingress-controller", topology.DefaultOf(6, "Kong", topology.Position{})), "F107",
			"in an annotation of the Service orders: konghq.com/retries"},
		{call("ingress-nginx", topology.DefaultOf(topology.Unbounded, "ingress-nginx", topology.Position{})), "F108",
			"grpc_next_upstream_tries 3;"},
		{call("ingress-nginx", topology.DefaultOf(3, "ingress-nginx", topology.Position{})), "F107", ""},
		{call("x", topology.DefaultOf(3, "x", topology.Position{})), "F107", ""},
	} {
		found := false
		for _, f := range lint.Run(c.form, lint.Options{}) {
			if f.Rule == c.rule {
				found = true
				if !strings.Contains(f.Fix, c.want) || c.want == "" && strings.Contains(f.Fix, ":") {
					t.Errorf("%s: %q, want %q in it", f.Rule, f.Fix, c.want)
				}
			}
		}
		if !found {
			t.Errorf("no %s", c.rule)
		}
	}
}
