package behaviour

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/abate-go/abate/importer/source"
	"github.com/hashicorp/hcl"
)

// Consul reads config entries with this library. The audit reads them with a parser of its own, which keeps the place
// of each value: both have to say the same of a text.
func TestHCLSaysWhatConsulsLibraryReads(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 3000 {
		w := &hclWriter{r: r}
		w.body(0)
		text := w.String()
		want := map[string]any{}
		if err := hcl.Decode(&want, text); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		d, remarks := source.HCL(source.Document{File: "c.hcl", Data: []byte(text)})
		if len(remarks) > 0 {
			t.Fatalf("%v in\n%s", remarks, text)
		}
		if got, want := treeOf(d.Root), plainTree(want); !reflect.DeepEqual(got, want) {
			t.Fatalf("%v, want %v of\n%s", got, want, text)
		}
	}
}

// treeOf returns a node as maps, lists and texts.
func treeOf(n source.Node) any {
	switch {
	case n.IsMap():
		m := map[string]any{}
		for _, p := range n.Pairs() {
			m[p.Key] = treeOf(p.Value)
		}
		return m
	case n.IsList():
		all := []any{}
		for _, item := range n.Items() {
			all = append(all, treeOf(item))
		}
		return all
	}
	return n.Text()
}

// plainTree returns what the library decoded, with one mapping in place of a list of one: it makes lists of all blocks,
// of which Consul takes the only member.
func plainTree(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for key, value := range v {
			m[key] = plainTree(value)
		}
		return m
	case []map[string]any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = plainTree(v[i])
		}
		if len(all) == 1 {
			return all[0]
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = plainTree(v[i])
		}
		return all
	}
	return fmt.Sprint(v)
}

// hclWriter draws a text as people write it.
type hclWriter struct {
	strings.Builder
	r *rand.Rand
}

func (w *hclWriter) one(of ...string) string { return of[w.r.IntN(len(of))] }

func (w *hclWriter) body(depth int) {
	for i := range 1 + w.r.IntN(4) {
		w.WriteString(w.one("", "\n", "  # a note {\n", "// x = \"\n", "/* a\n } */ ") + w.one("\t", "", "  "))
		key := fmt.Sprintf("%s%d", w.one("Key", "a_key", "num-b", "é"), i)
		if w.r.IntN(5) == 0 {
			key = `"` + key + ` of"`
		}
		w.WriteString(key)
		if depth < 3 && w.r.IntN(3) == 0 {
			w.WriteString(w.one(" {", " = {", "{") + "\n")
			w.body(depth + 1)
			w.WriteString("}" + w.one("\n", "\n\n"))
			continue
		}
		w.WriteString(w.one(" = ", "=", "   =\t"))
		if w.r.IntN(9) == 0 {
			w.WriteString(w.one("<<EOT\nsome {\ntext = 3\nEOT\n", "<<E_1\nE_1 \n\nE_1\n"))
			continue
		}
		w.value(depth)
		w.WriteString(w.one("\n", " # why\n", " // why\n", " /* why */\n"))
	}
}

func (w *hclWriter) value(depth int) {
	if depth < 3 && w.r.IntN(4) == 0 {
		w.WriteString("[\n")
		for range 1 + w.r.IntN(3) {
			w.WriteString("  {\n")
			w.body(depth + 1)
			w.WriteString("}" + w.one(",", ",\n"))
		}
		w.WriteString("]")
		return
	}
	if w.r.IntN(4) == 0 {
		w.WriteString("[" + w.one("", "\n  "))
		for i := range w.r.IntN(4) {
			if i > 0 {
				w.WriteString("," + w.one(" ", "\n  "))
			}
			w.WriteString(w.one(`"x"`, `"a, ] b"`, "12", `""`))
		}
		w.WriteString(w.one("", "\n") + "]")
		return
	}
	w.WriteString(w.one(`"15s"`, `"a \"quoted\" one\\"`, `"tab\tü\u00e9"`, "42", "true", "false", "-3", `"${ f("x") }-y"`,
		`"# no comment"`))
}
