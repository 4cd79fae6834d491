package audit

import (
	"strings"

	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/topology"
)

// refusesKeys are the products that take a number of 0 only if nothing else stands in its block.
var refusesKeys = map[string]bool{"istio": true}

// beside returns the edits that take the other keys of a number's block away, so that the number can be 0. There are
// none where the file, read again, has more to complain about all the same.
func (in *inserts) beside(product string, e Edit) []Edit {
	if !refusesKeys[product] {
		return nil
	}
	lines := strings.SplitAfter(string(in.files[e.At.File]), "\n")
	if e.At.Line > len(lines) {
		return nil
	}
	all := inBraces(lines, e)
	if all == nil {
		all = inBlock(lines, e)
	}
	if len(all) == 0 || !in.same(append(all, e)) {
		return nil
	}
	return all
}

// same reports whether a file with edits gives nothing new to complain about.
func (in *inserts) same(edits []Edit) bool {
	file := edits[0].At.File
	changed, left := Apply([]importer.File{{Name: file, Data: in.files[file]}}, edits)
	is := in.read(changed[0])
	return len(left) == 0 && len(is.Remarks) <= in.remarksOf(file)
}

// remarksOf returns how many remarks a file has as it is.
func (in *inserts) remarksOf(file string) int {
	n, counted := in.remarks[file]
	if !counted {
		was := in.read(importer.File{Name: file, Data: in.files[file]})
		n = len(was.Remarks)
		in.remarks[file] = n
	}
	return n
}

// inBraces removes the other entries of a mapping in braces that is all on one line: {attempts: 3, retryOn: 5xx}.
func inBraces(lines []string, e Edit) []Edit {
	runes := []rune(lines[e.At.Line-1])
	column := min(e.At.Column-1, len(runes))
	before, after := string(runes[:column]), string(runes[column:])
	open, end := strings.LastIndexByte(before, '{'), strings.IndexAny(after, "{}")
	if open < 0 || end < 0 || after[end] == '{' || strings.ContainsRune(before[open:], '}') {
		return nil
	}
	remove := func(from int, text string) Edit { // from is in bytes of before+after
		at := e.At
		at.Column = len([]rune((before + after)[:from])) + 1
		return Edit{At: at, Old: text}
	}
	var all []Edit
	if comma := strings.LastIndexByte(before[open:], ','); comma >= 0 {
		text := strings.TrimLeft(before[open+1:open+comma+1], " ")
		all = append(all, remove(open+comma+1-len(text), text))
	}
	if comma := strings.IndexByte(after[:end], ','); comma >= 0 {
		all = append(all, remove(len(before)+comma, strings.TrimRight(after[comma:end], " ")))
	}
	return all
}

// inBlock removes the other keys of a mapping with a line for each, and what is below them.
func inBlock(lines []string, e Edit) []Edit {
	key := lines[e.At.Line-1]
	indent := len(indentOf(key))
	if indent == 0 || strings.HasPrefix(key[indent:], "- ") {
		return nil
	}
	var all []Edit
	look := func(i int) bool { // whether the block goes on
		text := strings.TrimRight(lines[i], "\r\n")
		own := len(indentOf(text))
		if text = text[own:]; text == "" || strings.HasPrefix(text, "#") {
			return true
		}
		if own < indent || own == indent && strings.HasPrefix(text, "-") {
			return false
		}
		if code, _, commented := strings.Cut(text, " #"); commented {
			text = strings.TrimRight(code, " ")
		}
		all = append(all, Edit{At: topology.Position{File: e.At.File, Line: i + 1, Column: own + 1}, Old: text})
		return true
	}
	for i := e.At.Line - 2; i >= 0 && look(i); i-- {
		continue
	}
	for i := e.At.Line; i < len(lines) && look(i); i++ {
		continue
	}
	return all
}
