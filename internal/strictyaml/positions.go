package strictyaml

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate/internal/nearest"
)

// Positions reads mappings over structs, and remembers what stands where. Paths are keys joined with dots, names of a
// keyed list among them, and list members by their index from 0: "services.payment-db.queue.limit", "faults[2].at". A
// scalar in place of a list member stands at the member's path and at that of the field it sets. Where a name has dots
// itself two paths can be the same; the later one in the file counts.
type Positions struct {
	*Document
	Service string     // the service that all of it is about; may be empty
	Prefix  string     // of paths in messages: "defaults"; may be empty
	Where   *yaml.Node // stands for paths that are not in the file; nil for line 1

	open   bool                  // the outermost mapping may have keys that begin with x-
	top    *Shape                // of the outermost mapping
	at     map[string]*yaml.Node // values by path
	failed []string              // see Failed
	zeros  []*Field              // fields set to zero explicitly
}

// Read reads a mapping, the outermost one, over into, a struct of this shape.
func (p *Positions) Read(s *Shape, n *yaml.Node, into reflect.Value) {
	p.top, p.at = s, map[string]*yaml.Node{}
	p.section(s, n, into, "")
}

// DecodeNode reads a mapping over what into points to: a struct, or a keyed list, whose names the mapping must not add
// to; the list is replaced by a copy then. path is where n stands, the beginning of all paths in it. A raw field that
// the file left out, nil or zero, changes nothing.
func (p *Positions) DecodeNode(path string, n *yaml.Node, into any) {
	if n == nil || n.IsZero() {
		return
	}
	target := reflect.ValueOf(into).Elem()
	list := target.Kind() == reflect.Slice
	t := target.Type()
	if list {
		t = t.Elem()
	}
	s := newShape(t, path+".", nil)
	if p.at == nil {
		p.top, p.at = s, map[string]*yaml.Node{}
	}
	n = Resolve(n)
	p.at[path] = n
	if list {
		p.table(s, &Field{Kind: Table}, n, target, path, true)
	} else {
		p.section(s, n, target, path)
	}
}

// Has reports whether a path stands in the file.
func (p *Positions) Has(path string) bool { return p.at[path] != nil }

// Failed are the paths whose value could not be taken, or whose key is misspelt: what follows from that is no mistake
// of its own.
func (p *Positions) Failed() []string { return p.failed }

// Zeros are the fields that were set to zero explicitly and have limits.
func (p *Positions) Zeros() []*Field { return p.zeros }

