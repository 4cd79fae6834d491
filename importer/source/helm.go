package source

import (
	"strconv"
	"strings"

	"github.com/abate-go/abate/topology"
	"go.yaml.in/yaml/v3"
)

// mostHelm is how many nodes values have at most that are put together; mostIndex is the largest index in a name.
const (
	mostHelm  = 100_000
	mostIndex = 1000
)

// HelmValues returns the values that a helm_release of Terraform has: its texts and objects, each over those before it,
// and over them what its set blocks say, as Helm does. Every value has the place where it stands. Entries of values
// that could not be read, as files, are returned as they are. It reports whether there is anything to put together.
func HelmValues(release Node) (values Node, rest []Node, ok bool) {
	var sets []Node
	for _, key := range []string{"set", "set_list", "set_sensitive"} {
		sets = append(sets, release.Get(key).List()...)
	}
	if len(sets) == 0 {
		return Node{}, nil, false
	}
	h := &helm{keyed: keyed{}, left: mostHelm}
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, n := range release.Get("values").List() {
		inner, remarks := Inside(n)
		if len(remarks) > 0 || !inner.IsMap() {
			rest = append(rest, n)
			continue
		}
		h.lay(root, h.copy(inner, 0))
	}
	for _, s := range sets {
		h.set(root, s)
	}
	if h.left <= 0 {
		return Node{}, nil, false
	}
	file := release.At().File
	return Node{y: root, where: &documentPlace{file: file, hcl: true}}, rest, true
}

// helm puts values together.
type helm struct {
	keyed
	left int // nodes that there may still be
}

// copy returns a node whose places are those in the file. Of what would be too large it returns a part.
func (h *helm) copy(n Node, depth int) *yaml.Node {
	at := n.At()
	y := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: at.Line, Column: at.Column}
	if h.left--; h.left <= 0 || depth > hclDepth {
		return y
	}
	switch {
	case n.IsMap():
		y.Kind, y.Tag = yaml.MappingNode, "!!map"
		for _, p := range n.Pairs() {
			if h.indexOf(y, p.Key) < 0 { // of a merge key, what stands beside it counts
				h.put(y, text(p.Key, p.Name.At()), h.copy(p.Value, depth+1))
			}
		}
	case n.IsList():
		y.Kind, y.Tag = yaml.SequenceNode, "!!seq"
		for _, item := range n.Items() {
			y.Content = append(y.Content, h.copy(item, depth+1))
		}
	case n.Exists():
		y.Tag, y.Value, y.Style = n.resolved().ShortTag(), n.Text(), n.resolved().Style
	}
	return y
}

// text returns a node that is a text.
func text(value string, at topology.Position) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Line: at.Line, Column: at.Column}
}

// lay puts a mapping over another: mappings are merged, everything else is replaced.
func (h *helm) lay(under, over *yaml.Node) {
	for i := 0; i+1 < len(over.Content); i += 2 {
		key, value := over.Content[i], over.Content[i+1]
		if at := h.indexOf(under, key.Value); at >= 0 && value.Kind == yaml.MappingNode &&
			under.Content[at+1].Kind == yaml.MappingNode {
			h.lay(under.Content[at+1], value)
			continue
		}
		h.put(under, key, value)
	}
}

// set puts what a block says over the values. One whose name only Terraform knows is left.
func (h *helm) set(root *yaml.Node, block Node) {
	name, value := block.Get("name"), block.Get("value")
	if Template(name.Text()) != "" {
		return
	}
	path := steps(name.Text())
	for i, step := range path {
		where := h.in(root, step, name.At())
		if where == nil {
			return
		}
		if i == len(path)-1 {
			*where = h.copy(value, 0)
			if kind := block.Get("type").Text(); (*where).Kind == yaml.ScalarNode && kind != "literal" {
				*where = h.typed(*where, kind == "string")
			}
			return
		}
		kind, tag := yaml.MappingNode, "!!map"
		if path[i+1].key == "" {
			kind, tag = yaml.SequenceNode, "!!seq"
		}
		if (*where).Tag == "!!null" {
			*where = &yaml.Node{Kind: kind, Tag: tag, Line: name.At().Line, Column: name.At().Column}
		}
		root = *where
	}
}

// in returns where a step leads in a mapping or a list, which gets null there if it has nothing; nil in what is of
// another kind, for which Helm fails.
func (h *helm) in(of *yaml.Node, s step, at topology.Position) **yaml.Node {
	null := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: at.Line, Column: at.Column}
	switch {
	case s.key != "" && of.Kind == yaml.MappingNode:
		i := h.indexOf(of, s.key)
		if i < 0 {
			i, h.left = h.put(of, text(s.key, at), null), h.left-1
		}
		return &of.Content[i+1]
	case s.key == "" && of.Kind == yaml.SequenceNode && s.index <= mostIndex:
		for ; len(of.Content) <= s.index && h.left > 0; h.left-- {
			of.Content = append(of.Content, null)
		}
		if s.index < len(of.Content) {
			return &of.Content[s.index]
		}
	}
	return nil
}

// typed reads the text of a value as Helm does: null takes a value away, unless it is meant as text, {a,b} is a list,
// and \ takes its meaning from the character behind it.
func (h *helm) typed(n *yaml.Node, meant bool) *yaml.Node {
	if n.Value == "null" && !meant {
		n.Tag = "!!null"
	}
	if inner, is := strings.CutPrefix(n.Value, "{"); is && strings.HasSuffix(inner, "}") && Template(n.Value) == "" {
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: n.Line, Column: n.Column}
		for _, word := range split(strings.TrimSuffix(inner, "}"), ',') {
			list.Content = append(list.Content, text(unescaped(word), topology.Position{Line: n.Line, Column: n.Column}))
			h.left--
		}
		return list
	}
	n.Value = unescaped(n.Value)
	return n
}

// step is one word of a name: a key, or the index of a list.
type step struct {
	key   string
	index int
}

// steps reads a name as Helm does: a.b[0].c, where \. is a dot of a key. It is empty for what is no name, or leads
// too deep.
func steps(name string) []step {
	var all []step
	for _, word := range split(name, '.') {
		key, rest, indexed := word, "", false
		if parts := split(word, '['); len(parts) > 1 {
			key, rest, indexed = parts[0], word[len(parts[0])+1:], true
		}
		if key != "" {
			all = append(all, step{key: unescaped(key)})
		}
		for indexed {
			number, more, closed := strings.Cut(rest, "]")
			i, err := strconv.Atoi(number)
			if !closed || err != nil || i < 0 || key == "" && len(all) == 0 {
				return nil
			}
			all = append(all, step{index: i})
			_, rest, indexed = strings.Cut(more, "[")
		}
		if len(all) > hclDepth {
			return nil
		}
	}
	return all
}

// split cuts a text at a character that no \ stands before.
func split(text string, at byte) (words []string) {
	from := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case at:
			words, from = append(words, text[from:i]), i+1
		}
	}
	return append(words, text[from:])
}

func unescaped(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		}
		out.WriteByte(text[i])
	}
	return out.String()
}
