package importer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/source"
)

const calls = "calls:\n- {from: checkout, to: orders, perRequest: 2}\n"

func TestProseAboutRetriesIsNoBrokenConfiguration(t *testing.T) {
	broken := " see: the wiki\n  - a: b: c\n"
	for name, remarks := range map[string]int{"notes.report": 0, "retries.yaml": 1, "retries": 1} {
		form, _ := importer.Read([]importer.File{{Name: name, Data: []byte("retry: " + broken)}}, source.Assume{})
		if len(form.Remarks) != remarks {
			t.Errorf("%s: %+v, want %d remarks", name, form.Remarks, remarks)
		}
	}
}

func TestFilesAreRecognisedByTheirContent(t *testing.T) {
	form, seen := importer.Read([]importer.File{
		{"calls.yaml", []byte(calls)},
		{"compose", []byte("services: {a: {image: x}}\n")},
		{"readme.md", []byte("apiVersion: v1\n")},
		{"bin", []byte("apiVersion: v1\x00")},
		{"list.json", []byte(`{"kind": "List", "items": [` +
			`{"kind": "Service", "apiVersion": "v1", "metadata": {"name": "s"}}]}`)},
	}, source.Assume{})
	var got []string
	for _, s := range seen {
		got = append(got, s.Name+": "+strings.Join(s.Formats, ","))
	}
	want := []string{"calls.yaml: calls", "compose: workloads", "readme.md: ", "bin: ", "list.json: workloads"}
	if !slices.Equal(got, want) {
		t.Errorf("seen %q, want %q", got, want)
	}
	if len(form.Calls) != 1 || len(form.Services) != 2 || len(form.Remarks) != 0 {
		t.Errorf("form %+v", form)
	}
}

func TestAComposeFileIsListedForTheVariablesThatItsFilesHave(t *testing.T) {
	for env, want := range map[string]string{"A=1\n": "workloads", "AWS_MAX_ATTEMPTS=3\n": "workloads,aws-sdk"} {
		_, seen := importer.Read([]importer.File{
			{"shop/compose.yaml", []byte("services: {a: {image: x, env_file: a.env}}\n")}, {"shop/a.env", []byte(env)},
			{"shop/b.env", []byte("AWS_MAX_ATTEMPTS=3\n")}}, source.Assume{})
		if got := strings.Join(seen[0].Formats, ","); got != want || len(seen[2].Formats) != 1 {
			t.Errorf("%q: listed for %s, want %s; %v", env, got, want, seen[2])
		}
	}
}

func TestServicesThatAnAgentRegistersAreRead(t *testing.T) {
	const sidecar = "service {\n  name = \"a\"\n  connect { sidecar_service { proxy {\n    upstreams {\n" +
		"      destination_name = \"b\"\n    }\n  } } }\n}\n"
	form, seen := importer.Read([]importer.File{{"a.hcl", []byte(sidecar)},
		{"b.hcl", []byte("service {\n  name = \"b\"\n}\n")}}, source.Assume{})
	if len(form.Calls) != 1 || !slices.Equal(seen[0].Formats, []string{"consul"}) || len(seen[1].Formats) > 0 {
		t.Errorf("%+v, seen %v", form.Calls, seen)
	}
}

func TestConfigMapsAreOpened(t *testing.T) {
	form, seen := importer.Read([]importer.File{{"m.yaml", []byte(`kind: ConfigMap
metadata: {name: topology}
data:
  calls.yaml: |
    calls:
    - from: a
      to: b
`)}}, source.Assume{})
	if len(form.Calls) != 1 || form.Calls[0].At.String() != "m.yaml:6:7" || !slices.Equal(seen[0].Formats,
		[]string{"calls"}) {
		t.Errorf("calls %+v, seen %+v", form.Calls, seen)
	}
}

