package source

import (
	"fmt"
	"strings"

	"github.com/abate-go/abate/topology"
	"go.yaml.in/yaml/v3"
)

// HCL reads a text of HCL (Consul's config entries, Terraform) as one document. A block is a mapping under its type and
// its labels; blocks of one type are a list. What stands in jsonencode or yamlencode is read as a value; any other
// expression is a template, so what it says is unknown. A text that is not HCL gives a remark and no root.
func HCL(d Document) (Document, []topology.Remark) {
	p := &hcl{text: []rune(string(d.Data)), line: 1, column: 1, keys: keyed{}}
	root := p.mapping()
	p.body(root, 0)
	if p.problem != "" {
		return d, []topology.Remark{{Rule: "F606", At: d.At(p.line, p.column), Subject: "document",
			Text: "this file could not be read as HCL: " + p.problem, Fix: "correct it: consul config write or " +
				"terraform validate says more"}}
	}
	d.Root = Node{y: root, where: d.place()}
	d.Root.where.hcl = true
	return d, nil
}

// hclDepth is how deep values may stand in each other.
const hclDepth = 100

// hcl reads a text from front to back. The first problem ends it: next then is 0, the end.
type hcl struct {
	text         []rune
	at           int
	line, column int
	problem      string
	keys         keyed
}

func (p *hcl) next() rune {
	if p.at >= len(p.text) || p.problem != "" {
		return 0
	}
	return p.text[p.at]
}

func (p *hcl) ahead(word string) bool {
	return p.problem == "" && strings.HasPrefix(string(p.text[p.at:min(len(p.text), p.at+len(word))]), word)
}

func (p *hcl) skip(n int) {
	for ; n > 0 && p.at < len(p.text) && p.problem == ""; n-- {
		if p.column++; p.text[p.at] == '\n' {
			p.line, p.column = p.line+1, 1
		}
		p.at++
	}
}

func (p *hcl) fail(format string, args ...any) {
	if p.problem == "" {
		p.problem = fmt.Sprintf(format, args...)
	}
}

// space skips spaces and comments, and, where asked to, the ends of lines.
func (p *hcl) space(lines bool) {
	for {
		switch c := p.next(); {
		case c == ' ', c == '\t', c == '\r', c == '\ufeff', lines && c == '\n':
			p.skip(1)
		case c == '#', p.ahead("//"):
			for p.next() != 0 && p.next() != '\n' {
				p.skip(1)
			}
		case p.ahead("/*"):
			for p.skip(2); p.next() != 0 && !p.ahead("*/"); {
				p.skip(1)
			}
			if p.next() == 0 {
				p.fail("a comment that begins with /* does not end")
			}
			p.skip(2)
		default:
			return
		}
	}
}

func (p *hcl) node(kind yaml.Kind, tag, value string) *yaml.Node {
	return &yaml.Node{Kind: kind, Tag: tag, Value: value, Line: p.line, Column: p.column}
}

func (p *hcl) mapping() *yaml.Node { return p.node(yaml.MappingNode, "!!map", "") }

func isHCLWord(c rune) bool {
	return c == '_' || c == '-' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
		c > 0x7F
}

// body reads the entries of a block, of an object or, at depth 0, of the file.
func (p *hcl) body(into *yaml.Node, depth int) {
	if depth > hclDepth {
		p.fail("values stand in each other more than %d deep", hclDepth)
	}
	for {
		p.space(true)
		switch c := p.next(); {
		case c == ',':
			p.skip(1)
			continue
		case c == 0 && depth > 0:
			p.fail("a { is not closed")
			return
		case c == 0, c == '}' && depth > 0:
			return
		}
		p.entry(into, depth)
	}
}

// entry reads "key = value", or a block with its labels.
func (p *hcl) entry(into *yaml.Node, depth int) {
	var keys []*yaml.Node
	for {
		key := p.key()
		if key == nil {
			return
		}
		keys = append(keys, key)
		p.space(false)
		switch p.next() {
		case '=', ':':
			if len(keys) > 1 {
				p.fail("a value has two names, %s and %s", keys[0].Value, keys[1].Value)
			}
			p.skip(1)
			p.space(true)
			if value := p.value(depth); value != nil {
				p.keys.put(into, key, value)
			}
			return
		case '{':
			block := p.mapping()
			p.skip(1)
			p.body(block, depth+1)
			p.skip(1)
			for i := len(keys) - 1; i > 0; i-- {
				outer := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: keys[i].Line, Column: keys[i].Column}
				outer.Content, block = []*yaml.Node{keys[i], block}, outer
			}
			p.putBlock(into, keys[0], block)
			return
		}
	}
}

func (p *hcl) key() *yaml.Node {
	key := p.node(yaml.ScalarNode, "!!str", "")
	switch c := p.next(); {
	case c == '"':
		key.Value = p.quoted()
	case c == '(': // a key of Terraform that is computed
		from := p.at
		p.bracketed()
		key.Value = "${" + string(p.text[from:p.at]) + "}"
	case isHCLWord(c):
		for from := p.at; ; key.Value = string(p.text[from:p.at]) {
			if !isHCLWord(p.next()) {
				break
			}
			p.skip(1)
		}
	case c == 0:
		p.fail("the file ends where = or { is missing")
	default:
		p.fail("%q stands where a name, = or { belongs", string(c))
	}
	if p.problem != "" {
		return nil
	}
	return key
}

// putBlock adds a block; a second one of its type makes a list.
func (p *hcl) putBlock(into, key, block *yaml.Node) {
	i := p.keys.indexOf(into, key.Value)
	if i < 0 {
		p.keys.put(into, key, block)
		return
	}
	switch old := into.Content[i+1]; old.Kind {
	case yaml.SequenceNode:
		old.Content = append(old.Content, block)
	default:
		into.Content[i+1] = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: old.Line, Column: old.Column,
			Content: []*yaml.Node{old, block}}
	}
}
