package source

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/abate-go/abate/topology"
	"go.yaml.in/yaml/v3"
)

// Embedded returns the text of a node, which holds a file in itself (an entry of a ConfigMap, a heredoc of Terraform),
// as a document. Its positions are those of the text inside the outer file where the text is a block ("|", "<<EOF") or
// stands on one line; otherwise they are all the node's.
func Embedded(name string, n Node) Document {
	at := n.At()
	d := Document{File: at.File, Name: name, Data: []byte(n.Text()), Line: at.Line}
	y := n.itself()
	switch d.hcl = n.where != nil && n.where.hcl; {
	case y == nil:
	case n.where.quoted == nil && n.where.at.IsZero() && y.Style&yaml.LiteralStyle != 0:
		d.indent = n.indentation()
	default:
		d.at, d.Line = at, 0
		if n.where.quoted == nil && n.where.at.IsZero() {
			d.quoted = n.quoted()
		}
		if d.quoted == nil {
			d.Line = at.Line - 1
		}
	}
	return d
}

// Inside returns the document that the text of a node holds, and a node that is no text, or several documents, as it
// is. A text that cannot be read is a remark.
func Inside(n Node) (Node, []topology.Remark) {
	if y := n.resolved(); y == nil || y.Kind != yaml.ScalarNode || !strings.ContainsAny(y.Value, "\n:{[") ||
		onlyTemplate.MatchString(y.Value) {
		return n, nil
	}
	d := Embedded("", n)
	inner, remarks := d.Parsed()
	switch {
	case len(remarks) > 0:
		return Node{}, remarks
	case len(inner) != 1:
		return n, nil
	}
	return inner[0].Root, nil
}

// indentation returns how many columns the text of a block stands to the right in its file.
func (n Node) indentation() int {
	y := n.resolved()
	lines := bytes.Split(n.where.data, []byte("\n"))
	for i, text := range strings.Split(y.Value, "\n") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		if at := y.Line + i; at < len(lines) {
			line := strings.TrimSuffix(string(lines[at]), "\r")
			if before, ok := strings.CutSuffix(line, strings.TrimSuffix(text, "\r")); ok {
				return n.where.indent + len(before)
			}
		}
		break
	}
	return n.where.indent
}

// quoted says where the characters of a text stand that is in quotes on one line of a file.
type quoted struct {
	line    int
	columns [][]int // by line and character of the text; one more at the end of each line
}

// at returns the place of a line and a column of the text, both from 1; the column may be 0.
func (q *quoted) at(file string, line, column int) topology.Position {
	line = min(max(line, 1), len(q.columns))
	columns := q.columns[line-1]
	return topology.Position{File: file, Line: q.line, Column: columns[min(max(column, 1), len(columns))-1]}
}

// quoted returns where the characters of a node's text stand, nil where that is not known: the text goes over several
// lines, or is written in a way that is not read here.
func (n Node) quoted() *quoted {
	y := n.resolved()
	if y != n.itself() {
		return nil // an alias, whose text stands elsewhere
	}
	lines := bytes.SplitN(n.where.data, []byte("\n"), y.Line+1)
	if y.Line < 1 || y.Line > len(lines) || y.Column < 1 {
		return nil
	}
	line := []rune(strings.TrimSuffix(string(lines[y.Line-1]), "\r"))
	q := &quoted{line: n.where.line + y.Line, columns: [][]int{nil}}
	quote, at := rune(0), y.Column-1
	if at < len(line) && (line[at] == '"' || line[at] == '\'') {
		quote = line[at]
		at++
	}
	add := func() { q.columns[len(q.columns)-1] = append(q.columns[len(q.columns)-1], n.where.indent+at+1) }
	for _, c := range y.Value {
		is, next := character(line, at, quote)
		if next < 0 || is != c {
			return nil
		}
		if add(); c == '\n' {
			q.columns = append(q.columns, nil)
		}
		at = next
	}
	add()
	return q
}

// character returns the character that is written at a place of a line, and where the next begins; -1 for none.
func character(line []rune, at int, quote rune) (rune, int) {
	switch {
	case at >= len(line), quote == '"' && line[at] == '"':
		return 0, -1
	case quote == '\'' && line[at] == '\'':
		if at+1 < len(line) && line[at+1] == '\'' {
			return '\'', at + 2
		}
		return 0, -1
	case quote != '"' || line[at] != '\\':
		return line[at], at + 1
	case at+1 >= len(line):
		return 0, -1
	}
	switch c := line[at+1]; c {
	case 'n':
		return '\n', at + 2
	case 't':
		return '\t', at + 2
	case 'r':
		return '\r', at + 2
	case '"', '\\', '/', ' ':
		return c, at + 2
	case 'u':
		if at+6 <= len(line) {
			if n, err := strconv.ParseUint(string(line[at+2:at+6]), 16, 16); err == nil {
				return rune(n), at + 6
			}
		}
	}
	return 0, -1
}
