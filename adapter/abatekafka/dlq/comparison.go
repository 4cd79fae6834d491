package dlq

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/parser"
)

// comparisons checks that a tree of package expr has nothing but comparisons of a field with a value, joined by && ||
// and !. So there are no loops, no ranges and no text that grows, and nothing can be asked for without its name. It
// replaces what package expr cannot compare as this language does: times, headers and fields of JSON.
type comparisons struct {
	*source
	used  []*field
	steps int // of all regular expressions
}

// mostSteps bounds how long the regular expressions of an expression take: each step at most once for each byte of the
// text.
const mostSteps = 1000

// The names in an environment that no expression can use, because no field is called so.
const (
	subjectName = "letter"
	holdsName   = "holds"
)

// condition decides about one dead letter.
type condition func(*subject) bool

// compile makes a program of the translation.
func (s *source) compile(text string) (*Expression, error) {
	env := map[string]any{subjectName: &subject{}}
	for i := range fields {
		if f := &fields[i]; f.of != nil {
			env[f.name] = f.of(&subject{e: &Entry{}})
		}
	}
	config := conf.New(env)
	expr.Function(holdsName, func(args ...any) (any, error) {
		return (*args[1].(*condition))(args[0].(*subject)), nil
	}, new(func(*subject, *condition) bool))(config)
	tree, err := parser.ParseWithConfig(s.out.String(), config)
	if err != nil {
		s.unreadable(err)
		return nil, s.errs
	}
	c := &comparisons{source: s}
	if c.condition(&tree.Node); len(s.errs) > 0 {
		slices.SortStableFunc(s.errs, func(a, b *ExpressionError) int { return a.Column - b.Column })
		return nil, s.errs
	}
	if _, err = checker.Check(tree, config); err == nil {
		x := &Expression{text: text, used: c.used}
		if x.program, err = compiler.Compile(tree, config); err == nil {
			return x, nil
		}
	}
	s.unreadable(err)
	return nil, s.errs
}

// condition checks what is true or false.
func (c *comparisons) condition(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.BinaryNode:
		if n.Operator == "&&" || n.Operator == "||" || n.Operator == "and" || n.Operator == "or" {
			c.condition(&n.Left)
			c.condition(&n.Right)
			return
		}
		if not, ok := n.Left.(*ast.UnaryNode); ok && negates(not) { // !failures > 3 is !(failures > 3)
			n.Left, not.Node = not.Node, n
			*node = not
			c.condition(node)
			return
		}
		c.comparison(node, n)
	case *ast.UnaryNode:
		if negates(n) {
			c.condition(&n.Node)
			return
		}
		c.field(n)
	default:
		c.alone(node)
	}
}

func negates(n *ast.UnaryNode) bool { return n.Operator == "!" || n.Operator == "not" }

// at is the column of a node.
func (c *comparisons) at(n ast.Node) int { return c.column(n.Location().From) }

// alone checks what is not compared with anything.
func (c *comparisons) alone(node *ast.Node) {
	f, name := c.field(*node)
	switch {
	case f == nil:
	case f.kind == yesField:
		*node = &ast.IdentifierNode{Value: f.name}
	case f.kind == foundField:
		*node = call(func(s *subject) bool { _, ok := f.found(s, name); return ok })
	default:
		c.fail(c.at(*node), f.name+" is compared with nothing", "write "+f.example())
	}
}

// call is a node that asks for a condition.
func call(holds condition) ast.Node {
	return &ast.CallNode{
		Callee:    &ast.IdentifierNode{Value: holdsName},
		Arguments: []ast.Node{&ast.IdentifierNode{Value: subjectName}, &ast.ConstantNode{Value: &holds}},
	}
}

// field is what a node asks for, and the name in its brackets. It is nil after a mistake.
func (c *comparisons) field(node ast.Node) (f *field, name string) {
	const example = `write a name in brackets and quotes, for example header("event-id") or json("order.id")`
	at := node
	switch n := node.(type) {
	case *ast.IdentifierNode:
		name = n.Value
	case *ast.MemberNode:
		if base, ok := n.Node.(*ast.IdentifierNode); ok {
			if property, ok := n.Property.(*ast.StringNode); ok {
				at, name = base, base.Value+"."+property.Value
			}
		}
	case *ast.CallNode:
		if callee, ok := n.Callee.(*ast.IdentifierNode); ok {
			at, name = callee, callee.Value
		}
	}
	if name == "" {
		c.fail(c.at(node), quoteWord(node.String())+" is not expected here",
			`a comparison begins with what is compared, for example failures > 3; between two stands && or ||`)
		return nil, ""
	}
	f = fieldCalled(name)
	called, isCall := node.(*ast.CallNode)
	switch {
	case f == nil || isCall && f.kind != foundField:
		c.fail(c.at(at), quoteWord(name)+" is not known", "write one of "+strings.Join(fieldNames(), ", "))
		return nil, ""
	case f.kind != foundField:
		name = ""
	case !isCall || len(called.Arguments) != 1:
		c.fail(c.at(at), f.name+" needs a name", example)
		return nil, ""
	default:
		argument, ok := called.Arguments[0].(*ast.StringNode)
		if !ok {
			c.fail(c.at(called.Arguments[0]), f.name+" needs a name", example)
			return nil, ""
		}
		name = argument.Value
	}
	if !slices.Contains(c.used, f) {
		c.used = append(c.used, f)
	}
	return f, name
}

