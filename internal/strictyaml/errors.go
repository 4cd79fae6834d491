package strictyaml

import (
	"cmp"
	"sort"
	"strconv"
	"strings"
)

// Error is one mistake in a file and where it stands.
type Error struct {
	File    string // as given to Decode
	Line    int    // from 1; 0 when the mistake has no place in the file
	Col     int    // from 1, in characters
	Service string // the service it is about, when Field begins below it; empty otherwise
	Field   string // the field as the file nests it: "circuitBreaker.rampUp", "faults[2].at"; may be empty
	Problem string // what is wrong, with the value
	Fix     string // what is allowed, with an example; may be empty
}

// Error reads, for instance,
// `policy.yaml:4:32: service "payments", multiplier: 0.5 is out of range; allowed: 1 to 100; for example 2.0`.
func (e Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		b.WriteString(":" + strconv.Itoa(e.Line) + ":" + strconv.Itoa(e.Col))
	}
	b.WriteString(": ")
	if e.Service != "" {
		b.WriteString("service " + Quote(e.Service))
		if e.Field != "" {
			b.WriteString(", ")
		}
	}
	b.WriteString(e.Field)
	if e.Service != "" || e.Field != "" {
		b.WriteString(": ")
	}
	b.WriteString(e.Problem)
	if e.Fix != "" {
		b.WriteString("; " + e.Fix)
	}
	return b.String()
}

// Errors is every mistake in a file, in the order of the file. errors.As finds both the list and, as an Error, its
// first member.
type Errors []Error

// Error is one line per mistake.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the single mistakes to errors.Is and errors.As.
func (e Errors) Unwrap() []error {
	list := make([]error, len(e))
	for i := range e {
		list[i] = e[i]
	}
	return list
}

// sorted puts the mistakes in the order of the file.
func (e Errors) sorted() Errors {
	sort.SliceStable(e, func(i, j int) bool {
		return cmp.Or(cmp.Compare(e[i].Line, e[j].Line), cmp.Compare(e[i].Col, e[j].Col)) < 0
	})
	return e
}

// Quote shows a piece of the file in a message: quoted, and cut when it is long, so that no file can flood a log.
func Quote(s string) string {
	const longest = 60
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return strconv.Quote(s)
}
