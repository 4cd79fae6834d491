package importer_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/source"
)

func TestRetriesOfAProductThatIsNotReadAreSaid(t *testing.T) {
	object := func(api, kind, spec string) string {
		return "apiVersion: " + api + "\nkind: " + kind + "\nmetadata: {name: a}\nspec: " + spec + "\n"
	}
	mapping := object("getambassador.io/v3alpha1", "Mapping", "{service: a, retry_policy: {num_retries: 1}}")
	for _, c := range []struct{ text, want string }{
		{mapping, "F702 a.yaml:2:7 no Mapping of Emissary is read, and this one has retries"},
		{mapping + "---\n" + mapping, "F702 a.yaml:2:7 no Mapping of Emissary is read, and these 2 have retries"},
		{object("getambassador.io/v3alpha1", "Mapping", "{service: a, prefix: /a}"), ""},
		{object("getambassador.io/v2", "Mapping", "{service: a, timeout_ms: 0}"), "F702 a.yaml:2:7 no Mapping of Emissary"},
		{object("k8s.nginx.org/v1", "VirtualServer", "{upstreams: [{name: a, next-upstream-timeout: 5s}]}"),
			"F702 a.yaml:2:7 no VirtualServer of NGINX Ingress Controller"},
		{object("flagger.app/v1beta1", "Canary", "{service: {port: 80}, analysis: {webhooks: [{timeout: 5s}]}}"), ""},
		{object("flagger.app/v1beta1", "Canary", "{service: {port: 80, timeout: 5s, retries: {attempts: 3}}}"),
			"F702 a.yaml:2:7 no Canary of Flagger is read"},
		{object("cilium.io/v2", "CiliumEnvoyConfig", "{resources: [{connect_timeout: 5s}]}"),
			"F702 a.yaml:2:7 no CiliumEnvoyConfig of Cilium is read"},
		{object("cilium.io/v2", "CiliumBGPPeerConfig", "{timers: {connectRetryTimeSeconds: 5}}"), ""},
		{object("example.com/v1", "Mapping", "{retries: 3}"), ""},
		{object("gateway.nginx.org/v1alpha1", "ProxySettingsPolicy", "{timeout: {read: 1h}}"),
			"F702 a.yaml:2:7 no ProxySettingsPolicy of NGINX Gateway Fabric is read, and this one has retries"},
		{object("helm.toolkit.fluxcd.io/v2", "HelmRelease", "{values: {route: {app: {hostnames: [a.example.com]}}}}"),
			"F702 a.yaml:2:7 no HelmRelease of Flux is rendered, and this one has a route"},
		{object("helm.toolkit.fluxcd.io/v2", "HelmRelease", "{timeout: 5m, upgrade: {remediation: {retries: 2}}}"), ""},
		{object("helm.toolkit.fluxcd.io/v2", "HelmRelease", "{values: {ingress: {enabled: false, hosts: [a]}}}"), ""},
		{object("helm.toolkit.fluxcd.io/v2", "HelmRelease", "{values: {ingress: {}, httpRoute: null}}"), ""},
		{object("helm.toolkit.fluxcd.io/v2", "HelmRelease", "{values: {networkPolicy: {ingress: {namespaces: [a]}}}}"), ""},
	} {
		form, _ := importer.Read([]importer.File{{Name: "a.yaml", Data: []byte(c.text)}}, source.Assume{})
		got := ""
		for _, r := range form.Remarks {
			got += r.Rule + " " + r.At.String() + " " + r.Text + "\n"
		}
		if (c.want == "") != (got == "") || !strings.HasPrefix(got, c.want) || strings.Count(got, "\n") > 1 {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}
