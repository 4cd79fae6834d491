package strictyaml

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// merger collects the keys of a mapping and of those it merges in.
type merger struct {
	d              *Document
	field, service string
	noun           string // what a key is: "key", or "service"
	seen           map[string]bool
	state          map[*yaml.Node]mergeState
	list           []Entry
}

// mergeState is how far a mapping, or a list of them, has been merged. Doing it twice would change nothing, so it is
// done once: merges of merges of merges stay as cheap as the file is small.
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
		key, value := Resolve(n.Content[i]), n.Content[i+1]
		switch first := here[key.Value]; {
		case key.Tag == "!!merge":
			merges = append(merges, value)
		case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!null":
			m.d.Fail(key, m.service, m.field, Describe(key)+" cannot be a key",
				"keys are plain words, for example "+m.d.Form.Key)
		case first != nil:
			m.duplicate(key, first)
		default:
			here[key.Value] = key
			if !m.seen[key.Value] { // an explicit key goes before a merged one, an earlier merge before a later one
				m.seen[key.Value] = true
				m.list = append(m.list, Entry{key, value})
			}
		}
	}
	for _, value := range merges {
		m.merge(value, depth)
	}
	m.state[n] = merged
}

func (m *merger) duplicate(key, first *yaml.Node) {
	line, _ := m.d.place(first.Line, first.Column)
	m.d.Fail(key, m.service, m.field, "duplicate "+m.noun+" "+Quote(key.Value),
		fmt.Sprintf("it stands on line %d already: remove one of the two", line))
}

// merge takes in the value of a << key: a mapping, or a list of mappings.
func (m *merger) merge(value *yaml.Node, depth int) {
	const deepest = 20
	target := Resolve(value)
	switch {
	case !m.d.visit(value):
	case depth >= deepest:
		m.d.Fail(value, m.service, m.field, "mappings are merged more than 20 deep", "merge fewer, or write the keys out")
	case m.state[target] == merged:
	case m.state[target] == merging:
		m.d.Fail(value, m.service, m.field, "this is merged into itself", "remove this alias")
	case target.Kind == yaml.MappingNode:
		m.collect(target, depth+1)
	case target.Kind == yaml.SequenceNode:
		m.state[target] = merging
		for _, item := range target.Content {
			m.merge(item, depth+1)
		}
		m.state[target] = merged
	default:
		m.d.Fail(value, m.service, m.field, Describe(target)+" cannot be merged",
			"<< takes an alias of a mapping, for example <<: *common")
	}
}
