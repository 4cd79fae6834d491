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

// Edit replaces one number in a file. Nothing else of the file changes: comments and order stay.
type Edit struct {
	At       topology.Position
	Old, New string
	Why      string // in words: "sidecar of orders: 3 tries become 1"
}

// number returns the number that stands in a file at a place.
func number(files map[string][]byte, at topology.Position) (string, bool) {
	line, ok := lineOf(files[at.File], at.Line)
	if !ok || at.Column < 1 {
		return "", false
	}
	runes := []rune(string(line))
	start := at.Column - 1
	if start < len(runes) && (runes[start] == '"' || runes[start] == '\'') {
		start++
	}
	end := start
	for end < len(runes) && runes[end] >= '0' && runes[end] <= '9' {
		end++
	}
	if start >= len(runes) || end == start {
		return "", false
	}
	return string(runes[start:end]), true
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
	switch old {
	case strconv.Itoa(tries.V):
		return Edit{At: tries.At, Old: old, New: strconv.Itoa(to)}, true
	case strconv.Itoa(tries.V - 1):
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

func replace(lines []string, e Edit) bool {
	if e.At.Line < 1 || e.At.Line > len(lines) || e.At.Column < 1 {
		return false
	}
	runes := []rune(lines[e.At.Line-1])
	at := min(e.At.Column-1, len(runes))
	before, after := string(runes[:at]), string(runes[at:])
	quote := ""
	if after != "" && (after[0] == '"' || after[0] == '\'') {
		quote, after = after[:1], after[1:]
	}
	rest, ok := strings.CutPrefix(after, e.Old)
	if ok {
		lines[e.At.Line-1] = before + quote + e.New + rest
	}
	return ok
}

// around is how many lines around a change a diff shows.
const around = 3

// Diff returns the edits of one file as a unified diff, which patch -p1 and git apply read; empty when nothing differs.
// Edits replace text inside lines, so both sides have the same lines.
func Diff(name string, before, after []byte) string {
	a, b := strings.SplitAfter(string(before), "\n"), strings.SplitAfter(string(after), "\n")
	if len(a) != len(b) || bytes.Equal(before, after) {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "--- a/%s\n+++ b/%s\n", name, name)
	for i := 0; i < len(a); {
		if a[i] == b[i] {
			i++
			continue
		}
		from := max(0, i-around)
		to := i + 1 // behind the last change of this hunk
		for j := i + 1; j < len(a) && j < to+2*around; j++ {
			if a[j] != b[j] {
				to = j + 1
			}
		}
		end := min(len(a), to+around)
		if end == len(a) && a[end-1] == "" {
			end--
		}
		fmt.Fprintf(&out, "@@ -%d,%d +%d,%d @@\n", from+1, end-from, from+1, end-from)
		hunk(&out, a[from:end], b[from:end])
		i = to
	}
	return out.String()
}

func hunk(out *strings.Builder, a, b []string) {
	for i := 0; i < len(a); {
		if a[i] == b[i] {
			diffLine(out, " ", a[i])
			i++
			continue
		}
		start := i
		for i < len(a) && a[i] != b[i] {
			diffLine(out, "-", a[i])
			i++
		}
		for _, line := range b[start:i] {
			diffLine(out, "+", line)
		}
	}
}

func diffLine(out *strings.Builder, mark, line string) {
	out.WriteString(mark + line)
	if !strings.HasSuffix(line, "\n") {
		out.WriteString("\n\\ No newline at end of file\n")
	}
}
