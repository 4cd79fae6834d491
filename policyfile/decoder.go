package policyfile

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// decoder walks the nodes of one file. It is our own because the YAML library's stops at the first mistake of a kind,
// knows no columns, and takes an explicit zero for an absent key.
type decoder struct {
	file   string
	errs   Errors
	more   bool // there are more than maxErrors
	visits int
	shift  func(line, col int) (int, int) // from a document inside a ConfigMap to the file; nil outside
}

// entry is one key of a mapping and its value.
type entry struct{ key, value *yaml.Node }

// fail reports a mistake at a node.
func (d *decoder) fail(n *yaml.Node, service, field, problem, mend string) {
	line, col := d.place(n.Line, n.Column)
	d.add(Error{Line: line, Col: col, Service: service, Field: field, Problem: problem, Mend: mend})
}

// failAt reports a mistake at a place of the document itself.
func (d *decoder) failAt(line, col int, problem, mend string) {
	line, col = d.place(line, col)
	d.add(Error{Line: line, Col: col, Problem: problem, Mend: mend})
}

// place is where a position of the document stands in the file.
func (d *decoder) place(line, col int) (int, int) {
	if d.shift == nil {
		return line, col
	}
	return d.shift(line, col)
}

func (d *decoder) add(e Error) {
	e.File = d.file
	if d.more = d.more || len(d.errs) == maxErrors; !d.more {
		d.errs = append(d.errs, e)
	}
}

// mistakes is what was found, in the order of the file.
func (d *decoder) mistakes() Errors {
	list := d.errs.sorted()
	if d.more {
		list = append(list, Error{File: d.file, Problem: fmt.Sprintf("and more: only the first %d mistakes are listed", maxErrors)})
	}
	return list
}

// stopped tells that going on makes no sense: there are too many mistakes already.
func (d *decoder) stopped() bool { return d.more || d.visits > maxVisits }

// visit counts a node and reports once when there are too many: aliases can make a small file mean a huge one.
func (d *decoder) visit(n *yaml.Node) bool {
	if d.visits > maxVisits {
		return false
	}
	d.visits++
	if d.visits > maxVisits {
		d.fail(n, "", "", "the aliases in this file expand to more than 1000000 values", "write fewer of them")
		return false
	}
	return true
}

// resolve follows an alias to what it stands for.
func resolve(n *yaml.Node) *yaml.Node {
	for hops := 0; n.Kind == yaml.AliasNode && hops < 8; hops++ {
		n = n.Alias
	}
	return n
}

// isNull tells whether a key has no value.
func isNull(n *yaml.Node) bool {
	n = resolve(n)
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// entries lists the keys of a mapping in the order of the file, merged ones (<<) last. An empty value is an empty
// mapping. Duplicate and odd keys are reported and left out. mend is said when n is something else.
func (d *decoder) entries(n *yaml.Node, service, field, mend string) ([]entry, bool) {
	n = resolve(n)
	if isNull(n) {
		return nil, true
	}
	if n.Kind != yaml.MappingNode {
		d.fail(n, service, field, describe(n)+" is not a mapping", mend)
		return nil, false
	}
	m := &merger{d: d, field: field, service: service, seen: map[string]bool{}, state: map[*yaml.Node]mergeState{}}
	m.collect(n, 0)
	return m.list, true
}

// merger collects the keys of a mapping and of those it merges in.
type merger struct {
	d              *decoder
	field, service string
	seen           map[string]bool
	state          map[*yaml.Node]mergeState
	list           []entry
}

// mergeState is how far a mapping, or a list of them, has been merged. Doing it twice would change nothing, so it is done once: merges of
// merges of merges stay as cheap as the file is small.
type mergeState uint8

const (
	merging mergeState = iota + 1
	merged
)

func (m *merger) collect(n *yaml.Node, depth int) {
	m.state[n] = merging
	here := map[string]*yaml.Node{}
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content) && m.d.visit(n.Content[i]); i += 2 {
		key, value := resolve(n.Content[i]), n.Content[i+1]
		switch first := here[key.Value]; {
		case key.Tag == "!!merge":
			merges = append(merges, value)
		case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!null":
			m.d.fail(key, m.service, m.field, describe(key)+" cannot be a key", "keys are plain words, for example maxRetries")
		case first != nil:
			m.duplicate(key, first)
		default:
			here[key.Value] = key
			if !m.seen[key.Value] { // an explicit key goes before a merged one, an earlier merge before a later one
				m.seen[key.Value] = true
				m.list = append(m.list, entry{key, value})
			}
		}
	}
	for _, value := range merges {
		m.merge(value, depth)
	}
	m.state[n] = merged
}

func (m *merger) duplicate(key, first *yaml.Node) {
	what := "duplicate key "
	if m.field == "services" && m.service == "" {
		what = "duplicate service "
	}
	line, _ := m.d.place(first.Line, first.Column)
	m.d.fail(key, m.service, m.field, what+quote(key.Value), fmt.Sprintf("it stands on line %d already: remove one of the two", line))
}

// merge takes in the value of a << key: a mapping, or a list of mappings.
func (m *merger) merge(value *yaml.Node, depth int) {
	const deepest = 20
	target := resolve(value)
	switch {
	case !m.d.visit(value):
	case depth >= deepest:
		m.d.fail(value, m.service, m.field, "mappings are merged more than 20 deep", "merge fewer, or write the keys out")
	case m.state[target] == merged:
	case m.state[target] == merging:
		m.d.fail(value, m.service, m.field, "this is merged into itself", "remove this alias")
	case target.Kind == yaml.MappingNode:
		m.collect(target, depth+1)
	case target.Kind == yaml.SequenceNode:
		m.state[target] = merging
		for _, item := range target.Content {
			m.merge(item, depth+1)
		}
		m.state[target] = merged
	default:
		m.d.fail(value, m.service, m.field, describe(target)+" cannot be merged", "<< takes an alias of a mapping, for example <<: *common")
	}
}
