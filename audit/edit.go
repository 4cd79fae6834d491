package audit

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/topology"
)

// Edit replaces one number in a file, adds one that the file leaves out, or removes something. Nothing else of the file
// changes: comments and order stay.
type Edit struct {
	At       topology.Position
	Old, New string // Old is empty where New is added before At, which may have line ends; New is where Old is removed
	Why      string // in words: "sidecar of orders: 3 tries become 1"
	With     bool   // it goes with the edit before it in a list
}

// String is the edit in one line: "3 → 1", "retries: 0 is added".
func (e Edit) String() string {
	switch {
	case e.Old == "":
		return strings.Trim(e.New, " ,\r\n") + " is added"
	case e.New == "":
		return strings.Trim(e.Old, " ,:{") + " is removed"
	}
	return e.Old + " → " + e.New
}

// endless is the number of retries that some formats write for "without a limit".
const endless = "-1"

// number returns the number that stands in a file at a place.
func number(files map[string][]byte, at topology.Position) (string, bool) {
	line, ok := lineOf(files[at.File], at.Line)
	if !ok || at.Column < 1 {
		return "", false
	}
	runes := []rune(string(line))
	start := at.Column - 1
	if start < len(runes) {
		start += len(quoteOf(string(runes[start:])))
	}
	end := start
	if after := string(runes[min(start, len(runes)):]); strings.HasPrefix(after, endless) {
		end += len(endless) - 1
	}
	for end < len(runes) && runes[end] >= '0' && runes[end] <= '9' {
		end++
	}
	if start >= len(runes) || end == start {
		return "", false
	}
	return string(runes[start:end]), true
}

// quoteOf returns the quote with which a text begins, if it does. In a text that is itself in quotes it is escaped.
func quoteOf(text string) string {
	for _, quote := range []string{`"`, "'", `\"`} {
		if strings.HasPrefix(text, quote) {
			return quote
		}
	}
	return ""
}

func lineOf(data []byte, n int) ([]byte, bool) {
	for i := 1; ; i++ {
		line, rest, more := bytes.Cut(data, []byte("\n"))
		if i == n {
			return line, n > 0
		}
		if !more {
			return nil, false
		}
		data = rest
	}
}

// triesEdit returns the edit that makes a number of tries smaller where it is written. Formats write tries or retries;
// which of the two this one means follows from the number that stands there.
func triesEdit(files map[string][]byte, tries topology.Value[int], to int) (Edit, bool) {
	if tries.Origin != topology.Written && tries.Origin != topology.Inherited {
		return Edit{}, false
	}
	old, ok := number(files, tries.At)
	if !ok {
		return Edit{}, false
	}
	if old == "0" && tries.V == topology.Unbounded { // ingress-nginx, which counts tries
		return Edit{At: tries.At, Old: old, New: strconv.Itoa(to)}, true
	}
	if (old == endless) != (tries.V == topology.Unbounded) {
		return Edit{}, false
	}
	switch old {
	case strconv.Itoa(tries.V):
		return Edit{At: tries.At, Old: old, New: strconv.Itoa(to)}, true
	case strconv.Itoa(tries.V - 1), endless:
		return Edit{At: tries.At, Old: old, New: strconv.Itoa(to - 1)}, true
	}
	return Edit{}, false
}

// Apply returns the files with the edits made. Edits that do not find what they replace are left out and returned.
func Apply(files []importer.File, edits []Edit) (changed []importer.File, left []Edit) {
	byFile := map[string][]Edit{}
	for _, e := range edits {
		byFile[e.At.File] = append(byFile[e.At.File], e)
	}
	for _, f := range files {
		list := byFile[f.Name]
		delete(byFile, f.Name)
		if len(list) == 0 {
			changed = append(changed, f)
			continue
		}
		// From the end of the file, so that columns before an edit stay what they are.
		slices.SortFunc(list, func(a, b Edit) int {
			return cmp.Or(cmp.Compare(b.At.Line, a.At.Line), cmp.Compare(b.At.Column, a.At.Column))
		})
		lines := strings.SplitAfter(string(f.Data), "\n")
		for _, e := range list {
			if !replace(lines, e) {
				left = append(left, e)
			}
		}
		changed = append(changed, importer.File{Name: f.Name, Data: []byte(strings.Join(lines, ""))})
	}
	for _, list := range byFile {
		left = append(left, list...)
	}
	return changed, left
}

