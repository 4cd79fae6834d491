package source_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abate-go/abate/importer/source"
)

const stream = `# a stream
a: {n: 3, t: "{{ .Values.t }}", bad: many}
---
b: [
---
kind: ConfigMap
data:
  app.yml: |
    x:
      y: 5
  one.line: "z: 6"
`

func TestOneBrokenDocumentIsARemarkAndTheOthersAreRead(t *testing.T) {
	docs, remarks := source.YAML("f.yaml", []byte(stream))
	if len(docs) != 2 || len(remarks) != 1 || remarks[0].Rule != "F606" || remarks[0].At.File != "f.yaml" {
		t.Fatalf("%d documents, remarks %+v", len(docs), remarks)
	}
	if got := remarks[0].At.Line; got < 4 || got > 5 {
		t.Errorf("the broken document is said to be in line %d", got)
	}
	if got := docs[1].Root.Get("kind").At().String(); got != "f.yaml:6:7" {
		t.Errorf("kind stands at %s", got)
	}
}

func TestValuesKnowTheirPlaceAndTemplatesAreUnknown(t *testing.T) {
	docs, _ := source.YAML("f.yaml", []byte(stream))
	a := docs[0].Root.Get("a")
	n, _ := source.Scalar(a.Get("n"), source.Int)
	if n.String() != "3 (f.yaml:2:8)" {
		t.Errorf("n is %s", n)
	}
	if v, remarks := source.Scalar(a.Get("t"), source.Int); !v.IsUnknown() || len(remarks) != 1 {
		t.Errorf("t is %s, %v", v, remarks)
	}
	if v, remarks := source.Scalar(a.Get("bad"), source.Int); !v.IsUnknown() || len(remarks) != 1 {
		t.Errorf("bad is %s, %v", v, remarks)
	}
	if v, _ := source.Scalar(a.Get("none"), source.Int); !v.IsZero() {
		t.Errorf("none is %s", v)
	}
}

func TestAnEmbeddedFileKeepsThePlacesOfTheOuterOne(t *testing.T) {
	docs, _ := source.YAML("f.yaml", []byte(stream))
	for _, c := range []struct{ key, path, want string }{
		{"app.yml", "x|y", "f.yaml:9:5"}, {"one.line", "z", "f.yaml:11:"},
	} {
		inner, remarks := source.Embedded(c.key, docs[1].Root.Get("data", c.key)).Parsed()
		if len(inner) != 1 || len(remarks) != 0 {
			t.Fatalf("%s: %d documents, %v", c.key, len(inner), remarks)
		}
		if got := inner[0].Root.Pairs()[0].Name.At().String(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: its first key stands at %s, want %s", c.key, got, c.want)
		}
	}
}

func TestKeysNobodyKnowsAreRemarksWithTheNearest(t *testing.T) {
	docs, _ := source.YAML("f.yaml", []byte("attemps: 3\nperTryTimeout: 2s\n"))
	remarks := docs[0].Root.Unknown("Istio", "VirtualService x", "attempts", "perTryTimeout")
	if len(remarks) != 1 || !strings.Contains(remarks[0].Fix, "attempts") || remarks[0].At.Line != 1 {
		t.Errorf("%+v", remarks)
	}
}

func TestVersionsAreComparedByTheirNumbers(t *testing.T) {
	for _, c := range []struct {
		v, w string
		want bool
	}{{"1.23", "1.24", true}, {"v1.9.3", "1.24", true}, {"1.24", "1.24", false}, {"1.24.0-rc1", "1.24", false},
		{"2", "1.24", false}, {"1", "1.24", true}, {"latest", "1.24", false},
		{"3", "3.0", false}, {"v2", "2.0.0", false}} {
		if got := source.Before(c.v, c.w); got != c.want {
			t.Errorf("Before(%q, %q) is %v", c.v, c.w, got)
		}
	}
}

// Each of these mappings takes in the one before nine times: there are 9⁶ ways to the first.
func TestWhatIsMergedInByManyWaysIsReadOnce(t *testing.T) {
	text := "m0: &m0 {a: 1}\n"
	for i := 1; i <= 6; i++ {
		before := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*m%d,", i-1), 9), ",")
		text += fmt.Sprintf("m%d: &m%d {b%d: 2, <<: [%s]}\n", i, i, i, before)
	}
	docs, _ := source.YAML("f.yaml", []byte(text))
	last := docs[0].Root.Get("m6")
	if got := last.Pairs(); len(got) != 7 || got[0].Key != "b6" || got[6].Key != "a" {
		t.Errorf("%d pairs, want 7", len(got))
	}
	if last.Get("a").Text() != "1" || last.Get("b1").Text() != "2" || last.Get("c").Written() {
		t.Error("what is merged in is not found, or what is not there is")
	}
}

func FuzzStreamsAreReadWithoutAPanic(f *testing.F) {
	f.Add([]byte(stream))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("a: &a {<<: *a}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, _ := source.YAML("f", data)
		for _, d := range docs {
			walk(d.Root, 0)
		}
	})
}

