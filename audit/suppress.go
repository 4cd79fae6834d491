package audit

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/topology"
)

// Files may say which findings they accept, and why: in a comment on the line of the finding or on the line above,
//
//	# abate:ignore F301 the search uses POST and changes nothing
//
// or, for a whole Kubernetes object, in an annotation abate.dev/ignore: "F301=reason; F402=another".
var (
	comment    = regexp.MustCompile(`abate:ignore[ \t]+((?:F\d{3}[ \t,]*)+)(.*)`)
	annotation = regexp.MustCompile(`abate\.dev/ignore:[ \t]*["']?([^"'\r\n]+)`)
	ruleID     = regexp.MustCompile(`F\d{3}`)
)

// ignored finds what files say about findings.
type ignored struct{ lines map[string][][]byte }

func newIgnored(files []importer.File) *ignored {
	g := &ignored{lines: make(map[string][][]byte, len(files))}
	for _, f := range files {
		if bytes.Contains(f.Data, []byte("abate:ignore")) || bytes.Contains(f.Data, []byte("abate.dev/ignore")) {
			g.lines[f.Name] = bytes.Split(f.Data, []byte("\n"))
		}
	}
	return g
}

// reason returns why a file accepts findings of a rule at a place, and reports whether it says so. A reason that is
// missing is empty; it accepts nothing.
func (g *ignored) reason(rule string, at topology.Position) (string, bool) {
	lines := g.lines[at.File]
	if at.Line < 1 || at.Line > len(lines) {
		return "", false
	}
	for _, n := range []int{at.Line, at.Line - 1} {
		if n < 1 || n < at.Line && !isComment(lines[n-1]) {
			continue
		}
		if m := comment.FindSubmatch(lines[n-1]); m != nil && slices.Contains(ruleID.FindAllString(string(m[1]), -1), rule) {
			return strings.TrimSpace(strings.TrimRight(strings.TrimSpace(string(m[2])), "*/->")), true
		}
	}
	return g.annotated(rule, lines, at.Line)
}

func isComment(line []byte) bool {
	line = bytes.TrimSpace(line)
	for _, mark := range []string{"#", "//", ";", "/*", "<!--", "*"} {
		if bytes.HasPrefix(line, []byte(mark)) {
			return true
		}
	}
	return false
}

// annotated looks for the annotation in the document around a line.
func (g *ignored) annotated(rule string, lines [][]byte, line int) (string, bool) {
	first, last := line-1, line-1
	for first > 0 && !bytes.HasPrefix(lines[first-1], []byte("---")) {
		first--
	}
	for last+1 < len(lines) && !bytes.HasPrefix(lines[last+1], []byte("---")) {
		last++
	}
	for _, text := range lines[first : last+1] {
		m := annotation.FindSubmatch(text)
		if m == nil {
			continue
		}
		for part := range strings.SplitSeq(string(m[1]), ";") {
			id, reason, _ := strings.Cut(part, "=")
			if strings.TrimSpace(id) == rule {
				return strings.TrimSpace(reason), true
			}
		}
	}
	return "", false
}