// comparison checks a field, an operator and a value.
func (c *comparisons) comparison(node *ast.Node, n *ast.BinaryNode) {
	op := operator{text: n.Operator, at: c.at(n)}
	if op.text == "matches" {
		op.text = "~"
	}
	if !slices.Contains(operators, op.text) {
		c.fail(op.at, quoteWord(op.text)+" is not expected here", "compare with one of "+strings.Join(operators, " "))
		return
	}
	f, name := c.field(n.Left)
	v, ok := c.value(n.Left, op, n.Right)
	if f == nil || !ok {
		return
	}
	n.Left = &ast.IdentifierNode{Value: f.name}
	switch f.kind {
	case textField:
		if v.kind != textValue {
			c.fail(v.at, f.name+" is text", "put the value in quotes: "+f.name+" "+op.text+" "+strconv.Quote(v.shown))
			return
		}
		c.textual(f, op, v)
	case numberField:
		if c.ordered(f, op); v.kind != numberValue {
			c.fail(v.at, quoteWord(v.shown)+" is not a number", "write one without unit and quotes, for example "+f.example())
		}
	case durationField:
		zero := v.kind == numberValue && v.number == number{exact: true} // needs no unit
		if c.ordered(f, op); v.kind != durationValue && !zero {
			c.fail(v.at, quoteWord(v.shown)+" is not a duration",
				"write one with its unit and without quotes, for example "+f.example())
		}
		n.Right = &ast.ConstantNode{Value: v.duration}
	case timeField:
		c.moment(node, f, op, v)
	case foundField:
		c.found(node, f, name, op, v)
	case yesField:
		c.fail(op.at, f.name+" is compared with nothing", "write "+f.example())
	}
}

// moment compares a time. One that is not known is compared with nothing.
func (c *comparisons) moment(node *ast.Node, f *field, op operator, v value) {
	fits, ok := c.ordered(f, op)
	want, isTime := v.moment()
	if !isTime {
		c.fail(v.at, quoteWord(v.shown)+" is not a time", "write one in quotes, UTC without a zone: "+f.example())
	}
	if ok && isTime {
		*node = call(func(s *subject) bool { t := f.of(s).(time.Time); return !t.IsZero() && fits(t.Compare(want)) })
	}
}

// found compares a header or a JSON field: text as text, a number as a number if the letter has one there.
func (c *comparisons) found(node *ast.Node, f *field, name string, op operator, v value) {
	var fits func(any) bool
	switch v.kind {
	case textValue:
		textual := c.textual(f, op, v)
		fits = func(found any) bool { return textual(textOf(found)) }
	case yesValue:
		if op.text != "==" && op.text != "!=" {
			c.fail(op.at, v.shown+" has no order", "write == or !=")
		}
		fits = func(found any) bool { return (textOf(found) == v.shown) == (op.text == "==") }
	case numberValue:
		ordered, _ := c.ordered(f, op)
		fits = func(found any) bool {
			n, ok := readNumber(strings.TrimSpace(textOf(found)))
			return ok && ordered(n.compare(v.number)) || !ok && op.text == "!="
		}
	default:
		c.fail(v.at, quoteWord(v.shown)+" is not a number", "write one without a unit, or text in quotes")
	}
	*node = call(func(s *subject) bool {
		found, ok := f.found(s, name)
		return ok && fits(found) || !ok && op.text == "!="
	})
}

// operator is what stands between a field and a value.
type operator struct {
	text string
	at   int // its column
}

var operators = []string{"==", "!=", "<", "<=", ">", ">=", "~", "contains"}

// textual is a condition on text. It is nil after a mistake.
func (c *comparisons) textual(f *field, op operator, v value) func(string) bool {
	want := v.text
	switch op.text {
	case "==":
		return func(s string) bool { return s == want }
	case "!=":
		return func(s string) bool { return s != want }
	case "contains":
		return func(s string) bool { return strings.Contains(s, want) }
	case "~":
		re, err := regexp.Compile(want)
		if err != nil {
			c.fail(v.at, "the regular expression cannot be read: "+strings.TrimPrefix(err.Error(), "error parsing regexp: "),
				`write one as RE2 has them, for example "^cust-[0-9]+$"`)
			return nil
		}
		if c.steps += steps(want); c.steps > mostSteps {
			c.fail(v.at, "the regular expressions have more than "+strconv.Itoa(mostSteps)+" steps",
				"write shorter ones: x{100} has 100 steps")
			return nil
		}
		return re.MatchString
	}
	c.fail(op.at, "text has no order: "+quoteWord(op.text)+" cannot compare "+f.name, "write ==, !=, ~ or contains")
	return nil
}

// steps is the size of a regular expression, which counts repeated parts as often as they may be there.
func steps(text string) int {
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0
	}
	program, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0
	}
	return len(program.Inst)
}

// ordered is a condition on the result of a comparison. It is false after a mistake.
func (c *comparisons) ordered(f *field, op operator) (fits func(int) bool, ok bool) {
	switch op.text {
	case "==":
		return func(c int) bool { return c == 0 }, true
	case "!=":
		return func(c int) bool { return c != 0 }, true
	case "<":
		return func(c int) bool { return c < 0 }, true
	case "<=":
		return func(c int) bool { return c <= 0 }, true
	case ">":
		return func(c int) bool { return c > 0 }, true
	case ">=":
		return func(c int) bool { return c >= 0 }, true
	}
	c.fail(op.at, f.name+" is not text: "+quoteWord(op.text)+" cannot compare it", "write ==, !=, <, <=, > or >=")
	return nil, false
}

// quoteWord shows a piece of the text in quotes, cut when it is long.
func quoteWord(s string) string {
	if s = cut(s, 40); strings.HasPrefix(s, `"`) {
		return s
	}
	return strconv.Quote(s)
}