func walk(n source.Node, depth int) {
	if depth > 6 {
		return
	}
	for _, p := range n.Pairs() {
		n.Get(p.Key)
		walk(p.Value, depth+1)
	}
	for _, item := range n.Items() {
		walk(item, depth+1)
	}
	if n.Text() != "" {
		source.Embedded("x", n).Parsed()
	}
}

// A stream that an editor of Windows saved has as many documents as any other.
func TestAStreamWithCarriageReturnsHasAllItsDocuments(t *testing.T) {
	docs, remarks := source.YAML("a.yaml", []byte("kind: A\r\n---\r\nkind: B\r\n--- # last\r\nkind: C\r\n"))
	if len(docs) != 3 || len(remarks) != 0 {
		t.Fatalf("%d documents, %v", len(docs), remarks)
	}
	if at := docs[2].Root.Get("kind").At(); docs[2].Root.Get("kind").Text() != "C" || at.Line != 5 {
		t.Errorf("%v", at)
	}
}

func TestAFunctionOfCloudFormationIsATemplate(t *testing.T) {
	docs, _ := source.YAML("f.yaml", []byte("a: !Ref Tries\nb: !Sub '${Stage}-x'\nc: !own 3\nd: !!str 4\n"))
	for key, want := range map[string]string{"a": "${Ref Tries}", "b": "${Sub ${Stage}-x}", "c": "3", "d": "4"} {
		if got := docs[0].Root.Get(key).Text(); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if v, _ := source.Scalar(docs[0].Root.Get("a"), source.Int); !v.IsUnknown() {
		t.Errorf("a is %s", v)
	}
}

func TestTextInTextStandsWhereItsFileHasIt(t *testing.T) {
	for text, want := range map[string]string{
		"|\n    k:\n      n: 4\n":                           "m.yaml:4:10",
		"|2\n    k:\n      n: 4\n":                          "m.yaml:4:10",
		"|\n\n    k:\n\n      n: 4\n":                       "m.yaml:6:10",
		`"{\n\"k\": {\"é\": 1, \"n\": 4}}"`:                 "m.yaml:2:35",
		`'{"k''": 3, "k": {"n": 4}}'`:                       "m.yaml:2:29",
		`{"n": 4}`:                                          "", // no text
		"\"{\\\"k\\\":\n    {\\\"n\\\": 4}}\" # folded":     "m.yaml:2:6",
		"\"{\\\"k\\\": {\\\"\\x41\\\": 1, \\\"n\\\": 4}}\"": "m.yaml:2:6", // an escape that is not read
		">\n    k: {n: 4}\n":                                "m.yaml:2:6",
	} {
		docs, remarks := source.YAML("m.yaml", []byte("data:\n  k: "+text+"\n"))
		if len(docs) != 1 || len(remarks) > 0 {
			t.Fatalf("%s: %v", text, remarks)
		}
		d := source.Embedded("k", docs[0].Root.Get("data", "k"))
		inner, remarks := d.Parsed()
		switch {
		case want == "":
		case len(remarks) > 0:
			if at := remarks[0].At.String(); at != "m.yaml:2:6" {
				t.Errorf("%s: %s", text, at)
			}
		case len(inner) != 1 || inner[0].Root.Get("k", "n").At().String() != want:
			t.Errorf("%s: %v, want %s", text, inner[0].Root.Get("k", "n").At(), want)
		}
	}
}

// Only YAML 1.1 ends a line at these; editors, Git and the audit's diff do not.
func TestPlacesCountTheLinesThatEverybodyCounts(t *testing.T) {
	for _, c := range []string{"\u0085", "\u2028", "\u2029"} {
		docs, _ := source.YAML("f.yaml", []byte("data:\n  # a"+c+"b\n  conf: |\n    # c"+c+"d\n    n: 3\n  z: 1\n"))
		inner, _ := source.Embedded("conf", docs[0].Root.Get("data", "conf")).Parsed()
		if at := inner[0].Root.Get("n").At().String(); at != "f.yaml:5:8" {
			t.Errorf("%q: n stands at %s", c, at)
		}
		if at := docs[0].Root.Get("data", "z").At().String(); at != "f.yaml:6:6" {
			t.Errorf("%q: z stands at %s", c, at)
		}
	}
}

func TestAStreamIsReadUntilItIsTooLong(t *testing.T) {
	if testing.Short() {
		return // make storms reads 64 MiB
	}
	stream := "a: 1\n---\n# " + strings.Repeat("x", 64<<20) + "\n---\nb: 2\n---\nc: 3\n"
	docs, remarks := source.YAML("f.yaml", []byte(stream))
	last := remarks[len(remarks)-1]
	if len(docs) != 1 || !strings.Contains(last.Text, "64 MiB") || !strings.Contains(last.Text, "left out") ||
		last.At.Line > 4 {
		t.Errorf("%d documents, %+v", len(docs), remarks)
	}
}
