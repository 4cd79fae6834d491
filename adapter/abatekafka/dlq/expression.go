package dlq

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/expr-lang/expr/vm"
)

// Expression is a condition on dead letters. It is safe for concurrent use.
type Expression struct {
	text    string
	program *vm.Program
	used    []*field // the fields that it asks for, each once
}

// longestExpression is in bytes. With mostSteps it bounds everything else: an expression has no loop and calls nothing
// but header and json, so one evaluation makes each of its comparisons at most once.
const longestExpression = 2000

// ParseExpression reads an expression; ExpressionHelp explains the language. The error is of type ExpressionErrors. It
// lists everything that is wrong with the comparisons, or the first place where the text cannot be read.
func ParseExpression(text string) (*Expression, error) {
	switch {
	case len(text) > longestExpression:
		return nil, mistake(1, strconv.Itoa(len(text))+" bytes are too long",
			"write at most "+strconv.Itoa(longestExpression))
	case !utf8.ValidString(text):
		return nil, mistake(1, "it is not UTF-8 text", "compare bytes in another way, for example with size or a header")
	case strings.TrimSpace(text) == "":
		return nil, mistake(1, "there is no expression", `write one, for example class == "timeout"`)
	}
	s := translate(text)
	if len(s.errs) > 0 {
		return nil, s.errs
	}
	return s.compile(text)
}

// Match reports whether it holds for e at now. Its time and memory are bounded by the lengths of the expression and of
// the letter. Cost: about 1 µs, and reading the value once if json is asked for.
func (x *Expression) Match(e *Entry, now time.Time) bool {
	s := &subject{e: e, now: now}
	env := make(map[string]any, len(x.used)+1)
	env[subjectName] = s
	for _, f := range x.used {
		if f.of != nil {
			env[f.name] = f.of(s)
		}
	}
	holds, err := vm.Run(x.program, env) // no error: every operand's type was checked
	return err == nil && holds == true
}

// String is the text that it was made of.
func (x *Expression) String() string { return x.text }

// Uses reports whether it asks for a field: "value", "header".
func (x *Expression) Uses(name string) bool {
	return slices.ContainsFunc(x.used, func(f *field) bool { return f.name == name })
}

// ExpressionError is one mistake in an expression.
type ExpressionError struct {
	Column  int    // where it begins, from 1, in characters
	Problem string // what is wrong
	Fix     string // what to write instead
}

// Error is, for instance: column 1: "clas" is not known; write one of class, ...
func (e *ExpressionError) Error() string {
	return fmt.Sprintf("column %d: %s; %s", e.Column, e.Problem, e.Fix)
}

// ExpressionErrors are the mistakes in an expression, in its order, one for each place.
type ExpressionErrors []*ExpressionError

// Error is one line for each.
func (e ExpressionErrors) Error() string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].Error()
	}
	return strings.Join(lines, "\n")
}

func mistake(column int, problem, fix string) ExpressionErrors {
	return ExpressionErrors{{column, problem, fix}}
}

// ExpressionHelp explains the language in lines of at most 100 columns, for help texts and pages.
const ExpressionHelp = `An expression compares what a dead letter says, and joins comparisons with && || ! ( ):

  class == "*net.OpError" && failures > 3
  key ~ "^cust-" && header("event-id") == "7"
  value contains "eur" && age < 2h
  topic == "payments" && !(json("order.amount") <= 10)

  text        class message trace reason group topic key value dialect id   == != ~ contains
              (~ is a regular expression, RE2; group is the consumer group, id that of the letter's
              group; topic is the original one; key and value are the original ones)
  numbers     failures replays partition offset size at.partition at.offset == != < <= > >=
              (partition and offset are the original ones, at.… those of the dead letter)
  a duration  age, since it was written: 90s, 2h, 1h30m, 7d                 < <= > >=
  times       written first last timestamp, as "2026-01-31T10:20:30Z"       < <= > >=
  yes or no   pointer: its value was too large to be forwarded              alone, or with !
  found       header("name") json("order.items.0.id")                       any, or alone

A header or a JSON field that is not there equals nothing: only != holds for it.
`