// quoted is a name as Git writes it: in quotes, and with three octal digits for each character that is not to be seen.
func quoted(name string) string {
	if topology.OneLine(name) == name {
		return name
	}
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	return `"` + b.String() + `"`
}

func replace(lines []string, e Edit) bool {
	if e.At.Line < 1 || e.At.Line > len(lines) || e.At.Column < 1 {
		return false
	}
	runes := []rune(lines[e.At.Line-1])
	at := min(e.At.Column-1, len(runes))
	before, after := string(runes[:at]), string(runes[at:])
	quote := ""
	if e.Old != "" && !strings.HasPrefix(after, e.Old) {
		quote = quoteOf(after)
		after = after[len(quote):]
	}
	rest, ok := strings.CutPrefix(after, e.Old)
	if ok {
		lines[e.At.Line-1] = before + quote + e.New + rest
	}
	if ok && e.New == "" && strings.TrimSpace(lines[e.At.Line-1]) == "" {
		lines[e.At.Line-1] = "" // nothing is left of the line
	}
	return ok
}

// around is how many lines around a change a diff shows.
const around = 3

// Diff returns the changes of one file as a unified diff, which patch -p1 and git apply read; empty when nothing
// differs. name is how the diff calls the file. It is meant for few changes: it takes time in proportion to the length
// of the file and to the square of a single change.
func Diff(name string, before, after []byte) string {
	if bytes.Equal(before, after) {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", quoted("a/"+name), quoted("b/"+name))
	a, b := lines(before), lines(after)
	all := changesOf(a, b)
	for len(all) > 0 {
		n := 1 // changes that stand in one hunk
		for n < len(all) && all[n].a-all[n-1].aEnd <= 2*around {
			n++
		}
		hunk(&out, a, b, all[:n])
		all = all[n:]
	}
	return out.String()
}

func lines(data []byte) []string {
	all := strings.SplitAfter(string(data), "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// change says that lines a to aEnd of one text became lines b to bEnd of another.
type change struct{ a, aEnd, b, bEnd int }

// changesOf returns where two texts differ. After a difference it looks for the nearest line that both have.
func changesOf(a, b []string) []change {
	var all []change
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		if i < len(a) && j < len(b) && a[i] == b[j] {
			i, j = i+1, j+1
			continue
		}
		c := change{i, len(a), j, len(b)}
	nearest:
		for far := 1; far <= len(a)-i+len(b)-j; far++ {
			for x := max(0, far-(len(b)-j)); x <= min(far, len(a)-i); x++ {
				if y := far - x; agree(a[i+x:], b[j+y:]) {
					c.aEnd, c.bEnd = i+x, j+y
					break nearest
				}
			}
		}
		all = append(all, c)
		i, j = c.aEnd, c.bEnd
	}
	return all
}

// agree reports whether two texts go on with the same line, or both end.
func agree(a, b []string) bool {
	return len(a) == 0 && len(b) == 0 || len(a) > 0 && len(b) > 0 && a[0] == b[0]
}

// hunk writes changes that stand near each other, and the lines around them.
func hunk(out *strings.Builder, a, b []string, changes []change) {
	first, last := changes[0], changes[len(changes)-1]
	from := max(0, first.a-around)
	end := min(len(a), last.aEnd+around)
	fromB, endB := first.b-(first.a-from), last.bEnd+end-last.aEnd
	fmt.Fprintf(out, "@@ -%s +%s @@\n", span(from, end), span(fromB, endB))
	at := from
	for _, c := range changes {
		diffLines(out, " ", a[at:c.a])
		diffLines(out, "-", a[c.a:c.aEnd])
		diffLines(out, "+", b[c.b:c.bEnd])
		at = c.aEnd
	}
	diffLines(out, " ", a[at:end])
}

// span is a range of lines as a hunk names it: that of no lines begins at the line before.
func span(from, end int) string {
	if from == end {
		return fmt.Sprintf("%d,0", from)
	}
	return fmt.Sprintf("%d,%d", from+1, end-from)
}

func diffLines(out *strings.Builder, mark string, all []string) {
	for _, line := range all {
		out.WriteString(mark + line)
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
