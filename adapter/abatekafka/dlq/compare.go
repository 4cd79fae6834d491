package dlq

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// compile makes a condition of a field, an operator and a value.
func (p *parser) compile(f *field, argument string, op, value token) holds {
	switch f.kind {
	case textField:
		if value.kind != textToken {
			p.fail(value.at, f.name+" is text", "put the value in quotes: "+f.name+" "+op.text+" "+strconv.Quote(value.text))
			return never
		}
		if fits := p.textual(f, op, value); fits != nil {
			return func(s *subject) bool { return fits(f.text(s)) }
		}
	case numberField, durationField:
		fits := p.order(f, op)
		if want, ok := p.number(f, value); ok && fits != nil {
			return func(s *subject) bool { return fits(number{whole: f.num(s), exact: true}.compare(want)) }
		}
	case timeField:
		fits := p.order(f, op)
		if want, ok := p.moment(f, value); ok && fits != nil {
			return func(s *subject) bool { t := f.time(s); return !t.IsZero() && fits(t.Compare(want)) }
		}
	case foundField:
		return p.found(f, argument, op, value)
	case yesField:
		p.fail(op.at, f.name+" is compared with nothing", "write "+f.example())
	}
	return never
}

// textual makes a condition on text.
func (p *parser) textual(f *field, op, value token) func(string) bool {
	want := value.value
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
			p.fail(value.at, "the regular expression cannot be read: "+strings.TrimPrefix(err.Error(), "error parsing regexp: "), `write one as RE2 has them, for example "^cust-[0-9]+$"`)
			return nil
		}
		return re.MatchString
	}
	p.fail(op.at, "text has no order: "+quoteWord(op.text)+" cannot compare "+f.name, "write ==, !=, ~ or contains")
	return nil
}

// order makes a condition on the result of a comparison.
func (p *parser) order(f *field, op token) func(int) bool {
	switch op.text {
	case "==":
		return func(c int) bool { return c == 0 }
	case "!=":
		return func(c int) bool { return c != 0 }
	case "<":
		return func(c int) bool { return c < 0 }
	case "<=":
		return func(c int) bool { return c <= 0 }
	case ">":
		return func(c int) bool { return c > 0 }
	case ">=":
		return func(c int) bool { return c >= 0 }
	}
	p.fail(op.at, f.name+" is not text: "+quoteWord(op.text)+" cannot compare it", "write ==, !=, <, <=, > or >=")
	return nil
}

// number reads a number or, for a field that is one, a duration.
func (p *parser) number(f *field, value token) (number, bool) {
	if f.kind == durationField {
		d, err := parseDuration(value.text)
		if value.kind != numberToken || err != nil {
			p.fail(value.at, quoteWord(value.text)+" is not a duration", "write one with its unit and without quotes, for example "+f.example())
			return number{}, false
		}
		return number{whole: int64(d), exact: true}, true
	}
	n, ok := readNumber(value.text)
	if value.kind != numberToken || !ok {
		p.fail(value.at, quoteWord(value.text)+" is not a number", "write one without unit and quotes, for example "+f.example())
		return number{}, false
	}
	return n, true
}

// number is one of an expression or a letter. Whole ones of up to 64 bits are exact: an order number of 19 digits must not choose its neighbours, too.
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

func (p *parser) moment(f *field, value token) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.Parse(layout, value.value); err == nil && value.kind == textToken {
			return t, true
		}
	}
	p.fail(value.at, quoteWord(value.text)+" is not a time", "write one in quotes, UTC without a zone: "+f.example())
	return time.Time{}, false
}

// found makes a condition on a header or a JSON field: text compares as text, a number as a number if the letter has one there.
func (p *parser) found(f *field, argument string, op, value token) holds {
	var fits func(any) bool
	switch value.kind {
	case textToken:
		if textual := p.textual(f, op, value); textual != nil {
			fits = func(v any) bool { return textual(textOf(v)) }
		}
	case wordToken:
		if op.text != "==" && op.text != "!=" {
			p.fail(op.at, value.text+" has no order", "write == or !=")
			return never
		}
		fits = func(v any) bool { return (textOf(v) == value.text) == (op.text == "==") }
	case numberToken:
		want, ok := readNumber(value.text)
		if !ok {
			p.fail(value.at, quoteWord(value.text)+" is not a number", "write one without a unit, or text in quotes")
			return never
		}
		ordered := p.order(f, op)
		if ordered == nil {
			return never
		}
		fits = func(v any) bool {
			n, ok := readNumber(strings.TrimSpace(textOf(v)))
			return ok && ordered(n.compare(want)) || !ok && op.text == "!="
		}
	}
	if fits == nil {
		return never
	}
	return func(s *subject) bool {
		v, ok := f.found(s, argument)
		return ok && fits(v) || !ok && op.text == "!="
	}
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
