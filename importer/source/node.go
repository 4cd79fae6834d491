package source

import (
	"cmp"
	"slices"
	"strings"

	"github.com/abate-go/abate/topology"
	"go.yaml.in/yaml/v3"
)

// Node is one value of a YAML or JSON document. The zero Node does not exist; all its methods can be called.
type Node struct {
	y      *yaml.Node
	where  *documentPlace
	branch *branch // of a large document: what y would be
}

type documentPlace struct {
	file   string
	line   int // before the first of the document
	indent int // columns
	data   []byte
	at     topology.Position // of everything in it, if that is one
	quoted *quoted
	hcl    bool // whether a text in it may have templates of Terraform
}

func (d *Document) place() *documentPlace {
	return &documentPlace{d.File, d.Line, d.indent, d.Data, d.at, d.quoted, d.hcl}
}

// Pair is one entry of a mapping.
type Pair struct {
	Key   string
	Name  Node // the key, for its place
	Value Node
}

// itself returns the node as it stands in the file; it is nil for what the file does not have. A large mapping or list
// has no members there.
func (n Node) itself() *yaml.Node {
	if n.branch != nil {
		return n.branch.parsed()
	}
	return n.y
}

// in returns a value of the same document.
func (n Node) in(y *yaml.Node) Node { return Node{y: y, where: n.where} }

// under returns a value of the same large document.
func (n Node) under(from, to int) Node {
	return Node{where: n.where, branch: &branch{of: n.branch.of, from: from, to: to}}
}

// large reports whether the members of the node are to be looked for one by one.
func (n Node) large() bool { return n.branch != nil && n.branch.large() }

func (n Node) resolved() *yaml.Node {
	y := n.itself()
	for i := 0; y != nil && y.Kind == yaml.AliasNode && i < 100; i++ {
		y = y.Alias
	}
	return y
}

// Exists reports whether the file has the node, with a value other than null.
func (n Node) Exists() bool {
	y := n.resolved()
	return y != nil && (y.Kind != yaml.ScalarNode || y.ShortTag() != "!!null")
}

// Written reports whether the file has the node, be it null.
func (n Node) Written() bool { return n.y != nil || n.branch != nil }

// At returns the node's place.
func (n Node) At() topology.Position {
	y := n.itself()
	if y == nil {
		return topology.Position{}
	}
	if n.where.quoted != nil {
		return n.where.quoted.at(n.where.file, n.where.line+y.Line, y.Column)
	}
	if !n.where.at.IsZero() {
		return n.where.at
	}
	return topology.Position{File: n.where.file, Line: n.where.line + y.Line, Column: n.where.indent + y.Column}
}

// Get returns the value below a path of keys; of several spellings of a key, separated by |, the first that is there:
// Get("retry_policy|retryPolicy", "num_retries|numRetries").
func (n Node) Get(path ...string) Node {
	for _, keys := range path {
		next := Node{}
		for key := range strings.SplitSeq(keys, "|") {
			if next = n.child(key); next.Written() {
				break
			}
		}
		if n = next; !n.Written() {
			return n
		}
	}
	return n
}

func (n Node) child(key string) Node { return n.childOf(key, nil) }

// childOf looks in what a "<<" takes in too, in each mapping once: those in each other have as many ways as there are.
func (n Node) childOf(key string, seen map[*yaml.Node]bool) Node {
	if n.large() {
		for _, p := range n.Pairs() {
			if p.Key == key {
				return p.Value
			}
		}
		return Node{}
	}
	y := n.resolved()
	if y == nil || y.Kind != yaml.MappingNode {
		return Node{}
	}
	for i := 0; i+1 < len(y.Content); i += 2 {
		if y.Content[i].Value == key {
			return n.in(y.Content[i+1])
		}
	}
	for i := 0; i+1 < len(y.Content); i += 2 {
		if y.Content[i].Tag != "!!merge" {
			continue
		}
		if seen == nil {
			seen = map[*yaml.Node]bool{y: true}
		}
		for _, m := range merged(n.in(y.Content[i+1]), seen) {
			if found := m.childOf(key, seen); found.Written() {
				return found
			}
		}
	}
	return Node{}
}

