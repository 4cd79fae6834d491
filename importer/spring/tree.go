package spring

import (
	"strconv"
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// tree is the keys of all documents of one application, put over one another. A nil tree has nothing.
type tree struct {
	name string            // as it is written
	at   topology.Position // of the key
	text string            // of a scalar
	here topology.Position // of the value
	set  bool              // it has a value of its own, be it empty
	kids []*tree           // in the order of the files
	by   map[string]*tree  // kids by same
}

var signs = strings.NewReplacer("-", "", "_", "")

// same is what two spellings of a key have in common.
func same(key string) string { return signs.Replace(strings.ToLower(key)) }

// kid returns the subtree of a key.
func (t *tree) kid(name string) *tree {
	if t == nil {
		return nil
	}
	return t.by[same(name)]
}

// get returns the subtree at a path with dots.
func (t *tree) get(path string) *tree {
	for name := range strings.SplitSeq(path, ".") {
		t = t.kid(name)
	}
	return t
}

// value returns the text at a path; "" where there is none.
func (t *tree) value(path string) string {
	if t = t.get(path); t == nil {
		return ""
	}
	return t.text
}

// items returns the members of a list.
func (t *tree) items() []*tree {
	if t == nil {
		return nil
	}
	var out []*tree
	for _, k := range t.kids {
		if _, err := strconv.Atoi(k.name); err == nil {
			out = append(out, k)
		}
	}
	return out
}

// words returns the members of a list as words, each with its place: a list, or words with commas between them.
func (t *tree) words() []*tree {
	if t == nil {
		return nil
	}
	if items := t.items(); len(items) > 0 {
		return items
	}
	var out []*tree
	for word := range strings.SplitSeq(t.text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			out = append(out, &tree{name: t.name, at: t.at, text: word, here: t.here, set: true})
		}
	}
	return out
}

// maxDepth bounds how deep a key may be.
const maxDepth = 40

// add returns the subtree of a key, which is made if there is none.
func (t *tree) add(key string, at topology.Position) *tree {
	for i, name := range split(key) {
		k := t.kid(name)
		if k == nil {
			if i > maxDepth {
				return t
			}
			k = &tree{name: name, at: at}
			t.append(k)
		}
		t = k
	}
	return t
}

func (t *tree) append(k *tree) {
	if t.by == nil {
		t.by = map[string]*tree{}
	}
	t.kids = append(t.kids, k)
	t.by[same(k.name)] = k
}

// split takes a key apart: routes[0].uri is routes, 0, uri. A name in brackets may have dots.
func split(key string) []string {
	var out []string
	for key != "" {
		switch {
		case key[0] == '.':
			key = key[1:]
		case key[0] == '[' && strings.IndexByte(key, ']') > 0:
			end := strings.IndexByte(key, ']')
			out, key = append(out, key[1:end]), key[end+1:]
		default:
			end := strings.IndexAny(key, ".[")
			if end == 0 {
				end = strings.IndexByte(key, '.')
			}
			if end < 0 {
				end = len(key)
			}
			out, key = append(out, key[:end]), key[end:]
		}
	}
	return out
}

// write gives a key a value. The last one that sets it wins.
func (t *tree) write(text string, here topology.Position) {
	t.text, t.here, t.set = text, here, true
}

// maxValues bounds what aliases of a YAML document come to.
const maxValues = 200_000

// overlay puts a YAML document over the tree. A list replaces the one before it.
func (t *tree) overlay(n source.Node) {
	values := 0
	t.over(n, 0, &values)
}

func (t *tree) over(n source.Node, depth int, values *int) {
	*values++
	switch {
	case depth > maxDepth || *values > maxValues:
	case n.IsMap():
		for _, p := range n.Pairs() {
			t.add(p.Key, p.Name.At()).over(p.Value, depth+1, values)
		}
	case n.IsList():
		kids := t.kids
		t.kids, t.by = nil, nil
		for _, k := range kids {
			if _, err := strconv.Atoi(k.name); err != nil {
				t.append(k)
			}
		}
		for i, item := range n.Items() {
			t.add("["+strconv.Itoa(i)+"]", item.At()).over(item, depth+1, values)
		}
		t.write("", n.At())
	default:
		t.write(n.Text(), n.At())
	}
}
