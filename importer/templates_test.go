package importer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/source"
)

// remarked returns the rules and places of the remarks of files, written as name and text by turns.
func remarked(files ...string) (all []string) {
	var given []importer.File
	for i := 0; i < len(files); i += 2 {
		given = append(given, importer.File{Name: files[i], Data: []byte(files[i+1])})
	}
	form, _ := importer.Read(given, source.Assume{})
	for _, r := range form.Remarks {
		all = append(all, r.Rule+" "+r.At.File)
	}
	return all
}

// A chart of secrets and jobs has nothing for an audit, rendered or not.
func TestOnlyTemplatesOfWhatIsAuditedAreAGap(t *testing.T) {
	const head = "{{- if .Values.on }}\napiVersion: v1\n"
	for text, gap := range map[string]bool{
		"kind: Secret\nmetadata: {name: {{ .x }}}\n":                                                         false,
		"kind: ConfigMap\nmetadata:\n  name: {{ .x }}\ndata: {a: b}\n{{- end }}\n":                           false,
		"kind: CronJob\nmetadata:\n  name: {{ .x }}\n{{- end }}\n":                                           false,
		"kind: Deployment\nmetadata:\n  name: {{ .x }}\n{{- end }}\n":                                        true,
		"kind: WorkflowTemplate\nspec:\n  retryStrategy: {expression: lastRetry.exitCode > 1}\n{{- end }}\n": false,
		"kind: ApplicationSet\n# with its retry instead\nspec:\n  retry:\n    limit: 5\n{{- end }}\n":        false,
		"kind: Y\nspec:\n  retry: {count: 2}\n{{- end }}\n":                                                  true,
		"kind: Y\nspec: {maxRetries: {{ .n }}, retryOn: x}\n":                                                true,
		"kind: \"Ingress\"\n{{- end }}\n":                                                                    true,
		"kind: {{ .kind }}\n{{- end }}\n":                                                                    true,
		"kind: ConfigMap\ndata:\n  nginx.conf: |\n    proxy_pass http://a;\n{{- end }}\n":                    true,
		"kind: X\nspec:\n  retries: 3\n{{- end }}\n":                                                         true,
	} {
		got := remarked("chart/templates/a.yaml", "{{- if .Values.on }}\nkind: Secret\n{{- end }}\n",
			"chart/templates/b.yaml", head+text)
		if want := []string{"F702 chart/templates/b.yaml"}; gap && !slices.Equal(got, want) || !gap && len(got) > 0 {
			t.Errorf("%q: %v, a gap: %v", text, got, gap)
		}
	}
	got := remarked("t/virtual.yaml", head+"apiVersion: networking.istio.io/v1\n{{- end }}\n")
	if !slices.Equal(got, []string{"F702 t/virtual.yaml"}) {
		t.Errorf("a route of Istio: %v", got)
	}
}

func TestWhatABuildFillsInIsATemplateAndNotBroken(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"chart/Chart.yaml", "apiVersion: v2\nappVersion: %VERSION%\nname: a\n", nil},
		{"k8s/d.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: %NAME%\n", []string{"F702 k8s/d.yaml"}},
		{"k8s/d.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: @app.name@\n", []string{"F702 k8s/d.yaml"}},
		{"k8s/e.yaml", "static_resources:\n  clusters:\n$CLUSTERS\n  listeners: []\n", []string{"F702 k8s/e.yaml"}},
		{"k8s/e.yaml", "static_resources:\n  clusters:\nno clusters\n  listeners: []\n", []string{"F606 k8s/e.yaml"}},
		{"k8s/s.yaml", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: %NAME%\n", nil},
		{"k8s/d.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: %NAME\n", []string{"F606 k8s/d.yaml"}},
	} {
		if got := remarked(c.name, c.text); !slices.Equal(got, c.want) {
			t.Errorf("%s %q: %v, want %v", c.name, c.text, got, c.want)
		}
	}
}

func TestATemplateOfTerraformIsAGapIfItIsOfWhatIsAudited(t *testing.T) {
	const tf = "resource \"helm_release\" \"web\" {\n" +
		"  values = [templatefile(\"${path.module}/values/web.yaml\", { tag = var.tag })]\n  note = <<EOF\nx\nEOF\n}\n"
	for text, gap := range map[string]bool{
		"image: {tag: ${tag}}\n":                            false,
		"image: {tag: ${tag}}\nistio:\n  enabled: true\n":   true,
		"ingress:\n  hosts: [${host}]\n":                    true,
		"service: {port: 80}\nreplicas: ${n}\nretries: 3\n": true,
	} {
		got := remarked("infra/main.tf", tf, "infra/values/web.yaml", text)
		if want := []string{"F702 infra/main.tf"}; gap && !slices.Equal(got, want) || !gap && len(got) > 0 {
			t.Errorf("%q: %v, a gap: %v", text, got, gap)
		}
	}
	if got := remarked("infra/main.tf", tf); !slices.Equal(got, []string{"F702 infra/main.tf"}) {
		t.Errorf("a template that is not here: %v", got)
	}
	form, _ := importer.Read([]importer.File{{Name: "main.tf", Data: []byte(tf)}}, source.Assume{})
	if want := `templatefile("values/web.yaml", …) stands`; !strings.HasPrefix(form.Remarks[0].Text, want) {
		t.Errorf("%q, want %q", form.Remarks[0].Text, want)
	}
}
