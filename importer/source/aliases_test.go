package source_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abate-go/abate/importer/source"
)

// nested is a document in which each of nine lines stands for nine times the line before.
func nested(format string) string {
	var b strings.Builder
	b.WriteString("a0: &a0 {retries: 3}\n")
	for i := range 9 {
		alias := fmt.Sprintf("*a%d", i)
		fmt.Fprintf(&b, "a%d: &a%[1]d "+format+"\n", i+1, strings.Join(slicesOf(alias, 9), ", "))
	}
	return b.String()
}

func slicesOf(s string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = s
	}
	return all
}

func TestMappingsThatAreMergedAgainAndAgainAreReadOnce(t *testing.T) {
	docs, remarks := source.YAML("a.yaml", []byte(nested("{<<: [%s]}")))
	if len(docs) != 1 || len(remarks) > 0 {
		t.Fatal(docs, remarks)
	}
	last := docs[0].Root.Get("a9")
	if got := last.Get("retries").Text(); got != "3" || last.Get("none").Written() {
		t.Errorf("retries %q, none %t", got, last.Get("none").Written())
	}
	if pairs := last.Pairs(); len(pairs) != 1 || pairs[0].Key != "retries" {
		t.Errorf("%d pairs: %+v", len(pairs), pairs)
	}
}

func TestTheFirstOfMergedMappingsThatHasAKeyCounts(t *testing.T) {
	docs, _ := source.YAML("a.yaml", []byte("b: &b {x: b, y: b}\nc: &c {x: c, z: c}\na: &a {<<: *b, w: a}\n"+
		"d: {<<: [*a, *c, *b], w: d}\n"))
	d := docs[0].Root.Get("d")
	for key, want := range map[string]string{"w": "d", "x": "b", "y": "b", "z": "c"} {
		if got := d.Get(key).Text(); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

func TestAliasesThatStandForTooMuchAreARemark(t *testing.T) {
	for text, want := range map[string]string{
		nested("[%s]"):                          "its aliases stand for more than 100000 values",
		nested("{x: [%s]}"):                     "its aliases stand for more than 100000 values",
		"a: &a {b: [*a]}\n":                     "an alias in it stands inside of what it is for",
		"a: &a {x: 1, y: {<<: *a}}\n":           "an alias in it stands inside of what it is for",
		"a: &a {<<: {<<: *a}, x: 1}\n":          "", // which brings nothing
		"a: &a {x: 1}\nb: [*a, *a, {<<: *a}]\n": "",
	} {
		docs, remarks := source.YAML("a.yaml", []byte(text))
		if want == "" && len(docs) == 1 && len(remarks) == 0 {
			continue
		}
		if len(docs) > 0 || len(remarks) != 1 || want == "" || !strings.HasSuffix(remarks[0].Text, want) {
			t.Errorf("%s: %d documents, %+v; want %q", text, len(docs), remarks, want)
		}
	}
}