// Node is what stands at a path, or else the nearest thing around it. It is never nil.
func (p *Positions) Node(path string) *yaml.Node {
	for path != "" {
		if n := p.at[path]; n != nil {
			return n
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	if p.Where != nil {
		return p.Where
	}
	return &yaml.Node{Line: 1, Column: 1}
}

// Place is the line and column of Node in the file.
func (p *Positions) Place(path string) (line, col int) {
	n := p.Node(path)
	return p.place(n.Line, n.Column)
}

// Add reports a mistake at a path.
func (p *Positions) Add(path, problem, fix string) {
	p.Fail(p.Node(path), p.Service, p.name(path), problem, fix)
}

// Reject is Add for a mistake that leaves the path without a value: it is one of Failed then.
func (p *Positions) Reject(path, problem, fix string) {
	p.failed = append(p.failed, path)
	p.Add(path, problem, fix)
}

// name is how messages call a path.
func (p *Positions) name(path string) string {
	if p.Prefix == "" {
		return path
	}
	return strings.TrimSuffix(p.Prefix+"."+path, ".")
}

func (p *Positions) section(s *Shape, n *yaml.Node, into reflect.Value, path string) {
	outermost := path == "" && p.open
	fix := "write it as a mapping of: " + strings.Join(s.keys, ", ")
	switch {
	case outermost:
		fix = p.Form.Least
	case s.short != nil:
		fix = "write " + s.short.noun() + " or a mapping of: " + strings.Join(s.keys, ", ")
	}
	entries, ok := p.Entries(n, p.Service, p.name(path), fix)
	if !ok {
		p.failed = append(p.failed, path)
		return
	}
	prefix := path
	if prefix != "" {
		prefix += "."
	}
	for _, e := range entries {
		f := s.byKey[e.Key.Value]
		switch {
		case f != nil:
			p.value(f, e.Value, into.FieldByIndex(f.index), prefix+f.Key)
		case !outermost || !Reserved(e.Key.Value):
			p.unknown(s, e.Key, path)
		}
	}
}

func (p *Positions) unknown(s *Shape, key *yaml.Node, path string) {
	if meant := nearest.To(key.Value, s.keys); meant != "" {
		p.failed = append(p.failed, strings.TrimPrefix(path+"."+meant, "."))
	}
	fix := misplaced(key.Value, s, p.top)
	if fix == "" {
		fix = Suggest(key.Value, s.keys)
	}
	p.Fail(key, p.Service, p.name(path), "unknown key "+Quote(key.Value), fix)
}

func (p *Positions) value(f *Field, n *yaml.Node, into reflect.Value, path string) {
	if !p.visit(n) {
		return
	}
	n = Resolve(n)
	p.at[path] = n
	switch f.Kind {
	case Section:
		p.section(f.Inner, n, into, path)
	case Table:
		p.table(f.Inner, f, n, into, path, false)
	case Sections, List:
		p.list(f, n, into, path)
	case Raw:
		if into.Kind() == reflect.Pointer {
			into.Set(reflect.ValueOf(n))
		} else {
			into.Set(reflect.ValueOf(*n))
		}
	default:
		p.scalar(f, n, into, path)
	}
}

// scalar leaves into as it is when the value is a mistake.
func (p *Positions) scalar(f *Field, n *yaml.Node, into reflect.Value, path string) {
	fresh := reflect.New(into.Type()).Elem()
	if problem, fix := f.Scalar(n, fresh); problem != "" {
		p.Reject(path, problem, fix)
		return
	}
	if fresh.IsZero() && f.Limits != "" {
		p.zeros = append(p.zeros, f)
	}
	into.Set(fresh)
}

// list replaces the list that is there.
func (p *Positions) list(f *Field, n *yaml.Node, into reflect.Value, path string) {
	switch {
	case IsNull(n):
		p.Reject(path, "has no value", f.mendNothing())
		return
	case n.Kind != yaml.SequenceNode:
		p.Reject(path, Describe(n)+" is not a list", f.Fix())
		return
	case len(n.Content) == 0 && f.NotEmpty != "":
		p.Reject(path, "an empty list would mean the default", f.NotEmpty)
		return
	case len(n.Content) > p.Form.scaled(MaxMembers):
		p.Reject(path, fmt.Sprintf("%d members are too many", len(n.Content)),
			fmt.Sprintf("allowed: at most %d", p.Form.scaled(MaxMembers)))
		return
	}
	list := reflect.MakeSlice(into.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		item = Resolve(item)
		p.at[at] = item
		if !p.visit(item) {
			return
		}
		switch {
		case f.Kind == List:
			if problem, fix := f.Member.Scalar(item, list.Index(i)); problem != "" {
				p.Reject(at, problem, fix)
			}
		case f.Inner.short != nil && item.Kind == yaml.ScalarNode:
			short := f.Inner.short
			p.value(short, item, list.Index(i).FieldByIndex(short.index), at+"."+short.Key)
		default:
			p.section(f.Inner, item, list.Index(i), at)
		}
	}
	into.Set(list)
}

// table overlays a copy of the list that is there: members that the mapping names are read over, new ones are put
// behind them, or with fixed are a mistake.
func (p *Positions) table(s *Shape, f *Field, n *yaml.Node, into reflect.Value, path string, fixed bool) {
	if IsNull(n) { // perhaps the rest of the file is missing
		p.Reject(path, "has no value", "write {} or remove the key")
		return
	}
	fix := f.Fix()
	if fix == "" {
		fix = fmt.Sprintf("write the name of each %s, a colon, and a mapping of: %s", singular(path),
			strings.Join(s.keys, ", "))
	}
	entries, ok := p.Names(n, p.Service, p.name(path), fix)
	if !ok {
		p.failed = append(p.failed, path)
		return
	}
	list := reflect.MakeSlice(into.Type(), into.Len(), into.Len()+len(entries))
	reflect.Copy(list, into)
	names := make([]string, list.Len())
	known := map[string]int{}
	for i := range names {
		names[i] = list.Index(i).FieldByName("Name").String()
		known[names[i]] = i
	}
	for _, e := range entries {
		if p.Stopped() {
			break
		}
		name := e.Key.Value
		i, ok := known[name]
		switch {
		case ok:
		case fixed:
			p.Fail(e.Key, p.Service, p.name(path), "no such "+singular(path)+" "+Quote(name), Suggest(name, slices.Clone(names)))
			continue
		default:
			i = list.Len()
			list = reflect.Append(list, reflect.Zero(list.Type().Elem()))
			list.Index(i).FieldByName("Name").SetString(name)
		}
		p.member(s, e, list.Index(i), path+"."+name)
	}
	into.Set(list)
}

// member reads one entry of a table. Its value may stand elsewhere, behind an alias, so the key is its place.
func (p *Positions) member(s *Shape, e Entry, into reflect.Value, path string) {
	if !p.visit(e.Value) {
		return
	}
	p.at[path] = e.Key
	p.section(s, e.Value, into, path)
}
