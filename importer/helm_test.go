package importer_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/source"
)

// release is a release of Helm whose values are a VirtualService, with what a test adds.
func release(more string) string {
	return "resource \"helm_release\" \"web\" {\n  values = [<<YAML\n" + virtualService + "YAML\n  ]\n" + more + "}\n"
}

func TestWhatAReleaseOfHelmSetsCountsBeforeItsValues(t *testing.T) {
	const retries = "spec.http[0].retries."
	set := func(name, value string) string { return `  set { name = "` + name + `", value = ` + value + " }\n" }
	for _, c := range []struct{ what, text, want string }{
		{"a number", release(set(retries+"attempts", "6")), "7 (a.tf:13:57)"},
		{"one in quotes", release(set(retries+"attempts", `"6"`)), "7 (a.tf:13:57)"},
		{"the last of several", release(set(retries+"attempts", "6") + set(retries+"attempts", "7")), "8 (a.tf:14:57)"},
		{"a list of them", release("  set = [{ name = \"" + retries + "attempts\", value = \"6\" }]\n"), "7 (a.tf:13:60)"},
		{"a secret", release("  set_sensitive { name = \"" + retries + "attempts\", value = 2 }\n"), "3 (a.tf:13:67)"},
		{"a whole route, before a list", release(set("spec.http[0]", `"{a,b}"`)), ""},
		{"nothing", release(set(retries+"attempts", `"null"`)), ""},
		{"a text of digits", release(`  set { name = "` + retries + `attempts", value = "6", type = "string" }` + "\n"),
			"7 (a.tf:13:57)"},
		{"what only Terraform knows", release(set(retries+"attempts", "var.n")),
			"unknown (template ${var.n}; a.tf:13:57) F702 a.tf:13:57"},
		{"a name that only Terraform knows", release(set("${var.n}", "6")), "5 (a.tf:10:25)"},
		{"what is no name", release(set("spec.http[x].retries.attempts", "6")), "5 (a.tf:10:25)"},
		{"another value", release(set(`metadata.labels.a\\.b/c`, `"x"`)), "5 (a.tf:10:25)"},
		{"a key with brackets", release(set(`spec.http\\[0].retries.attempts`, "6")), "5 (a.tf:10:25)"},
		{"a text with an escape",
			release(`  set { name = "` + retries + `attempts", value = "\\6", type = "string" }` + "\n"),
			"7 (a.tf:13:57)"},
		{"a value that is no mapping", release(set("kind.of", "6")), "5 (a.tf:10:25)"},
		{"an index beyond all", release(set("spec.http[1001]", "6")), "5 (a.tf:10:25)"},
		{"later values", "resource \"helm_release\" \"web\" {\n  values = [<<YAML\n" + virtualService + "YAML\n  , <<YAML\n" +
			"spec:\n  http:\n  - route: [{destination: {host: web}}]\n    retries: {attempts: 2}\nYAML\n  ]\n" +
			set("a", "1") + "}\n", "3 (a.tf:16:25)"},
		{"beside a file", strings.Replace(release(set(retries+"attempts", "6")), "[<<", "[file(\"a.yaml\"), <<", 1),
			"7 (a.tf:13:57)"},
		{"the chart of Istio", "resource \"helm_release\" \"istiod\" {\n  set {\n    name = " +
			"\"meshConfig.defaultHttpRetryPolicy.attempts\"\n    value = 5\n  }\n  set {\n" +
			"    name = \"meshConfig.enableTracing\"\n    value = \"true\"\n  }\n}\n" +
			"resource \"kubectl_manifest\" \"web\" {\n  yaml_body = <<YAML\n" +
			strings.Replace(virtualService, "    retries: {attempts: 4, perTryTimeout: 2s, retryOn: 5xx}\n", "", 1) +
			"YAML\n}\n",
			"6 (inherited from meshConfig.defaultHttpRetryPolicy; a.tf:4:13)"},
	} {
		form, _ := importer.Read([]importer.File{{Name: "a.tf", Data: []byte(c.text)}}, source.Assume{})
		got := tries(&form)
		for _, r := range form.Remarks {
			if r.Rule == "F702" {
				got = append(got, r.Rule+" "+r.At.String())
			}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s, want %s\n%s\n%v", c.what, text, c.want, c.text, form.Remarks)
		}
	}
}

func TestANameThatLeadsTooDeepIsLeftAndCostsNothing(t *testing.T) {
	read := func(depth int) float64 {
		text := release(`  set { name = "` + strings.Repeat("a.", depth) + `a", value = 6 }` + "\n")
		return testing.AllocsPerRun(1, func() {
			importer.Read([]importer.File{{Name: "a.tf", Data: []byte(text)}}, source.Assume{})
		})
	}
	if few, many := read(99), read(20_000); many > 2*few {
		t.Errorf("%v allocations for a name of 20,000 words, %v for one of 99", many, few)
	}
}

func FuzzReleasesAreReadWithoutAPanic(f *testing.F) {
	f.Add("meshConfig.a[0].b", `"{a,b}"`, "rootNamespace: &a {x: 1}")
	f.Add(`meshConfig.a\\.b[3][2]`, "null", "a: &a [1]\n  b: {<<: {c: 1}}")
	f.Fuzz(func(_ *testing.T, name, value, values string) {
		importer.Read([]importer.File{{Name: "a.tf", Data: []byte("resource \"helm_release\" \"a\" {\n  values = [<<E\n" +
			"meshConfig:\n  " + values + "\nE\n  ]\n  set {\n    name = \"" + name + "\"\n    value = " + value + "\n  }\n" +
			"  set {\n    name = \"meshConfig.defaultHttpRetryPolicy.attempts\"\n    value = 3\n  }\n}\n")}},
			source.Assume{})
	})
}
