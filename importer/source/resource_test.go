package source_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

func TestWordsOfAScalarHaveTheirOwnPlaces(t *testing.T) {
	docs, _ := source.YAML("f.yaml", []byte("a: x, yy ,z\nb: 'é,y'\nc: [x, \"y,z\"]\nd: |\n  x,\n  y\ne: ' , '\n"))
	for key, want := range map[string]string{
		"a": "x f.yaml:1:4 yy f.yaml:1:7 z f.yaml:1:11", "b": "é f.yaml:2:5 y f.yaml:2:7",
		"c": "x f.yaml:3:5 y f.yaml:3:9 z f.yaml:3:11", "d": "x f.yaml:4:4 y f.yaml:4:4", "e": "",
	} {
		got := ""
		for _, p := range docs[0].Root.Get(key).Parts(",") {
			got += fmt.Sprintf(" %s %s", p.Text, p.At)
		}
		if len(got) > 0 {
			got = got[1:]
		}
		if got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}

func TestAnObjectOfKubernetesHasANameAndAGroup(t *testing.T) {
	docs, _ := source.YAML("f.yaml", []byte("apiVersion: networking.istio.io/v1\nkind: Gateway\n"+
		"metadata: {name: a, namespace: b, annotations: {x.io/y: z}}\n---\n"+
		"apiVersion: v1\nkind: Service\nmetadata: {name: c}\n---\n[]\n"))
	var got []string
	for _, d := range docs {
		r := d.Resource()
		got = append(got, fmt.Sprintf("%s|%s|%s", r.Group, r, r.Annotation("x.io/y").Text()))
	}
	if want := []string{"networking.istio.io|Gateway b/a|z", "|Service c|", "| |"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, c := range [][3]string{{"a", "b", "a.b"}, {"a", "", "a"}, {"a.c", "b", "a.c"}, {"", "b", ""}} {
		if got := source.Qualified(c[0], c[1]); got != c[2] {
			t.Errorf("Qualified(%q, %q) is %q", c[0], c[1], got)
		}
	}
}

func TestARemarkIsMadeOnce(t *testing.T) {
	a, b := topology.Remark{Rule: "F601", Text: "a"}, topology.Remark{Rule: "F601", Text: "b"}
	if got := source.Distinct([]topology.Remark{a, b, a}); len(got) != 2 || got[0] != a || got[1] != b {
		t.Errorf("%+v", got)
	}
}
