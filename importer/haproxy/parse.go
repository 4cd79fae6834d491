package haproxy

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// word is one word of a line, without its quotes.
type word struct {
	text string
	at   topology.Position
}

// line is one line of a section: a keyword and its arguments.
type line []word

func (l line) is(words ...string) bool {
	for i, w := range words {
		if i >= len(l) || l[i].text != w {
			return false
		}
	}
	return true
}

func (l line) arg(n int) (word, bool) {
	if n >= len(l) {
		return word{}, false
	}
	return l[n], true
}

func (l line) String() string {
	var texts []string
	for _, w := range l {
		texts = append(texts, w.text)
	}
	return strings.Join(texts, " ")
}

// section is one section of a file, with the defaults that it inherits.
type section struct {
	kind, name string
	at         topology.Position
	lines      []line
	defaults   *section
	off        *topology.Methods // what disabled returned
}

// keywords begin a section.
var keywords = []string{"global", "defaults", "frontend", "backend", "listen", "peers", "resolvers", "mailers",
	"userlist", "cache",
	"program", "http-errors", "ring", "fcgi-app", "log-forward", "log-profile", "crt-store", "traces", "acme",
	"healthcheck"}

// sections reads documents one after the other, as HAProxy does with several files: a proxy inherits the defaults
// section that stands before it, or the one that it names.
func sections(docs []*source.Document) (out []*section, remarks []topology.Remark) {
	var now, defaults *section
	named := map[string]*section{}
	for _, d := range docs {
		lines, more := split(d)
		remarks = append(remarks, more...)
		now = nil
		for _, l := range lines {
			if !slices.Contains(keywords, l[0].text) {
				if now != nil {
					now.lines = append(now.lines, l)
				}
				continue
			}
			now = &section{kind: l[0].text, at: l[0].at}
			if w, ok := l.arg(1); ok && w.text != "from" {
				now.name = w.text
			}
			now.defaults = defaults
			if now.kind == "defaults" {
				now.defaults, defaults = nil, now
				named[now.name] = now
			}
			if i := slices.IndexFunc(l, func(w word) bool { return w.text == "from" }); i > 0 && i+1 < len(l) {
				if base := named[l[i+1].text]; base != nil && base != now {
					now.defaults = base
				}
			}
			out = append(out, now)
		}
	}
	return out, remarks
}

// split returns the lines that say something.
func split(d *source.Document) (lines []line, remarks []topology.Remark) {
	left, first := 0, topology.Position{}
	for i, text := range strings.Split(string(source.WithoutComments(d.Data)), "\n") {
		l, unclosed := words(d, i+1, strings.TrimSuffix(text, "\r"))
		if len(l) == 0 {
			continue
		}
		if strings.HasPrefix(l[0].text, "{{") || strings.HasPrefix(l[0].text, "{%") || strings.HasPrefix(l[0].text, "<%") {
			if left++; first.IsZero() {
				first = l[0].at
			}
			continue
		}
		if unclosed {
			remarks = append(remarks, topology.Remark{Rule: "F702", At: l[0].at, Subject: "line " + l[0].text,
				Text: "a quote of this line is never closed", Fix: "close it"})
		}
		lines = append(lines, l)
	}
	if left > 0 {
		remarks = append(remarks, topology.Remark{Rule: "F702", At: first, Subject: "template",
			Text: fmt.Sprintf("the file is a template: %d of its lines were left out, and all branches were read", left),
			Fix:  "audit the file as it is rendered"})
	}
	return lines, remarks
}

// words splits one line at white space. A backslash takes the next character as it is, quotes keep white space, and #
// begins a comment.
func words(d *source.Document, number int, text string) (out line, unclosed bool) {
	var b strings.Builder
	start, quote := 0, byte(0)
	end := func() {
		if start > 0 {
			out = append(out, word{b.String(), d.At(number, start)})
		}
		b.Reset()
		start = 0
	}
	for i, column := 0, 1; i < len(text); column++ {
		_, size := utf8.DecodeRuneInString(text[i:])
		c := text[i]
		if n := templated(text[i:]); n > 0 && quote == 0 {
			if start == 0 {
				start = column
			}
			b.WriteString(text[i : i+n])
			column += utf8.RuneCountInString(text[i:i+n]) - 1
			i += n
			continue
		}
		switch {
		case quote == 0 && (c == ' ' || c == '\t'):
			end()
		case quote == 0 && c == '#':
			end()
			return out, false
		default:
			if start == 0 {
				start = column
			}
			switch {
			case c == '\\' && quote != '\'' && i+1 < len(text):
				_, next := utf8.DecodeRuneInString(text[i+1:])
				b.WriteString(text[i+1 : i+1+next])
				size, column = size+next, column+1
			case quote == 0 && (c == '"' || c == '\''):
				quote = c
			case c == quote && quote != 0:
				quote = 0
			default:
				b.WriteString(text[i : i+size])
			}
		}
		i += size
	}
	end()
	return out, quote != 0
}

// templated returns the length of the template expression that a text begins with, or 0.
func templated(text string) int {
	if text == "" || text[0] != '{' && text[0] != '<' {
		return 0
	}
	for _, marks := range [][2]string{{"{{", "}}"}, {"{%", "%}"}, {"<%", "%>"}} {
		if strings.HasPrefix(text, marks[0]) {
			if end := strings.Index(text, marks[1]); end > 0 {
				return end + len(marks[1])
			}
		}
	}
	return 0
}
