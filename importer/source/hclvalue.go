package source

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// value reads what stands behind "=", or in a list.
func (p *hcl) value(depth int) *yaml.Node {
	if depth > hclDepth {
		p.fail("values stand in each other more than %d deep", hclDepth)
	}
	switch c := p.next(); {
	case c == '{' && !p.comprehension():
		n := p.mapping()
		p.skip(1)
		p.body(n, depth+1)
		p.skip(1)
		return n
	case c == '[' && !p.comprehension():
		return p.list(depth)
	case p.ahead("<<"):
		return p.heredoc()
	case c == '"':
		return p.textOr()
	}
	for _, call := range []string{"jsonencode(", "yamlencode("} {
		if p.ahead(call) {
			p.skip(len(call))
			p.space(true)
			n := p.value(depth + 1)
			if p.space(true); p.next() != ')' {
				p.fail("%s…) is not closed", call)
			}
			p.skip(1)
			return n
		}
	}
	if n := p.decoded(); n != nil {
		return n
	}
	return p.literal()
}

// comprehension reports whether a bracket opens a "for" of Terraform, which is an expression.
func (p *hcl) comprehension() bool {
	inside := strings.TrimLeft(string(p.text[p.at+1:min(len(p.text), p.at+40)]), " \t\r\n")
	return strings.HasPrefix(inside, "for ")
}

func (p *hcl) list(depth int) *yaml.Node {
	n := p.node(yaml.SequenceNode, "!!seq", "")
	for p.skip(1); ; {
		p.space(true)
		switch p.next() {
		case ',':
			p.skip(1)
		case ']':
			p.skip(1)
			return n
		case 0:
			p.fail("a [ is not closed")
			return n
		default:
			n.Content = append(n.Content, p.value(depth+1))
		}
	}
}

// textOr reads a text in quotes; with an operator behind it, it is part of an expression.
func (p *hcl) textOr() *yaml.Node {
	n, start := p.node(yaml.ScalarNode, "!!str", ""), *p
	n.Style = yaml.DoubleQuotedStyle
	n.Value = p.quoted()
	if p.space(false); p.problem != "" || p.ahead("//") || !strings.ContainsRune("?+-*/=!<>&|.%[", p.next()) {
		return n
	}
	*p = start
	return p.literal()
}

// literal reads a number, true, false or null; anything else is an expression, and a template.
func (p *hcl) literal() *yaml.Node {
	n := p.node(yaml.ScalarNode, "!!str", "")
	n.Value = p.expression()
	switch _, err := strconv.ParseFloat(n.Value, 64); {
	case n.Value == "":
		p.fail("a value is missing")
	case err == nil && !strings.ContainsAny(n.Value, ".eExX"):
		n.Tag = "!!int"
	case err == nil:
		n.Tag = "!!float"
	case n.Value == "true", n.Value == "false":
		n.Tag = "!!bool"
	case n.Value == "null":
		n.Tag = "!!null"
	default:
		n.Value = "${" + n.Value + "}"
	}
	return n
}

// expression returns the text up to the end of the line, or to what closes the value around it, on one line.
func (p *hcl) expression() string {
	from := p.at
	for {
		switch c := p.next(); {
		case c == 0, strings.ContainsRune("\n,}])#", c), p.ahead("//"), p.ahead("/*"):
			return strings.Join(strings.Fields(string(p.text[from:p.at])), " ")
		case c == '"':
			p.quoted()
		case heredocAt(p.text[p.at:]):
			p.heredoc()
		case strings.ContainsRune("([{", c):
			p.bracketed()
		default:
			p.skip(1)
		}
	}
}

// bracketed skips what stands between a bracket and the one that closes it.
func (p *hcl) bracketed() {
	for depth := 0; ; {
		c := p.next()
		switch {
		case c == 0:
			p.fail("a bracket is not closed")
			return
		case c == '"':
			p.quoted()
			continue
		case heredocAt(p.text[p.at:]):
			p.heredoc()
			continue
		case c == '#', p.ahead("//"), p.ahead("/*"):
			p.space(false)
			continue
		case strings.ContainsRune("([{", c):
			depth++
		case strings.ContainsRune(")]}", c):
			depth--
		}
		if p.skip(1); depth == 0 {
			return
		}
	}
}

// quoted reads a text in quotes. What stands in ${…} may have quotes of its own.
func (p *hcl) quoted() string {
	var b strings.Builder
	depth := 0 // of braces inside ${…}
	for p.skip(1); ; {
		c := p.next()
		switch {
		case c == 0, c == '\n' && depth == 0:
			p.fail("a text in quotes does not end on its line")
			return ""
		case c == '"' && depth == 0:
			p.skip(1)
			return b.String()
		case c == '\\' && depth == 0:
			p.skip(1)
			b.WriteString(p.escaped())
			continue
		case p.ahead("${"), p.ahead("%{"):
			b.WriteRune(c)
			p.skip(1)
			depth++
		case depth > 0 && c == '{':
			depth++
		case depth > 0 && c == '}':
			depth--
		}
		b.WriteRune(p.next())
		p.skip(1)
	}
}

// escaped returns what a character behind a backslash stands for.
func (p *hcl) escaped() string {
	digits, c := 4, p.next()
	switch p.skip(1); c {
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case 'r':
		return "\r"
	case 'U':
		digits = 8
		fallthrough
	case 'u':
		code := string(p.text[p.at:min(len(p.text), p.at+digits)])
		n, err := strconv.ParseUint(code, 16, 32)
		if err != nil {
			p.fail("\\%c%s is no character", c, code)
			return ""
		}
		p.skip(digits)
		return string(rune(n))
	default:
		return string(c)
	}
}
