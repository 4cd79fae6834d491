package dlq

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	longestExpression = 2000 // bytes
	deepestBracket    = 50
)

// ParseExpression reads an expression; ExpressionHelp explains the language. The error is of type ExpressionErrors and lists everything that is wrong.
func ParseExpression(text string) (*Expression, error) {
	p := parser{text: text}
	switch {
	case len(text) > longestExpression:
		p.fail(0, strconv.Itoa(len(text))+" bytes are too long", "write at most "+strconv.Itoa(longestExpression))
	case !utf8.ValidString(text):
		p.fail(0, "it is not UTF-8 text", "compare bytes in another way, for example with size or a header")
	case strings.TrimSpace(text) == "":
		p.fail(0, "there is no expression", `write one, for example class == "timeout"`)
	}
	if len(p.errs) > 0 {
		return nil, p.errs
	}
	p.tokens = lex(text, p.fail)
	x := &Expression{text: text, holds: p.either()}
	if t := p.peek(); t.kind != endOfText && len(p.errs) == 0 {
		p.unexpected(t)
	}
	if len(p.errs) > 0 {
		slices.SortStableFunc(p.errs, func(a, b *ExpressionError) int { return a.Column - b.Column })
		return nil, p.errs
	}
	for _, t := range p.tokens {
		if t.kind == wordToken {
			x.words = append(x.words, t.text)
		}
	}
	return x, nil
}

type parser struct {
	text   string
	tokens []token
	next   int
	depth  int
	errs   ExpressionErrors
}

// fail notes a mistake at a byte of the text, one for each place.
func (p *parser) fail(at int, problem, mend string) {
	column := utf8.RuneCountInString(p.text[:at]) + 1
	if !slices.ContainsFunc(p.errs, func(e *ExpressionError) bool { return e.Column == column }) {
		p.errs = append(p.errs, &ExpressionError{column, problem, mend})
	}
}

func (p *parser) peek() token { return p.tokens[p.next] }

func (p *parser) take() token {
	t := p.tokens[p.next]
	if t.kind != endOfText {
		p.next++
	}
	return t
}

// sign takes the next token if it is this sign.
func (p *parser) sign(text string) bool {
	t := p.peek()
	if t.kind != signToken || t.text != text {
		return false
	}
	p.next++
	return true
}

func never(*subject) bool { return false }

// either reads conditions joined by ||.
func (p *parser) either() holds {
	first := p.all()
	for p.sign("||") {
		a, b := first, p.all()
		first = func(s *subject) bool { return a(s) || b(s) }
	}
	return first
}

// all reads conditions joined by &&.
func (p *parser) all() holds {
	first := p.one()
	for p.sign("&&") {
		a, b := first, p.one()
		first = func(s *subject) bool { return a(s) && b(s) }
	}
	return first
}

// one reads a comparison, one in brackets, or the contrary of one.
func (p *parser) one() holds {
	t := p.peek()
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > deepestBracket {
		p.fail(t.at, "the brackets are too deep", "write at most "+strconv.Itoa(deepestBracket)+" inside each other")
		p.next = len(p.tokens) - 1
		return never
	}
	switch {
	case p.sign("!"):
		inner := p.one()
		return func(s *subject) bool { return !inner(s) }
	case p.sign("("):
		inner := p.either()
		if !p.sign(")") {
			p.fail(t.at, "the bracket is not closed", "write ) after its last comparison")
			p.recover()
		}
		return inner
	case t.kind == wordToken:
		p.next++
		return p.comparison(t)
	}
	p.unexpected(t)
	p.recover()
	return never
}

// recover goes on behind a mistake: at the next && or || or ).
func (p *parser) recover() {
	for {
		switch t := p.peek(); {
		case t.kind == endOfText, t.kind == signToken && (t.text == "&&" || t.text == "||" || t.text == ")"):
			return
		}
		p.next++
	}
}

// unexpected tells of a token that cannot stand where it does.
func (p *parser) unexpected(t token) {
	switch {
	case t.kind == badToken: // told already
	case t.kind == endOfText:
		p.fail(t.at, "something is missing at the end", `write a comparison, for example failures > 3`)
	case t.kind == wordToken && (t.text == "and" || t.text == "or"):
		p.fail(t.at, quoteWord(t.text)+" is not expected here", "write && for and, || for or")
	case t.kind == textToken || t.kind == numberToken:
		p.fail(t.at, quoteWord(t.text)+" is not expected here", `a comparison begins with what is compared, for example failures > 3; between two stands && or ||`)
	default:
		p.fail(t.at, quoteWord(t.text)+" is not expected here", "between two comparisons stands && or ||")
	}
}

// quoteWord shows a piece of the text in quotes, cut when it is long.
func quoteWord(s string) string {
	if s = cut(s, 40); strings.HasPrefix(s, `"`) {
		return s
	}
	return strconv.Quote(s)
}

var operators = []string{"==", "!=", "<", "<=", ">", ">=", "~", "contains"}

// comparison reads what follows the word t: perhaps an argument, an operator and a value.
func (p *parser) comparison(t token) holds {
	f := fieldCalled(t.text)
	if f == nil {
		p.unknown(t)
	}
	argument := ""
	if f != nil && f.kind == foundField || f == nil && p.peek().text == "(" {
		argument = p.argument(t)
	}
	op := p.peek()
	if op.kind != signToken && op.kind != wordToken || !slices.Contains(operators, op.text) {
		return p.alone(t, f, argument)
	}
	p.next++
	value := p.take()
	switch {
	case value.kind == endOfText:
		p.fail(value.at, "there is no value after "+op.text, "write what "+t.text+" is compared with")
		return never
	case value.kind == badToken:
		return never
	case value.kind == signToken || value.kind == wordToken && value.text != "true" && value.text != "false":
		mend := "text stands in quotes: " + t.text + " " + op.text + " " + strconv.Quote(value.text)
		if value.kind == signToken {
			mend = "write a number, a duration or \"text\" after " + op.text
		}
		p.fail(value.at, quoteWord(value.text)+" is not a value", mend)
		if value.kind == signToken {
			p.recover()
		}
		return never
	case f == nil:
		return never
	}
	return p.compile(f, argument, op, value)
}

func (p *parser) unknown(t token) {
	if t.text == "and" || t.text == "or" || t.text == "not" {
		p.fail(t.at, quoteWord(t.text)+" is not expected here", "write && for and, || for or, ! for not")
		return
	}
	p.fail(t.at, quoteWord(t.text)+" is not known", "write one of "+strings.Join(fieldNames(), ", "))
}

// argument reads ("name").
func (p *parser) argument(t token) string {
	mend := `write a name in brackets and quotes, for example header("event-id") or json("order.id")`
	open := p.peek()
	if !p.sign("(") {
		p.fail(open.at, t.text+" needs a name", mend)
		return ""
	}
	name := p.peek()
	if name.kind != textToken {
		p.fail(name.at, t.text+" needs a name", mend)
		p.recover()
		p.sign(")")
		return ""
	}
	p.next++
	if next := p.peek(); !p.sign(")") {
		p.fail(next.at, "the bracket is not closed", "write ) after "+quoteWord(name.value))
	}
	return name.value
}

// alone compiles what is not compared with anything.
func (p *parser) alone(t token, f *field, argument string) holds {
	switch {
	case f == nil:
		return never
	case f.kind == yesField:
		return func(s *subject) bool { return f.yes(s) }
	case f.kind == foundField:
		return func(s *subject) bool { _, ok := f.found(s, argument); return ok }
	}
	p.fail(t.at, t.text+" is compared with nothing", "write "+f.example())
	p.recover()
	return never
}
