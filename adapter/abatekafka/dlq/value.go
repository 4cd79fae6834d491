package dlq

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/expr-lang/expr/ast"
)

// valueKind is what a value of an expression is.
type valueKind int

const (
	textValue valueKind = iota
	numberValue
	durationValue
	yesValue // true or false
)

// value is what a field is compared with.
type value struct {
	kind     valueKind
	at       int    // its column
	shown    string // as people write it
	text     string
	number   number
	duration time.Duration
}

// value reads what stands behind an operator. It is false after a mistake.
func (c *comparisons) value(left ast.Node, op operator, node ast.Node) (v value, ok bool) {
	v = value{at: c.at(node), shown: node.String()}
	switch n := node.(type) {
	case *ast.StringNode:
		v.text = n.Value
		return v, true
	case *ast.BoolNode:
		v.kind = yesValue
		return v, true
	case *ast.BuiltinNode:
		if text, called := duration(n); called {
			var err error
			v.kind, v.shown = durationValue, text
			v.duration, err = parseDuration(text)
			return v, err == nil
		}
	case *ast.IdentifierNode:
		c.fail(v.at, quoteWord(n.Value)+" is not a value",
			"text stands in quotes: "+left.String()+" "+op.text+" "+strconv.Quote(n.Value))
		return v, false
	}
	if v.number, ok = numeral(node); ok {
		v.kind, v.shown = numberValue, strings.TrimPrefix(v.shown, "+")
		return v, true
	}
	c.fail(v.at, quoteWord(v.shown)+" is not a value", `write a number, a duration or "text" after `+op.text)
	return v, false
}

// duration is the text of a duration, as translate writes it.
func duration(n *ast.BuiltinNode) (text string, ok bool) {
	if n.Name != "duration" || len(n.Arguments) != 1 {
		return "", false
	}
	argument, ok := n.Arguments[0].(*ast.StringNode)
	if !ok {
		return "", false
	}
	_, err := parseDuration(argument.Value)
	return argument.Value, err == nil
}

func numeral(node ast.Node) (n number, ok bool) {
	switch node := node.(type) {
	case *ast.IntegerNode:
		return number{whole: int64(node.Value), exact: true}, true
	case *ast.FloatNode:
		return number{near: node.Value}, true
	case *ast.UnaryNode:
		if n, ok = numeral(node.Node); ok && node.Operator == "-" {
			return number{whole: -n.whole, exact: n.exact, near: -n.near}, true
		}
	}
	return number{}, false
}

func (v value) moment() (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.Parse(layout, v.text); err == nil && v.kind == textValue {
			return t, true
		}
	}
	return time.Time{}, false
}

// number is one of an expression or a letter. Whole ones of up to 64 bits are exact: an order number of 19 digits must
// not choose its neighbours, too.
type number struct {
	whole int64
	exact bool
	near  float64 // if it is not exact
}

func readNumber(text string) (n number, ok bool) {
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil {
		return number{whole: whole, exact: true}, true
	}
	near, err := strconv.ParseFloat(text, 64)
	return number{near: near}, err == nil && near == near
}

func (n number) compare(other number) int {
	if n.exact && other.exact {
		return cmp.Compare(n.whole, other.whole)
	}
	return cmp.Compare(n.float(), other.float())
}

func (n number) float() float64 {
	if n.exact {
		return float64(n.whole)
	}
	return n.near
}

// parseDuration reads a duration of Go, or whole days: 7d.
func parseDuration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 32)
		if err != nil || n > 100_000 || n < -100_000 {
			return 0, fmt.Errorf("%q are not days", text)
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	return time.ParseDuration(text)
}

// textOf is a header's or a JSON field's value as text; objects and lists are JSON.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}
