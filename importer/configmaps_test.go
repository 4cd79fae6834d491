package importer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/source"
)

// workload is a Deployment whose container has the settings given.
func workload(name, container string) string {
	return "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + "}\n" +
		"spec: {template: {spec: {containers: [{image: x, " + container + "}]}}}\n"
}

func TestAddressesInConfigMapsAreCallsOfWhoTakesThem(t *testing.T) {
	const addresses = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: apis}\n" +
		"data: {STOCK_ADDR: \"stock:8080\", TILL_ADDR: \"till:8080\", MODE: fast}\n"
	const whole = "envFrom: [{configMapRef: {name: apis}}]"
	const key = "env: [{name: A_ADDR, valueFrom: {configMapKeyRef: {name: apis, key: STOCK_ADDR}}}]"
	for _, c := range []struct {
		files []string
		want  string
	}{
		{[]string{addresses + workload("web", whole)}, "web-stock web-till"},
		{[]string{workload("web", key), addresses}, "web-stock"},
		{[]string{addresses + workload("web", whole) + workload("other", whole)}, ""}, // nobody knows which of them calls
		{[]string{addresses + workload("web", key) + workload("other", whole)}, "other-stock other-till web-stock"},
		{[]string{addresses, strings.Replace(addresses, "stock:", "store:", 1), workload("web", whole)}, "web-till"},
		{[]string{workload("web", "env: [{name: A_URL, value: \"http://WEB_IP_ADDRESS\"}, {name: B_URL, value: "+
			"\"http://my_Shop\"}]")}, "web-my_Shop"}, // the first is to be filled in
		{[]string{addresses, addresses, workload("web", whole)}, "web-stock web-till"},
	} {
		var files []importer.File
		for i, text := range c.files {
			files = append(files, importer.File{Name: string(rune('a'+i)) + ".yaml", Data: []byte(text)})
		}
		f, _ := importer.Read(files, source.Assume{})
		var got []string
		for _, call := range f.Calls {
			got = append(got, call.From+"-"+call.To)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: %q, want %q", c.files, got, c.want)
		}
	}
}
