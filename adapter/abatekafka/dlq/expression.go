package dlq

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Expression is a condition on dead letters. It is safe for concurrent use.
type Expression struct {
	text  string
	words []string // what it compares
	holds
}

// holds decides about one letter.
type holds func(s *subject) bool

// subject is the letter that an expression is asked about.
type subject struct {
	e      *Entry
	now    time.Time
	value  any // of its JSON
	parsed bool
}

// Match tells whether it holds for e at now. Cost: some 10 ns for each comparison, and reading the value once if json is asked for.
func (x *Expression) Match(e *Entry, now time.Time) bool { return x.holds(&subject{e: e, now: now}) }

// String is the text that it was made of.
func (x *Expression) String() string { return x.text }

// Uses tells whether it asks for a field: "value", "header".
func (x *Expression) Uses(field string) bool { return slices.Contains(x.words, field) }

// ExpressionError is one mistake in an expression.
type ExpressionError struct {
	Column  int    // where it begins, from 1, in characters
	Problem string // what is wrong
	Mend    string // what to write instead
}

// Error is, for instance: column 1: "clas" is not known; write one of class, ...
func (e *ExpressionError) Error() string {
	return fmt.Sprintf("column %d: %s; %s", e.Column, e.Problem, e.Mend)
}

// ExpressionErrors are all mistakes in an expression, in its order.
type ExpressionErrors []*ExpressionError

// Error is one line for each.
func (e ExpressionErrors) Error() string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].Error()
	}
	return strings.Join(lines, "\n")
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
