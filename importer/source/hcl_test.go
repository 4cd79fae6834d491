package source_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/importer/source"
)

const hclText = `# one entry
Kind = "service-router" // said
Name     = "orders"
"Meta" { owner = "shop", note = "a \"b\"é" }
Routes = [
  { Destination { NumRetries = 3 /* few */ }, Weight = 0.5 },
  {
    Destination = { NumRetries : 4, "Quoted" = true, }
    none = null
  }
]
Text = <<-EOT
  two
  lines
EOT
Rule { n = 1 }
Rule { n = 2 }
resource "kind" "name" {
  count  = var.many ? 1 : 0
  json   = jsonencode({ Retries = 5, Of = [for x in y : { a = x }] })
  joined = "${var.a}-${lookup(m, "k")}"
}
`

func hclDocument(t *testing.T, text string) source.Node {
	t.Helper()
	d, remarks := source.HCL(source.Document{File: "f.hcl", Data: []byte(text)})
	if len(remarks) > 0 {
		t.Fatal(remarks)
	}
	return d.Root
}

func TestHCLIsReadWithThePlaceOfEachValue(t *testing.T) {
	root := hclDocument(t, hclText)
	routes, rules := root.Get("Routes").Items(), root.Get("Rule").Items()
	if len(routes) != 2 || len(rules) != 2 {
		t.Fatalf("%d routes, %d rules", len(routes), len(rules))
	}
	for _, c := range []struct {
		n        source.Node
		text, at string
	}{
		{root.Get("Kind"), "service-router", "f.hcl:2:8"},
		{root.Get("Name"), "orders", "f.hcl:3:12"},
		{root.Get("Meta", "note"), `a "b"é`, "f.hcl:4:33"},
		{routes[0].Get("Destination", "NumRetries"), "3", "f.hcl:6:32"},
		{routes[0].Get("Weight"), "0.5", "f.hcl:6:56"},
		{routes[1].Get("Destination", "NumRetries"), "4", "f.hcl:8:34"},
		{routes[1].Get("Destination", "Quoted"), "true", "f.hcl:8:48"},
		{root.Get("Text"), "two\nlines\n", "f.hcl:12:8"},
		{rules[1].Get("n"), "2", "f.hcl:17:12"},
		{root.Get("resource", "kind", "name", "count"), "${var.many ? 1 : 0}", "f.hcl:19:12"},
		{root.Get("resource", "kind", "name", "json", "Retries"), "5", "f.hcl:20:35"},
		{root.Get("resource", "kind", "name", "json", "Of"), "${[for x in y : { a = x }]}", "f.hcl:20:43"},
		{root.Get("resource", "kind", "name", "joined"), `${var.a}-${lookup(m, "k")}`, "f.hcl:21:12"},
	} {
		if c.n.Text() != c.text || c.n.At().String() != c.at {
			t.Errorf("%q at %s, want %q at %s", c.n.Text(), c.n.At(), c.text, c.at)
		}
	}
	if routes[1].Get("none").Exists() {
		t.Error("null is a value")
	}
}

func TestWhatIsNotHCLIsARemarkWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"a = 1\nb = [1, 2":         "f.hcl:2:10: a [ is not closed",
		"a {\n b = 1\n":            "f.hcl:3:1: a { is not closed",
		"a = \"x\nb = 1":           "f.hcl:1:7: a text in quotes does not end on its line",
		"a b = 3":                  "f.hcl:1:5: a value has two names, a and b",
		"a = \n}":                  "f.hcl:2:1: a value is missing",
		"}":                        "f.hcl:1:1: \"}\" stands where a name, = or { belongs",
		"a = <<EOT\nx\n":           "f.hcl:1:5: the text that begins with <<EOT does not end",
		"name":                     "f.hcl:1:5: the file ends where = or { is missing",
		"a = f(1\n":                "f.hcl:2:1: a bracket is not closed",
		"/* x":                     "f.hcl:1:5: a comment that begins with /* does not end",
		strings.Repeat("a {", 200): "f.hcl:1:304: values stand in each other more than 100 deep",
	} {
		_, remarks := source.HCL(source.Document{File: "f.hcl", Data: []byte(text)})
		if len(remarks) != 1 || remarks[0].At.String()+": "+
			strings.TrimPrefix(remarks[0].Text, "this file could not be read as HCL: ") != want {
			t.Errorf("%.20q: %+v, want %s", text, remarks, want)
		}
	}
}

func FuzzHCLIsReadWithoutAPanic(f *testing.F) {
	f.Add(hclText)
	f.Add("a = \"${\"x${\"\"}\"}\" \\")
	f.Fuzz(func(t *testing.T, text string) {
		d, remarks := source.HCL(source.Document{File: "f.hcl", Data: []byte(text)})
		if d.Root.Written() == (len(remarks) > 0) {
			t.Errorf("a root and a remark, or neither: %v", remarks)
		}
	})
}
