// Package connfail judges why a connection could not be opened, or a statement not be carried out: what a second try
// may fix, what it cannot, and when the other side has too much to do.
//
// It knows the errors of PostgreSQL, MySQL and Redis by what their drivers have in common, and imports none of them: a
// method SQLState, a method RedisError, a text. Rules is the whole of what it knows, and docs/connections.md shows it.
//
// An error may be a tree: a driver that tried several addresses joins what each came to. Then what a server has said
// counts more than what happened on the way to another, and among equals the hopeful one.
package connfail

import (
	"errors"
	"fmt"

	"github.com/abate-go/abate"
)

// Classify judges the error of an attempt to open a connection, as a Policy.Classify does. What it does not know is a
// failure that is tried again. An error that is nil is a success.
func Classify(err error) abate.Outcome {
	if err == nil {
		return abate.Outcome{}
	}
	rule, _ := Find(err)
	return rule.Opening.outcome(err)
}

// ClassifyStatement is Classify for a statement that may be repeated, and for what may go wrong before it: most of what
// a database says to a statement is an answer, and no failure of the database.
func ClassifyStatement(err error) abate.Outcome {
	if err == nil {
		return abate.Outcome{}
	}
	rule, _ := Find(err)
	return rule.Statement.outcome(err)
}

// Mark returns err with the mark by which abate.Do and an Admission see what Classify says of it. Who knows better goes
// first: a guard whose policy has a Classify gets err as it is, and so does an error that is marked already.
func Mark(g *abate.Guard, err error) error { return mark(g, err, Classify) }

// MarkStatement is Mark with ClassifyStatement.
func MarkStatement(g *abate.Guard, err error) error { return mark(g, err, ClassifyStatement) }

func mark(g *abate.Guard, err error, classify func(error) abate.Outcome) error {
	if err == nil || g.Describe().Classify != nil {
		return err
	}
	if o := g.Judge(err); o.Class != abate.Failure || o.NoRetry { // only a mark says that
		return err
	}
	switch o := classify(err); {
	case o.Class == abate.Ignored:
		return abate.Ignore(err)
	case o.Class == abate.Overload:
		return abate.RetryAfter(err, o.RetryAfter)
	case o.NoRetry:
		return abate.Permanent(err)
	}
	return err
}

// Explain says in one line for people what err means for the opening of a connection, what is done about it and what
// they can do: "wrong user or password (28P01): not tried again; check the user and the secret". It does not repeat
// err. Of nil it says nothing.
func Explain(err error) string {
	if err == nil {
		return ""
	}
	rule, sign := Find(err)
	if sign != "" {
		return fmt.Sprintf("%s (%s): %s; %s", rule.Name, sign, rule.Opening, rule.Hint)
	}
	var refusal *abate.Error
	if errors.As(err, &refusal) && refusal.Attempts == 0 {
		return fmt.Sprintf("%v: the guard sent nothing; look for the failures before it", refusal.Reason)
	}
	return fmt.Sprintf("%s: %s; %s", rule.Name, rule.Opening, rule.Hint)
}
