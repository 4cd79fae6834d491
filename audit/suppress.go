package audit

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

// Files may say which findings they accept, and why: in a comment on the line of the finding or on the line above,
//
//	# abate:ignore F301 the search uses POST and changes nothing
//
// in JSON, which has no comments, in a key beside the value ("//": "abate:ignore F301 …"), or, for a whole Kubernetes
// object, in its annotation abate.dev/ignore: "F301=reason; F402=another".
var (
	comment = regexp.MustCompile(`abate:ignore[ \t]+((?:F\d{3}[ \t,]*)+)(.*)`)
	ruleID  = regexp.MustCompile(`F\d{3}`)
)

const annotationKey = "abate.dev/ignore"

// ignored finds what files say about findings.
type ignored struct {
	lines   map[string][][]byte
	objects map[string][]annotated
}

// annotated is an object with the annotation, and the lines that it has.
type annotated struct {
	first, last int
	text        string
}

func newIgnored(files []importer.File) *ignored {
	g := &ignored{map[string][][]byte{}, map[string][]annotated{}}
	for _, f := range files {
		if bytes.Contains(f.Data, []byte("abate:ignore")) {
			g.lines[f.Name] = bytes.Split(f.Data, []byte("\n"))
		}
		if bytes.Contains(f.Data, []byte(annotationKey)) {
			g.objects[f.Name] = annotations(f)
		}
	}
	return g
}

// annotations returns the objects of a file that have the annotation. What stands in a comment, in a text or in another
// object of a list is none of theirs.
func annotations(f importer.File) []annotated {
	const end = math.MaxInt32
	var all []annotated
	docs, _ := source.YAML(f.Name, f.Data)
	for i, d := range docs {
		last := end
		if i+1 < len(docs) {
			last = docs[i+1].Line
		}
		objects := []source.Node{d.Root}
		if items := d.Root.Get("items"); items.IsList() && strings.HasSuffix(d.Root.Get("kind").Text(), "List") {
			objects = items.Items()
		}
		for j, o := range objects {
			a := annotated{o.At().Line, last, o.Get("metadata", "annotations", annotationKey).Text()}
			if j+1 < len(objects) {
				a.last = max(a.first, objects[j+1].At().Line-1)
			}
			if a.text != "" {
				all = append(all, a)
			}
		}
	}
	return all
}

// reason returns why a file accepts findings of a rule at a place, and reports whether it says so. A reason that is
// missing is empty; it accepts nothing.
func (g *ignored) reason(rule string, at topology.Position) (string, bool) {
	lines := g.lines[at.File]
	for _, n := range []int{at.Line, at.Line - 1} {
		if n < 1 || n > len(lines) || n < at.Line && !isComment(lines[n-1]) {
			continue
		}
		if m := comment.FindSubmatch(lines[n-1]); m != nil && slices.Contains(ruleID.FindAllString(string(m[1]), -1), rule) {
			return said(string(m[2])), true
		}
	}
	for _, o := range g.objects[at.File] {
		if at.Line < o.first || at.Line > o.last {
			continue
		}
		for part := range strings.SplitSeq(o.text, ";") {
			id, reason, _ := strings.Cut(part, "=")
			if strings.TrimSpace(id) == rule {
				return strings.TrimSpace(topology.OneLine(reason)), true
			}
		}
	}
	return "", false
}

// of returns why files accept a finding, as reason does, and the finding. Where only some of its copies do, it is at
// the first that does not.
func (g *ignored) of(f lint.Finding) (is lint.Finding, reason string, said bool) {
	reason, said = g.reason(f.Rule, f.At)
	for _, at := range f.Copies {
		if reason == "" {
			break
		}
		if why, also := g.reason(f.Rule, at); why == "" {
			return f.AtCopy(at), why, also
		}
	}
	return f, reason, said
}

// said is the reason in the rest of a line: without the end of the comment, or of the text of JSON that it stands in.
func said(rest string) string {
	rest = strings.TrimSpace(rest)
	if text, _, found := strings.Cut(rest, `"`); found && strings.Trim(rest[len(text):], `", }]`) == "" {
		rest = text
	}
	return strings.TrimSpace(strings.TrimRight(rest, "*/->"))
}

// marks begin a comment, or, in JSON, the key that stands for one.
var marks = []string{"#", "//", ";", "!", "/*", "<!--", "*", `"//"`, `"#"`, `"_comment"`}

func isComment(line []byte) bool {
	line = bytes.TrimSpace(line)
	return slices.ContainsFunc(marks, func(mark string) bool { return bytes.HasPrefix(line, []byte(mark)) })
}