func TestCopiesThatAnEditorOrPersonKeptAreNotRead(t *testing.T) {
	for _, name := range []string{"calls.yaml.bak", "calls.yaml.orig", "calls.yaml~", "calls.yaml.old", "calls.YAML.BAK"} {
		form, seen := importer.Read([]importer.File{{name, []byte(calls)}}, source.Assume{})
		if len(form.Calls) != 0 || len(seen[0].Formats) != 0 {
			t.Errorf("%s is read", name)
		}
	}
	form, _ := importer.Read([]importer.File{{"old", []byte(calls)}, {"calls.bak.yaml", []byte(calls)}}, source.Assume{})
	if len(form.Calls) != 2 {
		t.Errorf("%d calls, want 2", len(form.Calls))
	}
}

func TestAFileThatIsNamedATemplateIsNoBrokenOne(t *testing.T) {
	const broken = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Pod\nmetadata:\n" +
		"  name: %%NAME%%\n"
	for name, want := range map[string]string{"a.yaml.tmpl": "F702", "a.tpl": "F702", "a.yaml.j2": "F702",
		"a.yaml": "F606"} {
		form, _ := importer.Read([]importer.File{{name, []byte(broken)}}, source.Assume{})
		if len(form.Remarks) != 1 || form.Remarks[0].Rule != want || len(form.Services) != 1 {
			t.Errorf("%s: %+v, %d services", name, form.Remarks, len(form.Services))
		}
	}
}

func TestTheTemplatesOfAllChartsAreOneRemark(t *testing.T) {
	const text = "apiVersion: v1\nkind: {{ .Values.kind }}\nx: [\n"
	given := []importer.File{{"a/templates/d.yaml", []byte(text)}, {"a/templates/e.yaml", []byte(text)},
		{"a/templates/tests/t.yaml", []byte(text)}}
	for _, c := range []struct{ folder, want string }{
		{"b", " folder, if it has them, and of b/templates"},
		{"c", ", and of b/templates, c/templates"},
		{"d", ", and of b/templates, c/templates, d/templates"},
		{"e", ", and of b/templates, c/templates, d/templates and 1 further folder"},
		{"f", ", and of b/templates, c/templates, d/templates and 2 further folders"},
	} {
		given = append(given, importer.File{Name: c.folder + "/templates/d.yaml", Data: []byte(text)})
		form, _ := importer.Read(given, source.Assume{})
		if len(form.Remarks) != 1 || !strings.HasSuffix(form.Remarks[0].Text, c.want) ||
			form.Remarks[0].At.File != "a/templates/d.yaml" {
			t.Errorf("want %q: %+v", c.want, form.Remarks)
		}
	}
}

func TestAPatternThatMatchesNoFileOfAConfigMapIsNoGap(t *testing.T) {
	for include, remarks := range map[string]int{"/etc/nginx/conf.d/*.conf": 0, "/etc/nginx/routes.conf": 1} {
		form, _ := importer.Read([]importer.File{{"m.yaml", []byte("kind: ConfigMap\nmetadata: {name: m}\ndata:\n" +
			"  nginx.conf: |\n    http { include " + include + ";\n" +
			"      server { location / { proxy_pass http://a; } } }\n")}}, source.Assume{})
		if len(form.Remarks) != remarks || len(form.Calls) != 1 {
			t.Errorf("%s: %+v", include, form.Remarks)
		}
	}
}

