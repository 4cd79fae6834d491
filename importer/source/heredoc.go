package source

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// heredocAt reports whether a text begins with <<WORD or <<-WORD.
func heredocAt(text []rune) bool {
	rest, ok := strings.CutPrefix(string(text[:min(len(text), 4)]), "<<")
	rest = strings.TrimPrefix(rest, "-")
	return ok && rest != "" && isHCLWord([]rune(rest)[0])
}

// heredoc reads a text between <<WORD and WORD. It is a block, as that behind | in YAML is: its lines stand below.
func (p *hcl) heredoc() *yaml.Node {
	n := p.node(yaml.ScalarNode, "!!str", "")
	n.Style = yaml.LiteralStyle
	p.skip(len("<<"))
	flush := p.next() == '-'
	word := strings.TrimSpace(strings.TrimPrefix(p.restOfLine(), "-"))
	var lines []string
	for word != "" && p.next() != 0 {
		p.skip(1) // the end of the line before
		from := *p
		line := p.restOfLine()
		if strings.TrimLeft(strings.TrimRight(line, "\r"), " \t") == word {
			if flush {
				flushed(lines)
			}
			n.Value = strings.Join(lines, "")
			*p = from
			p.skip(len([]rune(strings.TrimRight(line, "\r"))))
			return n
		}
		lines = append(lines, line+"\n")
	}
	p.line, p.column = n.Line, n.Column
	p.fail("the text that begins with <<%s does not end", word)
	return n
}

// restOfLine skips what is left of the line, and returns it.
func (p *hcl) restOfLine() string {
	from := p.at
	for p.next() != 0 && p.next() != '\n' {
		p.skip(1)
	}
	return string(p.text[from:p.at])
}

// flushed takes the indentation away that all lines have in common.
func flushed(lines []string) {
	least := -1
	for _, line := range lines {
		if indent := len(line) - len(strings.TrimLeft(line, " \t")); strings.TrimSpace(line) != "" {
			if least < 0 || indent < least {
				least = indent
			}
		}
	}
	for i, line := range lines {
		lines[i] = line[min(max(least, 0), len(line)-len(strings.TrimLeft(line, " \t"))):]
	}
}

// unwrapped are functions of Terraform whose argument is the same document, as far as it is read.
var unwrapped = []string{"yamldecode(", "jsondecode(", "trimspace(", "chomp("}

// decoded reads a heredoc that is the only argument of one of those; nil if something else stands there.
func (p *hcl) decoded() *yaml.Node {
	for _, call := range unwrapped {
		if !p.ahead(call) {
			continue
		}
		start := *p
		p.skip(len(call))
		if p.space(true); p.ahead("<<") {
			n := p.heredoc()
			if p.space(true); p.next() == ')' {
				p.skip(1)
				if p.space(false); p.problem == "" && (p.next() == 0 || strings.ContainsRune("\n,}])", p.next())) {
					return n
				}
			}
		}
		*p = start
	}
	return nil
}
