package nginx

import (
	"regexp"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
)

// placeholder is what somebody fills in before nginx starts: a variable of the environment, by the capitals in which
// these are written and nginx's own are not, or an expression of a template.
var placeholder = regexp.MustCompile(`\$\{([A-Z][A-Z0-9_]*)\}|\$([A-Z][A-Z0-9_]*)\b|\{\{[^\n]*?\}\}|<%[^\n]*?%>`)

// identifiers are the names in a placeholder.
var identifiers = regexp.MustCompile(`[A-Za-z_][A-Za-z_0-9]*`)

// nameOf returns the last name of a placeholder: host of {{ .Values.api.host }}.
func nameOf(placeholder string) string {
	all := identifiers.FindAllString(placeholder, -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// filled returns the directives with the values that the environment of this nginx has for placeholders in them. given
// returns the value of a variable, "" for none.
func filled(all []*directive, given func(name string) string) []*directive {
	out := make([]*directive, len(all))
	for i, d := range all {
		c := *d
		c.words = slices.Clone(d.words)
		for k := range c.words {
			c.words[k].text = placeholder.ReplaceAllStringFunc(c.words[k].text, func(p string) string {
				if v := given(nameOf(p)); v != "" && len(identifiers.FindAllString(p, -1)) == 1 {
					return v
				}
				return p
			})
		}
		c.block = filled(d.block, given)
		out[i] = &c
	}
	return out
}

// standing is a placeholder that stands for one text wherever it is written: a bare name, or a value of a chart. Others
// ({{ .Name }}, {{ $x }}) may be filled in anew for each of a list.
var standing = regexp.MustCompile(`^\$|^(\{\{|<%)[-=]?\s*(\$?\.Values\.)?[A-Za-z_][\w.]*\s*-?(\}\}|%>)$`)

// called returns a name for an address of which somebody fills in a part: that part is called after its placeholder.
// What the address leads to is then not known, but all that this nginx does with it is.
func called(address string) string {
	return placeholder.ReplaceAllStringFunc(address, func(p string) string {
		if name := nameOf(p); name != "" && standing.MatchString(p) {
			return "(" + strings.ToLower(name) + ")"
		}
		return p
	})
}

// unfilled remarks the placeholders of an address that are in the name of its service. Those of its port are not.
func (in *instance) unfilled(address, service string, target word) {
	for _, p := range placeholder.FindAllString(address, -1) {
		if as := called(p); as != p && strings.Contains(service, as) {
			in.files.gaps.placeholder(p, as, nameOf(p), target.at)
		}
	}
}

// environment returns what the environment gives a variable for the nginx of a document.
func environment(assume source.Assume, d *source.Document) func(string) string {
	service := d.Service("nginx")
	return func(name string) string { return assume.Variable(service, d.File, name) }
}
