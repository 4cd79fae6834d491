package audit_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/lint"
)

// A heredoc is text that stands in its file as it is, so what is changed in it is that text and nothing else.
func TestAFixWritesIntoHeredocsOfTerraform(t *testing.T) {
	const service = "    apiVersion: networking.istio.io/v1\n    kind: VirtualService\n" +
		"    metadata: {name: ${var.name}-web}\n" +
		"    spec:\n      hosts: [web]\n      http:\n      - route: [{destination: {host: web}}]\n"
	for _, c := range []struct{ name, text, want string }{
		{"a number of an entry", "resource \"consul_config_entry\" \"web\" {\n  name = \"web\"\n" +
			"  kind = \"service-router\"\n" +
			"  config_json = <<-EOF\n    {\n      \"Routes\": [{\"Match\": ${local.m}, \"Destination\": {\n" +
			"        \"NumRetries\": 9, \"RetryOn\": [\"5xx\"]}}]\n    }\n  EOF\n}\n", "        \"NumRetries\": 1, \"RetryOn\""},
		{"a number in quotes", "resource \"consul_config_entry\" \"web\" {\n  name = \"web\"\n  kind = \"service-router\"\n" +
			`  config_json = "{\"Routes\": [{\"Destination\": {\"NumRetries\": 9, \"RetryOn\": [\"5xx\"]}}]}"` + "\n}\n",
			`{\"NumRetries\": 1, \"RetryOn\"`},
		{"tries with a limit beside them", "resource \"kubectl_manifest\" \"web\" {\n  yaml_body = <<-YAML\n" + service +
			"        retries:\n          attempts: 9 # nine\n          perTryTimeout: 2s\n  YAML\n}\n",
			"        retries:\n          attempts: 0 # nine\n  YAML\n"},
		{"tries with a template beside them, which stays", "resource \"kubectl_manifest\" \"web\" {\n" +
			"  yaml_body = <<-YAML\n" + service +
			"        retries: {attempts: 9, retryOn: \"${local.on},5xx\"}\n  YAML\n" +
			"}\n", "retries: {attempts: 1, retryOn: \"${local.on},5xx\"}\n"},
		{"a number that a template says", "resource \"kubectl_manifest\" \"web\" {\n  yaml_body = <<-YAML\n" + service +
			"        retries: {attempts: ${var.tries}}\n  YAML\n}\n", "retries: {attempts: ${var.tries}}\n"},
		{"an object of HCL", "resource \"kubernetes_manifest\" \"web\" {\n  manifest = {\n" +
			"    apiVersion = \"networking.istio.io/v1\"\n    kind = \"VirtualService\"\n    metadata = { name = \"web\" }\n" +
			"    spec = { hosts = [\"web\"], http = [{\n      route = [{ destination = { host = \"web\" } }]\n" +
			"      retries = {\n        attempts      = 9\n        perTryTimeout = \"2s\"\n      }\n    }] }\n  }\n}\n",
			"      retries = {\n        attempts      = 0\n      }\n"},
	} {
		files := []importer.File{{Name: "main.tf", Data: []byte(strings.ReplaceAll(c.text, "\n", "\r\n"))}}
		for range 2 {
			before := audit.Run(files, audit.Options{})
			before.Propose(files, lint.Options{})
			changed, left := audit.Apply(files, before.Changes)
			after := audit.Run(changed, audit.Options{})
			got := strings.ReplaceAll(string(changed[0].Data), "\r\n", "\n")
			if !strings.Contains(got, c.want) || len(left) > 0 || len(after.Form.Remarks) > len(before.Form.Remarks) {
				t.Errorf("%s: want %q in\n%s\nremarks %v", c.name, c.want, got, after.Form.Remarks)
			}
			files[0].Data = []byte(c.text)
		}
	}
}
