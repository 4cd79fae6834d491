package nginx

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// word is one word of a directive, without its quotes.
type word struct {
	text string
	at   topology.Position
}

// directive is one directive with its block, if it has one. words has at least one word.
type directive struct {
	words []word
	block []*directive
	opens bool // it has a block, be it empty
	doc   *source.Document
}

func (d *directive) name() string          { return d.words[0].text }
func (d *directive) at() topology.Position { return d.words[0].at }

// arg returns the n-th argument, from 1, and whether there is one.
func (d *directive) arg(n int) (word, bool) {
	if d == nil || n >= len(d.words) {
		return word{}, false
	}
	return d.words[n], true
}

// maxDepth is how deep blocks may stand in one another. nginx itself knows no more than a few.
const maxDepth = 50

// parser reads one document.
type parser struct {
	doc      *source.Document
	rest     string
	line     int
	column   int
	remarks  []topology.Remark
	template topology.Position // of the first line that is a template's
	more     int               // further ones
}

// templateSubject is what the remark is about that a file is a template. There is no other one about such a file.
const templateSubject = "template"

// parse returns the directives of a document. What cannot be read is a remark, and the rest is read.
func parse(doc *source.Document) ([]*directive, []topology.Remark) {
	p := &parser{doc: doc, rest: string(source.WithoutComments(doc.Data)), line: 1, column: 1}
	directives := p.block(0)
	if !p.template.IsZero() {
		p.remarks = nil // which may be about what is left when the lines of the template are
		p.remark(p.template, templateSubject, fmt.Sprintf("the file is a template: %d of its lines were left out, and all "+
			"branches "+
			"were read", p.more), "audit the file as it is rendered")
	}
	return directives, p.remarks
}

func (p *parser) remark(at topology.Position, subject, text, fix string) {
	p.remarks = append(p.remarks, topology.Remark{Rule: "F702", At: at, Subject: subject, Text: text, Fix: fix})
}

func (p *parser) here() topology.Position { return p.doc.At(p.line, p.column) }

// next takes one character.
func (p *parser) next() string {
	_, size := utf8.DecodeRuneInString(p.rest)
	c := p.rest[:size]
	p.rest = p.rest[size:]
	if p.column++; c == "\n" {
		p.line, p.column = p.line+1, 1
	}
	return c
}

// take takes n bytes.
func (p *parser) take(n int) string {
	var b strings.Builder
	for b.Len() < n && p.rest != "" {
		b.WriteString(p.next())
	}
	return b.String()
}

// blank takes white space and comments.
func (p *parser) blank() {
	for p.rest != "" {
		switch {
		case strings.IndexByte(" \t\r\n", p.rest[0]) >= 0:
			p.next()
		case p.rest[0] == '#':
			for p.rest != "" && p.rest[0] != '\n' {
				p.next()
			}
		default:
			return
		}
	}
}

// block reads directives up to the end of a block or of the file.
func (p *parser) block(depth int) []*directive {
	var out []*directive
	var words []word
	for {
		p.blank()
		if p.rest == "" {
			p.ended(words, depth)
			return out
		}
		switch n := templated(p.rest); {
		case n > 0 && len(words) == 0:
			if p.more++; p.template.IsZero() {
				p.template = p.here()
			}
			p.take(n)
		case p.rest[0] == '}':
			p.ended(words, 0)
			words = nil
			at := p.here()
			p.next()
			if depth > 0 {
				return out
			}
			p.remark(at, "brace", "this brace closes nothing", "remove it")
		case p.rest[0] == ';':
			p.next()
			if len(words) > 0 {
				out = append(out, &directive{words: words, doc: p.doc})
			}
			words = nil
		case p.rest[0] == '{' && n == 0:
			if d := p.opened(words, depth); d != nil {
				out = append(out, d)
			}
			words = nil
		default:
			words = append(words, p.word())
		}
	}
}

// ended remarks what the end of a block or of the file cuts.
func (p *parser) ended(words []word, depth int) {
	if len(words) > 0 && !strings.HasPrefix(words[0].text, "${") { // lines that Terraform fills in have their own
		p.remark(words[0].at, "directive "+words[0].text, words[0].text+" has no semicolon", "end it with ;")
	}
	if depth > 0 {
		p.remark(p.here(), "end", "the file ends inside a block", "close the block with }")
	}
}

// opened reads the block of a directive.
func (p *parser) opened(words []word, depth int) *directive {
	at := p.here()
	p.next()
	if len(words) == 0 {
		p.remark(at, "brace", "this block has no name", "write what it is the block of")
		words = []word{{"", at}}
	}
	d := &directive{words: words, opens: true, doc: p.doc}
	if strings.HasSuffix(d.name(), "_by_lua_block") || strings.HasSuffix(d.name(), "_js_block") {
		p.program()
		return nil
	}
	if depth >= maxDepth {
		p.remark(at, "depth", fmt.Sprintf("blocks stand more than %d deep in one another", maxDepth), "nest them less")
		p.rest = ""
		return d
	}
	d.block = p.block(depth + 1)
	return d
}

// program skips the text of a block that holds a program, up to the brace that closes it.
func (p *parser) program() {
	for depth := 1; depth > 0 && p.rest != ""; {
		switch p.next() {
		case "{":
			depth++
		case "}":
			depth--
		}
	}
}

// word reads one word. The text does not begin with white space.
func (p *parser) word() word {
	w := word{at: p.here()}
	var b strings.Builder
	if q := p.rest[0]; q == '"' || q == '\'' {
		p.next()
		for p.rest != "" && p.rest[0] != q {
			p.character(&b, q)
		}
		if p.rest == "" {
			p.remark(w.at, "quote", "this quote is never closed", "close it")
		} else {
			p.next()
		}
		w.text = b.String()
		return w
	}
	for p.rest != "" && strings.IndexByte(" \t\r\n;{}", p.rest[0]) < 0 || templated(p.rest) > 0 {
		switch n := templated(p.rest); {
		case n > 0:
			b.WriteString(p.take(n))
		case strings.HasPrefix(p.rest, "${"):
			end := strings.IndexAny(p.rest, "}\n")
			if end < 0 || p.rest[end] == '\n' {
				end = 1
			}
			b.WriteString(p.take(end + 1))
		default:
			p.character(&b, 0)
		}
	}
	w.text = b.String()
	return w
}

// character reads one character of a word; in quotes q, or in none.
func (p *parser) character(b *strings.Builder, q byte) {
	c := p.next()
	if c != `\` || p.rest == "" {
		b.WriteString(c)
		return
	}
	escaped := p.next()
	if q == 0 || escaped != `"` && escaped != `'` && escaped != `\` {
		b.WriteString(c)
	}
	b.WriteString(escaped)
}

// longestTemplate is how many bytes an expression may have that goes over several lines.
const longestTemplate = 4096

// templated returns the length of the template expression that a text begins with, or 0.
func templated(text string) int {
	if text == "" || text[0] != '{' && text[0] != '<' {
		return 0
	}
	for _, marks := range [][2]string{{"{{", "}}"}, {"{%", "%}"}, {"<%", "%>"}} {
		if strings.HasPrefix(text, marks[0]) {
			if end := strings.Index(text[:min(len(text), longestTemplate)], marks[1]); end > 0 {
				return end + len(marks[1])
			}
		}
	}
	return 0
}