// merged returns the mappings that a "<<" takes in and that were not seen before, and counts them as seen.
func merged(n Node, seen map[*yaml.Node]bool) []Node {
	all := []Node{n}
	if !n.IsMap() {
		all = n.Items()
	}
	return slices.DeleteFunc(all, func(m Node) bool {
		y := m.resolved()
		was := seen[y]
		seen[y] = true
		return was
	})
}

// IsMap reports whether the node is a mapping.
func (n Node) IsMap() bool { y := n.resolved(); return y != nil && y.Kind == yaml.MappingNode }

// IsList reports whether the node is a list.
func (n Node) IsList() bool { y := n.resolved(); return y != nil && y.Kind == yaml.SequenceNode }

// Items returns the members of a list, and nothing for other nodes.
func (n Node) Items() []Node {
	y := n.resolved()
	if y == nil || y.Kind != yaml.SequenceNode {
		return nil
	}
	if n.large() {
		members := n.branch.members()
		items := make([]Node, len(members))
		for i, m := range members {
			items[i] = n.under(m.from, m.to)
		}
		return items
	}
	items := make([]Node, len(y.Content))
	for i, c := range y.Content {
		items[i] = n.in(c)
	}
	return items
}

// List returns the members of a list, or a node that is no list as the only member of one.
func (n Node) List() []Node {
	if n.IsList() {
		return n.Items()
	}
	if n.Exists() {
		return []Node{n}
	}
	return nil
}

// Pairs returns the entries of a mapping in the order of the file, and nothing for other nodes. Of a mapping that is
// merged in by several ways it has the entries once.
func (n Node) Pairs() []Pair { return n.pairs(nil) }

func (n Node) pairs(seen map[*yaml.Node]bool) []Pair {
	y := n.resolved()
	if y == nil || y.Kind != yaml.MappingNode {
		return nil
	}
	if n.large() {
		members := n.branch.members()
		pairs := make([]Pair, len(members))
		for i, m := range members {
			pairs[i] = Pair{n.branch.of.text(m.key), n.under(m.key, m.keyEnd), n.under(m.from, m.to)}
		}
		return pairs
	}
	pairs := make([]Pair, 0, len(y.Content)/2)
	for i := 0; i+1 < len(y.Content); i += 2 {
		if y.Content[i].Tag == "!!merge" {
			if seen == nil {
				seen = map[*yaml.Node]bool{y: true}
			}
			for _, m := range merged(n.in(y.Content[i+1]), seen) {
				pairs = append(pairs, m.pairs(seen)...)
			}
			continue
		}
		pairs = append(pairs, Pair{y.Content[i].Value, n.in(y.Content[i]), n.in(y.Content[i+1])})
	}
	return pairs
}

// Text returns a scalar as it is written, without quotes, and "" for other nodes. A function of CloudFormation (!Ref
// Tries) is a template: "${Ref Tries}".
func (n Node) Text() string {
	y := n.resolved()
	if y == nil || y.Kind != yaml.ScalarNode || y.ShortTag() == "!!null" {
		return ""
	}
	if name, isFunction := strings.CutPrefix(y.Tag, "!"); isFunction && slices.Contains(functions, name) {
		return "${" + name + " " + y.Value + "}"
	}
	return y.Value
}

// functions are tags of CloudFormation for values that only a deployment knows.
var functions = []string{"Ref", "Sub", "GetAtt", "ImportValue", "If", "FindInMap", "Select", "Join"}

// Texts returns the scalars of a list, or of the node alone.
func (n Node) Texts() []string {
	var texts []string
	for _, item := range n.List() {
		texts = append(texts, item.Text())
	}
	return texts
}

// Unknown returns a remark for each key of a mapping that is none of those known, with the nearest known key. product
// says what does not know it.
func (n Node) Unknown(product, subject string, known ...string) []topology.Remark {
	var remarks []topology.Remark
	for _, p := range n.Pairs() {
		if !slices.Contains(known, p.Key) {
			remarks = append(remarks, topology.Remark{Rule: "F601", At: p.Name.At(), Subject: cmp.Or(subject, p.Key) + " " +
				p.Key,
				Text: product + " has no key " + p.Key + " here, so it does nothing", Fix: Meant(p.Key, known)})
		}
	}
	return remarks
}
