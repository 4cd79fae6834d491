package nginx

import (
	"fmt"
	"path"
	"strings"

	"github.com/abate-go/abate/topology"
)

// gaps are what the files leave open and others fill in, by folder: what is to be done about all of one folder is one
// thing, and so is the remark.
type gaps struct {
	folders []string
	of      map[string]*gap
}

type gap struct {
	includes     []word // files that were not given
	placeholders []open
}

// open is a placeholder in an address.
type open struct {
	text, called, variable string
	at                     topology.Position
}

func (g *gaps) folder(at topology.Position) *gap {
	dir := path.Dir(at.File)
	if g.of[dir] == nil {
		if g.of == nil {
			g.of = map[string]*gap{}
		}
		g.folders, g.of[dir] = append(g.folders, dir), &gap{}
	}
	return g.of[dir]
}

// include notes a file that is included and was not given.
func (g *gaps) include(pattern word) {
	in := g.folder(pattern.at)
	for _, i := range in.includes {
		if i.text == pattern.text {
			return
		}
	}
	in.includes = append(in.includes, pattern)
}

// placeholder notes a placeholder that stands for an address, and what its service is called after it.
func (g *gaps) placeholder(text, called, name string, at topology.Position) {
	in := g.folder(at)
	for _, p := range in.placeholders {
		if p.called == called {
			return
		}
	}
	variable := ""
	if name == strings.ToUpper(name) {
		variable = name
	}
	in.placeholders = append(in.placeholders, open{text, called, variable, at})
}

func (g *gaps) remarks() (out []topology.Remark) {
	for _, dir := range g.folders {
		in := g.of[dir]
		if n := len(in.includes); n > 0 {
			first := in.includes[0]
			text := "none of the files that were given is " + first.text + ", which is included here"
			if n > 1 {
				text += "; nor is " + and(n-1, "or", func(i int) string { return in.includes[i+1].text })
			}
			out = append(out, topology.Remark{Rule: "F702", At: first.at, Subject: "include " + first.text, Text: text,
				Fix: "give what is missing, or put it beside this file as it is on the machine"})
		}
		if n := len(in.placeholders); n > 0 {
			out = append(out, in.unfilled(n))
		}
	}
	return out
}

// unfilled is the remark about placeholders.
func (in *gap) unfilled(n int) topology.Remark {
	first := in.placeholders[0]
	text := "what " + first.text + " is, is known only when the file is filled in; in the name of the service it is " +
		first.called + " here"
	if n > 1 {
		text = fmt.Sprintf("what %s are, is known only when the files are filled in; in the names of services they are %s "+
			"here", and(n, "and", func(i int) string { return in.placeholders[i].text }),
			and(n, "and", func(i int) string { return in.placeholders[i].called }))
	}
	var variables []string
	for _, p := range in.placeholders {
		if p.variable != "" {
			variables = append(variables, p.variable)
		}
	}
	fix := "audit the file as it is rendered"
	if n := len(variables); n == 1 {
		fix += ", or give the container the variable " + variables[0]
	} else if n > 1 {
		fix += ", or give the container the variables"
	}
	return topology.Remark{Rule: "F702", At: first.at, Subject: "placeholder " + first.text, Text: text, Fix: fix}
}

// mostNamed is how many of a list a remark names.
const mostNamed = 3

// and joins the first of n names with a word before the last, and says how many further ones there are.
func and(n int, word string, name func(int) string) string {
	var names []string
	for i := range min(n, mostNamed) {
		names = append(names, name(i))
	}
	if more := n - mostNamed; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " " + word + " " + names[last]
}
