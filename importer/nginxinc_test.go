package importer_test

import (
	"testing"

	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/source"
)

// The class nginx is also that of NGINX Inc.'s controller, which resources that only it has show to be there.
func TestAResourceOfNginxIncSaysWhoseAnIngressIs(t *testing.T) {
	const ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web}\nspec:\n" +
		"  ingressClassName: nginx\n" +
		"  defaultBackend: {service: {name: orders, port: {number: 80}}}\n"
	for group, want := range map[string]int{"k8s.nginx.org": 0, "example.com": 1} {
		form, _ := importer.Read([]importer.File{{Name: "a.yaml", Data: []byte(ingress)}, {Name: "b.yaml",
			Data: []byte("apiVersion: " + group + "/v1\nkind: VirtualServer\nmetadata: {name: cafe}\n")}}, source.Assume{})
		if len(form.Calls) != 1 || len(form.Calls[0].Layers) != want {
			t.Errorf("%s: %+v, want %d layers", group, form.Calls, want)
		}
	}
}
