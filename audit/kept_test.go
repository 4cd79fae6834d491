package audit_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/importer"
)

// What nginx tries for kept connections that break in a row is in no bound, so it stands beside the number.
func TestTriesForKeptConnectionsAreSaidBesideTheNumber(t *testing.T) {
	const nginx = `http {
  upstream orders { server orders:80; keepalive 8; }
  server { listen 80; location / { proxy_pass http://orders; proxy_http_version 1.1; proxy_set_header Connection ""; } }
}
`
	const ingress = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  ingressClassName: nginx
  defaultBackend: {service: {name: orders, port: {number: 80}}}
`
	for file, c := range map[string]struct{ text, name, says, rests string }{
		"nginx.conf": {nginx, "nginx",
			"2 tries (nginx.conf:2:39); one more for each further kept connection that breaks in a row",
			"of the connections that nginx keeps, not more than one breaks in a row"},
		"web.yaml": {ingress, "ingress-nginx",
			"; more, and without an end, if more than three kept connections break in a row",
			"of the connections that ingress-nginx keeps, not more than three break in a row"},
		"grpc.yaml": {strings.Replace(ingress, "web}", "web, annotations: {nginx.ingress.kubernetes.io/backend-protocol: "+
			"GRPC}}", 1), "ingress-nginx", "", ""},
		"two/nginx.conf": {strings.Replace(nginx, "orders:80;", "orders:80; server orders:81;", 1), "two", "", ""},
	} {
		calls := importer.File{Name: "calls.yaml", Data: []byte("calls:\n- {from: app, to: " + c.name +
			", layers: [{kind: client, overall: 1s, repeats: [{on: [\"502\"], tries: 9}]}]}\n")}
		r := audit.Run([]importer.File{{Name: file, Data: []byte(c.text)}, calls}, audit.Options{})
		var text strings.Builder
		if err := audit.Text(&text, r, audit.TextOptions{All: true}); err != nil {
			t.Fatal(err)
		}
		if c.says != "" && !strings.Contains(text.String(), c.says) {
			t.Errorf("%s: no %q in\n%s", file, c.says, &text)
		}
		if c.says == "" && strings.Contains(text.String(), "in a row") {
			t.Errorf("%s: of several servers none is tried twice:\n%s", file, &text)
		}
		i := slices.IndexFunc(r.Findings, func(f audit.Finding) bool { return f.Rule == "F101" })
		if i < 0 || c.rests != "" && !slices.Contains(r.Findings[i].Assumptions, c.rests) {
			t.Errorf("%s: %+v", file, r.Findings)
		}
	}
}