func TestAGatewayIsTheServiceWhoseContainerHasItsFile(t *testing.T) {
	const proxy = "http { server { location / { proxy_pass http://api; } } }\n"
	for volumes, want := range map[string]string{
		"[./web/nginx.conf:/etc/nginx/nginx.conf:ro]":                             "edge",
		"[{type: bind, source: ./web/nginx.conf, target: /etc/nginx/nginx.conf}]": "edge",
		"[./web:/etc/nginx]":        "edge",
		"['$PWD/web/:/etc/nginx']":  "edge",
		"[.:/code]":                 "web", // its folder
		"[../shop:/code]":           "web",
		"[web:/etc/nginx]":          "web", // the name of a volume
		"['${DIR}/web:/etc/nginx']": "web",
		"[/shop/web:/etc/nginx]":    "web",
	} {
		form, _ := importer.Read([]importer.File{{"shop/web/nginx.conf", []byte(proxy)}, {"shop/compose.yaml",
			[]byte("services: {edge: {image: nginx, volumes: " + volumes + "}}\n")}}, source.Assume{})
		if len(form.Calls) != 1 || form.Calls[0].From != want {
			t.Errorf("%s: %+v, want %s", volumes, form.Calls, want)
		}
	}
	form, _ := importer.Read([]importer.File{{"shop/web/nginx.conf", []byte(proxy)}, {"shop/compose.yaml",
		[]byte("services: {a: {image: nginx, volumes: [./web:/x]}, b: {image: nginx, volumes: [./web:/x]}}\n")},
		{"shop/api/nginx.conf", []byte(proxy)}, {"shop/swarm.yaml", []byte("configs: {c: {file: api/nginx.conf}}\n" +
			"services: {d: {image: nginx, configs: [{source: c, target: /etc/nginx/nginx.conf}]}}\n")},
	}, source.Assume{})
	if len(form.Calls) != 2 || form.Calls[0].From != "web" || form.Calls[1].From != "d" {
		t.Errorf("two services with one file, or a config: %+v", form.Calls)
	}
}

func TestOneBrokenFileIsARemarkAndTheOthersAreRead(t *testing.T) {
	form, _ := importer.Read([]importer.File{
		{"a.yaml", []byte("apiVersion: v1\nkind: {{ .Values.kind }}\nx: [\n")},
		{"notes.yaml", []byte("just: [some\n")}, // of no program that an audit knows
		{"calls.yaml", []byte("calls:\n- from: a\n  to: b\n  often: 3\n")},
		{"b.yaml", []byte(calls)},
	}, source.Assume{})
	if len(form.Calls) != 2 || len(form.Remarks) != 2 {
		t.Fatalf("%d calls, remarks %+v", len(form.Calls), form.Remarks)
	}
	for i, want := range []string{"a.yaml", "calls.yaml:4:3"} {
		if got := form.Remarks[i].At.String(); !strings.HasPrefix(got, want) {
			t.Errorf("remark at %s, want %s", got, want)
		}
	}
	if !strings.Contains(form.Remarks[0].Fix, "rendered") {
		t.Errorf("a template is not recognised: %+v", form.Remarks[0])
	}
}

func TestAFileThatIsTooLargeIsARemark(t *testing.T) {
	form, _ := importer.Read([]importer.File{{"dump.json", make([]byte, importer.MaxBytes+1)}}, source.Assume{})
	if len(form.Remarks) != 1 || !strings.Contains(form.Remarks[0].Text, "256 MiB") {
		t.Errorf("remarks %+v", form.Remarks)
	}
}

func TestAConfigurationInUTF16IsARemark(t *testing.T) {
	utf16 := func(text string) []byte {
		data := []byte{0xFF, 0xFE}
		for _, c := range []byte(text) {
			data = append(data, c, 0)
		}
		return data
	}
	form, _ := importer.Read([]importer.File{{"shop.yaml", utf16("\napiVersion: v1\n")},
		{"notes.yaml", utf16("some: words\n")}, {"strings.rc", utf16("apiVersion: v1\n")}}, source.Assume{})
	if len(form.Remarks) != 1 || form.Remarks[0].At.File != "shop.yaml" || !strings.Contains(form.Remarks[0].Fix,
		"utf8") {
		t.Errorf("remarks %+v", form.Remarks)
	}
}

func FuzzReadNeverPanics(f *testing.F) {
	f.Add("a.yaml", []byte(calls))
	f.Add("b", []byte(`{"kind":"List","items":[{"kind":"ConfigMap","data":{"x":"calls: [{to: a}]"}}]}`))
	f.Add("a.tf", []byte(release("set { name = \"spec.http[0].retries.attempts\", value = 6 }\n")))
	f.Fuzz(func(_ *testing.T, name string, data []byte) {
		importer.Read([]importer.File{{name, data}}, source.Assume{})
	})
}
