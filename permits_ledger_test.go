package abate_test

import (
	"errors"
	"math"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/budget"
)

// ledger follows what each step of a program takes out of the budgets, and puts into them. The guard's own is the
// first, the one that it shares with others the second.
type ledger struct {
	x      *permits
	acting *permitted // nil if the step is nobody's
	now    time.Duration
	held   [2]float64
	cost   [2]float64 // by the events
	doubt  bool       // nobody can tell whether the first attempt of a repeat was paid
}

// open notes what the budgets hold before a step of c.
func (l *ledger) open(x *permits, c *permitted) {
	*l = ledger{x: x, acting: c, now: x.now, held: x.balances()}
}

// balances returns what the budgets hold, infinitely much where there is none.
func (x *permits) balances() (held [2]float64) {
	own := x.guard.Budget()
	if !x.budgeted {
		own = nil // or a default one, under some of the policies
	}
	for i, b := range []*budget.Budget{own, x.ours} {
		if held[i] = math.Inf(1); b != nil {
			held[i] = b.Balance(x.now)
		}
	}
	return held
}

func (l *ledger) pay(own, ours float64) {
	l.cost[0] += own
	l.cost[1] += ours
}

// hear notes what an event costs.
func (l *ledger) hear(e *abate.Event) {
	c := l.acting
	switch {
	case c == nil:
	case e.Kind == core.RetryScheduled && c.failed == abate.Overload:
		l.pay(overloadCost, 1)
	case e.Kind == core.RetryScheduled, e.Kind == core.HedgeSent:
		l.pay(1, 1)
	case e.Kind == core.AttemptBegan && e.Attempt == 1 && c.repeat == firstTime:
		l.x.first++
		l.pay(-extraRatio, -extraRatio)
	}
}

// drawn notes what the beginning of a repeated call has cost.
func (l *ledger) drawn(step core.Step) {
	c := l.acting
	if c.repeat == firstTime {
		return
	}
	var refused *abate.Error
	if errors.As(step.Err, &refused) {
		l.doubt = refused.Reason != abate.ErrBudgetExhausted && refused.Reason != abate.ErrTreeExhausted
		return
	}
	l.pay(l.drawnFrom(0), l.drawnFrom(1))
}

// drawnFrom is what a repeat that goes on has cost one of the budgets: its price, what it earns if it counts as a first
// attempt, or nothing if somebody above answers for it and the budget is empty.
func (l *ledger) drawnFrom(i int) float64 {
	switch {
	case l.held[i] >= 1:
		return 1
	case l.acting.lent():
		return 0
	case l.now-time.Hour < time.Minute:
		l.x.t.Errorf("a repeat goes on with %v in the budget", l.held[i])
	}
	return -extraRatio
}

const rounding = 1e-6

// close compares what the budgets hold now with what the step should have cost. Of a step that did not come to its end
// nobody has told.
func (l *ledger) close(ended bool) {
	now := l.x.balances()
	for i := range now {
		paid, least, most := l.held[i]-now[i], l.cost[i], l.cost[i]
		if l.doubt || !ended && l.acting != nil {
			most++
			if l.now-time.Hour >= time.Minute { // it may have counted as a first attempt
				least -= extraRatio
			}
		}
		if math.IsInf(now[i], 1) {
			continue
		}
		if paid < least-rounding || paid > most+rounding {
			l.x.t.Errorf("budget %d held %v and holds %v, the step should have cost %v", i, l.held[i], now[i], l.cost[i])
		}
	}
}
