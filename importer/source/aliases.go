package source

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// mergedIn is the mappings that a "<<" has taken in so far. One that comes again brings nothing new, but nine lines of
// nine aliases each bring it 387 million times; and one may take in itself.
type mergedIn map[*yaml.Node]bool

// first reports whether a mapping was not there yet, and adds it.
func (m *mergedIn) first(y *yaml.Node) bool {
	if (*m)[y] {
		return false
	}
	if *m == nil {
		*m = mergedIn{}
	}
	(*m)[y] = true
	return true
}

// merged returns the mappings that a "<<" takes in.
func merged(n Node) []Node {
	if n.IsMap() {
		return []Node{n}
	}
	return n.Items()
}

// find returns the value of a key: the mapping's own, else that of the first mapping that has it of those taken in.
func (n Node) find(key string, seen *mergedIn) Node {
	y := n.resolved()
	if y == nil || y.Kind != yaml.MappingNode {
		return Node{}
	}
	merges := false
	for i := 0; i+1 < len(y.Content); i += 2 {
		if y.Content[i].Value == key {
			return n.in(y.Content[i+1])
		}
		merges = merges || y.Content[i].Tag == "!!merge"
	}
	if !merges {
		return Node{}
	}
	seen.first(y)
	for i := 0; i+1 < len(y.Content); i += 2 {
		if y.Content[i].Tag != "!!merge" {
			continue
		}
		for _, m := range merged(n.in(y.Content[i+1])) {
			if !seen.first(m.resolved()) {
				continue
			}
			if found := m.find(key, seen); found.Written() {
				return found
			}
		}
	}
	return Node{}
}

// pairs appends the entries of a mapping, with those that it takes in.
func (n Node) pairs(all []Pair, seen *mergedIn) []Pair {
	y := n.resolved()
	if y == nil || y.Kind != yaml.MappingNode {
		return all
	}
	if all == nil {
		all = make([]Pair, 0, len(y.Content)/2)
	}
	for i := 0; i+1 < len(y.Content); i += 2 {
		if y.Content[i].Tag != "!!merge" {
			all = append(all, Pair{y.Content[i].Value, n.in(y.Content[i]), n.in(y.Content[i+1])})
			continue
		}
		seen.first(y)
		for _, m := range merged(n.in(y.Content[i+1])) {
			if seen.first(m.resolved()) {
				all = m.pairs(all, seen)
			}
		}
	}
	return all
}

// Limits of one document that is YAML. More than this is no configuration, and would take all memory, or all time:
// whoever reads what aliases of lists of aliases bring does not come to its end. Large JSON is read part by part; see
// largeJSON.
const (
	maxNodes   = 2_000_000
	maxYAML    = 64 << 20
	maxAliased = 100_000 // values that aliases bring beside those that stand there
)

// fits reports an error about a document with more values than are read.
func fits(root *yaml.Node) error {
	values, aliased := 0, false
	if !count(root, &values, &aliased) {
		return fmt.Errorf("more than %d values", maxNodes)
	}
	if !aliased {
		return nil
	}
	a := following{inside: map[*yaml.Node]bool{}}
	a.follow(root, false)
	switch {
	case a.round:
		return errors.New("an alias in it stands inside of what it is for")
	case a.brought > maxAliased:
		return fmt.Errorf("its aliases stand for more than %d values", maxAliased)
	}
	return nil
}

func count(n *yaml.Node, values *int, aliased *bool) bool {
	if *values++; *values > maxNodes {
		return false
	}
	*aliased = *aliased || n.Kind == yaml.AliasNode
	for _, c := range n.Content {
		if !count(c, values, aliased) {
			return false
		}
	}
	return true
}

// following goes to all values of a document, as one does who follows its aliases.
type following struct {
	brought int                 // by aliases
	inside  map[*yaml.Node]bool // mappings and lists around
	round   bool                // one stands inside of itself
}

func (f *following) follow(y *yaml.Node, brought bool) {
	if y.Kind == yaml.AliasNode {
		y, brought = Node{y: y}.resolved(), true
	}
	if brought {
		f.brought++
	}
	if f.round = f.round || f.inside[y]; f.round || f.brought > maxAliased || len(y.Content) == 0 {
		return
	}
	f.inside[y] = true
	n := Node{y: y}
	for _, item := range n.Items() {
		f.follow(item.y, brought)
	}
	pairs := n.Pairs()
	brought = brought || 2*len(pairs) > len(y.Content) // some, by a "<<"
	for _, p := range pairs {
		f.follow(p.Value.y, brought)
	}
	delete(f.inside, y)
}
