package policyfile_test

import (
	"testing"

	"github.com/abate-go/abate/policyfile"
)

// TestWhatTheUpstreamSaysOfDiscoveryNeedNotBeSaidTwice: names and namespaces follow from its host.
func TestWhatTheUpstreamSaysOfDiscoveryNeedNotBeSaidTwice(t *testing.T) {
	type d = policyfile.Discovery
	for _, row := range []struct {
		of       d
		upstream string
		want     d
	}{
		{d{Type: "dns"}, "http://orders.shop:8080", d{Type: "dns", Name: "orders.shop"}},
		{d{Type: "dns", Name: "x"}, "http://orders:8080", d{Type: "dns", Name: "x"}},
		{d{Type: "kubernetes"}, "h2c://orders.shop.svc.cluster.local:8080",
			d{Type: "kubernetes", Name: "orders", Namespace: "shop"}},
		{d{Type: "kubernetes"}, "http://orders", d{Type: "kubernetes", Name: "orders"}},
		{d{Type: "kubernetes", Name: "a", Namespace: "b"}, "http://orders.shop",
			d{Type: "kubernetes", Name: "a", Namespace: "b"}},
		{d{Type: "file", Path: "/x"}, "http://orders", d{Type: "file", Path: "/x"}},
		{d{Type: "srv", Name: "_http._tcp.x"}, "http://orders", d{Type: "srv", Name: "_http._tcp.x"}},
	} {
		if got := row.of.Target(row.upstream); got != row.want {
			t.Errorf("%+v of %s: %+v, want %+v", row.of, row.upstream, got, row.want)
		}
	}
}
