package source_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/abate-go/abate/importer/source"
)

// randomJSON draws a value some levels deep. Texts have signs that are several bytes long, and escapes.
func randomJSON(r *rand.Rand, depth, width int) any {
	switch kind := r.IntN(8); {
	case depth > 0 && kind < 3:
		list := make([]any, r.IntN(width+1))
		for i := range list {
			list[i] = randomJSON(r, depth-1, width)
		}
		return list
	case depth > 0 && kind < 6:
		m := map[string]any{}
		for range r.IntN(width + 1) {
			m[fmt.Sprint(`kéy "`, r.IntN(1000))] = randomJSON(r, depth-1, width)
		}
		return m
	case kind == 6:
		return []any{nil, true, false, 0, -17, 2.5e30, "", "null", "true", "7"}[r.IntN(10)]
	}
	return strings.Repeat("päd \\ \"x\" → \t{[,]} # ", r.IntN(6))
}

// same compares two nodes with all that is in them.
func same(t *testing.T, where string, got, want source.Node) int {
	t.Helper()
	if got.At() != want.At() || got.Text() != want.Text() || got.Exists() != want.Exists() ||
		got.IsMap() != want.IsMap() ||
		got.IsList() != want.IsList() || got.Written() != want.Written() {
		t.Fatalf("%s: %v %q, want %v %q", where, got.At(), got.Text(), want.At(), want.Text())
	}
	n := 1
	a, b := got.Items(), want.Items()
	p, q := got.Pairs(), want.Pairs()
	if len(a) != len(b) || len(p) != len(q) {
		t.Fatalf("%s: %d items and %d pairs, want %d and %d", where, len(a), len(p), len(b), len(q))
	}
	for i := range a {
		n += same(t, fmt.Sprint(where, "[", i, "]"), a[i], b[i])
	}
	for i := range p {
		if p[i].Key != q[i].Key || p[i].Name.At() != q[i].Name.At() || got.Get(p[i].Key).At() != want.Get(q[i].Key).At() {
			t.Fatalf("%s: key %q at %v, want %q at %v", where, p[i].Key, p[i].Name.At(), q[i].Key, q[i].Name.At())
		}
		n += same(t, where+"."+p[i].Key, p[i].Value, q[i].Value)
	}
	return n
}

// Large JSON is read part by part. A comment behind it makes it YAML, which is read as a whole.
func TestLargeJSONIsReadAsYAMLReadsIt(t *testing.T) {
	for seed, indent := range map[uint64]string{1: "", 2: "  "} {
		if testing.Short() && seed > 1 {
			continue // a text of a megabyte is read twice
		}
		r := rand.New(rand.NewPCG(seed, 2))
		all := []any{randomJSON(r, 3, 3)}
		for size := 0; size < 1<<20; {
			v := randomJSON(r, 6, 7)
			if data, err := json.Marshal(v); err == nil && len(data) > 40 {
				size += len(data)
				all = append(all, v)
			}
		}
		data, err := json.MarshalIndent(map[string]any{"a": all[:1], "b": all, "c": nil}, "", indent)
		if err != nil {
			t.Fatal(err)
		}
		data = append([]byte("\n  "), data...)
		large, _ := source.YAML("x.json", data)
		whole, remarks := source.YAML("x.json", append(data, "\n# a comment\n"...))
		if len(large) != 1 || len(whole) != 1 {
			t.Fatalf("%d and %d documents, %v", len(large), len(whole), remarks)
		}
		if n := same(t, "", large[0].Root, whole[0].Root); n < 1000 {
			t.Errorf("only %d values were compared", n)
		}
	}
}

func TestLargeJSONThatIsBrokenIsARemark(t *testing.T) {
	data := []byte(`{"a": [` + strings.Repeat(`"0123456789", `, 76_000) + `}`)
	if docs, remarks := source.YAML("x.json", data); len(docs) != 0 || len(remarks) != 1 {
		t.Errorf("%d documents, %v", len(docs), remarks)
	}
}

func FuzzLargeJSONIsReadWithoutAPanic(f *testing.F) {
	f.Add(`{"a": [1, {"b": "x"}], "c": ""}`)
	f.Fuzz(func(t *testing.T, text string) {
		data := []byte(`[` + strings.Repeat(`"0123456789", `, 80_000) + "\n" + text + `]`)
		if !json.Valid(data) {
			return
		}
		docs, remarks := source.YAML("x.json", data)
		if len(docs) != 1 || len(remarks) != 0 {
			t.Fatalf("%d documents, %v", len(docs), remarks)
		}
		for _, item := range docs[0].Root.Items() {
			same(t, "", item, item)
		}
	})
}
