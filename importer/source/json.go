package source

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Large JSON (a dump of a proxy) is not parsed as a whole: a tree of it is some ten times as large as its text.
// Mappings and lists of more than wholeBytes are found again by their places; what is smaller is parsed when it is
// looked at.
const (
	largeBytes = 1 << 20
	wholeBytes = 64 << 10
)

// largeJSON is the text of a document that is JSON.
type largeJSON struct {
	data  []byte
	lines []uint32       // where each line begins
	runes []uint32       // that stand before each block of the text
	index map[int][]span // of large mappings and lists that were looked at, by where they begin
	// Values that were parsed last, by where they begin, and the order in which they were. An importer looks at one after
	// the other, and may keep all of them for later.
	kept  map[int]*yaml.Node
	order [256]int
	next  int
}

const block = 1 << 8 // bytes

// span is a member of a list, or a key and its value.
type span struct{ key, keyEnd, from, to int }

// branch is one value of a large document.
type branch struct {
	of       *largeJSON
	from, to int
}

// jsonRoot returns the document in data as a branch, or nil if it is not large or not JSON.
func jsonRoot(data []byte) *branch {
	if len(data) < largeBytes {
		return nil
	}
	text := bytes.TrimSpace(data)
	if len(text) == 0 || text[0] != '{' && text[0] != '[' || !json.Valid(text) {
		return nil
	}
	l := &largeJSON{data: data, lines: []uint32{0}, index: map[int][]span{}, kept: map[int]*yaml.Node{}}
	seen := uint32(0)
	for i, c := range data {
		if i%block == 0 {
			l.runes = append(l.runes, seen)
		}
		if c&0xC0 != 0x80 { // no later byte of a rune
			seen++
		}
		if c == '\n' {
			l.lines = append(l.lines, uint32(i+1))
		}
	}
	from := bytes.IndexByte(data, text[0])
	return &branch{of: l, from: from, to: from + len(text)}
}

// large reports whether the value is only looked at member by member.
func (b *branch) large() bool {
	first := b.of.data[b.from]
	return b.to-b.from > wholeBytes && (first == '{' || first == '[')
}

// parsed returns the value as a node; a large one has no members.
func (b *branch) parsed() *yaml.Node {
	l := b.of
	n := l.kept[b.from]
	if n != nil {
		return n
	}
	if b.large() {
		n = l.node(b.from)
	} else {
		n, _ = l.parse(b.from)
	}
	delete(l.kept, l.order[l.next])
	l.kept[b.from], l.order[l.next] = n, b.from
	l.next = (l.next + 1) % len(l.order)
	return n
}

// members returns the places of what a large value holds.
func (b *branch) members() []span {
	if found, ok := b.of.index[b.from]; ok {
		return found
	}
	var all []span
	l := b.of
	for at := l.skipSpace(b.from + 1); l.data[at] != '}' && l.data[at] != ']'; {
		s := span{from: at, to: l.end(at)}
		if l.data[b.from] == '{' {
			s.key, s.keyEnd = s.from, s.to
			s.from = l.skipSpace(l.skipSpace(s.keyEnd) + 1) // behind the colon
			s.to = l.end(s.from)
		}
		all = append(all, s)
		if at = l.skipSpace(s.to); l.data[at] == ',' {
			at = l.skipSpace(at + 1)
		}
	}
	l.index[b.from] = all
	return all
}

func (l *largeJSON) skipSpace(at int) int {
	for at < len(l.data) && (l.data[at] == ' ' || l.data[at] == '\n' || l.data[at] == '\t' || l.data[at] == '\r') {
		at++
	}
	return at
}

// end returns where the value that begins at a place ends.
func (l *largeJSON) end(at int) int {
	switch l.data[at] {
	case '"':
		return l.quoted(at)
	case '{', '[':
		for depth := 0; ; {
			switch l.data[at] {
			case '"':
				at = l.quoted(at)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return at + 1
				}
			}
			at++
		}
	}
	for at < len(l.data) && !strings.ContainsRune(",]} \n\t\r", rune(l.data[at])) {
		at++
	}
	return at
}

// quoted returns where the text that begins at a place ends.
func (l *largeJSON) quoted(at int) int {
	for at++; ; at++ {
		switch l.data[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
}

// node returns the node of the value at a place, without its members.
func (l *largeJSON) node(at int) *yaml.Node {
	line, _ := slices.BinarySearch(l.lines, uint32(at)+1)
	n := &yaml.Node{Line: line, Column: l.before(at) - l.before(int(l.lines[line-1])) + 1}
	switch first := l.data[at]; first {
	case '{':
		n.Kind, n.Tag, n.Style = yaml.MappingNode, "!!map", yaml.FlowStyle
	case '[':
		n.Kind, n.Tag, n.Style = yaml.SequenceNode, "!!seq", yaml.FlowStyle
	case '"':
		n.Kind, n.Tag, n.Style, n.Value = yaml.ScalarNode, "!!str", yaml.DoubleQuotedStyle, l.text(at)
	default:
		n.Kind, n.Value = yaml.ScalarNode, string(l.data[at:l.end(at)])
		switch {
		case first == 'n':
			n.Tag = "!!null"
		case first == 't', first == 'f':
			n.Tag = "!!bool"
		case strings.ContainsAny(n.Value, ".eE"):
			n.Tag = "!!float"
		default:
			n.Tag = "!!int"
		}
	}
	return n
}

// before returns how many runes stand before a place.
func (l *largeJSON) before(at int) int {
	n := int(l.runes[min(at/block, len(l.runes)-1)])
	for _, c := range l.data[at/block*block : at] {
		if c&0xC0 != 0x80 {
			n++
		}
	}
	return n
}

func (l *largeJSON) text(at int) string {
	raw := l.data[at:l.quoted(at)]
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s) // it is valid
	return s
}

// parse returns the value that begins at a place with all its members, and where it ends. It goes as deep as the value,
// which is a part of valid JSON, does: at most as many levels as encoding/json takes.
func (l *largeJSON) parse(at int) (*yaml.Node, int) {
	n := l.node(at)
	if n.Kind == yaml.ScalarNode {
		return n, l.end(at)
	}
	for at = l.skipSpace(at + 1); l.data[at] != '}' && l.data[at] != ']'; {
		var member *yaml.Node
		if n.Kind == yaml.MappingNode {
			n.Content = append(n.Content, l.node(at))
			at = l.skipSpace(l.skipSpace(l.quoted(at)) + 1)
		}
		member, at = l.parse(at)
		n.Content = append(n.Content, member)
		if at = l.skipSpace(at); l.data[at] == ',' {
			at = l.skipSpace(at + 1)
		}
	}
	return n, at + 1
}
