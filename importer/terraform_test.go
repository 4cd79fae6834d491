package importer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// tries returns the numbers of tries of a form as they are written, with their places.
func tries(f *topology.Form) []string {
	var all []string
	add := func(l *topology.Layer) {
		for i := range l.Repeats {
			if v := l.Repeats[i].Tries; v.Origin != topology.Default {
				all = append(all, v.String())
			}
		}
	}
	for i := range f.Policies {
		add(&f.Policies[i].Layer)
	}
	for i := range f.Calls {
		for j := range f.Calls[i].Layers {
			add(&f.Calls[i].Layers[j])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

const virtualService = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web}
spec:
  hosts: [web]
  http:
  - route: [{destination: {host: web}}]
    retries: {attempts: 4, perTryTimeout: 2s, retryOn: 5xx}
`

func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n    ") + "\n"
}

func TestFilesInFilesOfTerraformAreReadWithThePlaceOfEachValue(t *testing.T) {
	const router = "resource \"consul_config_entry\" \"web\" {\n  name = \"web\"\n  kind = \"service-router\"\n" +
		"  config_json = "
	for _, c := range []struct{ name, text, want string }{
		{"an entry in a heredoc", router + "<<EOF\n{\"Routes\": [{\"Destination\":\n  {\"NumRetries\": 3, " +
			"\"RetryOn\": [\"5xx\"]}}]}\nEOF\n}\n", "4 (a.tf:6:18)"},
		{"one that is indented", router + "<<-EOF\n    {\"Routes\": [{\"Destination\":\n      {\"NumRetries\": 3, " +
			"\"RetryOn\": [\"5xx\"]}}]}\n  EOF\n}\n", "4 (a.tf:6:22)"},
		{"with the ends of lines of Windows", strings.ReplaceAll(router+"<<-EOF\n    {\"Routes\": [{\"Destination\":\n"+
			"      {\"NumRetries\": 3, \"RetryOn\": [\"5xx\"]}}]}\n  EOF\n}\n", "\n", "\r\n"), "4 (a.tf:6:22)"},
		{"in quotes", router + `"{\"Routes\": [{\"Destination\": {\"NumRetries\": 3, \"RetryOn\": [\"5xx\"]}}]}"` + "\n}\n",
			"4 (a.tf:4:67)"},
		{"a template before it", router + "<<EOF\n{\"Routes\": [{\"Match\": ${jsonencode({a = \"}\"})}, \"Destination\": " +
			"{\"NumRetries\": 3, \"RetryOn\": [\"5xx\"]}}]}\nEOF\n}\n", "4 (a.tf:5:79)"},
		{"a template itself", router + "<<EOF\n{\"Routes\": [{\"Destination\": {\"NumRetries\": ${var.n}, " +
			"\"RetryOn\": [\"5xx\"]}}]}\nEOF\n}\n", "unknown (template ${var.n}; a.tf:5:44) F702 a.tf:5:44"},
		{"a directive", router + "<<EOF\n{\"Routes\": [\n %{ for r in var.routes }{},%{ endfor }\n]}\nEOF\n}\n",
			"F702 a.tf:6:2"},
		{"a directive behind what is none", router + "<<EOF\n{\"Routes\": [\n # %%{ x\n" +
			"%{ for r in var.routes }{},%{ endfor }\n" +
			"]}\nEOF\n}\n", "F702 a.tf:7:1"},
		{"a template before it in a text in the text", "resource \"kubectl_manifest\" \"web\" {\n  yaml_body = <<-YAML\n" +
			"    apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: web}\n    data:\n      svc.json: |\n" +
			"        {\"methodConfig\": [{\"name\": [{\"service\": \"${  var.s  }.Web\"}], " +
			"\"retryPolicy\": {\"maxAttempts\": 5,\n" +
			"        \"initialBackoff\": \"0.1s\", \"maxBackoff\": \"1s\", \"backoffMultiplier\": 2, " +
			"\"retryableStatusCodes\": " +
			"[\"UNAVAILABLE\"]}}]}\n  YAML\n}\n", "5 (a.tf:8:102)"},
		{"half an entry", router + "<<EOF\n{\"Routes\": [\nEOF\n}\n", "F606 a.tf:5"},
		{"a file", router + "file(\"web.json\")\n}\n", "F702 a.tf:4:17"},
		{"a manifest", "resource \"kubectl_manifest\" \"web\" {\n  yaml_body = <<YAML\n" + virtualService + "YAML\n}\n",
			"5 (a.tf:10:25)"},
		{"a manifest that is decoded", "resource \"kubernetes_manifest\" \"web\" {\n  manifest = yamldecode(<<-YAML\n" +
			indented(virtualService) + "    YAML\n  )\n}\n", "5 (a.tf:10:29)"},
		{"a manifest in HCL", `resource "kubernetes_manifest" "web" {
  manifest = {
    apiVersion = "networking.istio.io/v1"
    kind       = "VirtualService"
    metadata   = { name = "web" }
    spec = {
      hosts = ["web"]
      http = [{
        route   = [{ destination = { host = "web" } }]
        retries = { attempts = 4, perTryTimeout = "2s", retryOn = "5xx" }
      }]
    }
  }
}
`, "5 (a.tf:10:32)"},
		{"a manifest that is encoded", "resource \"kubectl_manifest\" \"web\" {\n  yaml_body = yamlencode({\n" +
			"    apiVersion = \"networking.istio.io/v1\", kind = \"VirtualService\", metadata = { name = \"web\" }\n" +
			"    spec = { hosts = [\"web\"], http = [{ route = [{ destination = { host = \"web\" } }],\n" +
			"      retries = { attempts = 4 } }] }\n  })\n}\n", "5 (a.tf:5:30)"},
		{"values of a chart", "resource \"helm_release\" \"web\" {\n  values = [<<YAML\nextra:\n  x: 1\nYAML\n  , <<YAML\n" +
			virtualService + "YAML\n  ]\n}\n", "5 (a.tf:14:25)"},
		{"a file that Terraform renders", "resource \"kubectl_manifest\" \"web\" {\n  yaml_body = templatefile(\"w.tpl\", " +
			"{})\n  note = <<EOF\nx\nEOF\n}\n", "F702 a.tf:2:15"},
		{"a file of another program", "resource \"kubernetes_config_map\" \"web\" {\n  data = {\n" +
			"    \"nginx.conf\" = <<EOF\n" +
			"events {}\nhttp { upstream web { server a; server b; server c; server d; }\nserver { location / {\n" +
			"  proxy_pass http://web;\n  proxy_next_upstream_tries 3;\n} } }\nEOF\n  }\n}\n",
			"3 (a.tf:8:29)"},
		{"variables of a task of Nomad", "job \"web\" {\n  template {\n    data = <<EOH\nAWS_MAX_ATTEMPTS=5\nEOH\n" +
			"    env = true\n" +
			"  }\n}\n", "5 (a.tf:4:18)"},
		{"containers of a task", "resource \"aws_ecs_task_definition\" \"web\" {\n  container_definitions = <<EOF\n" +
			"[{\"name\": \"web\", \"cpu\": ${var.cpu}, \"environment\":\n" +
			"  [{\"name\": \"AWS_MAX_ATTEMPTS\", \"value\": \"6\"}]}]\n" +
			"EOF\n}\n", "6 (a.tf:4:42)"},
		{"a heredoc in an expression", "locals {\n  all = merge({ a = <<A\nit's \"half { a\nA\n  }, { # \"\n  })\n" +
			"  x = <<Y\n" + virtualService + "Y\n}\n", "5 (a.tf:15:25)"},
		{"what is nobody's", "resource \"x\" \"y\" {\n  script = <<EOF\n#!/bin/sh\nretry=3\necho \"{{\nEOF\n}\n", ""},
		{"no HCL that nobody asked for", "resource {{\n x = <<EOF\n", ""},
	} {
		form, _ := importer.Read([]importer.File{{Name: "a.tf", Data: []byte(c.text)}}, source.Assume{})
		got := tries(&form)
		for _, r := range form.Remarks {
			if r.Rule != "F605" {
				got = append(got, r.Rule+" "+r.At.String())
			}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s, want %s\n%s\n%v", c.name, text, c.want, c.text, form.Remarks)
		}
	}
}

func TestValuesThatOnlyTerraformKnowsAreOneRemark(t *testing.T) {
	const one = "resource \"kubectl_manifest\" \"w%d\" {\n  yaml_body = templatefile(\"w.tpl\", {a = var.a})\n}\n"
	for n, want := range []string{1: "is not known", 2: "nor is what one more such value says",
		3: "nor is what 2 more such values say"} {
		text := "locals { apiVersion = 1 }\n"
		for i := range n {
			text += fmt.Sprintf(one, i)
		}
		form, _ := importer.Read([]importer.File{{"a.tf", []byte(text)}}, source.Assume{})
		if want != "" && (len(form.Remarks) != 1 || !strings.HasSuffix(form.Remarks[0].Text, want)) {
			t.Errorf("%d: %+v", n, form.Remarks)
		}
	}
}
