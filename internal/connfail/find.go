package connfail

import "errors"

// most is how many errors of a tree are looked at: more than any driver joins.
const most = 200

// Find returns the rule for err, and the sign by which it was found; no sign and a rule that says so if there is none.
func Find(err error) (Rule, string) {
	f := finder{rule: &unknown, left: most}
	f.look(err)
	if f.sign == "" && timedOut(err) {
		return *bySign["timeout"], "timeout"
	}
	return *f.rule, f.sign
}

type finder struct {
	rule *Rule
	sign string
	left int
}

// look goes through the tree of err. What is recognised is not looked into: what it wraps is how it came about.
func (f *finder) look(err error) {
	for err != nil && f.left > 0 {
		f.left--
		if sign := signOf(err); sign != "" {
			f.take(sign)
			return
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			for _, inner := range e.Unwrap() {
				f.look(inner)
			}
			return
		default:
			return
		}
	}
}

// take keeps the weightier of two rules, and of two that weigh the same the more hopeful.
func (f *finder) take(sign string) {
	rule := ruleOf(sign)
	if rule == nil {
		return
	}
	if f.sign == "" || rule.weight > f.rule.weight || rule.weight == f.rule.weight &&
		rule.Opening.hope() > f.rule.Opening.hope() {
		f.rule, f.sign = rule, sign
	}
}

// hope orders decisions: one server that may come back is enough to go on.
func (d Decision) hope() int {
	switch d {
	case Slower:
		return 2
	case Again:
		return 1
	}
	return 0
}

// ruleOf finds the rule of a sign: its own, or that of its class.
func ruleOf(sign string) *Rule {
	if rule := bySign[sign]; rule != nil {
		return rule
	}
	if isSQLState(sign) {
		if rule := bySign[sign[:2]+"xxx"]; rule != nil {
			return rule
		}
		return bySign["SQLSTATE"]
	}
	return nil
}

func timedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}
