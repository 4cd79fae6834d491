package istio_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/abate-go/abate/importer/istio"
	"github.com/abate-go/abate/importer/source"
)

// Files of one folder that are for the same hosts are alternatives, of which somebody applies one.
func TestOnlyVirtualServicesThatMayBothBeAppliedExcludeEachOther(t *testing.T) {
	service := func(name, hosts string) string {
		return fmt.Sprintf("apiVersion: networking.istio.io/v1\nkind: VirtualService\n"+
			"metadata: {name: %s, namespace: shop}\nspec:\n  hosts: [%s]\n"+
			"  http: [{route: [{destination: {host: orders}}]}]\n---\n", name,
			hosts)
	}
	a, b := service("orders-delay", "orders"), service("orders-abort", "orders.shop.svc.cluster.local")
	for name, c := range map[string]struct {
		files []string // names and texts in turns
		want  []string // files with a remark
	}{
		"one file":              {[]string{"f/a.yaml", a + b}, []string{"f/a.yaml"}},
		"alternatives":          {[]string{"f/a.yaml", a, "f/b.yaml", b}, nil},
		"alternatives for more": {[]string{"f/a.yaml", a, "f/b.yaml", b + service("stock", "stock")}, nil},
		"folders of two teams":  {[]string{"f/a.yaml", a, "g/b.yaml", b}, []string{"g/b.yaml"}},
		"files that are about more": {[]string{"f/a.yaml", a + service("x", "x"), "f/b.yaml", b + service("y", "y")},
			[]string{"f/b.yaml"}},
		"alternatives of what conflicts": {[]string{"f/a.yaml", a + b, "f/b.yaml", b}, []string{"f/a.yaml"}},
	} {
		var docs []source.Document
		for i := 0; i < len(c.files); i += 2 {
			all, _ := source.YAML(c.files[i], []byte(c.files[i+1]))
			docs = append(docs, all...)
		}
		var got []string
		for _, r := range istio.Read(docs, source.Assume{}).Remarks {
			if r.Rule == "F603" {
				got = append(got, r.At.File)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: remarks in %v, want %v", name, got, c.want)
		}
	}
}
