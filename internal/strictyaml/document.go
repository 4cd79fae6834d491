package strictyaml

import (
	"fmt"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Document is one file being read: the mistakes in it, and how much work it has made. It walks the nodes itself because
// the YAML library's decoder stops at the first mistake of a kind, knows no columns, and takes an explicit zero for an
// absent key.
type Document struct {
	Form Form
	File string // stands in the messages

	// Shift, when it is set, maps positions of the nodes to those in the file: for a document that is a text in another.
	Shift func(line, col int) (int, int)

	errs   Errors
	more   bool // there are more than maxErrors
	visits int
}

// Entry is one key of a mapping and its value.
type Entry struct{ Key, Value *yaml.Node }

// Fail reports a mistake at a node. service and field may be empty, and so may fix.
func (d *Document) Fail(n *yaml.Node, service, field, problem, fix string) {
	line, col := d.place(n.Line, n.Column)
	d.add(Error{Line: line, Col: col, Service: service, Field: field, Problem: problem, Fix: fix})
}

// FailAt reports a mistake at a place of the document itself.
func (d *Document) FailAt(line, col int, problem, fix string) {
	line, col = d.place(line, col)
	d.add(Error{Line: line, Col: col, Problem: problem, Fix: fix})
}

// place is where a position of the document stands in the file.
func (d *Document) place(line, col int) (int, int) {
	if d.Shift == nil {
		return line, col
	}
	return d.Shift(line, col)
}

func (d *Document) add(e Error) {
	e.File = d.File
	if d.more = d.more || len(d.errs) == maxErrors; !d.more {
		d.errs = append(d.errs, e)
	}
}

// Errors is what was found so far, in the order of the file; nil when nothing was. Ask for its length before you return
// it as an error.
func (d *Document) Errors() Errors {
	if len(d.errs) == 0 {
		return nil
	}
	list := append(Errors(nil), d.errs...).sorted()
	if d.more {
		list = append(list, Error{
			File: d.File, Problem: fmt.Sprintf("and more: only the first %d mistakes are listed", maxErrors),
		})
	}
	return list
}

// Stopped reports that going on makes no sense: there are too many mistakes already, or the aliases mean too many
// values.
func (d *Document) Stopped() bool { return d.more || d.visits > maxVisits }

// visit counts a node and reports once when there are too many: aliases can make a small file mean a huge one.
func (d *Document) visit(n *yaml.Node) bool {
	if d.visits > maxVisits {
		return false
	}
	d.visits++
	if d.visits > maxVisits {
		d.Fail(n, "", "", fmt.Sprintf("the aliases in this file expand to more than %d values", maxVisits),
			"write fewer of them")
		return false
	}
	return true
}

// Resolve follows an alias to what it stands for.
func Resolve(n *yaml.Node) *yaml.Node {
	for hops := 0; n.Kind == yaml.AliasNode && hops < 8; hops++ {
		n = n.Alias
	}
	return n
}

// IsNull reports whether a key has no value.
func IsNull(n *yaml.Node) bool {
	n = Resolve(n)
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// Entries lists the keys of a mapping in the order of the file, merged ones (<<) last. An empty value is an empty
// mapping. Duplicate and odd keys are reported and left out. fix is said when n is something else, and ok is false
// then.
func (d *Document) Entries(n *yaml.Node, service, field, fix string) (list []Entry, ok bool) {
	return d.entries(n, service, field, "key", fix)
}

// Names is Entries for a mapping whose keys are names, such as services: they are checked, and at most MaxNames.
func (d *Document) Names(n *yaml.Node, service, field, fix string) (list []Entry, ok bool) {
	all, ok := d.entries(n, service, field, singular(field), fix)
	if len(all) > MaxNames {
		what := field[strings.LastIndexByte(field, '.')+1:]
		d.Fail(all[MaxNames].Key, service, field, fmt.Sprintf("%d %s are too many", len(all), what),
			fmt.Sprintf("allowed: at most %d", MaxNames))
		return nil, false
	}
	for _, e := range all {
		if problem := nameProblem(e.Key.Value); problem != "" {
			d.Fail(e.Key, service, field, Quote(e.Key.Value)+" "+problem,
				`allowed: 1 to 253 printable characters without spaces around; for example payment-service`)
			continue
		}
		list = append(list, e)
	}
	return list, ok
}

func (d *Document) entries(n *yaml.Node, service, field, noun, fix string) ([]Entry, bool) {
	n = Resolve(n)
	if IsNull(n) {
		return nil, true
	}
	if n.Kind != yaml.MappingNode {
		d.Fail(n, service, field, Describe(n)+" is not a mapping", fix)
		return nil, false
	}
	m := &merger{d: d, field: field, service: service, noun: noun, seen: map[string]bool{},
		state: map[*yaml.Node]mergeState{}}
	m.collect(n, 0)
	return m.list, true
}

// singular is what one entry of a field is called: "services" holds one "service" after the other.
func singular(field string) string {
	word := field[strings.LastIndexByte(field, '.')+1:]
	if one, ok := strings.CutSuffix(word, "ies"); ok {
		return one + "y"
	}
	return strings.TrimSuffix(word, "s")
}

// nameProblem reports what is wrong with a name: it becomes a label in errors, logs and metrics.
func nameProblem(name string) string {
	const longest = 253
	switch {
	case name == "":
		return "is no name"
	case len(name) > longest:
		return "is too long for a name"
	case strings.TrimSpace(name) != name, strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "has characters that a name cannot have"
	}
	return ""
}
