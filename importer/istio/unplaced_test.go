package istio_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/topology"
)

// Files that leave the namespace of a route out are applied to one that they do not name. A rule for its destination is
// for it if there is one only.
func TestARouteWithoutANamespaceHasTheRuleOfTheOnlyOne(t *testing.T) {
	route := strings.Replace(orders(""), ", namespace: shop", "", 1)
	one := rule("{connectionPool: {http: {http2MaxRequests: 7}}}")
	other := strings.NewReplacer("namespace: shop", "namespace: far", "orders.shop", "orders.far").Replace(one)
	for _, c := range []struct {
		files []string
		want  int
	}{
		{[]string{route, one}, 7},
		{[]string{route, one, other}, topology.Unbounded},
		{[]string{strings.Replace(orders(""), "namespace: shop", "namespace: away", 1), one}, topology.Unbounded},
	} {
		for _, p := range read(t, "", c.files...).Policies {
			if strings.HasPrefix(p.Layer.Name, "VirtualService") && p.Layer.Limits.Requests.V != c.want {
				t.Errorf("%d files: %v, want %d", len(c.files), p.Layer.Limits.Requests, c.want)
			}
		}
	}
}

// The key does nothing any more, but it says that what stands there is no request that somebody waits for.
func TestARouteForWebsocketsStaysOpen(t *testing.T) {
	for key, want := range map[string]bool{"    websocketUpgrade: true\n": true, "    websocketUpgrade: false\n": false,
		"": false} {
		if l := called(t, read(t, "", orders(key)), topology.SidecarOut); l.Upgrades.Or(false) != want {
			t.Errorf("%q: %v", key, l.Upgrades)
		}
	}
}
